//! What guardrails refuse.

use std::sync::Arc;

use nuncio_engine::{AgentError, AgentInfo, Input, Outcome, Pause, RunCx, agent_fn};
use nuncio_protocol::{Artifact, Part, StreamResponse, TaskState};
use nuncio_runtime::ModelAgent;
use nuncio_runtime::layer::{At, Layer, LayeredAgent, Refuse};
use nuncio_runtime::model::FakeModel;
use nuncio_runtime::tool::{FnTool, ToolCx, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::support::{Hosted, fake, said, texts};

fn guard() -> Refuse {
    Refuse::new(["(?i)internal only"], "not here").unwrap()
}

#[derive(Deserialize, JsonSchema)]
struct Args {
    word: String,
}

/// Calls `find` with `word`, and tells what it gave.
fn finds(word: &str) -> FakeModel {
    fake(
        "fake",
        &format!(
            r#"
            [[rules]]
            when = {{ after_tool = "find" }}
            reply = [{{ text = "It gave: {{result}}" }}]
            [[rules]]
            otherwise = true
            reply = [{{ tool = {{ name = "find", arguments = {{ word = "{word}" }} }} }}]
            "#
        ),
    )
}

fn finding(model: &FakeModel, layer: Refuse) -> Hosted {
    let tool = FnTool::new("find", "Finds.", async |_: ToolCx, args: Args| {
        match args.word.as_str() {
            "fail" => Err(ToolError::new("INTERNAL ONLY: no such thing")),
            "secret" => Ok("internal only: 42".to_owned()),
            word => Ok(word.to_owned()),
        }
    });
    let agent = ModelAgent::builder("agent").model(model.clone());
    Hosted::new(Arc::new(agent.tool(tool).layer(layer).build().unwrap()))
}

/// Before the agent sees it; an answer to a question too.
#[tokio::test]
async fn a_message_is_rejected_before_any_model_is_asked() {
    let model = finds("x");
    let hosted = finding(&model, guard());
    let refused = hosted.task("what is Internal Only?").await;
    assert_eq!(
        (refused.status.state, said(&refused).as_str()),
        (TaskState::Rejected, "not here")
    );
    assert!(model.requests().is_empty());
    assert_eq!(texts(&hosted.task("hello").await), ["It gave: x"]);

    let layers: [Arc<dyn Layer>; 1] = [Arc::new(guard())];
    let hosted = Hosted::new(Arc::new(LayeredAgent::new(super::quota::asks(), layers)));
    let asking = hosted.task("hello").await;
    let refused = hosted.answer(&asking.id, "internal only").await;
    assert_eq!(
        (refused.status.state, said(&refused).as_str()),
        (TaskState::Rejected, "not here")
    );
}

/// The model is told the words instead of what a tool was asked, gave or failed with.
#[tokio::test]
async fn calls_and_results_of_tools_are_refused() {
    for word in ["internal only", "secret", "fail"] {
        let hosted = finding(&finds(word), guard().at([At::Tool]));
        assert_eq!(
            texts(&hosted.task("go").await),
            ["It gave: not here"],
            "{word}"
        );
    }
}

#[tokio::test]
async fn a_request_to_a_model_is_refused_where_that_is_asked_for() {
    let model = finds("x");
    let hosted = finding(&model, guard().at([At::Model]));
    let failed = hosted.task("internal only").await;
    assert_eq!(
        (failed.status.state, said(&failed).as_str()),
        (TaskState::Failed, "not here")
    );
    assert!(model.requests().is_empty());
}

/// Nothing goes out beside what is refused: neither artifacts before it, nor questions, nor words on the
/// way.
#[tokio::test]
async fn what_would_go_out_is_refused_as_a_whole() {
    let agent = agent_fn(
        AgentInfo::new("leaky", "Leaky", "Leaks."),
        async |cx: RunCx, input: Input| {
            cx.artifact(Artifact::new("good", vec![Part::text("harmless")]))
                .await?;
            match input.message.text().as_str() {
                "artifact" => {
                    for piece in ["for inter", "nal on", "ly"] {
                        cx.text(piece).await?;
                    }
                    Ok::<_, AgentError>(Outcome::Done)
                }
                "ask" => {
                    let prompt = cx.message(vec![Part::text("internal only?")]);
                    Ok(Outcome::Paused(Pause::input(prompt)))
                }
                "status" => {
                    cx.status("reading what is internal only").await?;
                    Ok(Outcome::Done)
                }
                _ => Ok(Outcome::Done),
            }
        },
    );
    let layers: [Arc<dyn Layer>; 1] = [Arc::new(guard())];
    let hosted = Hosted::new(Arc::new(LayeredAgent::new(agent, layers)));
    for how in ["artifact", "ask"] {
        let task = hosted.task(how).await;
        assert_eq!(
            (task.status.state, said(&task).as_str(), texts(&task).len()),
            (TaskState::Rejected, "not here", 0),
            "{how}"
        );
    }
    let events = hosted.events("status").await;
    let words = |event: &StreamResponse| match event {
        StreamResponse::StatusUpdate(update) => update.status.message.clone(),
        _ => None,
    };
    let words: Vec<_> = events.iter().filter_map(words).map(|m| m.text()).collect();
    assert_eq!(words, ["not here"], "the agent is told, and fails with it");
    assert_eq!(texts(&hosted.task("good").await), ["harmless"]);
}
