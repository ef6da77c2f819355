//! Artifacts: what a task produces.

use crate::wire::wire_message;
use crate::{ArtifactId, Metadata, Part};

wire_message! {
    /// One output of a task. Spec: §4.1.7
    pub struct Artifact {
        /// Unique within the task.
        artifact_id: ArtifactId => required "artifactId",
        /// A name for people; a refined artifact keeps it under a new id.
        name: Option<String> => text "name",
        /// What it is, for people.
        description: Option<String> => text "description",
        /// The content, at least one part.
        parts: Vec<Part> => required "parts",
        /// Free-form additions.
        metadata: Option<Metadata> => optional "metadata",
        /// URIs of the extensions this artifact uses.
        extensions: Vec<String> => list "extensions",
    }
}

impl Artifact {
    /// An artifact with nothing but its parts.
    pub fn new(artifact_id: impl Into<ArtifactId>, parts: Vec<Part>) -> Self {
        Self {
            artifact_id: artifact_id.into(),
            parts,
            ..Self::default()
        }
    }

    /// All text of the artifact, its text parts joined without separator.
    pub fn text(&self) -> String {
        self.parts.iter().filter_map(Part::as_text).collect()
    }
}
