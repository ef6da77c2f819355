//! Parts: the content of messages and artifacts.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use crate::Metadata;

/// One piece of content, with its media type. Spec: §4.1.6
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Part {
    /// The content itself.
    pub content: PartContent,
    /// Free-form additions.
    pub metadata: Option<Metadata>,
    /// A name to save the content under.
    pub filename: Option<String>,
    /// The media type; `None` means `text/plain` for text, `application/json` for data.
    pub media_type: Option<String>,
}

/// What a part holds: exactly one of four kinds. Spec: §4.1.6
#[derive(Clone, Debug, PartialEq)]
pub enum PartContent {
    /// Text.
    Text(String),
    /// Bytes, base64 on the wire.
    Raw(Bytes),
    /// A reference to content elsewhere; never fetched by the server itself.
    Url(String),
    /// Any JSON value, `null` included.
    Data(Value),
}

impl Part {
    /// A part with nothing but its content.
    pub fn new(content: PartContent) -> Self {
        Self {
            content,
            metadata: None,
            filename: None,
            media_type: None,
        }
    }

    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(PartContent::Text(text.into()))
    }

    /// A part of bytes.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::new(PartContent::Raw(bytes.into()))
    }

    /// A part that refers to a URL.
    pub fn url(url: impl Into<String>) -> Self {
        Self::new(PartContent::Url(url.into()))
    }

    /// A part of structured data.
    pub fn data(value: impl Into<Value>) -> Self {
        Self::new(PartContent::Data(value.into()))
    }

    /// The same part with a media type.
    #[must_use]
    pub fn with_media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }

    /// The same part with a file name.
    #[must_use]
    pub fn with_filename(mut self, filename: impl Into<String>) -> Self {
        self.filename = Some(filename.into());
        self
    }

    /// The text, if it is a text part.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            PartContent::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The media type said or implied; `None` for bytes and URLs without one (OP-SEND-17).
    pub fn effective_media_type(&self) -> Option<&str> {
        self.media_type.as_deref().or(match self.content {
            PartContent::Text(_) => Some("text/plain"),
            PartContent::Data(_) => Some("application/json"),
            PartContent::Raw(_) | PartContent::Url(_) => None,
        })
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Part", 4)?;
        match &self.content {
            PartContent::Text(text) => out.serialize_field("text", text)?,
            PartContent::Raw(bytes) => out.serialize_field("raw", &Base64(bytes))?,
            PartContent::Url(url) => out.serialize_field("url", url)?,
            PartContent::Data(value) => out.serialize_field("data", value)?,
        }
        if let Some(metadata) = &self.metadata {
            out.serialize_field("metadata", metadata)?;
        }
        if let Some(filename) = said(&self.filename) {
            out.serialize_field("filename", filename)?;
        }
        if let Some(media_type) = said(&self.media_type) {
            out.serialize_field("mediaType", media_type)?;
        }
        out.end()
    }
}

/// Text that is set and not empty (JSON-09).
fn said(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

struct Base64<'a>(&'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&base64::engine::general_purpose::STANDARD.encode(self.0))
    }
}

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Reads base64 of either alphabet, padded or not (JSON-04).
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let engine = if text.contains(['-', '_']) {
        &URL_SAFE
    } else {
        &STANDARD
    };
    engine.decode(text).ok()
}

struct RawBytes(Bytes);

impl<'de> Deserialize<'de> for RawBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = decode_base64(&text).ok_or_else(|| de::Error::custom("expected base64"))?;
        Ok(Self(bytes.into()))
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PartVisitor)
    }
}

struct PartVisitor;

impl<'de> de::Visitor<'de> for PartVisitor {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object (Part)")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Part, A::Error> {
        let mut content = None;
        let (mut metadata, mut filename, mut media_type) = (None, None, None);
        let mut media_type_seen = false;
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let next = match &*name {
                "text" => map.next_value::<Option<String>>()?.map(PartContent::Text),
                "raw" => map
                    .next_value::<Option<RawBytes>>()?
                    .map(|raw| PartContent::Raw(raw.0)),
                "url" => map.next_value::<Option<String>>()?.map(PartContent::Url),
                // Unlike everywhere else, null is a value here (JSON-06).
                "data" => Some(PartContent::Data(map.next_value()?)),
                "metadata" => {
                    metadata = map.next_value()?;
                    None
                }
                "filename" => {
                    filename = map
                        .next_value::<Option<String>>()?
                        .filter(|name| !name.is_empty());
                    None
                }
                "mediaType" | "media_type" => {
                    if std::mem::replace(&mut media_type_seen, true) {
                        return Err(de::Error::duplicate_field("mediaType"));
                    }
                    media_type = map
                        .next_value::<Option<String>>()?
                        .filter(|kind| !kind.is_empty());
                    None
                }
                _ => {
                    map.next_value::<de::IgnoredAny>()?;
                    None
                }
            };
            if next.is_some() && std::mem::replace(&mut content, next).is_some() {
                return Err(de::Error::custom(
                    "expected only one of text, raw, url, data",
                ));
            }
        }
        let content =
            content.ok_or_else(|| de::Error::custom("expected one of text, raw, url, data"))?;
        Ok(Part {
            content,
            metadata,
            filename,
            media_type,
        })
    }
}
