//! What an agent elsewhere needs of an engine, if calls are passed on to it.

use std::time::Duration;

use nuncio_engine::{CALL_CHAIN, RERUN, Retention};
use nuncio_protocol::{ContextId, ErrorKind, Metadata, TaskId};
use nuncio_testkit::{Bed, Behaviour, call};
use serde_json::{Value, json};

const DAY_MS: i64 = 24 * 3_600_000;

fn ids() -> (TaskId, ContextId) {
    ("t".into(), "c".into())
}

/// ERR-08: a task of another caller is not there, as one that nobody has.
#[tokio::test]
async fn what_a_caller_has_taken_is_nobody_elses() {
    let bed = Bed::new(Behaviour::Echo);
    let passing = bed.engine.passing("far");
    let (alice, bob) = (call("alice"), call("bob"));
    let (task, context) = ids();
    let take = async |who, task, context| passing.take(who, task, context).await.unwrap();
    assert!(take(&alice, Some(&task), Some(&context)).await);
    assert!(!take(&bob, None, Some(&context)).await);
    let own: ContextId = "own".into();
    assert!(!take(&bob, Some(&task), Some(&own)).await);
    assert!(!passing.has_context(&bob, &own).await.unwrap());
    assert!(passing.has_context(&alice, &context).await.unwrap());
    passing.check_task(&alice, &task).await.unwrap();
    let refused = passing.check_task(&bob, &task).await.unwrap_err();
    let absent = passing.check_task(&bob, &"x".into()).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::TaskNotFound);
    let same = refused.message.replace("task t ", "task x ");
    assert_eq!(same, absent.message);
    let asked = [task.clone(), "x".into()];
    assert_eq!(
        passing.tasks(&alice, &asked).await.unwrap(),
        [task.clone()].into()
    );
    assert_eq!(passing.count_tasks(&alice).await.unwrap(), 1);
    assert_eq!(passing.count_tasks(&bob).await.unwrap(), 0);
    let mut elsewhere = alice.clone();
    elsewhere.caller.workspace = "other".into();
    assert!(!take(&elsewhere, None, Some(&context)).await);
    let another = bed.engine.passing("another");
    assert!(another.take(&bob, None, Some(&context)).await.unwrap());
    assert!(take(&bob, Some(&TaskId::default()), None).await, "nobody's");
    let long = "x".repeat(257).into();
    let refused = passing.take(&bob, Some(&long), None).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::InvalidAgentResponse);
    assert!(refused.message.contains("257 bytes"), "{refused}");
}

/// Whose something is is known as long as sessions are kept, from its last use on.
#[tokio::test(start_paused = true)]
async fn what_nobody_uses_is_nobodys_in_the_end() {
    let bed = Bed::new(Behaviour::Echo);
    let passing = bed.engine.passing("far");
    let (alice, bob) = (call("alice"), call("bob"));
    let take = async |who, id: &str| {
        let taken = passing.take(who, Some(&id.into()), None).await;
        taken.unwrap()
    };
    for n in 0..5 {
        assert!(take(&alice, &format!("t{n}")).await);
    }
    bed.clock.advance(80 * DAY_MS);
    assert!(take(&alice, "t3").await);
    bed.clock.advance(10 * DAY_MS + 1);
    let mut retention = Retention::default();
    retention.batch = 2;
    let mut for_ever = retention.clone();
    for_ever.sessions = None;
    let sweep = async |retention: &Retention| bed.engine.sweep_owned(retention).await.unwrap();
    assert_eq!(sweep(&for_ever).await, 0);
    assert_eq!(sweep(&retention).await, 4);
    assert!(take(&bob, "t0").await);
    assert!(!take(&bob, "t3").await);
    retention.sessions = Some(Duration::from_secs(24 * 3_600));
    assert_eq!(sweep(&retention).await, 1, "t3 was used days ago");
}

