//! What is written down of what agents did.

use std::path::Path;
use std::sync::Arc;

use nuncio_engine::{AgentInfo, agent_fn};
use nuncio_protocol::TaskState;
use nuncio_runtime::ModelAgent;
use nuncio_runtime::layer::{Audit, Layer, LayeredAgent, Refuse};
use nuncio_runtime::tool::{FnTool, ToolCx, ToolError};
use nuncio_testkit::FixedClock;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Hosted, fake};

#[derive(Deserialize, JsonSchema)]
struct Args {
    word: String,
}

/// Calls `repeat` with what the user says.
fn repeating(audit: Audit) -> Hosted {
    let model = fake(
        "fake",
        r#"
        [[rules]]
        when = { text_contains = "silence" }
        reply = [{ error = "invalid" }]
        [[rules]]
        when = { after_tool = "repeat" }
        reply = [{ text = "It gave {result}" }]
        [[rules]]
        otherwise = true
        reply = [{ tool = { name = "repeat", arguments = { word = "{text}" } } }]
        "#,
    );
    let tool = FnTool::new(
        "repeat",
        "Repeats.",
        async |_: ToolCx, args: Args| match args.word.as_str() {
            "fail" => Err(ToolError::new("cannot")),
            word => Ok(word.to_owned()),
        },
    );
    let agent = ModelAgent::builder("agent").model(model).tool(tool);
    let guard = Refuse::new(["poison"], "never").unwrap();
    Hosted::new(Arc::new(agent.layer(audit).layer(guard).build().unwrap()))
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A line for each step, with who and what, and without a word of what was said.
#[tokio::test]
async fn each_step_is_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let clock = Arc::new(FixedClock::default());
    let hosted = repeating(Audit::to_file(&path).unwrap().clock(clock.clone()));
    let task = hosted.task("hush").await;
    let lines = lines(&path);
    let told = |line: &Value| format!("{} {}", line["what"], line["ended"]).replace('"', "");
    let told: Vec<_> = lines.iter().map(told).collect();
    assert_eq!(told, ["model done", "tool done", "model done", "run done"]);
    let caller = nuncio_protocol::Call::client().caller;
    for line in &lines {
        assert_eq!(line["at"], nuncio_protocol::Clock::now(&*clock).to_string());
        assert_eq!(line["task"], json!(task.id));
        assert_eq!(line["context"], json!(task.context_id));
        assert_eq!(
            (
                &line["agent"],
                &line["caller"],
                &line["workspace"],
                &line["attempt"]
            ),
            (
                &json!("agent"),
                &json!(caller.id),
                &json!(caller.workspace),
                &json!(1)
            )
        );
        assert!(line["tookMs"].is_u64(), "{line}");
        assert!(!line.to_string().contains("hush"), "{line}");
    }
    assert_eq!(lines[0]["model"], "fake");
    assert!(
        lines[0]["usage"]["inputTokens"].as_u64() > Some(0),
        "{}",
        lines[0]
    );
    assert_eq!(
        (&lines[1]["tool"], lines[1]["call"].is_string()),
        (&json!("repeat"), true)
    );
    assert_eq!(lines[3]["message"], json!(task.history[0].message_id));
}

/// Failures of each step and what a later layer refuses are lines too.
#[tokio::test]
async fn failures_and_refusals_are_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let hosted = repeating(Audit::to_file(&path).unwrap());
    for text in ["fail", "silence", "poison"] {
        hosted.task(text).await;
    }
    let told = |line: &Value| format!("{} {} {}", line["what"], line["ended"], line["error"]);
    let told: Vec<_> = lines(&path).iter().map(told).collect();
    let told: Vec<_> = told.iter().map(|line| line.replace('"', "")).collect();
    assert_eq!(
        told,
        [
            "model done null",
            "tool failed cannot",
            "model done null",
            "run done null",
            "model failed invalid",
            "run failed the model's provider does not take the request",
            "run rejected null",
        ]
    );
}

/// With content there is what came in, went into tools and came out of them.
#[tokio::test]
async fn content_is_written_where_it_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let hosted = repeating(Audit::to_file(&path).unwrap().content(true));
    hosted.task("hush").await;
    hosted.task("poison").await;
    let lines = lines(&path);
    assert_eq!(
        (&lines[1]["input"], &lines[1]["output"]),
        (&json!({"word": "hush"}), &json!("hush"))
    );
    assert_eq!(lines[3]["input"], "hush");
    assert_eq!(
        (&lines[4]["input"], &lines[4]["output"]),
        (&json!("poison"), &json!("never"))
    );
}

/// What a cancel cuts off is told as well.
#[tokio::test]
async fn what_is_given_up_is_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let info = AgentInfo::new("deaf", "Deaf", "Hears no cancel.");
    let deaf = agent_fn(info, async |cx: nuncio_engine::RunCx, _| {
        cx.text("one").await?;
        std::future::pending::<()>().await;
        Ok(())
    });
    let mut settings = nuncio_engine::Settings::default();
    settings.cancel_grace = std::time::Duration::ZERO;
    let layers: [Arc<dyn Layer>; 1] = [Arc::new(Audit::to_file(&path).unwrap())];
    let agent = Arc::new(LayeredAgent::new(deaf, layers));
    let hosted = Hosted::with_settings(agent, settings);
    let task = hosted.begin("go").await;
    hosted.until_text(&task.id, "one").await;
    assert_eq!(
        hosted.cancel(&task.id).await.status.state,
        TaskState::Canceled
    );
    while lines(&path).is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(lines(&path)[0]["ended"], "given_up");
}

/// The file may be moved away at any time: what comes then is in a new one, and nothing is lost.
#[tokio::test]
async fn a_file_that_was_moved_away_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = (
        folder.path().join("audit.jsonl"),
        folder.path().join("audit.1"),
    );
    let hosted = repeating(Audit::to_file(&path).unwrap());
    hosted.task("one").await;
    std::fs::rename(&path, &old).unwrap();
    hosted.task("two").await;
    hosted.task("three").await;
    assert_eq!((lines(&old).len(), lines(&path).len()), (4, 8));
}

/// Work goes on where nothing can be written, and is written down again later.
#[tokio::test]
async fn work_goes_on_without_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("trail");
    std::fs::create_dir(&place).unwrap();
    let path = place.join("audit.jsonl");
    let hosted = repeating(Audit::to_file(&path).unwrap());
    std::fs::remove_dir_all(&place).unwrap();
    let task = hosted.task("one").await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert!(!path.exists());
    std::fs::create_dir(&place).unwrap();
    hosted.task("two").await;
    assert_eq!(lines(&path).len(), 4);
    assert!(
        Audit::to_file(folder.path()).is_err(),
        "a folder is no file"
    );
}
