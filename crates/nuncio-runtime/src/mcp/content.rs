//! Results of MCP tools as outputs of ours.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_protocol::Part;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use crate::tool::{ToolError, ToolOutput};

/// What the model is given of a result.
pub(super) fn output(result: CallToolResult) -> Result<ToolOutput, ToolError> {
    let parts: Vec<Part> = result.content.into_iter().map(part).collect();
    let text = || {
        let texts: Vec<_> = parts.iter().filter_map(Part::as_text).collect();
        texts.join("\n")
    };
    if result.is_error == Some(true) {
        let text = text();
        return Err(ToolError::new(match text.is_empty() {
            true => "the tool failed".to_owned(),
            false => text,
        }));
    }
    // Structured content says the same as the text beside it.
    let all_text = parts.iter().all(|part| part.as_text().is_some());
    match result.structured_content {
        Some(value) if all_text => Ok(ToolOutput::Value(value)),
        None if all_text => Ok(ToolOutput::Value(Value::String(text()))),
        _ => Ok(ToolOutput::Parts(parts)),
    }
}

fn part(block: ContentBlock) -> Part {
    match block {
        ContentBlock::Text(text) => Part::text(text.text),
        ContentBlock::Image(image) => bytes(&image.data, image.mime_type),
        ContentBlock::Audio(audio) => bytes(&audio.data, audio.mime_type),
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => {
            Part::text(format!("[a resource {} at {}]", link.name, link.uri))
        }
        _ => Part::text("[content of an unknown kind]"),
    }
}

fn resource(contents: ResourceContents) -> Part {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => Part::text(text),
        ResourceContents::BlobResourceContents {
            blob,
            mime_type,
            uri,
            ..
        } => {
            let mime_type = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
            bytes(&blob, mime_type).with_filename(uri)
        }
        _ => Part::text("[a resource of an unknown kind]"),
    }
}

fn bytes(base64: &str, media_type: String) -> Part {
    match STANDARD.decode(base64) {
        Ok(bytes) => Part::raw(bytes).with_media_type(media_type),
        Err(_) => Part::text(format!("[unreadable content of type {media_type}]")),
    }
}
