//! How a type of this crate becomes a protobuf message and back: what both versions share.
//!
//! [`message!`] lists the fields of a message, [`oneof!`] the members of a choice; how a field
//! travels is told by its types alone. As in JSON, an absent field takes its default and is left
//! to validation, and an error names the path of what is wrong.

use std::collections::BTreeMap;

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value as ProtoValue};
use serde_json::Value;

use crate::json::{DecodeError, DecodeErrorKind};
use crate::wire::KnownEnum as _;
use crate::{
    A2aError, ArtifactId, ContextId, ErrorKind, MessageId, Metadata, PushConfigId, Role, TaskId,
    TaskState, Timestamp,
};

/// A type with its form `M` in protobuf.
pub(super) trait Proto<M>: Sized {
    /// Writes it.
    fn to_proto(&self) -> M;

    /// Reads it.
    ///
    /// # Errors
    /// [`DecodeError`] with the path of what is wrong.
    fn from_proto(proto: M) -> Result<Self, DecodeError>;
}

/// Writes `value` as a message.
pub(super) fn write<M: prost::Message>(value: &impl Proto<M>) -> Vec<u8> {
    value.to_proto().encode_to_vec()
}

/// Reads a message as what it stands for.
///
/// # Errors
/// [`DecodeError`] of kind `Syntax` for bytes that are no such message, else of kind `Data`.
pub(super) fn read<M: prost::Message + Default, T: Proto<M>>(
    bytes: &[u8],
) -> Result<T, DecodeError> {
    T::from_proto(decode(bytes)?)
}

/// Reads a message and nothing more.
pub(super) fn decode<M: prost::Message + Default>(bytes: &[u8]) -> Result<M, DecodeError> {
    M::decode(bytes).map_err(|error| DecodeError {
        kind: DecodeErrorKind::Syntax,
        path: String::new(),
        message: error.to_string(),
    })
}

/// The error of a request that could not be read.
pub(super) fn bad_request(error: DecodeError) -> A2aError {
    match error.kind {
        DecodeErrorKind::Syntax => A2aError::new(ErrorKind::InvalidParams, error.message),
        DecodeErrorKind::Data => error.into(),
    }
}

/// The error of an answer that could not be read.
pub(super) fn bad_answer(error: DecodeError) -> A2aError {
    let at = match error.path.as_str() {
        "" => String::new(),
        path => format!(" at {path}"),
    };
    A2aError::new(
        ErrorKind::InvalidAgentResponse,
        format!("unreadable result{at}: {error}"),
    )
}

/// Puts `outer` before the path of an error.
pub(super) fn within(outer: &str, mut error: DecodeError) -> DecodeError {
    let joint = match error.path.as_bytes().first() {
        None | Some(b'[') => "",
        Some(_) => ".",
    };
    error.path = format!("{outer}{joint}{}", error.path);
    error
}

/// The conversion of a message whose fields have the same meaning on both sides.
///
/// `{ id, status }` where names are the same, else `{ parts = content }`. All fields of the
/// protobuf message are named; fields of the type that it does not have keep their default.
macro_rules! message {
    ($type:ty = $proto:ty { $($field:ident),+ $(,)? }) => {
        $crate::grpc::convert::message! { $type = $proto { $($field = $field),+ } }
    };
    ($type:ty = $proto:ty { $($field:ident = $proto_field:ident),+ $(,)? }) => {
        impl $crate::grpc::convert::Proto<$proto> for $type {
            fn to_proto(&self) -> $proto {
                type Message = $proto;
                Message {
                    $( $proto_field: $crate::grpc::convert::Proto::to_proto(&self.$field), )+
                }
            }

            fn from_proto(proto: $proto) -> Result<Self, $crate::json::DecodeError> {
                let mut read = Self::default();
                $(
                    read.$field = $crate::grpc::convert::Proto::from_proto(proto.$proto_field)
                        .map_err(|error| {
                            let name = $crate::json::camel_case(stringify!($proto_field));
                            $crate::grpc::convert::within(&name, error)
                        })?;
                )+
                Ok(read)
            }
        }
    };
}

