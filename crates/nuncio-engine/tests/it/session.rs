//! What agents keep of a conversation: shared by its tasks, seen by nobody else, there after a restart.

use std::path::Path;
use std::sync::Arc;

use nuncio_engine::{
    Agent, AgentError, AgentInfo, Entry, HostedAgent, Input, Outcome, RunCx, RunFuture, Session,
    SessionError, Settings,
};
use nuncio_protocol::{AgentService as _, TaskState};
use nuncio_store::{SqliteOptions, SqliteStore, Store, StoreError, Synchronous};
use nuncio_testkit::{
    Bed, Behaviour, FaultyStore, TestAgent, artifact_text, call, send, sent_task, text_message,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Answers with all that it has been told before in the conversation, and keeps what it is told.
struct Diary(AgentInfo);

impl Diary {
    async fn keep(&self, cx: &RunCx, text: &str) -> Result<Vec<Entry>, AgentError> {
        let mut session = cx.session();
        let mut before = session.load(1_000).await?;
        loop {
            match session.append(vec![json!(text)]).await {
                Ok(()) => return Ok(before),
                Err(SessionError::Moved(more)) => before.extend(more),
                Err(other) => return Err(other.into()),
            }
        }
    }
}

impl Agent for Diary {
    fn info(&self) -> &AgentInfo {
        &self.0
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(async move {
            let before = self.keep(cx, &input.message.text()).await?;
            cx.text(words(&before).join(" ")).await?;
            Ok(Outcome::Done)
        })
    }
}

fn words(entries: &[Entry]) -> Vec<&str> {
    let words = entries.iter().map(|entry| entry.value.as_str().unwrap());
    words.collect()
}

fn diary(bed: &Bed) -> Arc<HostedAgent> {
    bed.engine.host(Arc::new(Diary(AgentInfo::new(
        "diary",
        "diary",
        "Keeps what it is told.",
    ))))
}

/// Tells an agent something in a context; gives its answer.
async fn tell(agent: &HostedAgent, caller: &str, context: &str, text: &str) -> String {
    let mut message = text_message(&format!("{context} {text}"), text);
    message.context_id = Some(context.into());
    let answer = agent.send_message(call(caller), send(message)).await;
    let task = sent_task(answer.unwrap());
    assert_eq!(task.status.state, TaskState::Completed);
    artifact_text(&task)
}

/// BR-149: a context that somebody else has made is another conversation.
#[tokio::test(start_paused = true)]
async fn br_149_tasks_of_a_context_share_it_and_nobody_else_sees_it() {
    let bed = Bed::new(Behaviour::Echo);
    let agent = diary(&bed);
    assert_eq!(tell(&agent, "alice", "c", "one").await, "");
    assert_eq!(tell(&agent, "alice", "c", "two").await, "one");
    assert_eq!(tell(&agent, "alice", "d", "three").await, "");
    assert_eq!(tell(&agent, "bob", "c", "four").await, "");
    assert_eq!(tell(&agent, "bob", "c", "five").await, "four");
    assert_eq!(tell(&agent, "alice", "c", "six").await, "one two");
}

fn sqlite(path: &Path) -> Arc<dyn Store> {
    let options = SqliteOptions {
        synchronous: Synchronous::Normal,
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open(path, options).unwrap())
}

/// BR-173: what a conversation knew is known after a restart, to the same caller.
#[tokio::test]
async fn br_173_a_conversation_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nuncio.db");
    for (before, new) in [("", "blue"), ("blue", "green"), ("blue green", "red")] {
        let store = sqlite(&path);
        let agent = TestAgent::new(Behaviour::Echo);
        let bed = Bed::on(Arc::clone(&store), agent, Settings::default());
        let agent = diary(&bed);
        assert_eq!(tell(&agent, "alice", "c", new).await, before);
        store.close().await.unwrap();
    }
}

/// BR-074: conversations that go on beside each other are not mixed; messages of one come in some
/// order, each seeing what came before.
#[tokio::test]
async fn br_074_conversations_are_never_mixed() {
    let bed = Bed::new(Behaviour::Echo);
    let agent = diary(&bed);
    for round in 0..500 {
        let say = |context: &'static str, who: &str| {
            let (agent, text) = (Arc::clone(&agent), format!("{who}-{round}"));
            tokio::spawn(async move { tell(&agent, "alice", context, &text).await })
        };
        let (a, b) = (say("a", "a"), say("b", "b"));
        let (c, d) = (say("both", "c"), say("both", "d"));
        let (a, b) = (a.await.unwrap(), b.await.unwrap());
        assert!(a.split_whitespace().all(|word| word.starts_with("a-")));
        assert!(b.split_whitespace().all(|word| word.starts_with("b-")));
        assert_eq!(a.split_whitespace().count(), round);
        let [c, d] =
            [c.await.unwrap(), d.await.unwrap()].map(|told| told.split_whitespace().count());
        let second = 2 * round + 1;
        assert_eq!((c.min(d), c.max(d)), (2 * round, second), "{c} {d}");
    }
}

