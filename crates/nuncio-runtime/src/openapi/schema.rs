//! References of a document, followed.

use serde_json::Value;

use super::OpenApiError;

/// How many references may lead from one to the next.
const DEPTH: usize = 12;

/// What a value refers to, or the value itself. Only references within the document are followed.
pub(super) fn follow<'a>(document: &'a Value, value: &'a Value) -> Result<&'a Value, OpenApiError> {
    let mut value = value;
    for _ in 0..DEPTH {
        let Some(reference) = value["$ref"].as_str() else {
            return Ok(value);
        };
        let target = reference
            .strip_prefix('#')
            .and_then(|path| document.pointer(path));
        value = target.ok_or_else(|| OpenApiError {
            path: reference.to_owned(),
            message: "is not in the document".to_owned(),
        })?;
    }
    Err(OpenApiError {
        path: value["$ref"].as_str().unwrap_or_default().to_owned(),
        message: "refers to itself".to_owned(),
    })
}

/// A schema without references, which some providers of models do not follow. Where a schema contains
/// itself, anything fits.
///
/// # Errors
/// A reference that leads nowhere, or a schema that is larger than [`MAX_VALUES`] when it is whole.
pub(super) fn inlined<'a>(document: &'a Value, schema: &'a Value) -> Result<Value, OpenApiError> {
    let mut inlining = Inlining {
        document,
        open: Vec::new(),
        values: 0,
    };
    inlining.value(schema)
}

/// Values of a schema with all that it refers to.
const MAX_VALUES: usize = 20_000;

struct Inlining<'a> {
    document: &'a Value,
    /// The references that are being followed.
    open: Vec<&'a str>,
    values: usize,
}

impl<'a> Inlining<'a> {
    fn value(&mut self, value: &'a Value) -> Result<Value, OpenApiError> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(OpenApiError {
                path: self.open.first().copied().unwrap_or_default().to_owned(),
                message: format!("has more than {MAX_VALUES} values with all that it refers to"),
            });
        }
        if let Some(reference) = value["$ref"].as_str() {
            if self.open.contains(&reference) {
                return Ok(Value::Object(serde_json::Map::new()));
            }
            self.open.push(reference);
            let inlined = self.value(follow(self.document, value)?);
            self.open.pop();
            return inlined;
        }
        Ok(match value {
            Value::Object(members) => {
                let mut whole = serde_json::Map::new();
                for (name, value) in members {
                    // What is given as an example is no schema, whatever it looks like.
                    let value = match name.as_str() {
                        "example" | "examples" | "default" | "enum" | "const" => value.clone(),
                        _ => self.value(value)?,
                    };
                    whole.insert(name.clone(), value);
                }
                Value::Object(whole)
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(item));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            other => other.clone(),
        })
    }
}