/// The conversion of a choice: `Scheme = pb::Scheme.field: Choice { Variant = ProtoVariant "name" }`.
macro_rules! oneof {
    ($type:ident = $module:ident :: $proto:ident . $member:ident : $choice:ident {
        $($variant:ident = $proto_variant:ident $name:literal),+ $(,)?
    }) => {
        impl $crate::grpc::convert::Proto<$module::$proto> for $type {
            fn to_proto(&self) -> $module::$proto {
                let choice = match self {
                    $( Self::$variant(inner) => {
                        $choice::$proto_variant($crate::grpc::convert::Proto::to_proto(inner))
                    } )+
                };
                $module::$proto { $member: Some(choice) }
            }

            fn from_proto(proto: $module::$proto) -> Result<Self, $crate::json::DecodeError> {
                match proto.$member {
                    $( Some($choice::$proto_variant(inner)) => {
                        $crate::grpc::convert::Proto::from_proto(inner)
                            .map(Self::$variant)
                            .map_err(|error| $crate::grpc::convert::within($name, error))
                    } )+
                    None => Err($crate::json::DecodeError::data(
                        "",
                        concat!("expected one of", $( " ", $name, )+),
                    )),
                }
            }
        }
    };
}

/// Messages that are always there: an absent one reads as its default.
macro_rules! required {
    ($($type:ty = $proto:ty),+ $(,)?) => {$(
        impl $crate::grpc::convert::Proto<Option<$proto>> for $type {
            fn to_proto(&self) -> Option<$proto> {
                Some($crate::grpc::convert::Proto::to_proto(self))
            }

            fn from_proto(proto: Option<$proto>) -> Result<Self, $crate::json::DecodeError> {
                $crate::grpc::convert::Proto::from_proto(proto.unwrap_or_default())
            }
        }
    )+};
}

pub(super) use {message, oneof, required};

macro_rules! unchanged {
    ($($type:ty),+) => {$(
        impl Proto<$type> for $type {
            fn to_proto(&self) -> $type {
                self.clone()
            }

            fn from_proto(proto: $type) -> Result<Self, DecodeError> {
                Ok(proto)
            }
        }
    )+};
}

unchanged!(String, i32, bool);

impl Proto<String> for Option<String> {
    fn to_proto(&self) -> String {
        self.clone().unwrap_or_default()
    }

    fn from_proto(proto: String) -> Result<Self, DecodeError> {
        Ok(Some(proto).filter(|text| !text.is_empty()))
    }
}

macro_rules! ids {
    ($($id:ty),+) => {$(
        impl Proto<String> for $id {
            fn to_proto(&self) -> String {
                self.as_str().to_owned()
            }

            fn from_proto(proto: String) -> Result<Self, DecodeError> {
                Ok(proto.into())
            }
        }

        impl Proto<String> for Option<$id> {
            fn to_proto(&self) -> String {
                self.as_ref().map(Proto::to_proto).unwrap_or_default()
            }

            fn from_proto(proto: String) -> Result<Self, DecodeError> {
                Ok(Some(<$id>::from(proto)).filter(|id| !id.is_empty()))
            }
        }
    )+};
}

ids!(TaskId, ContextId, MessageId, ArtifactId, PushConfigId);

impl<M, T: Proto<M>> Proto<Option<M>> for Option<T> {
    fn to_proto(&self) -> Option<M> {
        self.as_ref().map(Proto::to_proto)
    }

    fn from_proto(proto: Option<M>) -> Result<Self, DecodeError> {
        proto.map(T::from_proto).transpose()
    }
}

impl<M, T: Proto<M>> Proto<Vec<M>> for Vec<T> {
    fn to_proto(&self) -> Vec<M> {
        self.iter().map(Proto::to_proto).collect()
    }

    fn from_proto(proto: Vec<M>) -> Result<Self, DecodeError> {
        let entries = proto.into_iter().enumerate();
        entries
            .map(|(place, entry)| {
                T::from_proto(entry).map_err(|error| within(&format!("[{place}]"), error))
            })
            .collect()
    }
}

impl<M, T: Proto<M>> Proto<BTreeMap<String, M>> for BTreeMap<String, T> {
    fn to_proto(&self) -> BTreeMap<String, M> {
        let entries = self.iter();
        entries
            .map(|(name, entry)| (name.clone(), entry.to_proto()))
            .collect()
    }

    fn from_proto(proto: BTreeMap<String, M>) -> Result<Self, DecodeError> {
        let entries = proto.into_iter();
        entries
            .map(|(name, entry)| match T::from_proto(entry) {
                Ok(entry) => Ok((name, entry)),
                Err(error) => Err(within(&name, error)),
            })
            .collect()
    }
}

/// The number as it came if this version knows it, else unspecified (GRPC-06).
macro_rules! open_enums {
    ($($name:ty),+) => {$(
        impl Proto<i32> for $name {
            fn to_proto(&self) -> i32 {
                self.number()
            }

            fn from_proto(proto: i32) -> Result<Self, DecodeError> {
                Ok(Self::from_number(proto.into()).unwrap_or_default())
            }
        }
    )+};
}

