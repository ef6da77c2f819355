//! Sessions: entries in order, state beside them, nothing of anybody else.

use std::sync::Arc;

use nuncio_store::{
    Scope, SessionAppend, SessionAppended, SessionEntry, SessionKey, StateChange, StateScope,
    StoreError,
};

use super::Shared;
use crate::draft::{at, scope};

/// The largest text that is taken.
const LIMIT: usize = 1 << 20;

pub(crate) fn session_of(caller: &str, context: &str) -> SessionKey {
    SessionKey {
        scope: scope(caller),
        context: context.into(),
    }
}

/// Deletes one session that has state, and lets another one grow old; for a look at what is left.
pub(crate) async fn forget_two(store: &Shared) {
    for context in ["deleted", "old"] {
        let mut first = said(&session_of("ada", context), 0, &["a", "b"]);
        let shared = [StateScope::Context, StateScope::Caller, StateScope::Agent];
        first.state = shared.map(|scope| change(scope, "x", Some("1"))).into();
        append(store, first).await;
    }
    let deleted = store.delete_session(&session_of("ada", "deleted")).await;
    assert!(deleted.unwrap());
    assert_eq!(store.prune_sessions(at(1), 9).await.unwrap(), 1);
}

/// Entries of these texts after a position, by the task "t", at second `after`.
pub(crate) fn said(key: &SessionKey, after: u64, texts: &[&str]) -> SessionAppend {
    SessionAppend {
        key: key.clone(),
        after,
        task: "t".into(),
        at: at(after as i64 * 1_000),
        entries: texts.iter().map(|text| json(text)).collect(),
        state: Vec::new(),
    }
}

fn json(text: &str) -> Arc<str> {
    format!("\"{text}\"").into()
}

fn change(scope: StateScope, name: &str, value: Option<&str>) -> StateChange {
    StateChange {
        scope,
        name: name.into(),
        value: value.map(Arc::from),
    }
}

/// A change of state alone.
fn changed(key: &SessionKey, after: u64, state: Vec<StateChange>) -> SessionAppend {
    SessionAppend {
        state,
        ..said(key, after, &[])
    }
}

async fn read(store: &Shared, key: &SessionKey) -> Vec<SessionEntry> {
    store.session(key, 0, 99).await.unwrap()
}

fn shown(entries: &[SessionEntry]) -> Vec<(u64, &str)> {
    entries
        .iter()
        .map(|entry| (entry.position, entry.json.trim_matches('"')))
        .collect()
}

async fn states(store: &Shared, key: &SessionKey) -> Vec<(StateScope, String, String)> {
    let states = store.state(key).await.unwrap();
    states
        .iter()
        .map(|state| (state.scope, state.name.to_string(), state.value.to_string()))
        .collect()
}

fn state(scope: StateScope, name: &str, value: &str) -> (StateScope, String, String) {
    (scope, name.to_owned(), value.to_owned())
}

fn done(last: u64) -> SessionAppended {
    SessionAppended::Done { last }
}

async fn append(store: &Shared, append: SessionAppend) -> SessionAppended {
    store.append_session(append).await.unwrap()
}

pub(crate) async fn entries_are_read_as_they_were_written(store: &Shared) {
    let key = session_of("ada", "c");
    assert!(read(store, &key).await.is_empty());
    assert!(store.session_tail(&key, 9).await.unwrap().is_empty());
    assert_eq!(append(store, said(&key, 0, &["a", "b"])).await, done(2));
    let mut second = said(&key, 2, &["c"]);
    second.task = "u".into();
    assert_eq!(append(store, second).await, done(3));
    let entry = |position, task: &str, ms, text| SessionEntry {
        position,
        task: task.into(),
        at: at(ms),
        json: json(text),
    };
    let all = [
        entry(1, "t", 0, "a"),
        entry(2, "t", 0, "b"),
        entry(3, "u", 2_000, "c"),
    ];
    assert_eq!(read(store, &key).await, all);
    assert_eq!(store.session(&key, 1, 1).await.unwrap(), all[1..2]);
    assert_eq!(store.session(&key, 2, 9).await.unwrap(), all[2..]);
    assert!(store.session(&key, 3, 9).await.unwrap().is_empty());
    assert!(store.session(&key, u64::MAX, 9).await.unwrap().is_empty());
    assert!(store.session(&key, 0, 0).await.unwrap().is_empty());
    assert_eq!(store.session_tail(&key, 2).await.unwrap(), all[1..]);
    assert_eq!(store.session_tail(&key, 9).await.unwrap(), all);
    assert!(store.session_tail(&key, 0).await.unwrap().is_empty());
}

