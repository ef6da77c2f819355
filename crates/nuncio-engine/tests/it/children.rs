//! Agents that work for another agent within its run: place, checkpoint, artifacts, depth.

use std::sync::Arc;

use nuncio_engine::{
    AgentError, AgentInfo, CALL_CHAIN, Input, Outcome, Pause, RunCx, Settings, agent_fn,
};
use nuncio_protocol::{
    AgentService as _, Artifact, ErrorKind, Message, Part, SendMessageRequest, TaskState,
};
use nuncio_store::{SqliteOptions, SqliteStore, Store};
use nuncio_testkit::{Bed, artifact_text, call, send, sent_task, text_message};
use parking_lot::Mutex;
use serde_json::json;

fn info(id: &str) -> AgentInfo {
    let mut info = AgentInfo::new(id, id, "An agent of agents.");
    info.resumable = true;
    info
}

/// Trap: a child's texts are its own artifact; what is gathered is not the task's.
#[tokio::test]
async fn children_have_artifacts_of_their_own() {
    let agent = agent_fn(info("parent"), async |cx: RunCx, _| {
        cx.text("parent ").await?;
        let open = cx.child(&"open".into(), "open")?;
        open.text("open ").await?;
        cx.text("again").await?;
        let (inner, gathered) = cx.gathering_child(&"inner".into(), "inner")?;
        inner.text("one, ").await?;
        inner.child(&"innermost".into(), "x")?.text("three").await?;
        inner.text("two").await?;
        let append = inner.chunk(Artifact::new("none", vec![Part::text("x")]), true, false);
        assert!(append.await.is_err(), "nothing to append to (BR-056)");
        assert_eq!(gathered.text(None), "one, two\nthree");
        assert_eq!(
            gathered.text(Some(&cx.message(vec![Part::text("said")]))),
            "said\none, two\nthree"
        );
        Ok(())
    });
    let (bed, _) = Bed::of(agent);
    let task = bed.ask("m1", "go").await;
    let texts: Vec<_> = task.artifacts.iter().map(Artifact::text).collect();
    assert_eq!(texts, ["parent again", "open "]);
}

/// A pause of one of two children, a restart, and the answer finds the one that asked.
#[tokio::test]
async fn children_find_what_they_left_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let options = SqliteOptions::default();
        let store = SqliteStore::open(folder.path().join("n.db"), options).unwrap();
        Arc::new(store) as Arc<dyn Store>
    };
    let agent = || {
        agent_fn(info("parent"), async |cx: RunCx, input: Input| {
            let child = cx.child(&"asker".into(), "step-2")?;
            let other = cx.child(&"other".into(), "step-20")?;
            let own = input.for_child(&child, input.message.clone());
            assert_eq!(own.checkpoint, child.left());
            match child.left() {
                None => {
                    cx.checkpoint(&json!("parent's"))?;
                    child.checkpoint(&json!({"asked": 1}))?;
                    child
                        .child(&"deep".into(), "deep")?
                        .checkpoint(&json!("deep's"))?;
                    other.checkpoint(&json!("other's"))?;
                    let prompt = cx.message(vec![Part::text("which?")]);
                    Ok(Outcome::Paused(Pause::input(prompt)))
                }
                Some(left) => {
                    assert_eq!(input.checkpoint, Some(json!("parent's")));
                    let deep = child.child(&"deep".into(), "deep")?;
                    assert_eq!(deep.left(), Some(json!("deep's")));
                    child.forget()?;
                    assert_eq!((child.left(), deep.left()), (None, None));
                    assert_eq!(
                        other.left(),
                        Some(json!("other's")),
                        "its name only begins alike"
                    );
                    cx.text(left.to_string()).await?;
                    Ok(Outcome::Done)
                }
            }
        })
    };
    let (bed, _) = Bed::of_on(open(), agent());
    let asking = bed.ask("m1", "go").await;
    assert_eq!(asking.status.state, TaskState::InputRequired);
    bed.engine
        .drain(std::time::Duration::from_secs(1))
        .await
        .unwrap();
    let (bed, _) = Bed::of_on(open(), agent());
    let done = bed.answer("m2", &asking, "that one").await;
    assert_eq!(artifact_text(&done), r#"{"asked":1}"#);
    assert_eq!(done.status.state, TaskState::Completed);
}

