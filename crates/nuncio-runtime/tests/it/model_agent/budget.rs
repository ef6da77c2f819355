//! What a run may use.

use nuncio_protocol::{Task, TaskState};
use nuncio_runtime::Budgets;
use nuncio_runtime::model::FakeModel;
use nuncio_runtime::tool::{FnTool, ToolCx, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{agent, hosted};
use crate::support::{fake, said};

#[derive(Deserialize, JsonSchema)]
struct Args {}

/// A model that never comes to an end: two calls each time.
fn endless() -> FakeModel {
    fake(
        "fake",
        "[[rules]]\notherwise = true\nreply = [{ tool = { name = 'spin' } }, { tool = { name = 'spin' } }]",
    )
}

async fn run(model: &FakeModel, budgets: Budgets) -> Task {
    let spin = FnTool::new("spin", "Spins.", async |_cx: ToolCx, _args: Args| {
        Ok::<_, ToolError>("again")
    });
    hosted(agent(model).tool(spin).budgets(budgets))
        .task("x")
        .await
}

#[tokio::test]
async fn turns_are_limited() {
    let model = endless();
    let task = run(
        &model,
        Budgets {
            max_turns: 4,
            ..Budgets::default()
        },
    )
    .await;
    assert_eq!(
        (task.status.state, said(&task).as_str()),
        (TaskState::Failed, "the model gave no answer within 4 turns")
    );
    assert_eq!(model.requests().len(), 4);
}

#[tokio::test]
async fn turns_are_limited_by_default() {
    let model = endless();
    run(&model, Budgets::default()).await;
    assert_eq!(model.requests().len(), 20);
}

#[tokio::test]
async fn calls_of_tools_are_limited() {
    let model = endless();
    let task = run(
        &model,
        Budgets {
            max_tool_calls: 5,
            ..Budgets::default()
        },
    )
    .await;
    assert_eq!(
        said(&task),
        "the model asked for more than 5 calls of tools"
    );
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test]
async fn tokens_are_limited() {
    let model = endless();
    let task = run(
        &model,
        Budgets {
            max_tokens: 10,
            ..Budgets::default()
        },
    )
    .await;
    assert_eq!(
        (task.status.state, said(&task).as_str()),
        (
            TaskState::Failed,
            "the run has used its budget of 10 tokens"
        )
    );
    assert!(model.requests().len() < 5);
}
