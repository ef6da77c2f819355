//! Where a setting was said: which flag, variable, or line of the file.

use std::fmt;
use std::path::PathBuf;

use toml::de::{DeTable, DeValue};

/// Where a setting was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag of the command.
    Flag(String),
    /// An environment variable.
    Variable(String),
    /// A line of the file, counted from 1.
    Line(PathBuf, usize),
    /// The file as a whole.
    File(PathBuf),
    /// Nowhere.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Line(path, line) => write!(f, "{}:{line}", path.display()),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// One step of the way to a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Key(String),
    Index(usize),
}

/// The way to a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyPath(pub(crate) Vec<Segment>);

impl KeyPath {
    /// Reads `agents[0].rules[2].steps`.
    pub(crate) fn parse(text: &str) -> Self {
        let pieces = text.split(['.', '[']).filter(|piece| !piece.is_empty());
        let segment = |piece: &str| match piece.strip_suffix(']').map(str::parse) {
            Some(Ok(index)) => Segment::Index(index),
            _ => Segment::Key(piece.to_owned()),
        };
        Self(pieces.map(segment).collect())
    }

    /// Takes the path at which reading failed.
    pub(crate) fn of(path: &serde_path_to_error::Path) -> Self {
        use serde_path_to_error::Segment as Part;
        let segments = path.iter().filter_map(|part| match part {
            Part::Seq { index } => Some(Segment::Index(*index)),
            Part::Map { key } => Some(Segment::Key(key.clone())),
            Part::Enum { variant } => Some(Segment::Key(variant.clone())),
            Part::Unknown => None,
        });
        Self(segments.collect())
    }

    /// The last key of the way.
    pub(crate) fn last_key(&self) -> Option<&str> {
        self.0.iter().rev().find_map(|segment| match segment {
            Segment::Key(key) => Some(key.as_str()),
            Segment::Index(_) => None,
        })
    }

    /// The first two keys, as environment variables and flags name settings.
    pub(crate) fn head(&self) -> Vec<&str> {
        let keys = self.0.iter().map_while(|segment| match segment {
            Segment::Key(key) => Some(key.as_str()),
            Segment::Index(_) => None,
        });
        keys.take(2).collect()
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if index == 0 => f.write_str(key)?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(number) => write!(f, "[{number}]")?,
            }
        }
        Ok(())
    }
}

/// A place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Counted from 1.
    pub(crate) line: usize,
    /// Whether it is the setting itself, not something around it.
    pub(crate) whole: bool,
}

/// The place of a setting, or of the innermost thing around it that the file says; `None` if the
/// file says nothing about it.
pub(crate) fn place_of(text: &str, path: &KeyPath) -> Option<Place> {
    let document = DeTable::parse(text).ok()?;
    let mut table = Some(document.get_ref());
    let mut array = None;
    let (mut offset, mut whole) = (None, true);
    for segment in &path.0 {
        let found = match segment {
            Segment::Key(key) => table.take().and_then(|table| entry(table, key)),
            Segment::Index(index) => array.take().and_then(|array: &toml::de::DeArray<'_>| {
                array
                    .get(*index)
                    .map(|value| (value.span().start, value.get_ref()))
            }),
        };
        let Some((start, value)) = found else {
            whole = false;
            break;
        };
        offset = Some(start);
        match value {
            DeValue::Table(inner) => table = Some(inner),
            DeValue::Array(inner) => array = Some(inner),
            _ => {}
        }
    }
    offset.map(|offset| Place {
        line: line_at(text, offset),
        whole,
    })
}

fn entry<'a>(table: &'a DeTable<'_>, key: &str) -> Option<(usize, &'a DeValue<'a>)> {
    let (name, value) = table.iter().find(|(name, _)| name.get_ref() == key)?;
    Some((name.span().start, value.get_ref()))
}

/// The line of a byte, counted from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}
