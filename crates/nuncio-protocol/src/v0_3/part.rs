//! Parts of 0.3: text, file or data, by `kind` or by member.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::Form;
use super::read::{Object, Read};
use super::write::{Out, Spelt};
use crate::part::decode_base64;
use crate::{Metadata, Part, PartContent};

/// Marks, in the metadata of a part, data that was no object and stands in `value`.
const WRAPPED: &str = "data_part_compat";

impl Serialize for Spelt<'_, Part> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(part, form) = *self;
        let mut out = Out::new(serializer)?;
        match &part.content {
            PartContent::Text(text) => {
                out.kind(form, "text")?;
                out.put("text", text)?;
            }
            PartContent::Raw(_) | PartContent::Url(_) => {
                out.kind(form, "file")?;
                out.put("file", &File(part, form))?;
            }
            PartContent::Data(data) => {
                out.kind(form, "data")?;
                out.put("data", &Data(data, form))?;
                if !data.is_object() {
                    out.put("metadata", &marked(part.metadata.as_ref()))?;
                    return out.end();
                }
            }
        }
        out.some("metadata", part.metadata.as_ref())?;
        out.end()
    }
}

fn marked(metadata: Option<&Metadata>) -> Metadata {
    let mut metadata = metadata.cloned().unwrap_or_default();
    metadata.insert(WRAPPED.to_owned(), true.into());
    metadata
}

struct File<'a>(&'a Part, Form);

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(part, form) = *self;
        let mut out = Out::new(serializer)?;
        match (&part.content, form) {
            (PartContent::Raw(bytes), Form::Schema) => out.put("bytes", &STANDARD.encode(bytes))?,
            // The text of the one form is the content of the other (V03-GRPC-02).
            (PartContent::Raw(bytes), Form::Proto) => {
                out.put("fileWithBytes", &STANDARD.encode(STANDARD.encode(bytes)))?;
            }
            (PartContent::Url(url), Form::Schema) => out.put("uri", url)?,
            (PartContent::Url(url), Form::Proto) => out.put("fileWithUri", url)?,
            (PartContent::Text(_) | PartContent::Data(_), _) => {}
        }
        out.text("mimeType", part.media_type.as_deref())?;
        out.text("name", part.filename.as_deref())?;
        out.end()
    }
}

struct Data<'a>(&'a Value, Form);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(data, form) = *self;
        if form == Form::Proto {
            let mut out = Out::new(serializer)?;
            out.put("data", &Data(data, Form::Schema))?;
            return out.end();
        }
        if data.is_object() {
            return data.serialize(serializer);
        }
        let mut out = Out::new(serializer)?;
        out.put("value", data)?;
        out.end()
    }
}

/// Reads a part by its `kind` or, lacking one, by its only member.
pub(super) fn read(mut object: Object) -> Read<Part> {
    let kind = object.text("kind")?;
    let found: Vec<&str> = ["text", "file", "data"]
        .into_iter()
        .filter(|name| object.has(name))
        .collect();
    let kind = match (kind.as_deref(), found.as_slice()) {
        (None, [only]) => *only,
        (Some(kind), members) if members.contains(&kind) => kind,
        (None, []) => return Err(no_content(&object)),
        (None, _) => return Err(object.wrong_itself("expected only one of text, file, data")),
        (Some("text" | "file" | "data"), _) => {
            return Err(object.wrong_itself("expected the member that kind names"));
        }
        (Some(_), _) => return Err(object.wrong("kind", "expected text, file or data")),
    };
    let metadata = object.metadata()?;
    if kind == "file" {
        let file = object.object(&["file"])?;
        let mut part = read_file(file.ok_or_else(|| no_content(&object))?)?;
        part.metadata = metadata;
        return Ok(part);
    }
    if kind == "data" {
        return read_data(object, metadata);
    }
    let mut part = Part::text(object.any_text("text")?.unwrap_or_default());
    part.metadata = metadata;
    Ok(part)
}

fn no_content(object: &Object) -> crate::json::DecodeError {
    for (name, instead) in [("url", "`file` with `uri`"), ("raw", "`file` with `bytes`")] {
        if object.has(name) {
            return object.newer(name, instead);
        }
    }
    object.wrong_itself("expected one of text, file, data")
}

fn read_file(mut file: Object) -> Read<Part> {
    let uri = file.any_text("uri")?;
    let uri_of_proto = file.any_text("fileWithUri")?;
    let bytes = file.any_text("bytes")?;
    let bytes_of_proto = file.any_text("fileWithBytes")?;
    let once =
        |text: &str| decode_base64(text).ok_or_else(|| file.wrong("bytes", "expected base64"));
    let content = match (uri, uri_of_proto, bytes, bytes_of_proto) {
        (Some(uri), None, None, None) | (None, Some(uri), None, None) => PartContent::Url(uri),
        (None, None, Some(text), None) => PartContent::Raw(once(&text)?.into()),
        (None, None, None, Some(text)) => {
            let bytes = once(&text)?;
            PartContent::Raw(inner_base64(&bytes).unwrap_or(bytes).into())
        }
        _ => return Err(file.wrong_itself("expected exactly one of bytes and uri")),
    };
    let mut part = Part::new(content);
    part.media_type = file.text("mimeType")?;
    part.filename = file.text("name")?;
    Ok(part)
}

/// The content of bytes that are base64 text themselves, whole and padded as SDKs write it.
fn inner_base64(bytes: &[u8]) -> Option<Vec<u8>> {
    STANDARD
        .decode(bytes)
        .or_else(|_| URL_SAFE.decode(bytes))
        .ok()
}

fn read_data(mut object: Object, metadata: Option<Metadata>) -> Read<Part> {
    let is_proto = object.form == Form::Proto;
    let Some(Value::Object(data)) = object.take("data")? else {
        let hint = "expected an object; only protocol 1.0 has other values here";
        return Err(object.wrong("data", hint));
    };
    let data = if is_proto { unwrapped(data) } else { data };
    let mut part = Part::data(data);
    part.metadata = metadata;
    restore(&mut part);
    Ok(part)
}

/// The object inside `{data: {…}}`; an object without it stands for itself.
fn unwrapped(mut outer: Map<String, Value>) -> Map<String, Value> {
    match outer.get_mut("data").map(Value::take) {
        Some(Value::Object(inner)) => inner,
        Some(other) => {
            outer.insert("data".to_owned(), other);
            outer
        }
        None => outer,
    }
}

/// Undoes what was done to data that is no object.
fn restore(part: &mut Part) {
    let PartContent::Data(Value::Object(data)) = &mut part.content else {
        return;
    };
    let Some(metadata) = &mut part.metadata else {
        return;
    };
    if metadata.get(WRAPPED) != Some(&json!(true)) || data.len() != 1 {
        return;
    }
    let Some(value) = data.get_mut("value").map(Value::take) else {
        return;
    };
    part.content = PartContent::Data(value);
    metadata.remove(WRAPPED);
    if metadata.is_empty() {
        part.metadata = None;
    }
}
