//! Texts that may be secret: said in the configuration, or found elsewhere when they are needed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use nuncio_runtime::secret_header;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::secret::Secret;

/// A text, `{ env = "NAME" }` or `{ file = "PATH" }`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    /// Said here; never shown.
    Text(Secret),
    /// A variable of the server.
    Variable(String),
    /// A file that holds nothing else; white space at its ends does not count.
    File(PathBuf),
    /// Sealed by this server for a file of its own.
    Sealed(String),
}

impl Given {
    /// The text itself.
    ///
    /// # Errors
    /// If the variable is not set or the file cannot be read.
    pub(crate) fn reveal(&self, environment: &BTreeMap<String, String>) -> Result<String, String> {
        match self {
            Self::Text(secret) => Ok(secret.reveal().to_owned()),
            Self::Variable(name) => environment
                .get(name)
                .cloned()
                .ok_or_else(|| format!("the server has no environment variable {name}")),
            Self::File(path) => std::fs::read_to_string(path)
                .map(|text| text.trim().to_owned())
                .map_err(|error| format!("failed to read {}: {error}", path.display())),
            Self::Sealed(_) => Err("a sealed secret has not been opened".to_owned()),
        }
    }
}

/// Headers that go with every request, and the token if there is one.
///
/// # Errors
/// If one cannot be had or sent.
pub(crate) fn secret_headers(
    headers: &BTreeMap<String, Given>,
    bearer: Option<&Given>,
    environment: &BTreeMap<String, String>,
) -> Result<HeaderMap, String> {
    let named = headers.iter().map(|(name, given)| {
        let field = format!("headers.{name}");
        (name.as_str(), field, "", given)
    });
    let bearer = bearer.map(|given| {
        let field = "bearer".to_owned();
        (AUTHORIZATION.as_str(), field, "Bearer ", given)
    });
    let mut made = HeaderMap::new();
    for (name, field, scheme, given) in named.chain(bearer) {
        let value = given.reveal(environment);
        let value = value.map_err(|why| format!("{field}: {why}"))?;
        let header = secret_header(name, &format!("{scheme}{value}"));
        let (name, value) = header.map_err(|why| why.to_string())?;
        made.insert(name, value);
    }
    Ok(made)
}

impl Serialize for Given {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (key, value) = match self {
            Self::Text(secret) => return secret.serialize(serializer),
            Self::Variable(name) => ("env", Cow::from(name)),
            Self::File(path) => ("file", path.to_string_lossy()),
            Self::Sealed(text) => ("sealed", Cow::from(text)),
        };
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(key, &value)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GivenVisitor)
    }
}

struct GivenVisitor;

impl<'de> Visitor<'de> for GivenVisitor {
    type Value = Given;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, { env = \"NAME\" } or { file = \"PATH\" }")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Given, E> {
        Ok(Given::Text(Secret::new(text)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Given, A::Error> {
        let Some(key) = map.next_key::<String>()? else {
            return Err(A::Error::custom("neither `env` nor `file` is said"));
        };
        let given = match key.as_str() {
            "env" => Given::Variable(map.next_value()?),
            "file" => Given::File(map.next_value()?),
            "sealed" => Given::Sealed(map.next_value()?),
            other => return Err(A::Error::unknown_field(other, &["env", "file"])),
        };
        match map.next_key::<String>()? {
            None => Ok(given),
            Some(_) => Err(A::Error::custom("only one of `env` and `file` can be said")),
        }
    }
}

impl JsonSchema for Given {
    fn schema_name() -> Cow<'static, str> {
        "Given".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let source = |name: &str| {
            json_schema!({
                "type": "object",
                "properties": { name: { "type": "string" } },
                "required": [name],
                "additionalProperties": false
            })
        };
        json_schema!({
            "description": "A text, the name of a variable of the server, or a file.",
            "anyOf": [{ "type": "string" }, source("env"), source("file")]
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_form_is_read_and_no_secret_is_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "from file\n").unwrap();
        let environment = BTreeMap::from([("KEY".to_owned(), "from env".to_owned())]);
        for (said, text, shown) in [
            (json!("plain"), "plain", json!("***")),
            (json!({"env": "KEY"}), "from env", json!({"env": "KEY"})),
            (json!({"file": path}), "from file", json!({"file": path})),
        ] {
            let given: Given = serde_json::from_value(said).unwrap();
            assert_eq!(given.reveal(&environment).unwrap(), text);
            assert_eq!(serde_json::to_value(&given).unwrap(), shown);
            assert!(!format!("{given:?}").contains("plain"));
        }
    }

    #[test]
    fn what_is_none_of_them_is_refused() {
        for (said, why) in [
            (json!(1), "a text, { env = "),
            (json!({}), "neither"),
            (json!({"evn": "X"}), "unknown field `evn`"),
            (json!({"env": "X", "file": "Y"}), "only one"),
        ] {
            let error = serde_json::from_value::<Given>(said).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
        let given: Given = serde_json::from_value(json!({"env": "X"})).unwrap();
        let told = given.reveal(&BTreeMap::new()).unwrap_err();
        assert_eq!(told, "the server has no environment variable X");
    }
}
