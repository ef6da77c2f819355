//! The content of an agent's tasks, as the server gives it.

use std::ops::Range;
use std::sync::Arc;

use futures_util::StreamExt as _;
use nuncio_engine::HostedAgent;
use nuncio_protocol::{A2aError, Call, ErrorKind, Reply, TaskId};
use nuncio_server::{File, FileContent, FilePlace, FileStream, Files};
use nuncio_store::{PartPlace, StoreError, StoredPart};

/// What the engine keeps for an agent.
#[derive(Debug)]
pub(super) struct KeptFiles(pub(super) Arc<HostedAgent>);

impl Files for KeptFiles {
    fn file(&self, call: Call, task: TaskId, place: FilePlace) -> Reply<'_, Option<File>> {
        let place = match place {
            FilePlace::Artifact(id, number) => PartPlace::Artifact(id, number),
            FilePlace::Message(id, number) => PartPlace::Message(id, number),
        };
        Box::pin(async move {
            let part = self.0.part(&call, &task, &place).await?;
            Ok(part.map(|part| File {
                media_type: part.media_type.clone(),
                filename: part.filename.clone(),
                size: part.size,
                sha256: part.sha256,
                content: Box::new(Content(part)),
            }))
        })
    }
}

struct Content(StoredPart);

impl FileContent for Content {
    fn read(&self, range: Range<u64>) -> Reply<'_, FileStream> {
        Box::pin(async move {
            let pieces = self.0.read(range).await.map_err(told)?;
            let pieces: FileStream = Box::pin(pieces.map(|piece| piece.map_err(told)));
            Ok(pieces)
        })
    }
}

fn told(error: StoreError) -> A2aError {
    tracing::error!(%error, "content is not read");
    match error {
        StoreError::Unavailable(_) => {
            let message = "the content cannot be reached, try again later";
            A2aError::new(ErrorKind::Unavailable, message)
        }
        _ => A2aError::internal(),
    }
}
