//! Files in a conversation: where they are, and what the model is shown.

use bytes::Bytes;
use nuncio_protocol::{Message, Part, PartContent};
use serde::{Deserialize, Serialize};

use crate::model::UserPart;

/// A file that somebody has shown. Its content stays where it came from, such as the task's history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FileRef {
    media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The message that brought it, and its place there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<(String, usize)>,
    /// Its content, in the run that first saw it.
    #[serde(skip)]
    content: Option<UserPart>,
}

/// What a message or a tool's output says: words, and files.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) files: Vec<FileRef>,
}

impl Said {
    /// What stands in a message. Data, of whatever shape, is text to the model: nobody from outside
    /// says what a tool has given.
    pub(super) fn by(message: &Message) -> Self {
        let mut said = Self::of(&message.parts);
        let id = message.message_id.as_str();
        let mut places = (0..message.parts.len()).filter(|at| is_file(&message.parts[*at]));
        for file in &mut said.files {
            file.place = places.next().map(|at| (id.to_owned(), at));
        }
        said
    }

    /// What stands in these parts.
    pub(super) fn of(parts: &[Part]) -> Self {
        let mut said = Self::default();
        let mut words = Vec::new();
        for part in parts {
            match &part.content {
                PartContent::Text(text) => words.push(text.clone()),
                PartContent::Data(value) => words.push(value.to_string()),
                PartContent::Raw(bytes) => match text_of(part, bytes) {
                    Some(text) => words.push(text),
                    None => said.files.push(FileRef::of(part)),
                },
                PartContent::Url(_) => said.files.push(FileRef::of(part)),
            }
        }
        said.text = words.join("\n");
        said
    }
}

impl FileRef {
    fn of(part: &Part) -> Self {
        Self {
            media_type: media_type(part),
            name: part.filename.clone(),
            place: None,
            content: user_part(part),
        }
    }

    /// The file for the model, or a word about one that is no longer at hand.
    pub(super) fn show(&self, history: &[Message]) -> UserPart {
        let found = self.place.as_ref().and_then(|(id, at)| {
            let message = history.iter().find(|m| m.message_id.as_str() == id)?;
            user_part(message.parts.get(*at)?)
        });
        found
            .or_else(|| self.content.clone())
            .unwrap_or_else(|| UserPart::Text(self.mention()))
    }

    /// The file in words.
    pub(super) fn mention(&self) -> String {
        let name = self.name.as_deref().unwrap_or("without a name");
        format!("[a file {name} of type {}]", self.media_type)
    }
}

fn is_file(part: &Part) -> bool {
    match &part.content {
        PartContent::Raw(bytes) => text_of(part, bytes).is_none(),
        PartContent::Url(_) => true,
        PartContent::Text(_) | PartContent::Data(_) => false,
    }
}

/// Bytes that are text: no provider takes them as a file.
fn text_of(part: &Part, bytes: &Bytes) -> Option<String> {
    let media_type = part.media_type.as_deref()?;
    let textual = media_type.starts_with("text/") || media_type.starts_with("application/json");
    let text = textual.then(|| std::str::from_utf8(bytes).ok()).flatten()?;
    Some(match &part.filename {
        Some(name) => format!("{name}:\n{text}"),
        None => text.to_owned(),
    })
}

fn media_type(part: &Part) -> String {
    part.media_type
        .clone()
        .unwrap_or_else(|| "application/octet-stream".to_owned())
}

fn user_part(part: &Part) -> Option<UserPart> {
    let (media_type, name) = (media_type(part), part.filename.clone());
    match &part.content {
        PartContent::Raw(bytes) => Some(UserPart::File {
            media_type,
            name,
            bytes: bytes.clone(),
        }),
        PartContent::Url(url) => Some(UserPart::Url {
            media_type,
            name,
            url: url.clone(),
        }),
        PartContent::Text(_) | PartContent::Data(_) => None,
    }
}
