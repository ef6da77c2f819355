//! How a message of the protocol becomes JSON and back, once for all messages.
//!
//! [`wire_message!`] declares a struct whose fields name their JSON spelling. When reading, the
//! proto spelling (the Rust field name) is taken too, `null` means absent, unknown members are
//! skipped at any depth, and both spellings at once are refused (JSON-01, JSON-06, JSON-10).
//!
//! | kind | Rust type | absent | written |
//! |---|---|---|---|
//! | `required` | `T: Default` | default, for validation to judge | always |
//! | `optional` | `Option<T>` | `None` | if set |
//! | `text` | `Option<T>` of text | `None`, as is `""` | if not empty |
//! | `secret` | the same | the same | the same; `Debug` shows only that there is one |
//! | `list` | `Vec<T>` or map | empty | if not empty |
//! | `int` | `Option<i32>` | `None` | if set |
//! | `size` | `i32` | 0 | always |
//! | `count` | `i32` | 0 | if not 0 |
//! | `flag` | `bool` | `false` | if `true` |
//! | `choice` | `Option<E>` of an enum | `None`, as is `…_UNSPECIFIED` | if set |
//! | `told` | `Option<Timestamp>` that only servers write | `None`; without a zone it is UTC | if set |

use std::fmt;

use serde::de::{self, Deserialize, Deserializer};

/// Reads an `int32` as ProtoJSON allows: a number, an integral float, or either as text.
pub(crate) struct Int32(pub(crate) i32);

impl<'de> Deserialize<'de> for Int32 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Int32Visitor)
    }
}

struct Int32Visitor;

impl de::Visitor<'_> for Int32Visitor {
    type Value = Int32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a 32-bit integer")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Int32, E> {
        i32::try_from(value)
            .map(Int32)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Int32, E> {
        i32::try_from(value)
            .map(Int32)
            .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Int32, E> {
        let whole = value.fract() == 0.0 && (-2_147_483_648.0..=2_147_483_647.0).contains(&value);
        if whole {
            Ok(Int32(value as i32))
        } else {
            Err(E::invalid_value(de::Unexpected::Float(value), &self))
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Int32, E> {
        let number: f64 = text
            .parse()
            .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))?;
        self.visit_f64(number)
    }
}

/// Text fields whose empty value means "absent" in proto3.
pub(crate) trait EmptyText {
    fn is_empty_text(&self) -> bool;
}

impl EmptyText for String {
    fn is_empty_text(&self) -> bool {
        self.is_empty()
    }
}

macro_rules! empty_text {
    ($($id:ty),+) => {$(
        impl EmptyText for $id {
            fn is_empty_text(&self) -> bool {
                self.is_empty()
            }
        }
    )+};
}

empty_text!(crate::TaskId, crate::ContextId, crate::PushConfigId);

/// An enum value of this version; unknown ones are refused.
pub(crate) struct Known<E>(pub(crate) E);

impl<'de, E: KnownEnum> Deserialize<'de> for Known<E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<E>(std::marker::PhantomData<E>);
        impl<E: KnownEnum> de::Visitor<'_> for Visitor<E> {
            type Value = E;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(E::EXPECTED)
            }

            fn visit_str<X: de::Error>(self, name: &str) -> Result<E, X> {
                E::known_name(name)
                    .ok_or_else(|| X::invalid_value(de::Unexpected::Str(name), &self))
            }

            fn visit_u64<X: de::Error>(self, number: u64) -> Result<E, X> {
                i64::try_from(number)
                    .ok()
                    .and_then(E::known_number)
                    .ok_or_else(|| X::invalid_value(de::Unexpected::Unsigned(number), &self))
            }
        }
        deserializer
            .deserialize_any(Visitor(std::marker::PhantomData))
            .map(Known)
    }
}

/// What [`Known`] needs of an enum.
pub(crate) trait KnownEnum: Default + PartialEq {
    const EXPECTED: &'static str;
    fn known_name(name: &str) -> Option<Self>;
    fn known_number(number: i64) -> Option<Self>;
}

