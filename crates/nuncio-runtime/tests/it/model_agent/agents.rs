//! Agents that a model calls as tools, here and elsewhere.

use std::sync::Arc;

use nuncio_engine::{AgentError, AgentInfo, Input, Outcome, Pause, RunCx, agent_fn};
use nuncio_protocol::{Artifact, Part, TaskState};
use nuncio_runtime::model::FakeModel;
use nuncio_runtime::tool::AgentTool;
use nuncio_runtime::{ModelAgent, RemoteAgent};
use parking_lot::Mutex;
use serde_json::json;

use super::hosted;
use crate::network::{Site, client, until};
use crate::support::{Hosted, fake, said, texts};

/// Asks its one tool, and says what that gave.
fn asks(tool: &str) -> FakeModel {
    let rules = format!(
        r#"
        [[rules]]
        when = {{ after_tool = "{tool}" }}
        reply = [{{ text = "It says: {{result}}" }}]
        [[rules]]
        otherwise = true
        reply = [{{ tool = {{ name = "{tool}", arguments = {{ message = "{{text}}, please" }} }} }}]
        "#
    );
    fake("fake", &rules)
}

fn asker() -> impl nuncio_engine::Agent + 'static {
    let mut info = AgentInfo::new("photo.shop", "Photo shop", "Looks at photos.");
    info.input_modes.push("image/png".to_owned());
    info.resumable = true;
    agent_fn(info, async |cx: RunCx, input: Input| match cx.left() {
        None => {
            cx.checkpoint(&json!(input.message.text()))?;
            let before = Artifact::new("before", vec![Part::text("looking, ")]);
            cx.artifact(before).await?;
            let question = cx.message(vec![Part::text("a photo?")]);
            Ok(Outcome::Paused(Pause::input(question)))
        }
        Some(asked) => {
            let file = input
                .message
                .parts
                .iter()
                .find_map(|part| part.filename.clone());
            cx.artifact(Artifact::new(
                "seen",
                vec![Part::data(json!({"of": asked, "file": file}))],
            ))
            .await?;
            Ok(Outcome::Said(cx.message(vec![Part::text("seen")])))
        }
    })
}

fn parent(model: FakeModel, tool: AgentTool) -> nuncio_runtime::ModelAgentBuilder {
    ModelAgent::builder("parent").model(model).tool(tool)
}