pub(crate) async fn any_text_is_an_entry_and_a_name(store: &Shared) {
    let odd = "a\0b\u{ffff}0 \u{1f980} \" '";
    let key = session_of(odd, odd);
    let mut first = said(&key, 0, &[]);
    first.entries = vec![odd.into(), "".into(), "x".repeat(LIMIT).into()];
    first.state = vec![change(StateScope::Agent, odd, Some(odd))];
    assert_eq!(append(store, first.clone()).await, done(3));
    let kept: Vec<_> = read(store, &key)
        .await
        .into_iter()
        .map(|entry| entry.json)
        .collect();
    assert_eq!(kept, first.entries);
    assert_eq!(
        states(store, &key).await,
        [state(StateScope::Agent, odd, odd)]
    );
}

pub(crate) async fn an_entry_needs_the_last_position(store: &Shared) {
    let key = session_of("ada", "c");
    let too_far = said(&key, 1, &["a"]);
    let conflict = SessionAppended::Conflict { last: 0 };
    assert_eq!(append(store, too_far).await, conflict);
    append(store, said(&key, 0, &["a", "b"])).await;
    for after in [0, 1, 3, u64::MAX] {
        let mut late = said(&key, after.min(9), &["late"]);
        late.after = after;
        late.state = vec![
            change(StateScope::Context, "x", Some("1")),
            change(StateScope::Caller, "x", Some("1")),
            change(StateScope::Agent, "x", Some("1")),
        ];
        let conflict = SessionAppended::Conflict { last: 2 };
        assert_eq!(append(store, late).await, conflict, "after {after}");
    }
    assert_eq!(shown(&read(store, &key).await), [(1, "a"), (2, "b")]);
    assert_eq!(states(store, &key).await, [], "nothing at all is written");
}

pub(crate) async fn one_of_many_entries_is_the_next(store: &Shared) {
    let key = session_of("ada", "c");
    for round in 0..50 {
        let writers: Vec<_> = (0..4)
            .map(|n| {
                let (store, name) = (store.clone(), format!("{round} {n}"));
                let mut one = said(&key, round, &[&name]);
                one.state = vec![change(StateScope::Caller, "newest", Some(&name))];
                tokio::spawn(async move { store.append_session(one).await.unwrap() })
            })
            .collect();
        let mut won = 0;
        for writer in writers {
            match writer.await.unwrap() {
                SessionAppended::Done { last } => {
                    assert_eq!(last, round + 1);
                    won += 1;
                }
                SessionAppended::Conflict { last } => assert_eq!(last, round + 1),
            }
        }
        assert_eq!(won, 1, "round {round}");
    }
    let entries = read(store, &key).await;
    let newest = entries.last().unwrap().json.trim_matches('"').to_owned();
    assert_eq!(
        states(store, &key).await,
        [state(StateScope::Caller, "newest", &newest)],
        "entry and state are of one writer"
    );
    assert!(entries.iter().map(|entry| entry.position).eq(1..=50));
}

pub(crate) async fn state_is_shared_by_its_scope(store: &Shared) {
    use StateScope::{Agent, Caller, Context};
    let key = session_of("ada", "c");
    let first = changed(
        &key,
        0,
        vec![
            change(Agent, "a", Some("1")),
            change(Caller, "b", Some("2")),
            change(Context, "c", Some("0")),
            change(Context, "c", Some("3")),
            change(Context, "gone", Some("4")),
            change(Context, "gone", None),
        ],
    );
    assert_eq!(append(store, first).await, done(0));
    let all = [
        state(Context, "c", "3"),
        state(Caller, "b", "2"),
        state(Agent, "a", "1"),
    ];
    assert_eq!(states(store, &key).await, all);
    assert!(read(store, &key).await.is_empty(), "state is no entry");

    let elsewhere = session_of("ada", "another");
    assert_eq!(states(store, &elsewhere).await, all[1..]);
    let other = session_of("bob", "c");
    assert_eq!(states(store, &other).await, all[2..]);
    let mut agent = key.clone();
    agent.scope.agent = "other".into();
    assert_eq!(states(store, &agent).await, []);
    let mut workspace = key.clone();
    workspace.scope.workspace = "other".into();
    assert_eq!(states(store, &workspace).await, []);

    let second = changed(
        &elsewhere,
        0,
        vec![
            change(Agent, "a", Some("5")),
            change(Caller, "b", None),
            change(Caller, "never was", None),
            change(Context, "c", Some("6")),
        ],
    );
    append(store, second).await;
    assert_eq!(
        states(store, &key).await,
        [state(Context, "c", "3"), state(Agent, "a", "5")]
    );
    assert_eq!(
        states(store, &elsewhere).await,
        [state(Context, "c", "6"), state(Agent, "a", "5")]
    );
}

