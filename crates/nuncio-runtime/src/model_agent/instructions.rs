//! Instructions with variables.

use std::collections::BTreeMap;

/// A text with places for values: `{name}`, `{name?}` for what may be absent, `{{` and `}}` for
/// braces. Braces around anything but a name are left as they are, so that JSON needs no care.
#[derive(Debug, Default)]
pub(super) struct Instructions(Vec<Piece>);

#[derive(Debug, PartialEq)]
enum Piece {
    Text(String),
    Variable { name: String, optional: bool },
}

impl Instructions {
    pub(super) fn parse(template: &str) -> Self {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("{{") {
                text.push('{');
                rest = after;
            } else if let Some(after) = rest.strip_prefix("}}") {
                text.push('}');
                rest = after;
            } else if let Some((variable, after)) = variable(rest) {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                pieces.push(variable);
                rest = after;
            } else {
                text.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
        text.push_str(rest);
        pieces.push(Piece::Text(text));
        pieces.retain(|piece| *piece != Piece::Text(String::new()));
        Self(pieces)
    }

    /// The names of its variables.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Variable { name, .. } => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// The text with its values; what a value says is not read as a template.
    ///
    /// # Errors
    /// The name of a variable without a value.
    pub(super) fn fill(&self, values: &BTreeMap<String, String>) -> Result<String, &str> {
        let mut filled = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Variable { name, optional } => match values.get(name) {
                    Some(value) => filled.push_str(value),
                    None if *optional => {}
                    None => return Err(name),
                },
            }
        }
        Ok(filled)
    }
}

/// The variable that a text begins with, and what follows it.
fn variable(text: &str) -> Option<(Piece, &str)> {
    let (inner, after) = text.strip_prefix('{')?.split_once('}')?;
    let (name, optional) = match inner.strip_suffix('?') {
        Some(name) => (name, true),
        None => (inner, false),
    };
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let goes_on = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    let name = (begins && name.chars().all(goes_on)).then(|| name.to_owned())?;
    Some((Piece::Variable { name, optional }, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str) -> Result<String, String> {
        let values = [("name", "{date}"), ("a.b", "1")];
        let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let instructions = Instructions::parse(template);
        instructions.fill(&values.into()).map_err(str::to_owned)
    }

    #[test]
    fn variables_are_filled_in_once() {
        assert_eq!(
            fill("Hi {name}, {a.b}{none?}!"),
            Ok("Hi {date}, 1!".to_owned())
        );
        assert_eq!(fill("{{name}} {{"), Ok("{name} {".to_owned()));
        assert_eq!(fill(""), Ok(String::new()));
    }

    #[test]
    fn other_braces_are_text() {
        for text in [r#"{"a": 1}"#, "{ name }", "}", "{", "fn() {}", "{é}", "{1}"] {
            assert_eq!(fill(text), Ok(text.to_owned()));
        }
    }

    #[test]
    fn an_unknown_variable_is_named() {
        assert_eq!(fill("{name} {nobody}"), Err("nobody".to_owned()));
    }
}
