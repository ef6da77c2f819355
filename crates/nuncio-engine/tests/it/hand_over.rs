//! Agents that hand their tasks over: who has a task, until when, and what goes with it.

use std::sync::Arc;
use std::time::Duration;

use nuncio_engine::{
    Agent, AgentInfo, CALL_CHAIN, Input, Outcome, Pause, RunCx, SpanKind, agent_fn,
};
use nuncio_protocol::{AgentService as _, Message, Part, SendMessageResponse, Task, TaskState};
use nuncio_store::{MemoryOptions, MemoryStore, Store};
use nuncio_testkit::{Bed, Behaviour, TestAgent, artifact_text, call, send, text_message};
use serde_json::json;

fn info(id: &str) -> AgentInfo {
    let mut info = AgentInfo::new(id, id, "An agent that hands over.");
    info.resumable = true;
    info
}

fn to(agent: &str, message: Message) -> Outcome {
    Outcome::HandOff {
        agent: agent.into(),
        message,
    }
}

/// Leaves something, says a word and hands over.
fn desk() -> impl Agent + 'static {
    agent_fn(info("desk"), async |cx: RunCx, input: Input| {
        assert_eq!(cx.left(), None, "what the one before left is not for it");
        cx.checkpoint(&json!("the desk's"))?;
        cx.text("one moment").await?;
        let told = format!("{} says {}", cx.agent(), input.message.text());
        Ok(to("billing", cx.message(vec![Part::text(told)])))
    })
}

/// Asks once, then tells all that it has heard; `back` hands the task back.
fn billing() -> impl Agent + 'static {
    agent_fn(info("billing"), async |cx: RunCx, input: Input| {
        let said = input.message.text();
        assert_eq!(cx.agent().as_str(), "billing");
        let newest = input.task.history.last().map(|m| m.message_id.clone());
        assert_eq!(newest.as_ref(), Some(&input.message.message_id));
        match (input.checkpoint, said.as_str()) {
            (_, "back") => Ok(to("desk", cx.message(vec![Part::text("take it")]))),
            (None, _) => {
                cx.checkpoint(&json!(said))?;
                let question = cx.message(vec![Part::text("which invoice?")]);
                Ok(Outcome::Paused(Pause::input(question)))
            }
            (Some(heard), answer) => {
                let heard = heard.as_str().unwrap_or_default();
                cx.text(format!("{heard}, then {answer}")).await?;
                Ok(Outcome::Done)
            }
        }
    })
}

fn bed(store: &Arc<dyn Store>, second: impl Agent + 'static) -> Bed {
    let (bed, _) = Bed::of_on(Arc::clone(store), desk());
    bed.engine.host(Arc::new(second));
    bed
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(MemoryOptions::default()))
}

fn said(task: &Task) -> String {
    let message = task.status.message.as_ref();
    message.map(Message::text).unwrap_or_default()
}

#[tokio::test]
async fn another_agent_goes_on_after_a_hand_off() {
    let bed = Bed::new(Behaviour::HandOff("second".into()));
    bed.engine
        .host(Arc::new(TestAgent::named("second", Behaviour::Echo)));
    let task = bed.ask("m1", "hello").await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(artifact_text(&task), "please: hello");
}

#[tokio::test]
async fn endless_hand_offs_end_as_failed() {
    let bed = Bed::new(Behaviour::HandOff("agent".into()));
    let task = bed.ask("m1", "hello").await;
    assert_eq!(task.status.state, TaskState::Failed);
    assert_eq!(said(&task), "too many hand-offs from agent to agent");
    let missing = Bed::new(Behaviour::HandOff("nobody".into()))
        .ask("m1", "hello")
        .await;
    assert_eq!(missing.status.state, TaskState::Failed);
    assert_eq!(
        said(&missing),
        "agent nobody, which has the task now, does not exist"
    );
}

/// The answer to a question reaches the agent that has the task, in another process too; what it was
/// told and what it has left is its own.
#[tokio::test]
async fn who_has_a_task_keeps_it_through_a_pause_and_a_restart() {
    let store = memory();
    let before = bed(&store, billing());
    let asking = before.ask("m1", "a bill").await;
    assert_eq!(
        (asking.status.state, said(&asking).as_str()),
        (TaskState::InputRequired, "which invoice?")
    );
    before.engine.stop_runs(Duration::ZERO).await.unwrap();
    drop(before);
    let after = bed(&store, billing());
    let done = after.answer("m2", &asking, "the last").await;
    assert_eq!(done.status.state, TaskState::Completed, "{}", said(&done));
    let texts: Vec<_> = done.artifacts.iter().map(|a| a.text()).collect();
    assert_eq!(
        texts,
        ["one moment", "desk says a bill, then the last"],
        "each has an artifact of its own"
    );

    // What begins another task goes to the agent of the address.
    let mut message = text_message("m3", "again");
    message.context_id.clone_from(&done.context_id);
    let sent = after.agent.send_message(call("alice"), send(message)).await;
    let SendMessageResponse::Task(next) = sent.unwrap() else {
        panic!("no task");
    };
    assert_ne!(next.id, done.id);
    assert_eq!(next.artifacts[0].text(), "one moment");
}

