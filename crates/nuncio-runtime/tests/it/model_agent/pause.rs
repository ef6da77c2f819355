//! Tools that wait for somebody.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use nuncio_engine::Pause;
use nuncio_protocol::{Part, TaskState};
use nuncio_runtime::model::{FakeModel, Turn};
use nuncio_runtime::tool::{FnTool, Tool, ToolCx, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{agent, hosted, shown};
use crate::support::{Hosted, fake, said, texts};

#[derive(Deserialize, JsonSchema)]
struct Args {
    n: u32,
}

const ASKING: &str = r#"
    [[rules]]
    when = { turn = 1 }
    reply = [{ tool = { name = "ask_user", arguments = { question = "Which {text}?" } } }]
    [[rules]]
    otherwise = true
    reply = [{ text = "So {result}." }]
"#;

/// BR-174: a question is INPUT_REQUIRED, and the answer completes the same task.
#[tokio::test]
async fn br_174_ask_user_waits_for_the_answer() {
    let model = fake("fake", ASKING);
    let hosted = hosted(agent(&model).ask_user());
    let waiting = hosted.task("size").await;
    assert_eq!(
        (waiting.status.state, said(&waiting).as_str()),
        (TaskState::InputRequired, "Which size?")
    );
    let done = hosted.answer(&waiting.id, "large").await;
    assert_eq!(
        (&done.id, done.status.state),
        (&waiting.id, TaskState::Completed)
    );
    assert_eq!(texts(&done), ["So large."]);
}

/// BR-174 over a restart between the question and the answer.
#[tokio::test]
async fn br_174_a_restart_loses_nothing() {
    let model = fake("fake", ASKING);
    let make = || Arc::new(agent(&model).ask_user().build().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let hosted = Hosted::at(&folder, make());
    let waiting = hosted.task("size").await;
    hosted.stop().await;
    let again = Hosted::at(&folder, make());
    let done = again.answer(&waiting.id, "large").await;
    assert_eq!(
        (done.status.state, &texts(&done)[..]),
        (TaskState::Completed, &["So large.".to_owned()][..])
    );
    let kinds: Vec<_> = shown(&model)
        .iter()
        .map(|turn| match turn {
            Turn::User(_) => 'u',
            Turn::Assistant { .. } => 'a',
            Turn::Tools(_) => 't',
        })
        .collect();
    assert_eq!(kinds, ['u', 'a', 't']);
}

/// A tool that wants a credential, and counts its calls.
fn vault(calls: &Arc<AtomicUsize>) -> impl Tool + 'static {
    let calls = Arc::clone(calls);
    FnTool::new("vault", "Opens.", move |cx: ToolCx, args: Args| {
        calls.fetch_add(1, SeqCst);
        async move {
            match cx.answer() {
                Some(answer) => Ok(ToolOutput::Value(json!([args.n, answer.text()]))),
                None => {
                    let prompt = cx.run().message(vec![Part::text("Log in at the bank.")]);
                    let url = Some("https://bank.example/login".to_owned());
                    Ok::<_, ToolError>(ToolOutput::paused(Pause::auth(prompt, "oauth2", url)))
                }
            }
        }
    })
}

const VAULT: &str = r#"
    [[rules]]
    when = { turn = 1 }
    reply = [{ tool = { name = "note", arguments = { n = 1 } } }, { tool = { name = "vault", arguments = { n = 2 } } }]
    [[rules]]
    otherwise = true
    reply = [{ text = "{result}" }]
"#;

/// BR-176: a credential is asked for with AUTH_REQUIRED, the answer makes the same call again, and no
/// other call is repeated. The answer is the tool's, not the model's.
#[tokio::test]
async fn br_176_a_tool_gets_its_credential_and_the_call_is_made_again() {
    let (calls, notes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let note = {
        let notes = Arc::clone(&notes);
        move || {
            let notes = Arc::clone(&notes);
            FnTool::new("note", "Notes.", move |_cx: ToolCx, _args: Args| {
                notes.fetch_add(1, SeqCst);
                async { Ok::<_, ToolError>("noted") }
            })
        }
    };
    let model = fake("fake", VAULT);
    let make = || {
        Arc::new(
            agent(&model)
                .tool(vault(&calls))
                .tool(note())
                .build()
                .unwrap(),
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let hosted = Hosted::at(&folder, make());
    let waiting = hosted.task("open").await;
    assert_eq!(
        (waiting.status.state, said(&waiting).as_str()),
        (TaskState::AuthRequired, "Log in at the bank.")
    );
    hosted.stop().await;
    let again = Hosted::at(&folder, make());
    let done = again.answer(&waiting.id, "s3cret").await;
    assert_eq!(
        (done.status.state, &texts(&done)[..]),
        (TaskState::Completed, &["[2,\"s3cret\"]".to_owned()][..])
    );
    assert_eq!((calls.load(SeqCst), notes.load(SeqCst)), (2, 1));
    let Turn::User(first) = &shown(&model)[0] else {
        panic!()
    };
    assert_eq!(
        first.len(),
        1,
        "the credential is no part of the conversation: {first:?}"
    );
}

/// BR-176: a task that waits for a credential can be canceled.
#[tokio::test]
async fn br_176_a_task_that_waits_can_be_canceled() {
    let calls = Arc::new(AtomicUsize::new(0));
    let model = fake(
        "fake",
        &VAULT.replace(
            "{ tool = { name = \"note\", arguments = { n = 1 } } }, ",
            "",
        ),
    );
    let hosted = hosted(agent(&model).tool(vault(&calls)));
    let waiting = hosted.task("open").await;
    assert_eq!(waiting.status.state, TaskState::AuthRequired);
    assert_eq!(
        hosted.cancel(&waiting.id).await.status.state,
        TaskState::Canceled
    );
    assert_eq!(calls.load(SeqCst), 1);
}

/// A run that was cut off goes on where it was: what the model has said stands once, and what tools
/// have done is not done again.
#[tokio::test]
async fn a_run_that_was_cut_off_goes_on() {
    let notes = Arc::new(AtomicUsize::new(0));
    let note = |notes: &Arc<AtomicUsize>| {
        let notes = Arc::clone(notes);
        FnTool::new("note", "Notes.", move |_cx: ToolCx, _args: Args| {
            notes.fetch_add(1, SeqCst);
            async { Ok::<_, ToolError>("noted") }
        })
    };
    let first = "[[rules]]\nwhen = { turn = 1 }\n\
        reply = [{ text = 'Wait.' }, { tool = { name = 'note', arguments = { n = 1 } } }]\n";
    let hangs = fake(
        "fake",
        &format!(
            "{first}[[rules]]\notherwise = true\nreply = [{{ text = 'Half' }}, {{ wait_ms = 1000000 }}]"
        ),
    );
    let folder = tempfile::tempdir().unwrap();
    let make = |model: &FakeModel| Arc::new(agent(model).tool(note(&notes)).build().unwrap());
    let hosted = Hosted::at(&folder, make(&hangs));
    let task = hosted.begin("x").await;
    hosted.until_text(&task.id, "Wait.\n\nHalf").await;
    hosted.stop().await;

    let answers = fake(
        "fake",
        &format!("{first}[[rules]]\notherwise = true\nreply = [{{ text = 'Done: {{result}}.' }}]"),
    );
    let hosted = Hosted::at(&folder, make(&answers));
    hosted.engine.recover().await.unwrap();
    hosted.until_text(&task.id, "Wait.\n\nDone: noted.").await;
    while !hosted.get(&task.id).await.status.state.is_terminal() {
        tokio::task::yield_now().await;
    }
    let task = hosted.get(&task.id).await;
    assert_eq!(
        (task.status.state, task.artifacts.len()),
        (TaskState::Completed, 1),
        "{}",
        said(&task)
    );
    assert_eq!((notes.load(SeqCst), answers.requests().len()), (1, 1));
}