macro_rules! read_field {
    (choice, $map:ident) => {
        $map.next_value::<Option<crate::wire::Known<_>>>()?
            .map(|known| known.0)
            .filter(|value| *value != Default::default())
    };
    (required, $map:ident) => {
        $map.next_value::<Option<_>>()?.unwrap_or_default()
    };
    (list, $map:ident) => {
        $map.next_value::<Option<_>>()?.unwrap_or_default()
    };
    (optional, $map:ident) => {
        $map.next_value::<Option<_>>()?
    };
    (told, $map:ident) => {
        $map.next_value::<Option<crate::time::Told>>()?
            .map(|told| told.0)
    };
    (text, $map:ident) => {
        $map.next_value::<Option<_>>()?
            .filter(|text| !crate::wire::EmptyText::is_empty_text(text))
    };
    (secret, $map:ident) => {
        crate::wire::read_field!(text, $map)
    };
    (int, $map:ident) => {
        $map.next_value::<Option<crate::wire::Int32>>()?
            .map(|n| n.0)
    };
    (size, $map:ident) => {
        $map.next_value::<Option<crate::wire::Int32>>()?
            .map_or(0, |n| n.0)
    };
    (count, $map:ident) => {
        $map.next_value::<Option<crate::wire::Int32>>()?
            .map_or(0, |n| n.0)
    };
    (flag, $map:ident) => {
        $map.next_value::<Option<bool>>()?.unwrap_or_default()
    };
}

macro_rules! write_field {
    (required, $out:ident, $name:literal, $value:expr) => {
        $out.serialize_field($name, $value)?
    };
    (size, $out:ident, $name:literal, $value:expr) => {
        $out.serialize_field($name, $value)?
    };
    (list, $out:ident, $name:literal, $value:expr) => {
        if !$value.is_empty() {
            $out.serialize_field($name, $value)?
        }
    };
    (count, $out:ident, $name:literal, $value:expr) => {
        if *$value != 0 {
            $out.serialize_field($name, $value)?
        }
    };
    (text, $out:ident, $name:literal, $value:expr) => {
        if let Some(value) = $value
            && !crate::wire::EmptyText::is_empty_text(value)
        {
            $out.serialize_field($name, value)?
        }
    };
    (secret, $out:ident, $name:literal, $value:expr) => {
        crate::wire::write_field!(text, $out, $name, $value)
    };
    (flag, $out:ident, $name:literal, $value:expr) => {
        if *$value {
            $out.serialize_field($name, $value)?
        }
    };
    ($option:ident, $out:ident, $name:literal, $value:expr) => {
        if let Some(value) = $value {
            $out.serialize_field($name, value)?
        }
    };
}

/// What `Debug` shows of a field.
macro_rules! debug_field {
    (secret, $value:expr) => {
        &$value.as_ref().map(|_| crate::wire::Hidden)
    };
    ($kind:ident, $value:expr) => {
        $value
    };
}

/// Stands for a secret where it would be shown.
pub(crate) struct Hidden;

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Declares a message of the protocol; see the module documentation for the field kinds.
macro_rules! wire_message {
    (
        $(#[$meta:meta])*
        $vis:vis struct $message:ident {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty => $kind:ident $json:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Default, PartialEq)]
        #[non_exhaustive]
        $vis struct $message {
            $( $(#[$field_meta])* pub $field: $type, )*
        }

        impl ::std::fmt::Debug for $message {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($message))
                    $( .field(stringify!($field), crate::wire::debug_field!($kind, &self.$field)) )*
                    .finish()
            }
        }

        impl ::serde::Serialize for $message {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeStruct as _;
                const FIELDS: usize = [$($json),*].len();
                let mut out = serializer.serialize_struct(stringify!($message), FIELDS)?;
                $( crate::wire::write_field!($kind, out, $json, &self.$field); )*
                out.end()
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $message {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[expect(non_camel_case_types, reason = "the variants are the field names")]
                enum Field { $($field,)* Unknown_ }
                struct FieldVisitor;
                impl ::serde::de::Visitor<'_> for FieldVisitor {
                    type Value = Field;
                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str("a member name")
                    }
                    #[allow(clippy::allow_attributes, unreachable_patterns, reason = "one-word names have one spelling")]
                    fn visit_str<E>(self, name: &str) -> Result<Field, E> {
                        Ok(match name {
                            $( $json | stringify!($field) => Field::$field, )*
                            _ => Field::Unknown_,
                        })
                    }
                }
                impl<'de> ::serde::Deserialize<'de> for Field {
                    fn deserialize<D: ::serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                        d.deserialize_identifier(FieldVisitor)
                    }
                }
                struct MessageVisitor;
                impl<'de> ::serde::de::Visitor<'de> for MessageVisitor {
                    type Value = $message;
                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str(concat!("an object (", stringify!($message), ")"))
                    }
                    fn visit_map<A: ::serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$message, A::Error> {
                        #[derive(Default)]
                        struct Seen { $($field: bool,)* }
                        let mut seen = Seen::default();
                        let mut message = $message::default();
                        while let Some(field) = map.next_key::<Field>()? {
                            match field {
                                $( Field::$field => {
                                    if ::std::mem::replace(&mut seen.$field, true) {
                                        return Err(::serde::de::Error::duplicate_field($json));
                                    }
                                    message.$field = crate::wire::read_field!($kind, map);
                                } )*
                                Field::Unknown_ => { map.next_value::<::serde::de::IgnoredAny>()?; }
                            }
                        }
                        Ok(message)
                    }
                }
                deserializer.deserialize_map(MessageVisitor)
            }
        }
    };
}

