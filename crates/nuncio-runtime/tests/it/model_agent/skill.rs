//! Skills that callers call without the model.

use std::sync::Arc;

use nuncio_engine::Agent as _;
use nuncio_protocol::{Message, Part, PartContent, Task, TaskState};
use nuncio_runtime::ModelAgentBuilder;
use nuncio_runtime::model::FakeModel;
use nuncio_runtime::tool::{FnTool, ToolCx, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{agent, hosted, saying, shown};
use crate::support::{Hosted, said, texts};

#[derive(Deserialize, JsonSchema)]
struct Args {
    n: u32,
}

fn doubling(model: &FakeModel) -> ModelAgentBuilder {
    let double = FnTool::new(
        "double",
        "Doubles.",
        async |_cx: ToolCx, args: Args| match args.n {
            13 => Err(ToolError::new("13 is not doubled here")),
            n => Ok(json!({"is": n * 2})),
        },
    );
    let hidden = FnTool::new("hidden", "Hidden.", async |_cx: ToolCx, _args: Args| {
        Ok::<_, ToolError>("never")
    });
    agent(model).skill(double).tool(hidden)
}

async fn call(hosted: &Hosted, data: Value) -> Task {
    let mut message: Message = hosted.message("");
    message.parts = vec![Part::data(data)];
    hosted.task_of(message).await
}

/// BR-178: a data part that names a skill calls it, with either spelling of its input.
#[tokio::test]
async fn br_178_a_skill_is_called_without_the_model() {
    for input in ["input", "parameters"] {
        let model = saying("chat");
        let hosted = hosted(doubling(&model));
        let task = call(&hosted, json!({"skill": "double", input: {"n": 4}})).await;
        assert_eq!(task.status.state, TaskState::Completed, "{}", said(&task));
        let parts = &task.artifacts[0].parts;
        assert_eq!(parts[0].content, PartContent::Data(json!({"is": 8})));
        assert_eq!(parts[1].as_text(), Some("{\"is\":8}"));
        assert!(model.requests().is_empty());
    }
}

/// BR-178: an unknown skill, one that is not offered and input that does not fit are told, and nothing
/// falls back to chat.
#[tokio::test]
async fn br_178_what_cannot_be_called_is_refused() {
    for (data, wanted) in [
        (
            json!({"skill": "triple", "input": {}}),
            "there is no skill \"triple\"; there are: helper, double",
        ),
        (
            json!({"skill": "hidden", "input": {"n": 1}}),
            "there is no skill \"hidden\"",
        ),
        (
            json!({"skill": "double", "input": {"n": "x"}}),
            "the arguments of double do not fit its schema: at /n:",
        ),
        (
            json!({"skill": "double"}),
            "the arguments of double do not fit its schema",
        ),
    ] {
        let model = saying("chat");
        let task = call(&hosted(doubling(&model)), data).await;
        assert_eq!(task.status.state, TaskState::Rejected);
        assert!(said(&task).starts_with(wanted), "{}", said(&task));
        assert!(model.requests().is_empty());
    }
}

#[tokio::test]
async fn a_skill_that_fails_fails_the_task() {
    let task = call(
        &hosted(doubling(&saying("chat"))),
        json!({"skill": "double", "input": {"n": 13}}),
    )
    .await;
    assert_eq!(
        (task.status.state, said(&task).as_str()),
        (TaskState::Failed, "13 is not doubled here")
    );
}

/// Data that names no skill, and a skill of the card that is no tool, are for the model.
#[tokio::test]
async fn other_data_is_for_the_model() {
    for data in [
        json!({"n": 1}),
        json!({"skill": 5}),
        json!({"skill": "helper"}),
        json!("skill"),
    ] {
        let model = saying("chat");
        let task = call(&hosted(doubling(&model)), data).await;
        assert_eq!(texts(&task), ["chat"]);
        assert_eq!(shown(&model).len(), 1);
    }
}

#[test]
fn skills_are_in_the_card() {
    let agent = Arc::new(doubling(&saying("")).build().unwrap());
    let card = agent.info().card();
    let ids: Vec<_> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
    assert_eq!(ids, ["helper", "double"]);
    assert!(
        card.default_output_modes
            .contains(&"application/json".to_owned())
    );
}
