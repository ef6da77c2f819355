//! What an agent emits, told by small agents of each test's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nuncio_engine::{
    Agent, AgentInfo, EmitError, Engine, Environment, HostedAgent, Input, Outcome, RunCx,
    RunFuture, Settings,
};
use nuncio_protocol::{
    AgentService as _, Artifact, ErrorKind, GetTaskRequest, Part, SendMessageConfiguration,
    SubscribeToTaskRequest, Task, TaskState,
};
use nuncio_store::{MemoryOptions, MemoryStore};
use nuncio_testkit::{Bed, Behaviour, artifact_text, call, send, sent_task, text_message};
use tokio::sync::mpsc;

type Act = Box<dyn for<'a> Fn(&'a RunCx, Input) -> RunFuture<'a> + Send + Sync>;

struct Acting(AgentInfo, Act);

impl Agent for Acting {
    fn info(&self) -> &AgentInfo {
        &self.0
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        (self.1)(cx, input)
    }
}

fn hosted(engine: &Engine, id: &str, act: Act) -> Arc<HostedAgent> {
    engine.host(Arc::new(Acting(
        AgentInfo::new(id, id, "Acts as the test says."),
        act,
    )))
}

fn engine() -> Engine {
    let store = Arc::new(MemoryStore::new(MemoryOptions::default()));
    Engine::new(store, Environment::system([7; 32]), Settings::default())
}

async fn ask(agent: &HostedAgent, id: &str, text: &str) -> Task {
    sent_task(
        agent
            .send_message(call("alice"), send(text_message(id, text)))
            .await
            .unwrap(),
    )
}

/// BR-065, ST-01, GEN-09: what comes after the end changes nothing, and its sender is told.
#[tokio::test]
async fn br_065_late_events_change_nothing() {
    let (late, mut told) = mpsc::unbounded_channel();
    let act: Act = Box::new(move |cx, _input| {
        let late = late.clone();
        Box::pin(async move {
            let kept = cx.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let artifact = Artifact::new("late", vec![Part::text("late")]);
                let results = [kept.working().await, kept.artifact(artifact).await];
                late.send(results).unwrap();
            });
            Ok(Outcome::Done)
        })
    });
    let agent = hosted(&engine(), "late", act);
    let task = ask(&agent, "m1", "go").await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(
        told.recv().await.unwrap(),
        [Err(EmitError::Ended), Err(EmitError::Ended)]
    );
    let after = agent
        .get_task(call("alice"), GetTaskRequest::new(task.id.clone()))
        .await
        .unwrap();
    assert_eq!(after, task);
}

/// BR-059, ART-04: pieces add to an artifact's metadata and overwrite its name.
#[tokio::test]
async fn br_059_metadata_of_pieces_is_merged() {
    let act: Act = Box::new(|cx, _input| {
        Box::pin(async move {
            for (append, name, metadata) in [
                (false, "draft", serde_json::json!({"a": 1, "c": 1})),
                (true, "final", serde_json::json!({"b": 2, "c": 3})),
            ] {
                let mut piece = Artifact::new("report", vec![Part::text(name)]);
                piece.name = Some(name.to_owned());
                piece.metadata = metadata.as_object().cloned();
                cx.chunk(piece, append, append).await?;
            }
            Ok(Outcome::Done)
        })
    });
    let task = ask(&hosted(&engine(), "report", act), "m1", "go").await;
    let artifact = &task.artifacts[0];
    assert_eq!(
        (artifact.text().as_str(), artifact.name.as_deref()),
        ("draftfinal", Some("final"))
    );
    let metadata = serde_json::Value::from(artifact.metadata.clone().unwrap());
    assert_eq!(metadata, serde_json::json!({"a": 1, "b": 2, "c": 3}));
}

/// ART-03: after its last piece an artifact takes no further one.
#[tokio::test]
async fn an_ended_artifact_takes_no_further_piece() {
    let act: Act = Box::new(|cx, _input| {
        Box::pin(async move {
            cx.artifact(Artifact::new("whole", vec![Part::text("x")]))
                .await?;
            cx.chunk(Artifact::new("whole", vec![Part::text("y")]), true, true)
                .await?;
            Ok(Outcome::Done)
        })
    });
    let task = ask(&hosted(&engine(), "whole", act), "m1", "go").await;
    assert_eq!(
        (task.status.state, artifact_text(&task).as_str()),
        (TaskState::Failed, "x")
    );
}

/// BR-017, OP-SEND-18: the client's wish reaches the agent; no modes are no wish.
#[tokio::test]
async fn br_017_accepted_output_modes_reach_the_agent() {
    let bed = Bed::new(Behaviour::Echo);
    for (n, modes) in [vec![], vec!["text/plain".to_owned()]]
        .into_iter()
        .enumerate()
    {
        let mut request = send(text_message(&format!("m{n}"), "hello"));
        let mut configuration = SendMessageConfiguration::default();
        configuration.accepted_output_modes.clone_from(&modes);
        request.configuration = Some(configuration);
        let task = sent_task(
            bed.agent
                .send_message(call("alice"), request)
                .await
                .unwrap(),
        );
        assert!(
            task.artifacts
                .iter()
                .all(|a| a.parts.iter().any(|p| p.as_text().is_some()))
        );
        assert_eq!(
            bed.trace
                .input
                .lock()
                .clone()
                .unwrap()
                .accepted_output_modes,
            modes
        );
    }
}

/// BR-053: a position in another caller's task is worth nothing.
#[tokio::test]
async fn br_053_nobody_replays_anothers_events() {
    let bed = Bed::new(Behaviour::Ask(1));
    let task = bed.ask("m1", "secret").await;
    let mut bob = call("bob");
    bob.last_event_id = Some(1);
    let stolen = bed
        .agent
        .subscribe_to_task(bob, SubscribeToTaskRequest::new(task.id))
        .await;
    assert_eq!(stolen.err().map(|e| e.kind), Some(ErrorKind::TaskNotFound));
}

/// BR-075: agents of one server do not answer for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn br_075_parallel_calls_reach_the_agent_they_name() {
    let engine = engine();
    let agents = ["a", "b"].map(|name| {
        let act: Act = Box::new(move |cx, input| {
            Box::pin(async move {
                let said = format!("{name} says {}", input.message.text());
                assert_eq!(cx.agent().as_str(), name);
                cx.artifact(Artifact::new("said", vec![Part::text(said)]))
                    .await?;
                Ok(Outcome::Done)
            })
        });
        hosted(&engine, name, act)
    });
    let mixed = AtomicUsize::new(0);
    let calls = (0..1_000).map(|n| {
        let (agents, mixed) = (&agents, &mixed);
        async move {
            let name = if n % 2 == 0 { "a" } else { "b" };
            let task = ask(&agents[n % 2], &format!("m{n}"), &n.to_string()).await;
            let other = agents[(n + 1) % 2]
                .get_task(call("alice"), GetTaskRequest::new(task.id.clone()))
                .await;
            if artifact_text(&task) != format!("{name} says {n}") || other.is_ok() {
                mixed.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    futures_util::future::join_all(calls).await;
    assert_eq!(mixed.into_inner(), 0);
}
