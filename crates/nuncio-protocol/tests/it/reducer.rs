//! Laws of the one reducer, over any log of events (ART-01, ART-04, ART-06, GEN-09, ST-06, EV-07).

use nuncio_protocol::{
    Message, Part, ReduceError, StreamResponse, Task, TaskState, json, limit_history,
};
use proptest::collection::vec;
use proptest::prelude::{
    ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use proptest::sample::select;

use crate::strategies;
use crate::support::assert_same;

const TASK: &str = "t";

/// An event that mostly speaks of the task, with few artifact and message ids, so that they meet.
fn event() -> impl Strategy<Value = StreamResponse> {
    let few = select(vec!["", "a", "b", "c"]);
    (strategies::stream_response(), few, any::<u8>()).prop_map(|(mut event, id, dice)| {
        let ours = dice > 16;
        match &mut event {
            StreamResponse::Task(task) if ours => task.id = TASK.into(),
            StreamResponse::Message(message) => message.message_id = id.into(),
            StreamResponse::StatusUpdate(update) if ours => {
                update.task_id = TASK.into();
                if let Some(message) = &mut update.status.message {
                    message.message_id = id.into();
                }
            }
            StreamResponse::ArtifactUpdate(update) if ours => {
                update.task_id = TASK.into();
                update.artifact.artifact_id = id.into();
            }
            _ => {}
        }
        event
    })
}

/// An event other than a whole task, which would make most logs short.
fn update() -> impl Strategy<Value = StreamResponse> {
    event().prop_filter("a whole task", |event| {
        !matches!(event, StreamResponse::Task(_))
    })
}

fn log() -> impl Strategy<Value = Vec<StreamResponse>> {
    vec(prop_oneof![8 => update(), 1 => event()], 0..12)
}

fn task(state: TaskState) -> impl Strategy<Value = Task> {
    strategies::task().prop_map(move |mut task| {
        task.id = TASK.into();
        task.status.state = state;
        // As the reducer itself would have left it: each artifact id once.
        let mut seen = std::collections::BTreeSet::new();
        task.artifacts
            .retain(|artifact| seen.insert(artifact.artifact_id.clone()));
        task
    })
}

fn open_task() -> impl Strategy<Value = Task> {
    use TaskState::{AuthRequired, InputRequired, Submitted, Working};
    select(vec![Submitted, Working, InputRequired, AuthRequired]).prop_flat_map(task)
}

fn ended_task() -> impl Strategy<Value = Task> {
    use TaskState::{Canceled, Completed, Failed, Rejected};
    select(vec![Completed, Failed, Canceled, Rejected]).prop_flat_map(task)
}

fn fold(mut task: Task, log: &[StreamResponse]) -> Task {
    for event in log {
        let _ = task.apply(event);
    }
    task
}

fn fold_leniently(mut task: Task, log: &[StreamResponse]) -> Task {
    for event in log {
        task.apply_leniently(event);
    }
    task
}

fn through_json(task: &Task) -> Task {
    json::decode(json::encode(task).as_bytes()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// EV-03: a stored snapshot and its tail are the task that the whole log makes.
    #[test]
    fn a_snapshot_and_its_tail_fold_to_the_same_task(
        task in open_task(), log in log(), at in any::<proptest::sample::Index>(),
    ) {
        let (head, tail) = log.split_at(at.index(log.len() + 1));
        let snapshot = through_json(&fold(task.clone(), head));
        prop_assert_eq!(fold(snapshot, tail), fold(task.clone(), &log));
        let snapshot = through_json(&fold_leniently(task.clone(), head));
        prop_assert_eq!(fold_leniently(snapshot, tail), fold_leniently(task, &log));
    }

    /// GEN-09, ST-01.
    #[test]
    fn a_task_that_has_ended_never_changes(task in ended_task(), log in log()) {
        for event in &log {
            let mut folded = task.clone();
            let result = folded.apply(event);
            prop_assert_eq!(&folded, &task);
            prop_assert!(result.is_err() || *event == StreamResponse::Task(task.clone()));
        }
        // A repeated snapshot of the end is no change and no error.
        let mut folded = task.clone();
        prop_assert_eq!(folded.apply(&StreamResponse::Task(task.clone())), Ok(()));
    }

    /// EV-06, ST-01: a reader takes the closing snapshot, and nothing else, after the end.
    #[test]
    fn a_reader_takes_only_a_whole_task_after_the_end(
        task in ended_task(), update in update(), whole in ended_task(),
    ) {
        prop_assert_eq!(&fold_leniently(task.clone(), &[update]), &task);
        let closing = StreamResponse::Task(whole.clone());
        prop_assert_eq!(fold_leniently(task, &[closing]), whole);
    }

    #[test]
    fn a_refused_event_changes_nothing(task in open_task(), log in log(), next in event()) {
        let before = fold(task, &log);
        let mut after = before.clone();
        if after.apply(&next).is_err() {
            prop_assert_eq!(after, before);
        }
    }

    /// Where the strict reducer takes an event, the lenient one does the same; and it takes any.
    #[test]
    fn lenient_and_strict_agree_on_what_fits(task in open_task(), log in log()) {
        let mut lenient = task;
        for event in &log {
            let mut strict = lenient.clone();
            let fits = strict.apply(event).is_ok();
            lenient.apply_leniently(event);
            if fits {
                prop_assert_eq!(&lenient, &strict);
            }
        }
    }

    /// ART-05, ART-06: one artifact per id, in the order of first appearance.
    #[test]
    fn artifacts_keep_their_places(task in open_task(), log in vec(update(), 0..12)) {
        let mut folded = task;
        for event in &log {
            let before: Vec<_> = folded.artifacts.iter().map(|a| a.artifact_id.clone()).collect();
            folded.apply_leniently(event);
            let after: Vec<_> = folded.artifacts.iter().map(|a| a.artifact_id.clone()).collect();
            prop_assert!(after.starts_with(&before));
            prop_assert!(after.len() <= before.len() + 1);
        }
        let mut ids: Vec<_> = folded.artifacts.iter().map(|a| a.artifact_id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), folded.artifacts.len());
    }

    /// ST-06: what has been said stays said, in order; only a whole task may replace it.
    #[test]
    fn history_only_grows(task in open_task(), log in vec(update(), 0..12)) {
        let mut folded = task;
        for event in &log {
            let before = folded.history.clone();
            folded.apply_leniently(event);
            prop_assert!(folded.history.starts_with(&before));
        }
    }

    /// OP-GET-03, OP-SEND-19.
    #[test]
    fn a_limited_history_is_its_newest_end(
        messages in vec(strategies::message(), 0..8), length in -2i32..12, shorter in -2i32..12,
    ) {
        let limited = |length: Option<i32>| {
            let mut history = messages.clone();
            limit_history(&mut history, length);
            history
        };
        prop_assert_eq!(&limited(None), &messages);
        prop_assert_eq!(limited(Some(0)), Vec::<Message>::new());
        prop_assert_eq!(&limited(Some(i32::MAX)), &messages);
        let once = limited(Some(length));
        prop_assert!(messages.ends_with(&once));
        let kept = usize::try_from(length).unwrap_or(0).min(messages.len());
        prop_assert_eq!(once.len(), kept);
        let mut twice = once.clone();
        limit_history(&mut twice, Some(length));
        prop_assert_eq!(&twice, &once);
        limit_history(&mut twice, Some(shorter));
        prop_assert_eq!(twice, limited(Some(length.min(shorter))));
    }
}

fn event_of(text: &str) -> StreamResponse {
    json::decode(text.as_bytes()).unwrap()
}

fn begun() -> Task {
    json::decode(br#"{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}"#).unwrap()
}

/// BR-055, ART-01, ART-04.
#[test]
fn pieces_join_their_artifact_and_a_replacement_keeps_its_place() {
    let mut task = begun();
    for event in [
        r#"{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"x","name":"n","description":"d","parts":[{"text":"Hello"}],"metadata":{"a":1,"k":0},"extensions":["e1"]}}}"#,
        r#"{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"y","parts":[{"text":"other"}]}}}"#,
        r#"{"artifactUpdate":{"taskId":"t","append":true,"artifact":{"artifactId":"x","name":"N","parts":[{"text":" world"}],"metadata":{"b":2,"k":1},"extensions":["e1","e2"]},"metadata":{"event":true}}}"#,
        r#"{"artifactUpdate":{"taskId":"t","append":true,"lastChunk":true,"artifact":{"artifactId":"x","name":"","parts":[]}}}"#,
    ] {
        task.apply(&event_of(event)).unwrap();
    }
    assert_same(
        "the artifact",
        &json::encode(&task.artifacts[0]),
        r#"{"artifactId":"x","name":"N","description":"d","parts":[{"text":"Hello"},{"text":" world"}],"metadata":{"a":1,"b":2,"k":1},"extensions":["e1","e2"]}"#,
    );
    assert_eq!(task.metadata, None, "EV-08");
    let replacement = r#"{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"x","parts":[{"text":"new"}]}}}"#;
    task.apply(&event_of(replacement)).unwrap();
    assert_eq!(task.artifacts.len(), 2);
    assert_eq!(
        json::encode(&task.artifacts[0]),
        r#"{"artifactId":"x","parts":[{"text":"new"}]}"#
    );
}

/// ART-04: an empty name in a piece that a program built overwrites nothing.
#[test]
fn an_empty_name_overwrites_nothing() {
    let mut artifact = nuncio_protocol::Artifact::new("x", vec![]);
    artifact.name = Some("n".to_owned());
    artifact.description = Some("d".to_owned());
    let mut piece = nuncio_protocol::Artifact::new("x", vec![Part::text("p")]);
    piece.name = Some(String::new());
    piece.description = Some(String::new());
    artifact.append(&piece);
    assert_eq!(artifact.name.as_deref(), Some("n"));
    assert_eq!(artifact.description.as_deref(), Some("d"));
}

/// ART-02, TRAP-25.
#[test]
fn a_piece_of_an_unknown_artifact_is_an_error_or_its_beginning() {
    let piece = event_of(
        r#"{"artifactUpdate":{"taskId":"t","append":true,"artifact":{"artifactId":"x","parts":[{"text":"p"}]}}}"#,
    );
    let mut task = begun();
    assert_eq!(
        task.apply(&piece),
        Err(ReduceError::UnknownArtifact("x".into()))
    );
    task.apply_leniently(&piece);
    task.apply_leniently(&piece);
    assert_eq!(task.artifacts[0].parts.len(), 2);
}

/// BR-061, ST-06: the question moves to the history once, before the answer.
#[test]
fn the_question_is_in_the_history_once() {
    let mut task = begun();
    for event in [
        r#"{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"q","role":"ROLE_AGENT","parts":[{"text":"?"}]}}}}"#,
        r#"{"message":{"messageId":"a","role":"ROLE_USER","parts":[{"text":"!"}]}}"#,
        r#"{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_WORKING"}}}"#,
    ] {
        task.apply(&event_of(event)).unwrap();
    }
    let said: Vec<&str> = task.history.iter().map(|m| m.message_id.as_str()).collect();
    assert_eq!(said, ["q", "a"]);
    assert_eq!(task.status.message, None);
}

/// ST-06: messages without an id are not taken for one another.
#[test]
fn status_messages_without_ids_are_all_kept() {
    let mut task = begun();
    for text in ["one", "two", "three"] {
        let event = format!(
            r#"{{"statusUpdate":{{"taskId":"t","status":{{"state":"TASK_STATE_WORKING","message":{{"role":"ROLE_AGENT","parts":[{{"text":"{text}"}}]}}}}}}}}"#
        );
        task.apply_leniently(&event_of(&event));
    }
    let said: Vec<String> = task.history.iter().map(Message::text).collect();
    assert_eq!(said, ["one", "two"]);
}

/// ST-07: a server refuses to go back, a reader shows what it is told.
#[test]
fn an_illegal_state_is_refused_or_shown() {
    let back =
        event_of(r#"{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_SUBMITTED"}}}"#);
    let mut task = begun();
    assert!(matches!(task.apply(&back), Err(ReduceError::Transition(_))));
    task.apply_leniently(&back);
    assert_eq!(task.status.state, TaskState::Submitted);
}

/// An event of another task is refused, whatever it is.
#[test]
fn events_of_other_tasks_change_nothing() {
    for event in [
        r#"{"task":{"id":"u","status":{"state":"TASK_STATE_FAILED"}}}"#,
        r#"{"statusUpdate":{"taskId":"u","status":{"state":"TASK_STATE_FAILED"}}}"#,
        r#"{"artifactUpdate":{"taskId":"u","artifact":{"artifactId":"x","parts":[]}}}"#,
    ] {
        let mut task = begun();
        assert_eq!(task.apply(&event_of(event)), Err(ReduceError::OtherTask));
        task.apply_leniently(&event_of(event));
        assert_eq!(task, begun());
    }
}