/// Reading what is one's own writes nothing more often than once a minute.
#[tokio::test]
async fn what_has_just_been_taken_is_not_written_again() {
    let store = std::sync::Arc::new(nuncio_testkit::FaultyStore::new(std::sync::Arc::new(
        nuncio_store::MemoryStore::default(),
    )));
    let agent = nuncio_testkit::TestAgent::new(Behaviour::Echo);
    let bed = Bed::on(store.clone(), agent, Default::default());
    let passing = bed.engine.passing("far");
    let (task, context) = ids();
    let writes = || store.writes.load(std::sync::atomic::Ordering::SeqCst);
    let take = async || {
        let taken = passing
            .take(&call("alice"), Some(&task), Some(&context))
            .await;
        assert!(taken.unwrap());
        writes()
    };
    assert_eq!((take().await, take().await), (1, 1));
    bed.clock.advance(59_999);
    assert_eq!(take().await, 1);
    bed.clock.advance(1);
    assert_eq!((take().await, take().await), (2, 2));
}

/// BR-014: a repetition is known by the agent as one, and the message of another caller is not.
#[tokio::test]
async fn sends_of_callers_are_told_apart() {
    let bed = Bed::new(Behaviour::Echo);
    let passing = bed.engine.passing("far");
    let of = |caller: &str, key: Option<&str>, message: &str| {
        let mut call = call(caller);
        call.idempotency_key = key.map(str::to_owned);
        let message = message.into();
        (
            passing.send_key(&call, &message),
            passing.send_name(&call, &message),
        )
    };
    let first = of("alice", None, "m1");
    assert_eq!(first, of("alice", None, "m1"));
    assert_ne!(first.0, first.1);
    let others = [
        of("bob", None, "m1"),
        of("alice", None, "m2"),
        of("alice", Some("m1"), "m1"),
    ];
    for (n, other) in others.iter().enumerate() {
        assert!(first.0 != other.0 && first.1 != other.1, "{n}");
    }
    let keyed = of("alice", Some("k"), "m1");
    assert_eq!(keyed, of("alice", Some("k"), "m2"), "the key decides");
}

/// BR-172: an agent that calls are passed on to is in the chain once.
#[tokio::test]
async fn br_172_a_passing_agent_joins_the_chain_once() {
    let bed = Bed::new(Behaviour::Echo);
    let (far, near) = (bed.engine.passing("far"), bed.engine.passing("near"));
    let mut metadata = None;
    far.chain(&mut metadata, "one").unwrap();
    near.chain(&mut metadata, "two").unwrap();
    let chain = metadata.as_ref().unwrap()[CALL_CHAIN].clone();
    assert_eq!(chain["id"], "one");
    let names = |chain: &Value| chain["agents"].as_array().unwrap().len();
    assert_eq!(names(&chain), 2);
    for passing in [&far, &near] {
        let refused = passing.chain(&mut metadata, "three").unwrap_err();
        assert_eq!(refused.kind, ErrorKind::UnsupportedOperation);
        assert!(refused.message.contains("at work already"), "{refused}");
        assert_eq!(metadata.as_ref().unwrap()[CALL_CHAIN], chain);
    }
    let deep = json!({"id": "x", "agents": vec![json!({"id": "other"}); 6]});
    let mut metadata = Some(Metadata::from_iter([(CALL_CHAIN.to_owned(), deep)]));
    let refused = far.chain(&mut metadata, "one").unwrap_err();
    assert!(refused.message.contains("more than 5 deep"), "{refused}");
}

#[tokio::test]
async fn the_task_to_run_again_is_found_in_the_metadata() {
    let bed = Bed::new(Behaviour::Echo);
    let passing = bed.engine.passing("far");
    let of = |value: Value| {
        let metadata = Metadata::from_iter([(RERUN.to_owned(), value)]);
        passing.rerun_of(Some(&metadata))
    };
    assert_eq!(passing.rerun_of(None), None);
    assert_eq!(of(json!({"task": "t", "node": "n"})), Some("t".into()));
    assert_eq!(of(json!({"task": 7})), None);
}