/// BR-172: neither an agent within itself nor agents without end.
#[tokio::test]
async fn br_172_agents_nest_no_deeper_than_the_limit_and_never_in_circles() {
    let agent = agent_fn(info("parent"), async |cx: RunCx, _| {
        let first = cx.child(&"first".into(), "1")?;
        for again in ["parent", "first"] {
            let why = first.child(&again.into(), "2").unwrap_err().to_string();
            assert!(why.contains("at work already"), "{why}");
        }
        let mut deepest = first;
        for depth in 2..=Settings::default().max_depth {
            deepest = deepest.child(&format!("agent-{depth}").as_str().into(), "x")?;
            assert_eq!(deepest.depth(), depth);
        }
        let why = deepest
            .child(&"one-more".into(), "x")
            .unwrap_err()
            .to_string();
        assert!(why.contains("more than 5 deep"), "{why}");
        Ok("nested")
    });
    let (bed, _) = Bed::of(agent);
    let task = bed.ask("m1", "go").await;
    assert_eq!(
        task.status.state,
        TaskState::Completed,
        "{:?}",
        task.status.message
    );
}

/// BR-172: the second entry of an agent is refused before it runs; nobody else can claim that an
/// agent is at work, or hide how deep a chain is by names that are not ours.
#[tokio::test]
async fn br_172_an_agent_that_is_at_work_in_the_chain_is_refused() {
    let said = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&said);
    let agent = agent_fn(info("a"), move |cx: RunCx, _| {
        *seen.lock() = Some((cx.call_metadata(), cx.depth()));
        async { Ok::<_, AgentError>("ran") }
    });
    let (bed, _) = Bed::of(agent);
    let ask = async |id: &str, chain: Option<serde_json::Value>| {
        let mut request: SendMessageRequest = send(text_message(id, "go"));
        request.metadata =
            chain.map(|chain| [(CALL_CHAIN.to_owned(), chain)].into_iter().collect());
        bed.agent.send_message(call("alice"), request).await
    };
    sent_task(ask("m1", None).await.unwrap());
    let (metadata, depth) = said.lock().take().unwrap();
    assert_eq!(depth, 0);
    let chain = metadata[CALL_CHAIN].clone();
    assert_eq!(chain["agents"].as_array().unwrap().len(), 1);

    let refused = ask("m2", Some(chain.clone())).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::UnsupportedOperation);
    assert!(
        refused.message.contains("at work already"),
        "{}",
        refused.message
    );
    assert!(said.lock().is_none(), "it has not run");

    let forged = |chain: &serde_json::Value, at: &str, with: serde_json::Value| {
        let mut forged = chain.clone();
        *forged.pointer_mut(at).unwrap() = with;
        forged
    };
    for (n, forged) in [
        forged(&chain, "/agents/0/seal", json!("00ff")),
        forged(&chain, "/agents/0/seal", json!("é")),
        forged(&chain, "/id", json!("another")),
        forged(&chain, "/agents/0/id", json!("b")),
    ]
    .into_iter()
    .enumerate()
    {
        sent_task(ask(&format!("f{n}"), Some(forged)).await.unwrap());
        assert_eq!(said.lock().take().unwrap().1, 1, "it counts for the depth");
    }
    let others = vec![json!({"id": "elsewhere"}); 6];
    let deep = ask("m3", Some(json!({"id": "x", "agents": others})))
        .await
        .unwrap_err();
    assert!(
        deep.message.contains("more than 5 deep"),
        "{}",
        deep.message
    );
    for nonsense in [json!(7), json!({"agents": 3}), json!({"agents": [7]})] {
        let id = nonsense.to_string();
        sent_task(ask(&id, Some(nonsense)).await.unwrap());
    }
}

/// What closures may give, and how their errors reach the caller.
#[tokio::test]
async fn a_closure_is_an_agent() {
    let agent = agent_fn(info("a"), async |cx: RunCx, input: Input| {
        match input.message.text().as_str() {
            "parts" => Ok(Outcome::Reply(cx.message(vec![Part::data(json!(1))]))),
            "fails" => Err(AgentError::internal("password=secret")),
            _ => Err(AgentError::new("no such thing")),
        }
    });
    let (bed, _) = Bed::of(agent);
    let parts = bed.ask("m1", "parts").await;
    assert_eq!(parts.artifacts[0].parts, [Part::data(json!(1))]);
    let said = async |id, text| {
        bed.ask(id, text)
            .await
            .status
            .message
            .as_ref()
            .map(Message::text)
    };
    assert_eq!(said("m2", "fails").await.unwrap(), "the agent failed");
    assert_eq!(said("m3", "else").await.unwrap(), "no such thing");
}