/// Gives its sessions away, two for each run.
struct Lender(AgentInfo, mpsc::UnboundedSender<[Session; 2]>);

impl Agent for Lender {
    fn info(&self) -> &AgentInfo {
        &self.0
    }

    fn run<'a>(&'a self, cx: &'a RunCx, _: Input) -> RunFuture<'a> {
        Box::pin(async move {
            self.1.send([cx.session(), cx.session()]).unwrap();
            cx.text("done").await?;
            Ok(Outcome::Done)
        })
    }
}

struct Lent {
    agent: Arc<HostedAgent>,
    sessions: mpsc::UnboundedReceiver<[Session; 2]>,
    count: usize,
}

impl Lent {
    fn new(bed: &Bed) -> Self {
        let (sender, sessions) = mpsc::unbounded_channel();
        let info = AgentInfo::new("lender", "lender", "Gives its sessions away.");
        let agent = bed.engine.host(Arc::new(Lender(info, sender)));
        Self {
            agent,
            sessions,
            count: 0,
        }
    }

    /// Two sessions of one new run.
    async fn of(&mut self, caller: &str, context: &str) -> [Session; 2] {
        self.count += 1;
        let text = format!("{caller} {}", self.count);
        tell(&self.agent, caller, context, &text).await;
        self.sessions.recv().await.unwrap()
    }
}

