//! A remote agent as an agent: events, pauses, errors, cancel, crashes, circles.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nuncio_engine::{Agent, AgentError, AgentInfo, Input, Outcome, Pause, RunCx, agent_fn};
use nuncio_protocol::{
    AgentService as _, Artifact, Binding, CancelTaskRequest, Message, Part, TaskState, Version,
};
use nuncio_runtime::{RemoteAgent, RemoteSettings, Waiting};
use nuncio_store::{SqliteOptions, SqliteStore, Store};
use nuncio_testkit::{Bed, artifact_text, call, send, sent_task, text_message};
use parking_lot::Mutex;
use serde_json::json;

use crate::network::{Site, client, until};

fn info(id: &str) -> AgentInfo {
    let mut info = AgentInfo::new(id, id, "An agent of the tests.");
    info.output_modes.push("application/json".to_owned());
    info.resumable = true;
    info
}

/// Streams two pieces and a status, asks, and ends with what it was told.
fn asker(seen: Arc<Mutex<Vec<Message>>>) -> impl Agent + 'static {
    agent_fn(info("asker"), move |cx: RunCx, input: Input| {
        seen.lock().push(input.message.clone());
        async move {
            match input.turn() {
                1 => {
                    cx.status("looking").await?;
                    let piece = |text: &str| Artifact::new("report", vec![Part::text(text)]);
                    cx.chunk(piece("one, "), false, false).await?;
                    cx.chunk(piece("two"), true, true).await?;
                    let question = cx.message(vec![Part::text("which?")]);
                    Ok(Outcome::Paused(Pause::input(question)))
                }
                _ => {
                    let data = Part::data(json!({"told": input.message.text()}));
                    cx.artifact(Artifact::new("answer", vec![data])).await?;
                    Ok(Outcome::Said(cx.message(vec![Part::text("that was it")])))
                }
            }
        }
    })
}

fn ways() -> Vec<(Version, Binding, Waiting)> {
    let mut ways = Vec::new();
    for version in [Version::V1_0, Version::V0_3] {
        for binding in [Binding::JsonRpc, Binding::HttpJson, Binding::Grpc] {
            for waiting in [Waiting::Stream, Waiting::Send, Waiting::Poll] {
                ways.push((version, binding, waiting));
            }
        }
    }
    ways
}

/// Trap of the field: the question reaches the caller, the answer the task that asked, in every
/// version and binding and way of waiting; what was told on the way is told here, once.
#[tokio::test]
async fn a_question_passes_through_and_the_answer_finds_its_task() {
    for (version, binding, waiting) in ways() {
        let seen = Arc::default();
        let site = Site::of(asker(Arc::clone(&seen))).await;
        let mut settings = RemoteSettings::default();
        settings.waiting = waiting;
        let remote = site
            .remote_by(version, binding)
            .await
            .with_settings(settings);
        let (bed, _) = Bed::of(remote);
        let asking = bed.ask("m1", "go").await;
        let way = format!("{version} {binding:?} {waiting:?}");
        assert_eq!(
            asking.status.state,
            TaskState::InputRequired,
            "{way}: {:?}",
            asking.status
        );
        assert_eq!(
            asking.status.message.as_ref().unwrap().text(),
            "which?",
            "{way}"
        );
        assert_eq!(artifact_text(&asking), "one, two", "{way}");
        let done = bed.answer("m2", &asking, "the red one").await;
        assert_eq!(
            done.status.state,
            TaskState::Completed,
            "{way}: {:?}",
            done.status
        );
        assert_eq!(
            done.status.message.as_ref().unwrap().text(),
            "that was it",
            "{way}"
        );
        assert_eq!(
            done.artifacts[1].parts[0],
            Part::data(json!({"told": "the red one"})),
            "{way}"
        );
        let seen = seen.lock().clone();
        assert_eq!(seen.len(), 2, "{way}: asked once, answered once");
        assert_eq!(seen[0].task_id, None, "{way}");
        assert!(
            seen[1].task_id.is_some(),
            "{way}: the answer names the open task"
        );
        assert_eq!(site.tasks().await.len(), 1, "{way}");
    }
}

/// GEN-09, BR-013: the next task of a conversation is in the conversation there too, names the task
/// that ended and not as its own; another conversation is another one there.
#[tokio::test]
async fn br_013_a_conversation_here_is_one_there() {
    let seen = Arc::default();
    let site = Site::of(asker(Arc::clone(&seen))).await;
    let (bed, _) = Bed::of(site.remote("remote").await);
    let ask = async |id: &str, context: &str| {
        let mut message = text_message(id, "go");
        message.context_id = Some(context.into());
        let sent = bed.agent.send_message(call("alice"), send(message)).await;
        let asking = sent_task(sent.unwrap());
        bed.answer(&format!("{id}-answer"), &asking, "that one")
            .await
    };
    for (id, context) in [("m1", "c1"), ("m2", "c1"), ("m3", "c2")] {
        assert_eq!(ask(id, context).await.status.state, TaskState::Completed);
    }
    let tasks = site.tasks().await;
    let ended = |n: usize| tasks[tasks.len() - 1 - n].clone();
    assert_eq!(ended(0).context_id, ended(1).context_id);
    assert_ne!(ended(0).context_id, ended(2).context_id);
    let seen: Vec<Message> = seen.lock().clone();
    assert_eq!(
        seen[2].task_id, None,
        "an ended task is not named as the own one"
    );
    assert_eq!(seen[2].reference_task_ids, [ended(0).id]);
    assert_eq!(seen[4].reference_task_ids, []);
}

