//! The golden files, and reading any of them by its form.

use std::path::PathBuf;

use nuncio_protocol::v1::json_rpc;
use nuncio_protocol::{A2aError, Operation, OperationKind, Version, json};
use serde_json::Value;

/// What a golden file holds, by the middle of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Request,
    Response,
    Event,
    Error,
}

/// One golden file: `<operation>[-variant].<form>.json`, for errors `<error>[@profile].error.json`.
#[derive(Clone, Debug)]
pub(crate) struct Golden {
    /// The file's name without `.json`.
    pub(crate) name: String,
    pub(crate) form: Form,
    /// The operation; `None` for errors.
    pub(crate) kind: Option<OperationKind>,
    pub(crate) text: String,
}

impl Golden {
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    pub(crate) fn kind(&self) -> OperationKind {
        self.kind.unwrap()
    }

    /// Reads a JSON-RPC request's params, a response's result or an event as this one's form, and
    /// writes it again.
    pub(crate) fn reread(&self, message: &str) -> Result<String, A2aError> {
        let text = json::check(message.as_bytes())?;
        match self.form {
            Form::Request => Ok(Operation::decode(self.kind(), text)?.encode()),
            Form::Response => {
                let body = json_rpc::encode_result(&id(), text);
                let outcome = json_rpc::decode_outcome(self.kind(), body.as_bytes())?;
                Ok(nuncio_protocol::v1::rest::encode_outcome(&outcome).unwrap())
            }
            Form::Event => {
                let body = json_rpc::encode_result(&id(), text);
                Ok(json::encode(&json_rpc::decode_event(body.as_bytes())?))
            }
            Form::Error => unreachable!("errors are read by their own tests"),
        }
    }

    /// The message itself, without its JSON-RPC envelope.
    pub(crate) fn message(&self) -> Value {
        let member = if self.form == Form::Request {
            "params"
        } else {
            "result"
        };
        self.value()[member].take()
    }
}

fn id() -> json_rpc::RequestId {
    json_rpc::RequestId::text("1")
}

/// All golden files of a binding of 1.0, in the order of their names.
pub(crate) fn goldens(binding: &str) -> Vec<Golden> {
    goldens_of(Version::V1_0, binding)
}

/// All golden files of a version's binding, in the order of their names.
pub(crate) fn goldens_of(version: Version, binding: &str) -> Vec<Golden> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/wire")
        .join(version.as_str())
        .join(binding);
    let mut found: Vec<Golden> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| golden(&entry.unwrap().path()))
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(found.len() > 40, "{binding}: {} files", found.len());
    found
}

/// The golden files of a binding that are messages, not errors.
pub(crate) fn messages(binding: &str) -> Vec<Golden> {
    let mut all = goldens(binding);
    all.retain(|golden| golden.form != Form::Error);
    all
}

fn golden(path: &std::path::Path) -> Golden {
    let file = path.file_name().unwrap().to_str().unwrap();
    let name = file.strip_suffix(".json").unwrap();
    let (subject, form) = name.rsplit_once('.').unwrap();
    let form = match form {
        "request" => Form::Request,
        "response" => Form::Response,
        "event" => Form::Event,
        "error" => Form::Error,
        _ => panic!("{name}: what is a {form}?"),
    };
    let operation = subject.split('-').next().unwrap();
    let kind = OperationKind::ALL
        .iter()
        .copied()
        .find(|kind| snake_case(kind.as_str()).trim_start_matches('_') == operation);
    assert_eq!(kind.is_none(), form == Form::Error, "{name}");
    Golden {
        name: name.to_owned(),
        form,
        kind,
        text: std::fs::read_to_string(path).unwrap(),
    }
}

/// `messageId` becomes `message_id`.
pub(crate) fn snake_case(name: &str) -> String {
    name.chars()
        .flat_map(|c| {
            let mark = c.is_ascii_uppercase().then_some('_');
            mark.into_iter().chain([c.to_ascii_lowercase()])
        })
        .collect()
}

/// The same JSON without blanks and with sorted keys; numbers keep `1` apart from `1.0`.
pub(crate) fn normal(text: &str) -> String {
    let mut value: Value = serde_json::from_str(text).unwrap();
    value.sort_all_objects();
    value.to_string()
}

/// Compares two texts after [`normal`], showing both laid out if they differ.
#[track_caller]
pub(crate) fn assert_same(name: &str, written: &str, expected: &str) {
    let laid_out = |text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        serde_json::to_string_pretty(&value).unwrap()
    };
    if normal(written) != normal(expected) {
        panic!(
            "{name}: written\n{}\nbut the file has\n{}",
            laid_out(written),
            laid_out(expected)
        );
    }
}

/// Whether the members below a member are the user's own, not the protocol's.
fn is_free_form(name: &str, parent_is_part: bool) -> bool {
    matches!(name, "metadata" | "header") || name == "params" || (parent_is_part && name == "data")
}

/// Whether the member is a map, whose keys are names and not fields.
fn is_map(name: &str) -> bool {
    matches!(name, "securitySchemes" | "schemes" | "scopes")
}

/// A member of a protocol message: the JSON pointer of its object, and its name.
pub(crate) type Place = (String, String);

/// Every object of the protocol within a message, as JSON pointers.
pub(crate) fn objects(message: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_objects(message, String::new(), &mut found);
    found
}

/// Every member of the protocol within a message.
pub(crate) fn members(message: &Value) -> Vec<Place> {
    objects(message)
        .into_iter()
        .flat_map(|object| {
            let names: Vec<String> = message
                .pointer(&object)
                .unwrap()
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect();
            names.into_iter().map(move |name| (object.clone(), name))
        })
        .collect()
}

fn collect_objects(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Array(list) => {
            for (index, item) in list.iter().enumerate() {
                collect_objects(item, format!("{at}/{index}"), found);
            }
        }
        Value::Object(object) => {
            found.push(at.clone());
            let is_part = at.rsplit('/').nth(1) == Some("parts");
            for (name, inner) in object {
                if is_free_form(name, is_part) {
                    continue;
                }
                if is_map(name) {
                    for (key, entry) in inner.as_object().into_iter().flatten() {
                        collect_objects(entry, format!("{at}/{name}/{key}"), found);
                    }
                } else {
                    collect_objects(inner, format!("{at}/{name}"), found);
                }
            }
        }
        _ => {}
    }
}

/// The object at a pointer of [`objects`].
pub(crate) fn object_mut<'a>(
    message: &'a mut Value,
    pointer: &str,
) -> &'a mut serde_json::Map<String, Value> {
    message
        .pointer_mut(pointer)
        .unwrap()
        .as_object_mut()
        .unwrap()
}

/// What 0.3 makes of a webhook: no tenant, and no authentication that names nothing.
pub(crate) fn as_older_webhook(webhook: &mut nuncio_protocol::TaskPushNotificationConfig) {
    webhook.tenant = None;
    let names = |told: &nuncio_protocol::AuthenticationInfo| {
        !told.scheme.is_empty()
            || told
                .credentials
                .as_ref()
                .is_some_and(|text| !text.is_empty())
    };
    webhook.authentication = webhook.authentication.take().filter(names);
}