/// A task may go back; the agent begins anew then.
#[tokio::test]
async fn a_task_may_be_handed_back() {
    let bed = bed(&memory(), billing());
    let asking = bed.ask("m1", "a bill").await;
    let again = bed.answer("m2", &asking, "back").await;
    assert_eq!(
        (again.status.state, said(&again).as_str()),
        (TaskState::InputRequired, "which invoice?")
    );
    let done = bed.answer("m3", &again, "ok").await;
    assert_eq!(
        done.artifacts.last().unwrap().text(),
        "desk says take it, then ok"
    );
}

/// After a crash the agent that has the task is told again what it was told, if it may run again.
#[tokio::test(start_paused = true)]
async fn a_crash_leaves_the_task_with_whom_it_was_handed_to() {
    for resumable in [true, false] {
        let store = memory();
        let second = |hang: bool| {
            let mut info = info("billing");
            info.resumable = resumable;
            agent_fn(info, move |cx: RunCx, input: Input| async move {
                let heard = format!("{} ({})", input.message.text(), cx.attempt());
                cx.status(heard.as_str()).await?;
                if hang {
                    std::future::pending::<()>().await;
                }
                cx.text(heard).await?;
                Ok::<_, nuncio_engine::AgentError>(())
            })
        };
        let before = bed(&store, second(true));
        let task = before.start("m1", "a bill").await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(
            said(&before.task(&task.id).await),
            "desk says a bill (1)",
            "it is at work"
        );
        let after = bed(&store, second(false));
        assert_eq!(after.engine.recover().await.unwrap(), 1);
        tokio::time::sleep(Duration::from_millis(10)).await;
        let ended = after.task(&task.id).await;
        match resumable {
            true => assert_eq!(
                ended.artifacts.last().unwrap().text(),
                "desk says a bill (2)"
            ),
            false => assert!(said(&ended).contains("interrupted by a restart")),
        }
    }
}

#[tokio::test]
async fn a_task_whose_agent_is_gone_fails_and_says_so() {
    let store = memory();
    let asking = bed(&store, billing()).ask("m1", "a bill").await;
    let (after, _) = Bed::of_on(store, desk());
    let failed = after.answer("m2", &asking, "the last").await;
    assert_eq!(
        (failed.status.state, said(&failed).as_str()),
        (
            TaskState::Failed,
            "agent billing, which has the task now, does not exist"
        )
    );
}

/// BR-172: an agent that waits for the answer of this task does not get it handed over.
#[tokio::test]
async fn br_172_a_task_is_not_handed_to_who_waits_for_it() {
    let chain = Arc::new(parking_lot::Mutex::new(None));
    let caller = {
        let chain = Arc::clone(&chain);
        agent_fn(info("billing"), move |cx: RunCx, _| {
            *chain.lock() = cx.call_metadata().remove(CALL_CHAIN);
            async { Ok::<_, nuncio_engine::AgentError>(()) }
        })
    };
    let (above, _) = Bed::of(caller);
    above.ask("m1", "go").await;
    let bed = bed(&memory(), billing());
    let mut request = send(text_message("m1", "a bill"));
    let chain = chain.lock().take().unwrap();
    request.metadata = Some([(CALL_CHAIN.to_owned(), chain)].into_iter().collect());
    let sent = bed.agent.send_message(call("alice"), request).await;
    let SendMessageResponse::Task(task) = sent.unwrap() else {
        panic!("no task");
    };
    assert_eq!(task.status.state, TaskState::Failed);
    let why = said(&task);
    assert!(why.contains("agent billing is at work already"), "{why}");
}

/// An agent that may answer without a task may hand over to one that does.
#[tokio::test]
async fn a_hand_over_makes_no_task_of_a_direct_answer() {
    let mut direct = info("desk");
    direct.answers_directly = true;
    let desk = agent_fn(direct, async |cx: RunCx, input: Input| {
        let told = format!("desk: {}", input.message.text());
        Ok(to("second", cx.message(vec![Part::text(told)])))
    });
    let (bed, _) = Bed::of(desk);
    bed.engine
        .host(Arc::new(TestAgent::named("second", Behaviour::Message)));
    let sent = bed
        .agent
        .send_message(call("alice"), send(text_message("m1", "hello")));
    let SendMessageResponse::Message(message) = sent.await.unwrap() else {
        panic!("a task");
    };
    assert_eq!(message.text(), "desk: hello");
    // If it pauses, there is a task, and it has it.
    bed.engine
        .host(Arc::new(TestAgent::named("second", Behaviour::Ask(1))));
    let asking = bed.ask("m2", "hello").await;
    assert_eq!(said(&asking), "question 1");
    let done = bed.answer("m3", &asking, "blue").await;
    assert_eq!(artifact_text(&done), "blue");
}

/// The work of each agent is a step of its own in the call tree.
#[tokio::test]
async fn the_call_tree_shows_who_had_the_task() {
    let bed = bed(&memory(), billing());
    let asking = bed.ask("m1", "a bill").await;
    let tree = loop {
        let tree = bed.agent.call_tree(&call("alice"), &asking.id).await;
        let tree = tree.unwrap();
        if tree.len() == 2 && tree.iter().all(|node| node.ended.is_some()) {
            break tree;
        }
        tokio::task::yield_now().await;
    };
    let run = tree.iter().find(|node| node.name == "invoke_agent desk");
    let second = tree.iter().find(|node| node.name == "invoke_agent billing");
    let (run, second) = (run.unwrap(), second.unwrap());
    assert_eq!(second.parent.as_ref(), Some(&run.id));
    assert_eq!(
        (second.kind, second.agent.as_str()),
        (SpanKind::Agent, "billing")
    );
}