/// A message without a task is an answer too; a failure keeps its words, its task and its cause.
#[tokio::test]
async fn answers_and_failures_keep_their_words() {
    let mut direct = info("direct");
    direct.answers_directly = true;
    let site = Site::of(agent_fn(
        direct,
        async |cx: RunCx, input: Input| match input.message.text().as_str() {
            "fail" => Err(AgentError::new("the printer is on fire")),
            "reject" => Ok(Outcome::Rejected("not on Sundays".to_owned())),
            text => Ok(Outcome::Reply(
                cx.message(vec![Part::text(format!("{text}!"))]),
            )),
        },
    ))
    .await;
    let (bed, spans) = Bed::of(site.remote("remote").await);
    let done = bed.ask("m1", "hello").await;
    assert_eq!(
        (done.status.state, artifact_text(&done).as_str()),
        (TaskState::Completed, "hello!")
    );
    let failed = bed.ask("m2", "fail").await;
    assert_eq!(failed.status.state, TaskState::Failed);
    let why = failed.status.message.unwrap().text();
    assert_eq!(why, "agent remote failed: the printer is on fire");
    let rejected = bed.ask("m3", "reject").await;
    assert_eq!(rejected.status.state, TaskState::Rejected);
    assert_eq!(rejected.status.message.unwrap().text(), "not on Sundays");
    drop(site);
    let failed = |spans: &[nuncio_protocol::SpanRecord]| {
        spans
            .iter()
            .filter(|span| span.error.as_deref() == Some(why.as_str()))
            .count()
    };
    until(async || failed(&spans.all()) == 1).await;
}

/// An agent that cannot be reached fails the task with the reason, and is found when it is there.
#[tokio::test]
async fn an_agent_that_is_not_there_is_an_error_of_its_name() {
    let place = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", place.local_addr().unwrap());
    drop(place);
    let (bed, _) = Bed::of(RemoteAgent::new(info("far"), client(), url));
    let failed = bed.ask("m1", "go").await;
    assert_eq!(failed.status.state, TaskState::Failed);
    let why = failed.status.message.unwrap().text();
    assert!(why.starts_with("agent far is not to be had: "), "{why}");
}

/// Trap: a cancel here is a cancel there.
#[tokio::test]
async fn a_cancel_reaches_the_remote_task() {
    let site = Site::of(agent_fn(info("slow"), async |cx: RunCx, _| {
        cx.working().await?;
        cx.cancellation().cancelled().await;
        Ok(())
    }))
    .await;
    let (bed, _) = Bed::of(site.remote("remote").await);
    let task = bed.start("m1", "go").await;
    until(async || {
        site.tasks()
            .await
            .iter()
            .any(|task| task.status.state == TaskState::Working)
    })
    .await;
    let request = CancelTaskRequest::new(task.id.clone());
    let canceled = bed.agent.cancel_task(call("alice"), request).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    until(async || site.tasks().await[0].status.state == TaskState::Canceled).await;
}

