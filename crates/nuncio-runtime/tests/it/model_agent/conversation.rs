//! What is remembered, within a task and beyond it.

use std::sync::Arc;

use nuncio_protocol::{Part, TaskState};
use nuncio_runtime::Budgets;
use nuncio_runtime::model::{Turn, UserPart};
use nuncio_runtime::tool::{FnTool, ToolCx, ToolError};

use super::{agent, hosted, saying, shown};
use crate::support::{Hosted, fake, said, texts};

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

/// All tasks of a context share one conversation, calls and results included; others see nothing.
#[tokio::test]
async fn tasks_of_a_context_share_the_conversation() {
    let model = fake("fake", ASKING);
    let folder = tempfile::tempdir().unwrap();
    let make = || Arc::new(agent(&model).ask_user().build().unwrap());
    let hosted = Hosted::at(&folder, make());
    let waiting = hosted.task("start").await;
    let context = waiting.context_id.clone().unwrap();
    hosted.answer(&waiting.id, "a photo").await;
    hosted.stop().await;

    let hosted = Hosted::at(&folder, make());
    hosted.in_context(&context, "start again").await;
    let turns = shown(&model);
    let [
        Turn::User(_),
        Turn::Assistant { .. },
        Turn::Tools(_),
        Turn::Assistant { text, .. },
        newest,
    ] = &turns[..]
    else {
        panic!("{turns:?}");
    };
    assert_eq!(
        (text.as_str(), newest),
        ("Thanks for a photo.", &Turn::user("start again"))
    );
    hosted.task("start elsewhere").await;
    assert_eq!(shown(&model), [Turn::user("start elsewhere")]);
}

/// A task that waits has calls without results: the conversation has them only when it is done.
#[tokio::test]
async fn a_task_that_was_canceled_while_it_waited_leaves_nothing() {
    let model = fake("fake", ASKING);
    let hosted = hosted(agent(&model).ask_user());
    let waiting = hosted.task("start").await;
    hosted.cancel(&waiting.id).await;
    hosted
        .in_context(&waiting.context_id.unwrap(), "start too")
        .await;
    assert_eq!(shown(&model), [Turn::user("start too")]);
}

/// Variables that are not of the run come from the state of the session.
#[tokio::test]
async fn instructions_are_filled_from_the_state() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Language {
        name: String,
    }
    let learn = FnTool::new(
        "learn",
        "Learns a language.",
        async |cx: ToolCx, language: Language| {
            let mut session = cx.run().session();
            session.load(1).await.map_err(ToolError::internal)?;
            let name = language.name.into();
            session
                .set("caller:language", name)
                .await
                .map_err(ToolError::internal)?;
            Ok::<_, ToolError>("learnt")
        },
    );
    let model = fake(
        "fake",
        r#"
        [[rules]]
        when = { text_contains = "learn" }
        reply = [{ tool = { name = "learn", arguments = { name = "Latin" } } }]
        [[rules]]
        otherwise = true
        reply = [{ text = "ok" }]
    "#,
    );
    let hosted = hosted(
        agent(&model)
            .tool(learn)
            .instructions("Speak {caller:language?}."),
    );
    let task = hosted.task("learn").await;
    assert_eq!(task.status.state, TaskState::Completed, "{}", said(&task));
    assert_eq!(model.requests()[0].system.as_deref(), Some("Speak ."));
    hosted.task("another conversation").await;
    assert_eq!(
        model.requests().pop().unwrap().system.as_deref(),
        Some("Speak Latin.")
    );
}

/// What a task said that failed is not kept.
#[tokio::test]
async fn a_failed_task_leaves_nothing_in_the_conversation() {
    let model = fake(
        "fake",
        "[[rules]]\ntimes = 1\notherwise = true\nreply = [{ text = 'half' }, 'cut']\n\
        [[rules]]\notherwise = true\nreply = [{ text = 'ok' }]",
    );
    let hosted = hosted(agent(&model));
    let failed = hosted.task("first").await;
    assert_eq!(failed.status.state, TaskState::Failed);
    hosted
        .in_context(&failed.context_id.unwrap(), "second")
        .await;
    assert_eq!(shown(&model), [Turn::user("second")]);
}

/// The older part of a conversation over many tasks is summarised in the session itself.
#[tokio::test]
async fn a_conversation_of_many_tasks_is_summarised() {
    let model = fake(
        "fake",
        r#"
        [[rules]]
        when = { system_contains = "You shorten conversations" }
        reply = [{ text = "They spoke of apples." }]
        [[rules]]
        otherwise = true
        reply = [{ text = "Yes." }]
    "#,
    );
    let budgets = Budgets {
        compact_above_tokens: 100,
        ..Budgets::default()
    };
    let hosted = hosted(agent(&model).budgets(budgets));
    let first = hosted.task(&"apple ".repeat(50)).await;
    let context = first.context_id.unwrap();
    for _ in 0..2 {
        hosted.in_context(&context, &"pear ".repeat(30)).await;
    }
    hosted.in_context(&context, "and now?").await;
    let summaries = model
        .requests()
        .iter()
        .filter(|request| {
            request
                .system
                .as_deref()
                .is_some_and(|system| system.contains("You shorten"))
        })
        .count();
    let turns = shown(&model);
    let Turn::User(parts) = &turns[0] else {
        panic!("{turns:?}")
    };
    let UserPart::Text(text) = &parts[0] else {
        panic!("{parts:?}")
    };
    assert!(text.contains("They spoke of apples."), "{text}");
    assert!(!format!("{turns:?}").contains("apple apple"), "{turns:?}");
    assert_eq!(turns.last(), Some(&Turn::user("and now?")));
    assert!(summaries <= 3, "{summaries}");
}