pub(crate) async fn a_summary_takes_the_place_of_what_it_tells(store: &Shared) {
    let key = session_of("ada", "c");
    append(store, said(&key, 0, &["a", "b", "c", "d"])).await;
    let compact = async |through| {
        let summary = json(&format!("up to {through}"));
        store.compact_session(&key, through, summary).await.unwrap()
    };
    assert!(!compact(0).await);
    assert!(!compact(5).await);
    assert!(!compact(u64::MAX).await);
    assert_eq!(read(store, &key).await.len(), 4);
    assert!(compact(2).await);
    let entries = read(store, &key).await;
    assert_eq!(shown(&entries), [(2, "up to 2"), (3, "c"), (4, "d")]);
    assert_eq!((entries[0].task.as_str(), entries[0].at), ("t", at(0)));
    assert!(!compact(1).await, "it is told already");
    assert!(compact(2).await, "a better summary");
    assert!(compact(4).await);
    assert_eq!(shown(&read(store, &key).await), [(4, "up to 4")]);
    assert_eq!(append(store, said(&key, 4, &["e"])).await, done(5));
    let entries = store.session(&key, 4, 9).await.unwrap();
    assert_eq!(shown(&entries), [(5, "e")]);
    let nobody = session_of("ada", "never was");
    let summary = store.compact_session(&nobody, 1, json("x")).await;
    assert!(!summary.unwrap());
}

pub(crate) async fn nothing_of_another_session_is_seen(store: &Shared) {
    let mine = session_of("ada", "c");
    append(store, said(&mine, 0, &["mine"])).await;
    let mut own = changed(&mine, 1, vec![change(StateScope::Context, "x", Some("1"))]);
    own.state.push(change(StateScope::Caller, "y", Some("1")));
    append(store, own).await;
    let with = |change: fn(&mut Scope)| {
        let mut key = mine.clone();
        change(&mut key.scope);
        key
    };
    for (n, other) in [
        session_of("ada", "another"),
        with(|scope| scope.caller = "bob".into()),
        with(|scope| scope.agent = "other".into()),
        with(|scope| scope.workspace = "other".into()),
    ]
    .into_iter()
    .enumerate()
    {
        assert!(read(store, &other).await.is_empty());
        assert!(store.session_tail(&other, 9).await.unwrap().is_empty());
        assert_eq!(states(store, &other).await.len(), usize::from(n == 0));
        let summary = store.compact_session(&other, 1, json("x")).await;
        assert!(!summary.unwrap());
        assert!(!store.delete_session(&other).await.unwrap());
        assert_eq!(append(store, said(&other, 0, &["theirs"])).await, done(1));
        assert_eq!(shown(&read(store, &other).await), [(1, "theirs")]);
        assert!(store.delete_session(&other).await.unwrap());
    }
    assert_eq!(shown(&read(store, &mine).await), [(1, "mine")]);
    assert_eq!(states(store, &mine).await.len(), 2);
}

pub(crate) async fn a_deleted_session_begins_anew(store: &Shared) {
    use StateScope::{Agent, Caller, Context};
    let key = session_of("ada", "c");
    let mut first = said(&key, 0, &["a", "b"]);
    for scope in [Context, Caller, Agent] {
        first.state.push(change(scope, "x", Some("1")));
    }
    append(store, first).await;
    assert!(store.delete_session(&key).await.unwrap());
    assert!(!store.delete_session(&key).await.unwrap());
    assert!(read(store, &key).await.is_empty());
    let kept = [state(Caller, "x", "1"), state(Agent, "x", "1")];
    assert_eq!(states(store, &key).await, kept);
    let conflict = SessionAppended::Conflict { last: 0 };
    assert_eq!(append(store, said(&key, 2, &["c"])).await, conflict);
    assert_eq!(append(store, said(&key, 0, &["new"])).await, done(1));
    assert_eq!(shown(&read(store, &key).await), [(1, "new")]);
    assert_eq!(states(store, &key).await, kept, "nothing comes back");
}

