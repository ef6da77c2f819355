//! The script agent, step by step.

use nuncio_protocol::{PartContent, SendMessageResponse, StreamResponse, TaskState};
use serde_json::json;
use tokio::time::{Duration, Instant};

use crate::support::{Hosted, said, texts};

/// An agent that plays these steps whatever it is told.
fn playing(steps: &str) -> Hosted {
    Hosted::script(&format!("[[rules]]\notherwise = true\nsteps = [{steps}]\n"))
}

#[tokio::test]
async fn each_end_has_its_state_and_words() {
    for (steps, state, words) in [
        ("", TaskState::Completed, ""),
        (
            "{ fail = 'broke on {text}' }",
            TaskState::Failed,
            "broke on x",
        ),
        ("{ reject = 'not {turn}' }", TaskState::Rejected, "not 1"),
        (
            "{ done = 'all of {text}' }",
            TaskState::Completed,
            "all of x",
        ),
        (
            "'silent'",
            TaskState::Failed,
            "the agent ended without result",
        ),
        (
            "{ status = 'a' }, { pause = { prompt = 'b?' } }",
            TaskState::InputRequired,
            "b?",
        ),
        (
            "{ pause = { reason = 'auth', prompt = 'c?' } }",
            TaskState::AuthRequired,
            "c?",
        ),
    ] {
        let task = playing(steps).task("x").await;
        assert_eq!(
            (task.status.state, said(&task).as_str()),
            (state, words),
            "{steps}"
        );
    }
}

#[tokio::test]
async fn a_panic_is_a_failed_task() {
    let task = playing("'panic'").task("x").await;
    assert_eq!(task.status.state, TaskState::Failed);
}

#[tokio::test]
async fn a_message_no_rule_is_for_is_rejected() {
    let hosted = Hosted::script("[[rules]]\nwhen = { text = 'a' }\nsteps = []\n");
    assert_eq!(hosted.task("b").await.status.state, TaskState::Rejected);
    assert_eq!(hosted.task("a").await.status.state, TaskState::Completed);
}

#[tokio::test]
async fn text_deltas_are_one_artifact() {
    let hosted =
        playing("{ repeat = { times = 3, steps = [{ text = '{text}-' }] } }, { text = '!' }");
    assert_eq!(texts(&hosted.task("a").await), ["a-a-a-!"]);
}

#[tokio::test]
async fn artifacts_come_whole_in_chunks_and_in_pieces() {
    let hosted = playing(
        "{ artifact = { id = 'a', name = 'A', text = '1' } },
         { artifact = { chunks = ['x', 'y', '{text}'] } },
         { artifact = { id = 'b', text = '2', last = false } },
         { artifact = { id = 'b', text = '3', append = true } },
         { artifact = { parts = [{ raw = 'AAE=', filename = 'f', media_type = 'a/b' }, { json = '[null]' }, { data = { n = 1 } }, { url = 'https://h.example/{text}' }] } }",
    );
    let task = hosted.task("z").await;
    assert_eq!(task.status.state, TaskState::Completed, "{}", said(&task));
    assert_eq!(texts(&task)[..3], ["1", "xyz", "23"]);
    assert_eq!(task.artifacts[0].name.as_deref(), Some("A"));
    let contents: Vec<_> = task.artifacts[3]
        .parts
        .iter()
        .map(|part| &part.content)
        .collect();
    assert_eq!(
        contents,
        [
            &PartContent::Raw(vec![0, 1].into()),
            &PartContent::Data(json!([null])),
            &PartContent::Data(json!({"n": 1})),
            &PartContent::Url("https://h.example/z".to_owned()),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn chunks_are_events_of_their_own_with_time_between_them() {
    let began = Instant::now();
    let events = playing("{ artifact = { chunks = ['1', '2'], interval_ms = 300 } }")
        .events("x")
        .await;
    assert_eq!(began.elapsed().as_millis(), 300);
    let pieces: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            StreamResponse::ArtifactUpdate(u) => Some((u.artifact.text(), u.append, u.last_chunk)),
            _ => None,
        })
        .collect();
    assert_eq!(
        pieces,
        [("1".to_owned(), false, false), ("2".to_owned(), true, true)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_wait_at_once() {
    let hosted =
        playing("{ status = 'soon' }, { wait_ms = 100000 }, { artifact = { text = 'late' } }");
    let task = hosted.begin("x").await;
    let began = Instant::now();
    let canceled = hosted.cancel(&task.id).await;
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(texts(&canceled), [""; 0]);
}

#[tokio::test]
async fn a_message_makes_no_task() {
    let hosted = Hosted::script(
        "[[rules]]\nwhen = { text = 'direct' }\nsteps = [{ message = 'just {text}' }]\n\
         [[rules]]\notherwise = true\nsteps = [{ pause = { prompt = '?', on_answer = [{ text = '{turn}:{text}' }] } }]\n",
    );
    match hosted.ask(hosted.message("direct")).await.unwrap() {
        SendMessageResponse::Message(message) => {
            assert_eq!(
                (message.text().as_str(), &message.task_id),
                ("just direct", &None)
            );
        }
        other => panic!("{other:?}"),
    }
    // An agent that can answer directly also pauses and goes on.
    let waiting = hosted.task("x").await;
    let done = hosted.answer(&waiting.id, "direct").await;
    assert_eq!(texts(&done), ["2:direct"]);
}

#[tokio::test]
async fn a_conversation_can_answer_for_its_task() {
    let hosted = playing(
        "{ pause = { prompt = '1?', on_answer = [{ pause = { prompt = '2?', on_answer = [{ text = '{turn}' }] } }] } }",
    );
    let first = hosted.task("a").await;
    let context = first.context_id.clone().unwrap();
    let second = hosted.in_context(&context, "b").await;
    assert_eq!((&second.id, said(&second).as_str()), (&first.id, "2?"));
    let third = hosted.answer(&first.id, "c").await;
    assert_eq!(
        (third.status.state, &texts(&third)[..]),
        (TaskState::Completed, &["3".to_owned()][..])
    );
}

/// What an artifact text says is not read as a template again.
#[tokio::test]
async fn texts_are_filled_in_once() {
    let hosted = playing("{ artifact = { text = '{turn} {text} {other} {' } }");
    assert_eq!(
        texts(&hosted.task("{turn}{text}").await),
        ["1 {turn}{text} {other} {"]
    );
}