fn moved(result: Result<(), SessionError>) -> Vec<Entry> {
    match result {
        Err(SessionError::Moved(entries)) => entries,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_too_late_is_told_what_has_come() {
    let bed = Bed::new(Behaviour::Echo);
    let [mut a, mut b] = Lent::new(&bed).of("alice", "c").await;
    a.append(vec![json!("1"), json!("2")]).await.unwrap();
    let late = b.commit(vec![json!("x")], vec![("s".into(), Some(json!(1)))]);
    assert_eq!(words(&moved(late.await)), ["1", "2"]);
    assert_eq!(b.get("s").await.unwrap(), None, "nothing was written");
    b.append(vec![json!("3")]).await.unwrap();
    assert_eq!(words(&moved(a.append(vec![json!("4")]).await)), ["3"]);
    a.append(vec![json!("4")]).await.unwrap();

    let all = b.load(99).await.unwrap();
    assert_eq!(words(&all), ["1", "2", "3", "4"]);
    assert!(all.iter().map(|entry| entry.position).eq(1..=4));
    assert_eq!(words(&b.load(2).await.unwrap()), ["3", "4"]);
    b.append(vec![json!("5")]).await.unwrap();
    assert_eq!(words(&b.load(0).await.unwrap()), ["5"], "at least one");

    a.compact(2, &json!("1 and 2")).await.unwrap();
    let entries = a.load(99).await.unwrap();
    assert_eq!(words(&entries), ["1 and 2", "3", "4", "5"]);
    assert_eq!(entries[0].position, 2);
    let gone = a.compact(1, &json!("?")).await;
    assert!(matches!(gone, Err(SessionError::NoEntry(1))), "{gone:?}");
    b.append(vec![json!("6")]).await.unwrap();
}

/// However much has come, the next attempt may go after it; and what has not been seen is not
/// overlooked because a state has been set.
#[tokio::test(start_paused = true)]
async fn a_long_conversation_is_caught_up_with_at_once() {
    let bed = Bed::new(Behaviour::Echo);
    let [mut a, mut b] = Lent::new(&bed).of("alice", "c").await;
    let many = (1..=2_500).map(|n| json!(n.to_string()));
    a.append(many.collect()).await.unwrap();
    b.set("s", json!(1)).await.unwrap();
    assert_eq!(a.get("s").await.unwrap(), Some(json!(1)));
    let only_if_seen = b.commit(vec![], vec![("s".into(), Some(json!(2)))]);
    let came = moved(only_if_seen.await);
    let (first, last) = (&came[0], &came[came.len() - 1]);
    assert_eq!((first.position, last.position), (1_501, 2_500));
    b.remove("s").await.unwrap();
    b.append(vec![json!("2501")]).await.unwrap();
    assert_eq!(words(&moved(a.append(vec![json!("x")]).await)), ["2501"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_conversation_is_begun_anew() {
    let bed = Bed::new(Behaviour::Echo);
    let mut lent = Lent::new(&bed);
    let [mut a, mut b] = lent.of("alice", "c").await;
    a.append(vec![json!("1"), json!("2")]).await.unwrap();
    let mut scope = bed.scope("alice");
    scope.agent = "lender".into();
    let key = nuncio_store::SessionKey {
        scope,
        context: "c".into(),
    };
    assert!(bed.store.delete_session(&key).await.unwrap());
    assert_eq!(moved(a.append(vec![json!("3")]).await), []);
    a.append(vec![json!("3")]).await.unwrap();
    assert_eq!(words(&b.load(9).await.unwrap()), ["3"]);
}

#[tokio::test(start_paused = true)]
async fn state_is_shared_as_its_prefix_says() {
    let bed = Bed::new(Behaviour::Echo);
    let mut lent = Lent::new(&bed);
    let [mut mine, same_run] = lent.of("alice", "c").await;
    for name in ["caller:x", "agent:x", "run:x", "x", "not:a:scope"] {
        mine.set(name, json!(name)).await.unwrap();
    }
    let [later, _] = lent.of("alice", "c").await;
    let [elsewhere, _] = lent.of("alice", "d").await;
    let [theirs, _] = lent.of("bob", "c").await;
    for (session, names) in [
        (
            &same_run,
            &["agent:x", "caller:x", "not:a:scope", "run:x", "x"][..],
        ),
        (&later, &["agent:x", "caller:x", "not:a:scope", "x"]),
        (&elsewhere, &["agent:x", "caller:x"]),
        (&theirs, &["agent:x"]),
    ] {
        let state = session.state().await.unwrap();
        let named: Vec<_> = state.keys().map(String::as_str).collect();
        assert_eq!(named, names);
        for (name, value) in &state {
            assert_eq!(value, &json!(name));
            assert_eq!(session.get(name).await.unwrap().as_ref(), Some(value));
        }
    }
    assert_eq!(later.get("run:x").await.unwrap(), None);
    assert_eq!(mine.load(9).await.unwrap(), [], "state is no entry");
    for name in ["caller:x", "run:x", "x"] {
        mine.remove(name).await.unwrap();
        assert_eq!(same_run.get(name).await.unwrap(), None);
    }
    let left = same_run.state().await.unwrap();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_is_refused_and_changes_nothing() {
    let bed = Bed::new(Behaviour::Echo);
    let [mut session, _] = Lent::new(&bed).of("alice", "c").await;
    let large = Value::String("x".repeat(1 << 20));
    let state = |name: &str, value: &Value| vec![(name.to_owned(), Some(value.clone()))];
    let too_large = session.append(vec![json!(1), large.clone()]).await;
    match &too_large {
        Err(SessionError::TooLarge { bytes, limit, .. }) => {
            assert_eq!((*bytes, *limit), ((1 << 20) + 2, 1 << 20));
        }
        other => panic!("{other:?}"),
    }
    let told = AgentError::from(too_large.unwrap_err());
    assert!(told.message().starts_with("an entry of a session has"));
    for changes in [state("x", &large), state(&"n".repeat(257), &json!(1))] {
        let refused = session.commit(vec![json!(1)], changes).await;
        assert!(
            matches!(refused, Err(SessionError::TooLarge { .. })),
            "{refused:?}"
        );
    }
    for name in ["", "caller:", "agent:", "run:"] {
        let mut changes = state("run:y", &json!(1));
        changes.extend(state(name, &json!(1)));
        match session.commit(vec![json!(1)], changes).await {
            Err(SessionError::Nameless(named)) => assert_eq!(named, name),
            other => panic!("{other:?}"),
        }
    }
    let too_many = (0..1_001).map(|n| (n.to_string(), Some(json!(1))));
    match session.commit(vec![json!(1)], too_many.collect()).await {
        Err(SessionError::TooMany { limit, .. }) => assert_eq!(limit, 1_000),
        other => panic!("{other:?}"),
    }
    assert_eq!(session.load(9).await.unwrap(), []);
    assert_eq!(session.state().await.unwrap().len(), 0);
}

/// What the store refuses can be tried again with the same handle.
#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_is_told_of() {
    let inner = Arc::new(nuncio_store::MemoryStore::default());
    let store = Arc::new(FaultyStore::new(inner));
    let agent = TestAgent::new(Behaviour::Echo);
    let bed = Bed::on(Arc::clone(&store) as _, agent, Settings::default());
    let [mut session, _] = Lent::new(&bed).of("alice", "c").await;
    store.refuse_writes(true);
    let refused = session.commit(vec![json!("1")], vec![("run:x".to_owned(), Some(json!(1)))]);
    let refused = refused.await;
    assert!(
        matches!(
            refused,
            Err(SessionError::Store(StoreError::Unavailable(_)))
        ),
        "{refused:?}"
    );
    assert_eq!(session.get("run:x").await.unwrap(), None, "all or nothing");
    store.refuse_writes(false);
    session.append(vec![json!("1")]).await.unwrap();
    assert_eq!(words(&session.load(9).await.unwrap()), ["1"]);
}