/// Declares a choice of exactly one member: a proto `oneof` that is a message of its own.
///
/// Two members set are refused, and so is none (JSON-07).
macro_rules! wire_oneof {
    (
        $(#[$meta:meta])*
        pub enum $choice:ident {
            $( $(#[$variant_meta:meta])* $variant:ident($type:ty) => $json:literal $(| $proto:literal)?, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $choice {
            $( $(#[$variant_meta])* $variant($type), )*
        }

        impl ::serde::Serialize for $choice {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeStruct as _;
                let mut out = serializer.serialize_struct(stringify!($choice), 1)?;
                match self {
                    $( Self::$variant(value) => out.serialize_field($json, value)?, )*
                }
                out.end()
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $choice {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct ChoiceVisitor;
                impl<'de> ::serde::de::Visitor<'de> for ChoiceVisitor {
                    type Value = $choice;
                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str(concat!("an object with exactly one of", $( " ", $json, )*))
                    }
                    fn visit_map<A: ::serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$choice, A::Error> {
                        let mut chosen: Option<$choice> = None;
                        while let Some(name) = map.next_key::<::std::borrow::Cow<'de, str>>()? {
                            let value = match &*name {
                                $( $json $(| $proto)? => map.next_value::<Option<$type>>()?.map($choice::$variant), )*
                                _ => { map.next_value::<::serde::de::IgnoredAny>()?; None }
                            };
                            if value.is_some() && ::std::mem::replace(&mut chosen, value).is_some() {
                                return Err(::serde::de::Error::custom(
                                    concat!("expected only one of", $( " ", $json, )*)));
                            }
                        }
                        chosen.ok_or_else(|| ::serde::de::Error::custom(
                            concat!("expected one of", $( " ", $json, )*)))
                    }
                }
                deserializer.deserialize_map(ChoiceVisitor)
            }
        }
    };
}

/// Declares an enum that travels by its proto name and is read by name or number.
///
/// A name or number of another version reads as `Unspecified`, so that a newer peer is still
/// understood; validation refuses `Unspecified` where a request needs a value (JSON-02). Field
/// kind `choice` refuses an unknown value while reading.
macro_rules! wire_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $number:literal $json:literal, )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $( $(#[$variant_meta])* $variant = $number, )*
        }

        impl $name {
            /// Every value, in the order of its numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $( Self::$variant => $json, )* }
            }

            /// The number in the proto.
            pub fn number(self) -> i32 {
                self as i32
            }

            /// The value of that number; `None` for one of another version.
            pub fn from_number(number: i64) -> Option<Self> {
                match number { $( $number => Some(Self::$variant), )* _ => None }
            }

            /// The value of that name, in exactly its spelling.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $( $json => Some(Self::$variant), )* _ => None }
            }
        }

        impl crate::wire::KnownEnum for $name {
            const EXPECTED: &'static str = concat!("one of", $( " ", $json, )*);
            fn known_name(name: &str) -> Option<Self> { Self::from_name(name) }
            fn known_number(number: i64) -> Option<Self> { Self::from_number(number) }
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> ::serde::Deserialize<'de> for $name {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct EnumVisitor;
                impl ::serde::de::Visitor<'_> for EnumVisitor {
                    type Value = $name;
                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str(concat!("one of", $( " ", $json, )*))
                    }
                    fn visit_str<E>(self, name: &str) -> Result<$name, E> {
                        Ok($name::from_name(name).unwrap_or_default())
                    }
                    fn visit_u64<E>(self, number: u64) -> Result<$name, E> {
                        Ok(i64::try_from(number).ok().and_then($name::from_number).unwrap_or_default())
                    }
                    fn visit_i64<E>(self, number: i64) -> Result<$name, E> {
                        Ok($name::from_number(number).unwrap_or_default())
                    }
                }
                deserializer.deserialize_any(EnumVisitor)
            }
        }
    };
}

pub(crate) use {debug_field, read_field, wire_enum, wire_message, wire_oneof, write_field};