open_enums!(TaskState, Role);

/// A filter: what is unknown cannot be asked for (OP-LIST-08).
impl Proto<i32> for Option<TaskState> {
    fn to_proto(&self) -> i32 {
        self.unwrap_or_default().number()
    }

    fn from_proto(proto: i32) -> Result<Self, DecodeError> {
        let state = TaskState::from_number(proto.into()).ok_or_else(|| {
            let expected = TaskState::EXPECTED;
            DecodeError::data(
                "",
                format!("invalid value: integer `{proto}`, expected {expected}"),
            )
        })?;
        Ok(Some(state).filter(|state| *state != TaskState::Unspecified))
    }
}

impl Proto<prost_types::Timestamp> for Timestamp {
    fn to_proto(&self) -> prost_types::Timestamp {
        let (seconds, nanos) = self.to_unix();
        prost_types::Timestamp { seconds, nanos }
    }

    fn from_proto(proto: prost_types::Timestamp) -> Result<Self, DecodeError> {
        Self::from_unix(proto.seconds, proto.nanos)
            .map_err(|error| DecodeError::data("", error.to_string()))
    }
}

/// How many messages deep a value may go. Readers give up at 100, and it must be readable in an
/// answer too: as a part of the message of a status of a task of a list.
const MAX_NESTING: usize = 90;

/// A struct, its entry and the value in it.
const OBJECT_NESTING: usize = 3;

/// A list and the value in it.
const LIST_NESTING: usize = 2;

impl Proto<Struct> for Metadata {
    fn to_proto(&self) -> Struct {
        let fields = self.iter();
        Struct {
            fields: fields
                .map(|(name, value)| (name.clone(), value.to_proto()))
                .collect(),
        }
    }

    fn from_proto(proto: Struct) -> Result<Self, DecodeError> {
        object(proto, MAX_NESTING)
    }
}

impl Proto<ProtoValue> for Value {
    fn to_proto(&self) -> ProtoValue {
        let kind = match self {
            Self::Null => Kind::NullValue(0),
            Self::Bool(truth) => Kind::BoolValue(*truth),
            Self::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
            Self::String(text) => Kind::StringValue(text.clone()),
            Self::Array(list) => Kind::ListValue(ListValue {
                values: list.iter().map(Proto::to_proto).collect(),
            }),
            Self::Object(object) => Kind::StructValue(object.to_proto()),
        };
        ProtoValue { kind: Some(kind) }
    }

    /// A value of no kind, or of one that does not exist yet, reads as null.
    fn from_proto(proto: ProtoValue) -> Result<Self, DecodeError> {
        value(proto, MAX_NESTING)
    }
}

fn value(proto: ProtoValue, room: usize) -> Result<Value, DecodeError> {
    Ok(match proto.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(truth)) => truth.into(),
        Some(Kind::NumberValue(number)) => finite(number)?,
        Some(Kind::StringValue(text)) => text.into(),
        Some(Kind::ListValue(proto)) => list(proto, room)?,
        Some(Kind::StructValue(proto)) => object(proto, room)?.into(),
    })
}

fn list(proto: ListValue, room: usize) -> Result<Value, DecodeError> {
    let room = room.checked_sub(LIST_NESTING).ok_or_else(too_deep)?;
    let entries = proto.values.into_iter().enumerate();
    entries
        .map(|(place, entry)| {
            value(entry, room).map_err(|error| within(&format!("[{place}]"), error))
        })
        .collect()
}

fn object(proto: Struct, room: usize) -> Result<Metadata, DecodeError> {
    let room = room.checked_sub(OBJECT_NESTING).ok_or_else(too_deep)?;
    let fields = proto.fields.into_iter();
    fields
        .map(|(name, field)| match value(field, room) {
            Ok(value) => Ok((name, value)),
            Err(error) => Err(within(&name, error)),
        })
        .collect()
}

fn too_deep() -> DecodeError {
    DecodeError::data("", "nests too deep for protobuf")
}

/// 2^53: below it every whole number is a double of its own.
const INEXACT: f64 = 9_007_199_254_740_992.0;

/// Whole numbers lose their fraction again, which only protobuf gave them (BR-141).
fn finite(number: f64) -> Result<Value, DecodeError> {
    if number.fract() == 0.0 && number.abs() < INEXACT {
        return Ok(Value::from(number as i64));
    }
    serde_json::Number::from_f64(number)
        .map(Value::Number)
        .ok_or_else(|| DecodeError::data("", format!("expected a finite number, not {number}")))
}
