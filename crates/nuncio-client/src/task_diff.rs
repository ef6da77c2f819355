//! Two snapshots of a task told as the events between them, for agents that only answer polls.

use nuncio_protocol::{
    Artifact, StreamResponse, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent,
};

/// The events that lead from `old` to `new`: artifacts first, then the status (BR-043).
///
/// Folding them into `old` gives the state and artifacts of `new`.
pub(crate) fn events_between(old: &Task, new: &Task) -> Vec<StreamResponse> {
    let context = new.context_id.clone().unwrap_or_default();
    let mut events: Vec<StreamResponse> = new
        .artifacts
        .iter()
        .filter_map(|artifact| {
            let known = old
                .artifacts
                .iter()
                .find(|known| known.artifact_id == artifact.artifact_id);
            let (piece, append) = piece(known, artifact)?;
            let mut event = TaskArtifactUpdateEvent::new(new.id.clone(), context.clone(), piece);
            event.append = append;
            event.last_chunk = new.status.state.is_terminal();
            Some(StreamResponse::ArtifactUpdate(event))
        })
        .collect();
    if old.status != new.status {
        let status = new.status.clone();
        events.push(StreamResponse::StatusUpdate(TaskStatusUpdateEvent::new(
            new.id.clone(),
            context,
            status,
        )));
    }
    events
}

/// What is new of an artifact, and whether it adds to what is known of it.
fn piece(known: Option<&Artifact>, artifact: &Artifact) -> Option<(Artifact, bool)> {
    let Some(known) = known else {
        return Some((artifact.clone(), false));
    };
    if known == artifact {
        return None;
    }
    let mut grown = known.clone();
    grown.parts.clone_from(&artifact.parts);
    if grown == *artifact && artifact.parts.starts_with(&known.parts) {
        let mut piece = artifact.clone();
        piece.parts.drain(..known.parts.len());
        return Some((piece, true));
    }
    Some((artifact.clone(), false))
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{Part, TaskState, TaskStatus, Timestamp};

    use super::*;

    #[test]
    fn folding_the_difference_gives_the_newer_snapshot() {
        let at = |text: &str| Timestamp::parse(text).unwrap();
        let status = TaskStatus::new(TaskState::Working, at("2026-01-01T00:00:00Z"));
        let mut old = Task::new("t".into(), "c".into(), status);
        old.artifacts = vec![
            Artifact::new("grows", vec![Part::text("a")]),
            Artifact::new("stays", vec![Part::text("s")]),
            Artifact::new("changes", vec![Part::text("x")]),
        ];
        let mut new = old.clone();
        new.status = TaskStatus::new(TaskState::Completed, at("2026-01-01T00:00:01Z"));
        new.artifacts[0].parts.push(Part::text("b"));
        new.artifacts[2].parts = vec![Part::text("y")];
        new.artifacts
            .push(Artifact::new("fresh", vec![Part::text("f")]));
        let events = events_between(&old, &new);
        assert_eq!(events.len(), 4);
        for event in &events {
            old.apply_leniently(event);
        }
        assert_eq!(old, new);
        assert!(events_between(&new, &new).is_empty());
    }
}