/// The question of an agent that a model asked reaches the user through the model's agent, the
/// answer and its file reach the agent that asked, also after a restart; what it gave is a result
/// and none of the task's artifacts.
#[tokio::test]
async fn what_an_agent_asks_pauses_the_agent_that_called_it() {
    let site = Site::of(asker()).await;
    let remote = Arc::new(site.remote("photo.shop").await);
    let model = asks("photo_shop");
    let here = || AgentTool::new(Arc::new(asker()));
    let there = || AgentTool::new(Arc::clone(&remote) as _);
    for tool in [&here as &dyn Fn() -> AgentTool, &there] {
        let folder = tempfile::tempdir().unwrap();
        let make = || Arc::new(parent(model.clone(), tool()).build().unwrap());
        let before = Hosted::at(&folder, make());
        let waiting = before.task("look").await;
        assert_eq!(
            (waiting.status.state, said(&waiting).as_str()),
            (TaskState::InputRequired, "a photo?")
        );
        before.stop().await;
        let after = Hosted::at(&folder, make());
        let mut answer = after.message("here it is");
        answer.task_id = Some(waiting.id.clone());
        answer.parts.push(
            Part::raw(vec![1])
                .with_media_type("image/png")
                .with_filename("a.png"),
        );
        let done = after.task_of(answer).await;
        assert_eq!(done.status.state, TaskState::Completed, "{}", said(&done));
        let said = texts(&done).concat();
        assert!(said.starts_with("It says: seen"), "{said}");
        assert!(said.contains("looking, "), "given before it asked: {said}");
        assert!(
            said.contains(r#"{"of":"look, please","file":"a.png"}"#),
            "{said}"
        );
        assert_eq!(done.artifacts.len(), 1);
    }
}

/// A cancel of the task reaches the agent that a model's agent is waiting for, elsewhere.
#[tokio::test]
async fn a_cancel_reaches_an_agent_that_was_called_as_a_tool() {
    let slow = agent_fn(
        AgentInfo::new("slow", "Slow", "Takes its time."),
        async |cx: RunCx, _| {
            cx.status("walking").await?;
            cx.cancellation().cancelled().await;
            Ok(())
        },
    );
    let site = Site::of(slow).await;
    let remote = Arc::new(site.remote("slow").await);
    let hosted = hosted(parent(asks("slow"), AgentTool::new(remote)));
    let task = hosted.begin("go").await;
    until(async || said(&hosted.get(&task.id).await) == "walking").await;
    assert_eq!(
        hosted.cancel(&task.id).await.status.state,
        TaskState::Canceled
    );
    until(async || site.tasks().await[0].status.state == TaskState::Canceled).await;
}

/// What fails is told to the model, and the task goes on.
#[tokio::test]
async fn a_failure_of_an_agent_is_told_to_the_model() {
    let failing = agent_fn(
        AgentInfo::new("broken", "Broken", "Fails."),
        async |_, input: Input| match input.message.text().starts_with("reject") {
            true => Ok(Outcome::Rejected("not on Sundays".to_owned())),
            false => Err(AgentError::new("out of paper")),
        },
    );
    let hosted = hosted(parent(asks("broken"), AgentTool::new(Arc::new(failing))));
    for (text, why) in [
        ("go", "out of paper"),
        ("reject", "agent broken refused: not on Sundays"),
    ] {
        let done = hosted.task(text).await;
        assert_eq!(done.status.state, TaskState::Completed);
        let said = texts(&done).concat();
        assert!(said.contains(why), "{said}");
    }
}

/// BR-172 with models: A's asks B, B's asks A, over real HTTP; the model of B is told that A is at
/// work already, no model is called a second time by it, and the task ends.
#[tokio::test]
async fn br_172_models_that_delegate_to_each_other_come_to_an_end() {
    let place = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", place.local_addr().unwrap());
    let info = AgentInfo::new("a", "A", "The first one.");
    let (of_a, of_b) = (asks("b"), asks("a"));
    let back = RemoteAgent::new(info, client(), url);
    let b = ModelAgent::builder("b")
        .model(of_b.clone())
        .tool(AgentTool::new(Arc::new(back)));
    let b = Site::of(b.build().unwrap()).await;
    let to_b = AgentTool::new(Arc::new(b.remote("b").await));
    let a = ModelAgent::builder("a").model(of_a.clone()).tool(to_b);
    let a = Site::at(place, a.build().unwrap()).await;
    let task = a.ask("go").await;
    assert_eq!(task.status.state, TaskState::Completed);
    let said = texts(&task).concat();
    assert!(
        said.contains("agent a is at work already in this chain of calls"),
        "{said}"
    );
    assert_eq!((of_a.requests().len(), of_b.requests().len()), (2, 2));
}

/// Arguments that the model makes up for an agent that is asked twice at once are two calls.
#[tokio::test]
async fn two_calls_of_one_agent_do_not_meet() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let agent = agent_fn(AgentInfo::new("echo", "Echo", "Echoes."), {
        let seen = Arc::clone(&seen);
        move |cx: RunCx, input: Input| {
            seen.lock().push(cx.place().to_owned());
            async move {
                cx.text(input.message.text()).await?;
                Ok::<_, AgentError>(())
            }
        }
    });
    let rules = r#"
        [[rules]]
        when = { after_tool = "echo" }
        reply = [{ text = "done" }]
        [[rules]]
        otherwise = true
        reply = [
            { tool = { name = "echo", arguments = { message = "one" } } },
            { tool = { name = "echo", arguments = { message = "two" } } },
        ]
    "#;
    let model = fake("fake", rules);
    let hosted = hosted(parent(model.clone(), AgentTool::new(Arc::new(agent))));
    assert_eq!(hosted.task("go").await.status.state, TaskState::Completed);
    let requests = model.requests();
    let results = format!("{:?}", requests.last().unwrap().turns.last().unwrap());
    assert!(
        results.contains("\"one\"") && results.contains("\"two\""),
        "{results}"
    );
    let places = seen.lock().clone();
    assert_eq!(places.len(), 2);
    assert_ne!(places[0], places[1]);
}
