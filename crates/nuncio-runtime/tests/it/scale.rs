//! Many runs: none leaves a task, a connection or a process behind.

use std::sync::Arc;

use nuncio_engine::{Agent, AgentInfo, Input, RunCx, agent_fn};
use nuncio_protocol::TaskState;
use nuncio_runtime::ModelAgent;
use nuncio_runtime::tool::{AgentTool, FnTool, ToolCx, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::network::{Site, until};
use crate::support::{Hosted, fake};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

async fn nothing(_: ToolCx, _: Nothing) -> Result<String, ToolError> {
    Ok("done".to_owned())
}

/// Calls a tool and an agent, then answers.
fn agent() -> Arc<dyn Agent> {
    let rules = r#"
        [[rules]]
        when = { after_tool = "other" }
        reply = [{ text = "so be it" }]
        [[rules]]
        otherwise = true
        reply = [
            { tool = { name = "nothing" } },
            { tool = { name = "other", arguments = { message = "hello" } } },
        ]
    "#;
    let other = agent_fn(
        AgentInfo::new("other", "Other", "Echoes."),
        async |cx: RunCx, input: Input| cx.text(input.message.text()).await.map_err(Into::into),
    );
    let builder = ModelAgent::builder("many").model(fake("fake", rules));
    let builder = builder.tool(FnTool::new("nothing", "Does nothing.", nothing));
    Arc::new(
        builder
            .tool(AgentTool::new(Arc::new(other)))
            .build()
            .unwrap(),
    )
}

fn alive() -> usize {
    tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
}

#[expect(clippy::disallowed_methods, reason = "tests have no other settings")]
fn is_long() -> bool {
    std::env::var("NUNCIO_RELIABILITY").as_deref() == Ok("long")
}

/// Runs of a model with a tool and a sub-agent, a hundred at a time: 2,000, or 10,000 in the long form.
#[tokio::test]
async fn ten_thousand_runs_leave_nothing_behind() {
    let hosted = Hosted::new(agent());
    hosted.task("warm up").await;
    let before = alive();
    let hundreds = if is_long() { 100 } else { 20 };
    for _ in 0..hundreds {
        let asked = (0..100).map(|_| hosted.task("go"));
        for task in futures_util::future::join_all(asked).await {
            assert_eq!(task.status.state, TaskState::Completed);
        }
    }
    until(async || hosted.engine.running() == 0 && alive() <= before).await;
}

/// A thousand runs at once over the network, of which the server lets a hundred stream: the others
/// ask again and again. All end, and afterwards nothing runs and no file is open that was not open
/// before, but connections that are kept for the next call.
#[tokio::test]
async fn a_thousand_runs_at_once_leave_no_handle_behind() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let slow = {
        let gate = Arc::clone(&gate);
        agent_fn(
            AgentInfo::new("slow", "Slow", "Waits."),
            move |_, _: Input| {
                let gate = Arc::clone(&gate);
                async move {
                    gate.acquire()
                        .await
                        .map_err(nuncio_engine::AgentError::internal)?
                        .forget();
                    Ok("done")
                }
            },
        )
    };
    let site = Site::of(slow).await;
    let hosted = Hosted::new(Arc::new(site.remote("slow").await));
    let files = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let before = alive();
    let mut tasks = Vec::new();
    for _ in 0..1_000 {
        tasks.push(hosted.begin("go").await);
    }
    until(async || site.running() == 1_000).await;
    let most = files();
    gate.add_permits(1_000);
    until(async || hosted.engine.running() == 0 && site.running() == 0).await;
    for task in &tasks {
        assert_eq!(
            hosted.get(&task.id).await.status.state,
            TaskState::Completed
        );
    }
    assert!(files() <= most, "{} files, {most} at most before", files());
    drop(site);
    until(async || alive() <= before + 100).await;
}
