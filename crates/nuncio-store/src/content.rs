//! The content of one part of a task, read piece by piece.

use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use nuncio_protocol::{ArtifactId, MessageId, Part, PartContent, Task};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};
use sha2::{Digest as _, Sha256};

use crate::StoreError;

/// Pieces of content, in order; an error is the last one.
pub type ContentStream = Pin<Box<dyn Stream<Item = Result<Bytes, StoreError>> + Send>>;

/// Where in a task a part is; parts are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartPlace {
    /// In an artifact.
    Artifact(ArtifactId, usize),
    /// In a message of the history, or in that of the status.
    Message(MessageId, usize),
}

impl PartPlace {
    /// The part at this place.
    pub fn find<'t>(&self, task: &'t Task) -> Option<&'t Part> {
        match self {
            Self::Artifact(id, number) => {
                let mut artifacts = task.artifacts.iter();
                let artifact = artifacts.find(|artifact| artifact.artifact_id == *id)?;
                artifact.parts.get(*number)
            }
            Self::Message(id, number) => {
                let mut messages = task.history.iter().chain(&task.status.message);
                let message = messages.find(|message| message.message_id == *id)?;
                message.parts.get(*number)
            }
        }
    }
}

/// A part whose content is read when it is asked for.
pub struct StoredPart {
    /// What its content is.
    pub media_type: Option<String>,
    /// A name to save it under.
    pub filename: Option<String>,
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 of its bytes.
    pub sha256: [u8; 32],
    source: Source,
}

enum Source {
    Here(Bytes),
    There(Arc<dyn ObjectStore>, Path),
}

impl fmt::Debug for StoredPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredPart")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl StoredPart {
    /// A part that is at hand; `None` for one that only says where its content is.
    pub(crate) fn at_hand(part: &Part) -> Option<Self> {
        let bytes = match &part.content {
            PartContent::Text(text) => Bytes::from(text.clone()),
            PartContent::Raw(bytes) => bytes.clone(),
            PartContent::Data(value) => Bytes::from(value.to_string()),
            PartContent::Url(_) => return None,
        };
        Some(Self {
            media_type: part.effective_media_type().map(str::to_owned),
            filename: part.filename.clone(),
            size: bytes.len() as u64,
            sha256: Sha256::digest(&bytes).into(),
            source: Source::Here(bytes),
        })
    }

    /// A part whose bytes are an object elsewhere.
    pub(crate) fn elsewhere(
        part: &Part,
        (size, sha256): (u64, [u8; 32]),
        objects: Arc<dyn ObjectStore>,
        path: Path,
    ) -> Self {
        Self {
            media_type: part.media_type.clone(),
            filename: part.filename.clone(),
            size,
            sha256,
            source: Source::There(objects, path),
        }
    }

    /// Reads some of its bytes, or all: then the end comes only if they are what was stored.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for what is missing; [`StoreError::Unavailable`].
    pub async fn read(&self, range: Range<u64>) -> Result<ContentStream, StoreError> {
        let whole = range == (0..self.size);
        match &self.source {
            Source::Here(bytes) => {
                let [start, end] = [range.start, range.end].map(|at| at.min(self.size) as usize);
                let piece = bytes.slice(start.min(end)..end);
                Ok(Box::pin(stream::iter([Ok(piece)])))
            }
            Source::There(objects, path) => {
                let options = GetOptions {
                    range: (!whole).then_some(GetRange::Bounded(range)),
                    ..GetOptions::default()
                };
                let found = objects.get_opts(path, options).await;
                let pieces = found.map_err(crate::parts::told)?.into_stream();
                let pieces = pieces.map_err(crate::parts::told);
                Ok(match whole {
                    true => checked(Box::pin(pieces), self.sha256),
                    false => Box::pin(pieces),
                })
            }
        }
    }
}

/// The same pieces, and an error at the end if they are not what they should be.
fn checked(pieces: ContentStream, sha256: [u8; 32]) -> ContentStream {
    let begun = Some((pieces, Sha256::new()));
    Box::pin(stream::unfold(begun, move |reading| async move {
        let (mut pieces, mut digest) = reading?;
        match pieces.next().await {
            Some(Ok(piece)) => {
                digest.update(&piece);
                Some((Ok(piece), Some((pieces, digest))))
            }
            Some(Err(error)) => Some((Err(error), None)),
            None if digest.finalize()[..] == sha256 => None,
            None => Some((Err(crate::parts::another()), None)),
        }
    }))
}
