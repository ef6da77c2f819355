//! How much a caller may have.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use nuncio_engine::{Agent, AgentInfo, Input, Outcome, Pause, RunCx, agent_fn};
use nuncio_protocol::{
    Call, Caller, Part, SendMessageRequest, SendMessageResponse, Task, TaskState,
};
use nuncio_runtime::ModelAgent;
use nuncio_runtime::layer::{Layer, LayeredAgent, Quota};
use nuncio_testkit::FixedClock;

use crate::support::{Hosted, fake, said, texts};

/// Sends a text as somebody.
async fn by(hosted: &Hosted, caller: &str, text: &str) -> Task {
    let mut call = Call::client();
    call.caller = Caller {
        id: caller.into(),
        workspace: "default".into(),
    };
    let request = SendMessageRequest::new(hosted.message(text));
    match hosted.send(call, request).await.unwrap() {
        SendMessageResponse::Task(task) => task,
        other => panic!("no task: {other:?}"),
    }
}

/// Asks once, then gives the answer.
pub(super) fn asks() -> impl Agent + 'static {
    agent_fn(
        AgentInfo::new("asks", "Asks", "Asks."),
        async |cx: RunCx, input: Input| {
            if input.turn() == 1 {
                let prompt = cx.message(vec![Part::text("which?")]);
                return Ok::<_, nuncio_engine::AgentError>(Outcome::Paused(Pause::input(prompt)));
            }
            cx.text(input.message.text()).await?;
            Ok(Outcome::Done)
        },
    )
}

fn around(agent: impl Agent + 'static, quota: Quota) -> Hosted {
    let layers: [Arc<dyn Layer>; 1] = [Arc::new(quota)];
    Hosted::new(Arc::new(LayeredAgent::new(agent, layers)))
}

/// Each caller has its own minute, which moves with the time.
#[tokio::test(start_paused = true)]
async fn runs_of_a_minute_are_counted_for_each_caller() {
    let echo = nuncio_runtime::EchoAgent::new("echo");
    let hosted = around(echo, Quota::new("fair").runs_per_minute(2));
    let state = async |caller: &str| by(&hosted, caller, "x").await.status.state;
    assert_eq!(state("alice").await, TaskState::Completed);
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(state("alice").await, TaskState::Completed);
    let refused = by(&hosted, "alice", "x").await;
    assert_eq!(
        (refused.status.state, said(&refused).as_str()),
        (
            TaskState::Rejected,
            "no more than 2 messages a minute are answered; try again in 40 seconds"
        )
    );
    assert_eq!(state("bob").await, TaskState::Completed);
    tokio::time::advance(Duration::from_secs(40)).await;
    assert_eq!(
        state("alice").await,
        TaskState::Completed,
        "the first is a minute ago"
    );
    assert_eq!(
        state("alice").await,
        TaskState::Rejected,
        "the second is not"
    );
}

/// A task that waits for an answer is not lost by it: it waits on, and the next answer is the answer.
#[tokio::test(start_paused = true)]
async fn a_task_that_waits_waits_on() {
    let hosted = around(asks(), Quota::new("fair").runs_per_minute(1));
    let asking = hosted.task("go").await;
    let still = hosted.answer(&asking.id, "too early").await;
    assert_eq!(still.status.state, TaskState::InputRequired);
    assert!(
        said(&still).contains("try again in 60 seconds"),
        "{}",
        said(&still)
    );
    tokio::time::advance(Duration::from_secs(60)).await;
    let done = hosted.answer(&asking.id, "red").await;
    assert_eq!(texts(&done), ["red"]);
}

fn speaking(quota: Quota) -> Arc<dyn Agent> {
    let model = fake(
        "fake",
        "[[rules]]\notherwise = true\nreply = [{ text = 'one two' }]",
    );
    let agent = ModelAgent::builder("agent").model(model).layer(quota);
    Arc::new(agent.build().unwrap())
}

/// The tokens of one answer of that agent.
async fn tokens_of_one() -> u64 {
    let task = Hosted::new(speaking(Quota::new("none"))).task("x").await;
    let usage = &task.artifacts[0].metadata.as_ref().unwrap()["usage"];
    let of = |name: &str| usage[name].as_u64().unwrap();
    of("inputTokens") + of("outputTokens")
}

/// All of many answers at once are counted; the count outlives a restart, and ends with the day.
#[tokio::test]
async fn tokens_of_a_day_are_counted_exactly_and_kept() {
    const RUNS: usize = 40;
    let one = tokens_of_one().await;
    let clock = Arc::new(FixedClock::default());
    let folder = tempfile::tempdir().unwrap();
    let open = |limit: u64| {
        let quota = Quota::new("fair").tokens_per_day(limit);
        Hosted::at(&folder, speaking(quota.clock(Arc::clone(&clock) as _)))
    };
    let before = open(one * RUNS as u64);
    let runs = (0..RUNS).map(|_| by(&before, "alice", "x"));
    let states = join_all(runs)
        .await
        .into_iter()
        .map(|task| task.status.state);
    assert!(
        states
            .into_iter()
            .all(|state| state == TaskState::Completed)
    );
    let refused = by(&before, "alice", "x").await;
    assert_eq!(refused.status.state, TaskState::Rejected);
    assert!(
        said(&refused).contains("tokens of this day are used"),
        "{}",
        said(&refused)
    );
    let bob = by(&before, "bob", "x").await;
    assert_eq!(bob.status.state, TaskState::Completed);
    before.stop().await;

    let after = open(one * RUNS as u64 + 1);
    assert_eq!(
        by(&after, "alice", "x").await.status.state,
        TaskState::Completed,
        "not one was counted twice"
    );
    let refused = by(&after, "alice", "x").await;
    assert_eq!(
        refused.status.state,
        TaskState::Rejected,
        "they are known after a restart"
    );
    clock.advance(86_400_000);
    assert_eq!(
        by(&after, "alice", "x").await.status.state,
        TaskState::Completed
    );
}

/// A run ends where its tokens do, and says so.
#[tokio::test]
async fn a_run_that_goes_on_for_long_is_ended() {
    let model = fake(
        "fake",
        "[[rules]]\nwhen = { after_tool = 'ask_user' }\nreply = [{ text = 'done' }]\n\
         [[rules]]\notherwise = true\nreply = [{ tool = { name = 'nobody', arguments = {} } }]",
    );
    let agent = ModelAgent::builder("agent").model(model.clone());
    let agent = agent.layer(Quota::new("fair").tokens_per_day(1));
    let hosted = Hosted::new(Arc::new(agent.build().unwrap()));
    let failed = hosted.task("go").await;
    assert_eq!(failed.status.state, TaskState::Failed);
    assert!(
        said(&failed).contains("the 1 tokens of this day"),
        "{}",
        said(&failed)
    );
    assert_eq!(model.requests().len(), 1);
}

/// Servers that share a store know what a caller has used at the others.
#[tokio::test]
async fn servers_with_one_store_count_together() {
    let store = Arc::<nuncio_store::MemoryStore>::default();
    let open = || {
        let quota = Quota::new("fair").tokens_per_day(1);
        Hosted::made(Arc::clone(&store), |_| speaking(quota))
    };
    let (one, two) = (open(), open());
    assert_eq!(one.task("x").await.status.state, TaskState::Completed);
    assert_eq!(two.task("x").await.status.state, TaskState::Rejected);
}
