//! Which members of a card the protocol knows, and which of them stay when they are empty.
//!
//! The types of this crate cannot tell an absent member from an empty one, and signatures depend
//! on the difference; so this works on the JSON as it came. Spec: §5.7, §8.4.1

use serde_json::{Map, Value};

use crate::json::DecodeError;

/// When a member is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// REQUIRED: if it is there, also when it is empty.
    Required,
    /// `optional` in the proto: if it is set, also to nothing.
    Optional,
    /// Unless it has its default. Does not touch a single message, which is there or not.
    Implicit,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Flag,
    Texts,
    TextMap,
    Message(&'static Message),
    Messages(&'static Message),
    MessageMap(&'static Message),
    /// A `google.protobuf.Struct`: JSON that belongs to somebody else.
    Struct,
}

struct Field {
    name: &'static str,
    presence: Presence,
    kind: Kind,
}

pub(super) struct Message {
    fields: &'static [Field],
    /// Whether all fields are members of one `oneof`.
    exclusive: bool,
}

const fn required(name: &'static str, kind: Kind) -> Field {
    let presence = Presence::Required;
    Field {
        name,
        presence,
        kind,
    }
}

const fn optional(name: &'static str, kind: Kind) -> Field {
    let presence = Presence::Optional;
    Field {
        name,
        presence,
        kind,
    }
}

const fn implicit(name: &'static str, kind: Kind) -> Field {
    let presence = Presence::Implicit;
    Field {
        name,
        presence,
        kind,
    }
}

const fn message(fields: &'static [Field]) -> Message {
    Message {
        fields,
        exclusive: false,
    }
}

const fn oneof(fields: &'static [Field]) -> Message {
    Message {
        fields,
        exclusive: true,
    }
}

/// The card without `signatures`. Spec: §4.4.1
pub(super) const CARD: &Message = &message(&[
    required("name", Kind::Text),
    required("description", Kind::Text),
    required("supportedInterfaces", Kind::Messages(INTERFACE)),
    implicit("provider", Kind::Message(PROVIDER)),
    required("version", Kind::Text),
    optional("documentationUrl", Kind::Text),
    required("capabilities", Kind::Message(CAPABILITIES)),
    implicit("securitySchemes", Kind::MessageMap(SCHEME)),
    implicit("securityRequirements", Kind::Messages(REQUIREMENT)),
    required("defaultInputModes", Kind::Texts),
    required("defaultOutputModes", Kind::Texts),
    required("skills", Kind::Messages(SKILL)),
    optional("iconUrl", Kind::Text),
]);

const INTERFACE: &Message = &message(&[
    required("url", Kind::Text),
    required("protocolBinding", Kind::Text),
    implicit("tenant", Kind::Text),
    required("protocolVersion", Kind::Text),
]);

const PROVIDER: &Message = &message(&[
    required("url", Kind::Text),
    required("organization", Kind::Text),
]);

const CAPABILITIES: &Message = &message(&[
    optional("streaming", Kind::Flag),
    optional("pushNotifications", Kind::Flag),
    implicit("extensions", Kind::Messages(EXTENSION)),
    optional("extendedAgentCard", Kind::Flag),
]);

const EXTENSION: &Message = &message(&[
    implicit("uri", Kind::Text),
    implicit("description", Kind::Text),
    implicit("required", Kind::Flag),
    implicit("params", Kind::Struct),
]);

const SKILL: &Message = &message(&[
    required("id", Kind::Text),
    required("name", Kind::Text),
    required("description", Kind::Text),
    required("tags", Kind::Texts),
    implicit("examples", Kind::Texts),
    implicit("inputModes", Kind::Texts),
    implicit("outputModes", Kind::Texts),
    implicit("securityRequirements", Kind::Messages(REQUIREMENT)),
]);

const REQUIREMENT: &Message = &message(&[implicit("schemes", Kind::MessageMap(STRING_LIST))]);

const STRING_LIST: &Message = &message(&[implicit("list", Kind::Texts)]);

const SCHEME: &Message = &oneof(&[
    implicit("apiKeySecurityScheme", Kind::Message(API_KEY)),
    implicit("httpAuthSecurityScheme", Kind::Message(HTTP_AUTH)),
    implicit("oauth2SecurityScheme", Kind::Message(OAUTH2)),
    implicit("openIdConnectSecurityScheme", Kind::Message(OPEN_ID)),
    implicit("mtlsSecurityScheme", Kind::Message(MUTUAL_TLS)),
]);

const API_KEY: &Message = &message(&[
    implicit("description", Kind::Text),
    required("location", Kind::Text),
    required("name", Kind::Text),
]);

const HTTP_AUTH: &Message = &message(&[
    implicit("description", Kind::Text),
    required("scheme", Kind::Text),
    implicit("bearerFormat", Kind::Text),
]);

const OAUTH2: &Message = &message(&[
    implicit("description", Kind::Text),
    required("flows", Kind::Message(FLOWS)),
    implicit("oauth2MetadataUrl", Kind::Text),
]);

const OPEN_ID: &Message = &message(&[
    implicit("description", Kind::Text),
    required("openIdConnectUrl", Kind::Text),
]);

const MUTUAL_TLS: &Message = &message(&[implicit("description", Kind::Text)]);

const FLOWS: &Message = &oneof(&[
    implicit("authorizationCode", Kind::Message(AUTHORIZATION_CODE)),
    implicit("clientCredentials", Kind::Message(CLIENT_CREDENTIALS)),
    implicit("implicit", Kind::Message(IMPLICIT)),
    implicit("password", Kind::Message(PASSWORD)),
    implicit("deviceCode", Kind::Message(DEVICE_CODE)),
]);

const AUTHORIZATION_CODE: &Message = &message(&[
    required("authorizationUrl", Kind::Text),
    required("tokenUrl", Kind::Text),
    implicit("refreshUrl", Kind::Text),
    required("scopes", Kind::TextMap),
    implicit("pkceRequired", Kind::Flag),
]);

const CLIENT_CREDENTIALS: &Message = &message(&[
    required("tokenUrl", Kind::Text),
    implicit("refreshUrl", Kind::Text),
    required("scopes", Kind::TextMap),
]);

const IMPLICIT: &Message = &message(&[
    implicit("authorizationUrl", Kind::Text),
    implicit("refreshUrl", Kind::Text),
    implicit("scopes", Kind::TextMap),
]);

const PASSWORD: &Message = &message(&[
    implicit("tokenUrl", Kind::Text),
    implicit("refreshUrl", Kind::Text),
    implicit("scopes", Kind::TextMap),
]);

const DEVICE_CODE: &Message = &message(&[
    required("deviceAuthorizationUrl", Kind::Text),
    required("tokenUrl", Kind::Text),
    implicit("refreshUrl", Kind::Text),
    required("scopes", Kind::TextMap),
]);

/// A card with every member in its one spelling, and without what means nothing.
pub(super) struct Known {
    pub(super) card: Map<String, Value>,
    /// The paths of members that the protocol does not know, in the order of their names.
    pub(super) unknown: Vec<String>,
}

/// Reduces a card to what the protocol knows of it (SIGN-03, SIGN-04).
///
/// With `keep_unknown`, members that it does not know stay as they are.
///
/// # Errors
/// A member of the wrong type, in both spellings, or beside another of its `oneof`.
pub(super) fn reduce(card: &Map<String, Value>, keep_unknown: bool) -> Result<Known, DecodeError> {
    let mut reducer = Reducer {
        keep_unknown,
        unknown: Vec::new(),
    };
    let card = reducer.message(CARD, card, "")?;
    Ok(Known {
        card,
        unknown: reducer.unknown,
    })
}

struct Reducer {
    keep_unknown: bool,
    unknown: Vec<String>,
}

impl Reducer {
    fn message(
        &mut self,
        message: &Message,
        members: &Map<String, Value>,
        path: &str,
    ) -> Result<Map<String, Value>, DecodeError> {
        let mut out = Map::new();
        for (name, value) in members {
            let Some(field) = message.fields.iter().find(|field| field.is_called(name)) else {
                let ours = path.is_empty() && name == "signatures";
                if !ours {
                    self.unknown.push(join(path, name));
                    if self.keep_unknown {
                        out.insert(name.clone(), value.clone());
                    }
                }
                continue;
            };
            let path = join(path, field.name);
            // `null` means absent (JSON-01).
            if value.is_null() {
                continue;
            }
            let value = self.value(field.kind, value, &path)?;
            if field.presence == Presence::Implicit && field.kind.is_default(&value) {
                continue;
            }
            if out.insert(field.name.to_owned(), value).is_some() {
                return Err(DecodeError::data(path, "is there in two spellings"));
            }
        }
        if message.exclusive
            && message
                .fields
                .iter()
                .filter(|f| out.contains_key(f.name))
                .count()
                > 1
        {
            return Err(DecodeError::data(path, "has more than one of its choices"));
        }
        Ok(out)
    }

    fn value(&mut self, kind: Kind, value: &Value, path: &str) -> Result<Value, DecodeError> {
        let wrong = |expected: &str| DecodeError::data(path, format!("expected {expected}"));
        match (kind, value) {
            (Kind::Text, Value::String(_)) | (Kind::Flag, Value::Bool(_)) => Ok(value.clone()),
            (Kind::Struct, Value::Object(_)) => Ok(value.clone()),
            (Kind::Texts, Value::Array(list)) if list.iter().all(Value::is_string) => {
                Ok(value.clone())
            }
            (Kind::TextMap, Value::Object(map)) if map.values().all(Value::is_string) => {
                Ok(value.clone())
            }
            (Kind::Message(message), Value::Object(members)) => {
                self.message(message, members, path).map(Value::Object)
            }
            (Kind::Messages(message), Value::Array(list)) => {
                let entries = list.iter().enumerate().map(|(index, entry)| {
                    let path = format!("{path}[{index}]");
                    self.value(Kind::Message(message), entry, &path)
                });
                entries.collect::<Result<Vec<_>, _>>().map(Value::Array)
            }
            (Kind::MessageMap(message), Value::Object(map)) => {
                let entries = map.iter().map(|(key, entry)| {
                    let path = join(path, key);
                    Ok((
                        key.clone(),
                        self.value(Kind::Message(message), entry, &path)?,
                    ))
                });
                entries.collect::<Result<Map<_, _>, _>>().map(Value::Object)
            }
            (Kind::Text, _) => Err(wrong("a text")),
            (Kind::Flag, _) => Err(wrong("true or false")),
            (Kind::Texts, _) => Err(wrong("a list of texts")),
            (Kind::TextMap, _) => Err(wrong("an object of texts")),
            (Kind::Messages(_), _) => Err(wrong("a list of objects")),
            (Kind::Message(_) | Kind::MessageMap(_) | Kind::Struct, _) => Err(wrong("an object")),
        }
    }
}

impl Kind {
    /// Whether a member of this kind is no different from an absent one.
    fn is_default(self, value: &Value) -> bool {
        match value {
            Value::String(text) => text.is_empty(),
            Value::Bool(set) => !set,
            Value::Array(list) => list.is_empty(),
            Value::Object(map) => {
                map.is_empty() && matches!(self, Self::TextMap | Self::MessageMap(_))
            }
            _ => false,
        }
    }
}

impl Field {
    /// Whether a member's name is this field's, in the JSON or in the proto spelling.
    fn is_called(&self, name: &str) -> bool {
        self.name == name || (name.contains('_') && snake_case(self.name) == name)
    }
}

fn snake_case(name: &str) -> String {
    name.chars().fold(String::new(), |mut out, c| {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        out
    })
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
