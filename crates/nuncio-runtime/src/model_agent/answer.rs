//! The artifact that the model's words go into.

use nuncio_engine::{EmitError, RunCx};
use nuncio_protocol::{Artifact, Metadata, Part};

use super::pending::Answering;

/// One artifact, to which every delta is an append (BR-041).
///
/// Its id is the same when a run is repeated after a crash, and its first piece then replaces what
/// the crash has left.
#[derive(Debug)]
pub(super) struct Answer<'a> {
    cx: &'a RunCx,
    so_far: Answering,
    begun: bool,
    /// Whether what comes next begins a new paragraph.
    pause: bool,
}

/// Stands between what is said before and after a call of tools.
const PARAGRAPH: &str = "\n\n";

impl<'a> Answer<'a> {
    /// The answer to a message, of which something may have been said before a crash.
    pub(super) fn new(cx: &'a RunCx, so_far: Answering) -> Self {
        Self {
            cx,
            pause: !so_far.said.is_empty(),
            so_far,
            begun: false,
        }
    }

    /// Everything said so far, for the checkpoint.
    pub(super) fn so_far(&self) -> &Answering {
        &self.so_far
    }

    /// Whether nothing has been said.
    pub(super) fn is_empty(&self) -> bool {
        self.so_far.said.is_empty()
    }

    /// Says more.
    pub(super) async fn say(&mut self, delta: &str) -> Result<(), EmitError> {
        if delta.is_empty() {
            return Ok(());
        }
        let said = &mut self.so_far.said;
        let before = said.len();
        if std::mem::take(&mut self.pause) {
            said.push_str(PARAGRAPH);
        }
        said.push_str(delta);
        let piece = match self.begun {
            true => &said[before..],
            false => said.as_str(),
        };
        let parts = vec![Part::text(piece)];
        self.give(parts, None, false).await
    }

    /// Ends a round; what is said after it is a paragraph of its own.
    pub(super) fn end_round(&mut self) {
        self.pause = !self.is_empty();
    }

    /// Ends the answer.
    pub(super) async fn end(&mut self, metadata: Metadata) -> Result<(), EmitError> {
        let rest = match self.begun {
            true => Part::text(""),
            false => Part::text(self.so_far.said.as_str()),
        };
        self.give(vec![rest], Some(metadata), true).await
    }

    /// Gives other content as the whole answer.
    pub(super) async fn give_whole(
        &mut self,
        parts: Vec<Part>,
        metadata: Metadata,
    ) -> Result<(), EmitError> {
        self.begun = false;
        self.give(parts, Some(metadata), true).await
    }

    async fn give(
        &mut self,
        parts: Vec<Part>,
        metadata: Option<Metadata>,
        last: bool,
    ) -> Result<(), EmitError> {
        let mut artifact = Artifact::new(self.so_far.artifact.as_str(), parts);
        artifact.metadata = metadata.filter(|metadata| !metadata.is_empty());
        let append = std::mem::replace(&mut self.begun, true);
        self.cx.chunk(artifact, append, last).await
    }
}