/// BR-185: after a crash here the run goes on with the task there, whose end arrives.
#[tokio::test]
async fn br_185_after_a_restart_the_remote_task_is_still_ours() {
    let folder = tempfile::tempdir().unwrap();
    let (go, runs) = (
        Arc::new(tokio::sync::Semaphore::new(0)),
        Arc::new(AtomicUsize::new(0)),
    );
    let site = Site::of(agent_fn(info("slow"), {
        let (go, runs) = (Arc::clone(&go), Arc::clone(&runs));
        move |cx: RunCx, _| {
            let (go, runs) = (Arc::clone(&go), Arc::clone(&runs));
            async move {
                runs.fetch_add(1, Ordering::SeqCst);
                cx.text("begun, ").await?;
                go.acquire().await.unwrap().forget();
                cx.text("done").await?;
                Ok(())
            }
        }
    }))
    .await;
    let open = || {
        let store = SqliteStore::open(folder.path().join("n.db"), SqliteOptions::default());
        Arc::new(store.unwrap()) as Arc<dyn Store>
    };
    let (before, _) = Bed::of_on(open(), site.remote("remote").await);
    let task = before.start("m1", "go").await;
    until(async || artifact_text(&before.task(&task.id).await) == "begun, ").await;
    before.engine.drain(Duration::ZERO).await.unwrap();

    let (after, _) = Bed::of_on(open(), site.remote("remote").await);
    let told = after.store_position(&task.id).await;
    assert_eq!(after.engine.recover().await.unwrap(), 1);
    // Only when it has told again what there was does the rest come, piece by piece.
    until(async || after.store_position(&task.id).await > told).await;
    go.add_permits(1);
    until(async || after.task(&task.id).await.status.state == TaskState::Completed).await;
    assert_eq!(artifact_text(&after.task(&task.id).await), "begun, done");
    assert_eq!(
        runs.load(Ordering::SeqCst),
        1,
        "it was not asked a second time"
    );

    let second = after.start("m2", "go").await;
    until(async || runs.load(Ordering::SeqCst) == 2).await;
    until(async || !artifact_text(&after.task(&second.id).await).is_empty()).await;
    after.engine.drain(Duration::ZERO).await.unwrap();
    let (last, _) = Bed::of_on(open(), site.remote("remote").await);
    last.engine.recover().await.unwrap();
    let request = CancelTaskRequest::new(second.id.clone());
    let canceled = last
        .agent
        .cancel_task(call("alice"), request)
        .await
        .unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    until(async || {
        site.tasks()
            .await
            .iter()
            .any(|task| task.status.state == TaskState::Canceled)
    })
    .await;
}

/// BR-172: A asks B asks A, over real HTTP: the second entry of A is refused before it runs, B is
/// told so, and the task ends.
#[tokio::test]
async fn br_172_two_agents_that_ask_each_other_come_to_an_end() {
    let entries = Arc::new(AtomicUsize::new(0));
    let remote_of_a = Arc::new(Mutex::new(None::<Arc<RemoteAgent>>));
    let b = {
        let remote_of_a = Arc::clone(&remote_of_a);
        agent_fn(info("b"), move |cx: RunCx, input: Input| {
            let a = remote_of_a.lock().clone().unwrap();
            async move {
                let child = cx.child(&"a".into(), "a")?;
                a.run(&child, input.for_child(&child, input.message.clone()))
                    .await
            }
        })
    };
    let b = Site::of(b).await;
    let remote_b = Arc::new(b.remote("b").await);
    let a = {
        let entries = Arc::clone(&entries);
        agent_fn(info("a"), move |cx: RunCx, input: Input| {
            entries.fetch_add(1, Ordering::SeqCst);
            let b = Arc::clone(&remote_b);
            async move {
                let child = cx.child(&"b".into(), "b")?;
                b.run(&child, input.for_child(&child, input.message.clone()))
                    .await
            }
        })
    };
    let a = Site::of(a).await;
    *remote_of_a.lock() = Some(Arc::new(a.remote("a").await));
    let response = a
        .agent
        .send_message(call("alice"), send(text_message("m1", "go")))
        .await;
    let task = sent_task(response.unwrap());
    assert_eq!(task.status.state, TaskState::Failed);
    let why = task.status.message.unwrap().text();
    assert!(
        why.contains("agent a is at work already in this chain of calls"),
        "{why}"
    );
    assert_eq!(entries.load(Ordering::SeqCst), 1);
}

/// BR-180: one trace over three agents on three servers, whatever the binding; every span but the
/// first has its parent among them.
#[tokio::test]
async fn br_180_one_trace_over_three_agents() {
    let last = Site::of(agent_fn(info("last"), async |_, _| Ok("there"))).await;
    let middle = Site::of(last.remote_by(Version::V0_3, Binding::HttpJson).await).await;
    let first = Site::of(middle.remote_by(Version::V1_0, Binding::Grpc).await).await;
    let asked = client()
        .binding(Binding::JsonRpc)
        .connect(&first.url)
        .await
        .unwrap();
    let mut called = nuncio_protocol::Call::client();
    called.trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        .parse()
        .ok();
    let task = sent_task(
        asked
            .send_message(called, send(text_message("m1", "go")))
            .await
            .unwrap(),
    );
    assert_eq!(artifact_text(&task), "there", "{:?}", task.status);
    let all = || {
        [&first, &middle, &last]
            .map(|site| site.spans.all())
            .concat()
    };
    // Three servers, three runs, two calls.
    until(async || all().len() == 8).await;
    let spans = all();
    let ids: Vec<_> = spans.iter().map(|span| span.context.span_id).collect();
    for span in &spans {
        assert_eq!(
            span.context.trace_hex(),
            "4bf92f3577b34da6a3ce929d0e0e4736",
            "{span:?}"
        );
        let parent = span.parent.unwrap();
        let outside = parent == [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7];
        assert!(outside || ids.contains(&parent), "an orphan: {span:?}");
    }
    let outside = spans
        .iter()
        .filter(|span| !ids.contains(&span.parent.unwrap()));
    assert_eq!(outside.count(), 1);
}
