//! What is remembered within a task.

use nuncio_protocol::{Part, TaskState};
use nuncio_runtime::Budgets;
use nuncio_runtime::model::{Turn, UserPart};

use super::{agent, hosted, saying, shown};
use crate::support::{fake, said, texts};

const ASKING: &str = r#"
    [[rules]]
    when = { text_contains = "start" }
    reply = [{ text = "Hm. " }, { tool = { name = "ask_user", arguments = { question = "Photo?" } } }]
    [[rules]]
    when = { after_tool = "ask_user" }
    reply = [{ text = "Thanks for {result}." }]
"#;

/// The model sees calls with their results, files of an answer included, and no piece twice.
#[tokio::test]
async fn the_model_sees_the_whole_task() {
    let model = fake("fake", ASKING);
    let hosted = hosted(agent(&model).ask_user());
    let waiting = hosted.task("start").await;
    assert_eq!(
        (waiting.status.state, said(&waiting).as_str()),
        (TaskState::InputRequired, "Photo?")
    );
    let mut answer = hosted.message("a photo");
    answer
        .parts
        .push(Part::raw(vec![7]).with_media_type("image/png"));
    answer.task_id = Some(waiting.id.clone());
    let done = hosted.task_of(answer).await;
    assert_eq!(texts(&done), ["Hm. ", "Thanks for a photo."]);
    let turns = shown(&model);
    let [
        Turn::User(_),
        Turn::Assistant {
            text, tool_calls, ..
        },
        Turn::Tools(results),
        Turn::User(files),
    ] = &turns[..]
    else {
        panic!("{turns:?}");
    };
    assert_eq!((text.as_str(), tool_calls.len()), ("Hm. ", 1));
    assert_eq!(results[0].id, tool_calls[0].id);
    assert_eq!(results[0].content, "a photo");
    assert!(matches!(&files[..], [UserPart::File { bytes, .. }] if bytes[..] == [7]));
}

/// What is said before and after a call of a tool is one artifact, in two paragraphs.
#[tokio::test]
async fn rounds_are_paragraphs() {
    let model = fake(
        "fake",
        r#"
        [[rules]]
        when = { text_contains = "x" }
        reply = [{ text = "Wait." }, { tool = { name = "nothing" } }]
        [[rules]]
        when = { after_tool = "nothing" }
        reply = [{ text = "Done." }]
    "#,
    );
    assert_eq!(
        texts(&hosted(agent(&model)).task("x").await),
        ["Wait.\n\nDone."]
    );
}

/// Above the limit the older part becomes a summary; the newest message stays as it is.
#[tokio::test]
async fn a_long_conversation_is_summarised() {
    let model = fake(
        "fake",
        r#"
        [[rules]]
        when = { system_contains = "You shorten conversations" }
        reply = [{ text = "They spoke of apples." }]
        [[rules]]
        when = { after_tool = "ask_user" }
        reply = [{ tool = { name = "ask_user", arguments = { question = "More?" } } }]
        [[rules]]
        otherwise = true
        reply = [{ tool = { name = "ask_user", arguments = { question = "More?" } } }]
    "#,
    );
    let budgets = Budgets {
        compact_above_tokens: 100,
        ..Budgets::default()
    };
    let hosted = hosted(agent(&model).ask_user().budgets(budgets));
    let task = hosted.task(&"apple ".repeat(50)).await;
    for _ in 0..3 {
        hosted.answer(&task.id, &"apple ".repeat(30)).await;
    }
    let requests = model.requests();
    let shortened = requests.iter().any(|request| request.turns.iter().any(|turn| {
        matches!(turn, Turn::User(parts) if matches!(&parts[0], UserPart::Text(text) if text.contains("They spoke of apples.")))
    }));
    assert!(shortened, "{requests:?}");
    let turns = shown(&model);
    let results = turns
        .iter()
        .filter(|turn| matches!(turn, Turn::Tools(_)))
        .count();
    let calls = turns
        .iter()
        .filter(|turn| matches!(turn, Turn::Assistant { .. }))
        .count();
    assert_eq!(results, calls, "calls stay with their results: {turns:?}");
    assert!(results < 3, "{turns:?}");
}

/// If the model itself finds the conversation too long, it is shortened and asked again.
#[tokio::test]
async fn a_conversation_that_the_model_finds_too_long_is_summarised() {
    let model = fake(
        "fake",
        r#"
        [[rules]]
        when = { system_contains = "You shorten conversations" }
        reply = [{ text = "Short." }]
        [[rules]]
        when = { text_contains = "first" }
        reply = [{ tool = { name = "ask_user", arguments = { question = "?" } } }]
        [[rules]]
        when = { after_tool = "ask_user" }
        times = 1
        reply = [{ error = "context_too_long" }]
        [[rules]]
        otherwise = true
        reply = [{ text = "There." }]
    "#,
    );
    let hosted = hosted(agent(&model).ask_user());
    let task = hosted.task("first").await;
    let done = hosted.answer(&task.id, "second").await;
    assert_eq!(
        (done.status.state, &texts(&done)[..]),
        (TaskState::Completed, &["There.".to_owned()][..]),
        "{}",
        said(&done)
    );
}

#[tokio::test]
async fn an_agent_without_instructions_and_tools_has_none() {
    let model = saying("x");
    hosted(agent(&model)).task("hello").await;
    let request = model.requests().pop().unwrap();
    assert!(
        request.system.is_none() && request.tools.is_empty() && request.output_schema.is_none()
    );
    assert_eq!(request.turns, [Turn::user("hello")]);
}
