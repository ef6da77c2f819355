//! Reading the objects of 0.3 from a tree: both JSON forms, any spelling, with the path.
//!
//! A tree, unlike the visitors of 1.0, since what a member means may depend on its neighbours.

use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::Form;
use crate::Metadata;
use crate::json::{self, DecodeError};
use crate::wire::Int32;

/// What reading gives.
pub(super) type Read<T> = Result<T, DecodeError>;

/// Whose text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// A client's: what is plainly of another version is refused with a hint.
    Request,
    /// An agent's: every form that can be understood is taken.
    Reply,
}

/// An object whose members are taken out one by one; those left over are ignored.
#[derive(Debug)]
pub(super) struct Object {
    members: Map<String, Value>,
    path: String,
    pub(super) form: Form,
    pub(super) side: Side,
}

impl Object {
    /// Reads a checked text that holds an object.
    pub(super) fn parse(text: &str, form: Form, side: Side) -> Read<Self> {
        Self::new(json::decode_checked(text)?, String::new(), form, side)
    }

    pub(super) fn new(value: Value, path: String, form: Form, side: Side) -> Read<Self> {
        match value {
            Value::Object(members) => Ok(Self {
                members,
                path,
                form,
                side,
            }),
            _ => Err(DecodeError::data(path, "expected an object")),
        }
    }

    /// The path of a member.
    pub(super) fn path_of(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    /// The error that a member is wrong.
    pub(super) fn wrong(&self, name: &str, message: impl Into<String>) -> DecodeError {
        DecodeError::data(self.path_of(name), message)
    }

    /// The error that this object itself is wrong.
    pub(super) fn wrong_itself(&self, message: impl Into<String>) -> DecodeError {
        DecodeError::data(self.path.clone(), message)
    }

    /// Whether there is such a member that is not null.
    pub(super) fn has(&self, name: &str) -> bool {
        let set = |name: &str| self.members.get(name).is_some_and(|value| !value.is_null());
        set(name) || set(&snake_case(name))
    }

    /// Refuses a request that has a member only 1.0 has.
    pub(super) fn refuse_newer(&self, name: &str, instead: &str) -> Read<()> {
        if self.side == Side::Request && self.has(name) {
            return Err(self.newer(name, instead));
        }
        Ok(())
    }

    /// The error that a member is spelt as in 1.0.
    pub(super) fn newer(&self, name: &str, instead: &str) -> DecodeError {
        let hint = format!("this is a member of protocol 1.0; 0.3 has {instead}");
        self.wrong(name, hint)
    }

    /// Takes a member in either spelling; null is absent, both spellings at once are refused.
    pub(super) fn take(&mut self, name: &str) -> Read<Option<Value>> {
        self.take_any(&[name])
    }

    /// Takes a member that has several names; errors speak of the first.
    pub(super) fn take_any(&mut self, names: &[&str]) -> Read<Option<Value>> {
        let mut found = None;
        for name in names {
            let snake = snake_case(name);
            let other = if snake == *name {
                None
            } else {
                self.members.remove(&snake)
            };
            for value in self.members.remove(*name).into_iter().chain(other) {
                if found.replace(value).is_some() {
                    return Err(self.wrong(names[0], "is given in two spellings"));
                }
            }
        }
        Ok(found.filter(|value| !value.is_null()))
    }

    /// Takes a text; an empty one is absent.
    pub(super) fn text(&mut self, name: &str) -> Read<Option<String>> {
        Ok(self.any_text(name)?.filter(|text| !text.is_empty()))
    }

    /// Takes a text, which may be empty.
    pub(super) fn any_text(&mut self, name: &str) -> Read<Option<String>> {
        match self.take(name)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "expected a string")),
        }
    }

    /// Takes an id; empty if absent.
    pub(super) fn id<T: From<String>>(&mut self, name: &str) -> Read<T> {
        Ok(self.any_text(name)?.unwrap_or_default().into())
    }

    /// Takes an optional id; an empty one is absent.
    pub(super) fn some_id<T: From<String>>(&mut self, name: &str) -> Read<Option<T>> {
        Ok(self.text(name)?.map(T::from))
    }

    pub(super) fn flag(&mut self, name: &str) -> Read<Option<bool>> {
        match self.take(name)? {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.wrong(name, "expected true or false")),
        }
    }

    pub(super) fn int(&mut self, name: &str) -> Read<Option<i32>> {
        let Some(value) = self.take(name)? else {
            return Ok(None);
        };
        Int32::deserialize(value)
            .map(|number| Some(number.0))
            .map_err(|error| self.wrong(name, error.to_string()))
    }

    pub(super) fn metadata(&mut self) -> Read<Option<Metadata>> {
        match self.take("metadata")? {
            None => Ok(None),
            Some(Value::Object(metadata)) => Ok(Some(metadata)),
            Some(_) => Err(self.wrong("metadata", "expected an object")),
        }
    }

    pub(super) fn object(&mut self, names: &[&str]) -> Read<Option<Self>> {
        let path = self.path_of(names[0]);
        self.take_any(names)?
            .map(|value| Self::new(value, path, self.form, self.side))
            .transpose()
    }

    fn items(&mut self, names: &[&str]) -> Read<Vec<Value>> {
        match self.take_any(names)? {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.wrong(names[0], "expected a list")),
        }
    }

    /// Takes a list of objects.
    pub(super) fn list<T>(
        &mut self,
        names: &[&str],
        read: impl Fn(Self) -> Read<T>,
    ) -> Read<Vec<T>> {
        let path = self.path_of(names[0]);
        let (form, side) = (self.form, self.side);
        self.items(names)?
            .into_iter()
            .enumerate()
            .map(|(place, item)| read(Self::new(item, format!("{path}[{place}]"), form, side)?))
            .collect()
    }

    /// Takes a list of texts.
    pub(super) fn texts<T: From<String>>(&mut self, name: &str) -> Read<Vec<T>> {
        let path = self.path_of(name);
        self.items(&[name])?
            .into_iter()
            .enumerate()
            .map(|(place, item)| match item {
                Value::String(text) => Ok(T::from(text)),
                _ => Err(DecodeError::data(
                    format!("{path}[{place}]"),
                    "expected a string",
                )),
            })
            .collect()
    }
}

/// `messageId` becomes `message_id`.
pub(super) fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