pub(crate) async fn texts_above_their_limit_are_refused(store: &Shared) {
    let key = session_of("ada", "c");
    let large: Arc<str> = "x".repeat(LIMIT + 1).into();
    let long = "n".repeat(257);
    let mut entry = said(&key, 0, &["small"]);
    entry.entries.push(Arc::clone(&large));
    let value = changed(
        &key,
        0,
        vec![change(StateScope::Agent, "x", Some(large.as_ref()))],
    );
    let name = changed(&key, 0, vec![change(StateScope::Agent, &long, Some("1"))]);
    for (append, named, size) in [
        (entry, "an entry of a session", LIMIT + 1),
        (value, "a state", LIMIT + 1),
        (name, "the name of a state", 257),
    ] {
        match store.append_session(append).await {
            Err(StoreError::TooLarge { what, bytes, limit }) => {
                assert_eq!((what, bytes, limit), (named, size, size - 1));
            }
            other => panic!("{other:?}"),
        }
    }
    let nameless = changed(&key, 0, vec![change(StateScope::Agent, "", Some("1"))]);
    let refused = store.append_session(nameless).await;
    assert!(
        matches!(refused, Err(StoreError::Corrupt(_))),
        "{refused:?}"
    );
    assert!(read(store, &key).await.is_empty());
    assert_eq!(states(store, &key).await, []);
    append(store, said(&key, 0, &["a"])).await;
    let summary = store.compact_session(&key, 1, large).await;
    assert!(
        matches!(summary, Err(StoreError::TooLarge { .. })),
        "{summary:?}"
    );
    assert_eq!(shown(&read(store, &key).await), [(1, "a")]);
}

pub(crate) async fn states_beyond_their_number_are_refused(store: &Shared) {
    const MOST: usize = 1_000;
    let key = session_of("ada", "c");
    for scope in [StateScope::Context, StateScope::Caller, StateScope::Agent] {
        let last = read(store, &key).await.len() as u64;
        let set = |n: usize| change(scope, &format!("n{n}"), Some("1"));
        let full = changed(&key, last, (0..MOST).map(set).collect());
        assert_eq!(append(store, full).await, done(last));
        let before = states(store, &key).await;
        let mut more = said(&key, last, &["x"]);
        more.state = vec![set(0), set(MOST)];
        match store.append_session(more).await {
            Err(StoreError::TooMany { what, limit }) => {
                assert_eq!((what, limit), ("states", MOST));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(states(store, &key).await, before);
        assert_eq!(read(store, &key).await.len() as u64, last);
        // One for another, and the same ones again, are no more than before.
        let mut instead = said(&key, last, &["x"]);
        instead.state = vec![set(0), set(MOST), change(scope, "n1", None)];
        assert_eq!(append(store, instead).await, done(last + 1));
        assert_eq!(states(store, &key).await.len(), before.len());
    }
    // A new session that is refused is not begun.
    let other = session_of("ada", "another");
    let mut refused = said(&other, 0, &["x"]);
    refused.state = vec![change(StateScope::Agent, "one more", Some("1"))];
    let refused = store.append_session(refused).await;
    assert!(
        matches!(refused, Err(StoreError::TooMany { .. })),
        "{refused:?}"
    );
    assert!(!store.delete_session(&other).await.unwrap());
}

pub(crate) async fn old_sessions_go_the_oldest_first(store: &Shared) {
    let keys: Vec<_> = (0..10)
        .map(|n| session_of("ada", &format!("c{n}")))
        .collect();
    for (n, key) in keys.iter().enumerate() {
        let mut one = said(key, 0, &["x"]);
        one.at = at(n as i64 * 10);
        for scope in [StateScope::Context, StateScope::Caller] {
            one.state
                .push(change(scope, key.context.as_str(), Some("1")));
        }
        append(store, one).await;
    }
    // Whoever goes on with a session keeps it; a clock that goes back does not make it older.
    for (key, ms) in [(&keys[1], 1_000), (&keys[2], 1_000), (&keys[2], 0)] {
        let last = read(store, key).await.len() as u64;
        let mut more = said(key, last, &["y"]);
        more.at = at(ms);
        append(store, more).await;
    }
    let left = async || {
        let mut left = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            if !read(store, key).await.is_empty() {
                left.push(n);
            }
        }
        left
    };
    assert_eq!(store.prune_sessions(at(0), 9).await.unwrap(), 0);
    assert_eq!(store.prune_sessions(at(70), 0).await.unwrap(), 0);
    assert_eq!(store.prune_sessions(at(70), 2).await.unwrap(), 2);
    assert_eq!(left().await, [1, 2, 4, 5, 6, 7, 8, 9]);
    assert_eq!(store.prune_sessions(at(70), 9).await.unwrap(), 3);
    assert_eq!(store.prune_sessions(at(70), 9).await.unwrap(), 0);
    assert_eq!(left().await, [1, 2, 7, 8, 9]);
    let names = |states: Vec<(StateScope, String, String)>, scope| {
        let of_scope = states.into_iter().filter(|state| state.0 == scope);
        of_scope.map(|state| state.1).collect::<Vec<_>>()
    };
    let gone = states(store, &keys[0]).await;
    assert_eq!(names(gone.clone(), StateScope::Context), [""; 0]);
    assert_eq!(names(gone, StateScope::Caller).len(), 10);
    let kept = states(store, &keys[1]).await;
    assert_eq!(names(kept, StateScope::Context), ["c1"]);
}
