//! Who runs a task, and who takes over. A term of zero is over at once, one of an hour in no test.

use nuncio_protocol::TaskState;
use nuncio_store::{Appended, Claim, LeaseChange};

use super::Shared;
use crate::draft::{Draft, lapsed, lease, scope};

/// What `owner` gets, with the epochs; it is leased for an hour.
async fn claimed(store: &Shared, claim: Claim, owner: &str) -> Vec<(String, u64)> {
    let runs = store.claim_expired(lease(owner), claim, 10).await.unwrap();
    let mut runs: Vec<_> = runs
        .into_iter()
        .map(|run| (run.stored.task.id.to_string(), run.stored.head.epoch))
        .collect();
    runs.sort();
    runs
}

async fn expired(store: &Shared, owner: &str) -> Vec<(String, u64)> {
    claimed(store, Claim::Expired, owner).await
}

async fn owner_of(store: &Shared, task: &str) -> Option<String> {
    let stored = store.load(&scope("ada"), &task.into()).await.unwrap();
    stored.unwrap().head.owner.map(|owner| owner.to_string())
}

pub(crate) async fn a_live_lease_is_not_claimed(store: &Shared) {
    store
        .create(Draft::new("ada", "t", 0).create())
        .await
        .unwrap();
    assert!(expired(store, "second").await.is_empty());
}

pub(crate) async fn runs_of_the_agents_asked_for_are_claimed(store: &Shared) {
    for agent in ["one", "two", "three"] {
        let mut draft = Draft::new("ada", agent, 0);
        draft.scope.agent = agent.into();
        store.create(draft.create_lapsed()).await.unwrap();
        let mut orphan = Draft::new("ada", &format!("orphan of {agent}"), 0);
        orphan.scope.agent = agent.into();
        let mut orphan = orphan.create();
        orphan.lease = None;
        store.create(orphan).await.unwrap();
    }
    let of = |agents: &[&str]| Claim::ExpiredOf(agents.iter().map(|&agent| agent.into()).collect());
    let got = claimed(store, of(&["one", "nobody's", "three"]), "second").await;
    let got: Vec<_> = got.iter().map(|(task, _)| task.as_str()).collect();
    assert_eq!(got, ["one", "orphan of one", "orphan of three", "three"]);
    assert!(claimed(store, of(&[]), "third").await.is_empty());
    assert_eq!(expired(store, "third").await.len(), 2);
}

pub(crate) async fn an_expired_run_is_claimed_once(store: &Shared) {
    let mut submitted = Draft::new("ada", "submitted", 0);
    store.create(submitted.create_lapsed()).await.unwrap();
    let mut working = Draft::new("bob", "working", 0);
    working.status(TaskState::Working, 1).artifact("a", "x");
    store.create(working.create_lapsed()).await.unwrap();
    let mut orphan = Draft::new("cyd", "orphan", 0).create();
    orphan.lease = None;
    store.create(orphan).await.unwrap();

    let runs = store.claim_expired(lease("second"), Claim::Expired, 10);
    let runs = runs.await.unwrap();
    assert_eq!(runs.len(), 3);
    for run in &runs {
        let head = &run.stored.head;
        assert_eq!(head.owner.as_deref(), Some("second"));
        let orphan = run.stored.task.id.as_str() == "orphan";
        assert_eq!(head.epoch, if orphan { 1 } else { 2 });
        assert_eq!(
            head.attempt, 2,
            "each claim is a further attempt at the same message"
        );
        let stored = store.load(&run.stored.scope, &run.stored.task.id).await;
        let stored = stored.unwrap().unwrap();
        assert_eq!((&stored.head, &stored.task), (head, &run.stored.task));
    }
    let run = runs.iter().find(|run| run.stored.task.id == working.id());
    assert_eq!(*run.unwrap().stored.task, working.task);
    assert!(expired(store, "third").await.is_empty());
    let one = store.claim_expired(lapsed("third"), Claim::AllOthers, 1);
    assert_eq!(one.await.unwrap().len(), 1, "not more than asked for");
    let rest = store.claim_expired(lease("fourth"), Claim::Expired, 10);
    assert_eq!(rest.await.unwrap().len(), 1, "what was claimed for no time");
}

/// R11: whatever a clock says, a process does not take over what it runs itself.
pub(crate) async fn nobody_claims_its_own_runs(store: &Shared) {
    for id in ["a", "b"] {
        let new = Draft::new("ada", id, 0).create_lapsed();
        store.create(new).await.unwrap();
    }
    for claim in [Claim::Expired, Claim::AllOthers] {
        assert!(claimed(store, claim, "process").await.is_empty());
    }
    assert_eq!(expired(store, "second").await.len(), 2);
}

pub(crate) async fn a_sole_owner_claims_what_others_hold(store: &Shared) {
    store
        .create(Draft::new("ada", "theirs", 0).create())
        .await
        .unwrap();
    let mut mine = Draft::new("ada", "mine", 0).create();
    mine.lease = Some(lease("second"));
    store.create(mine).await.unwrap();
    let all = claimed(store, Claim::AllOthers, "second").await;
    assert_eq!(all, [("theirs".into(), 2)]);
    assert!(claimed(store, Claim::AllOthers, "second").await.is_empty());
}

pub(crate) async fn what_does_not_run_is_not_claimed(store: &Shared) {
    for state in [
        TaskState::InputRequired,
        TaskState::AuthRequired,
        TaskState::Completed,
    ] {
        let mut draft = Draft::new("ada", state.as_str(), 0);
        store.create(draft.create_lapsed()).await.unwrap();
        store.append(draft.status(state, 1).append()).await.unwrap();
    }
    assert!(claimed(store, Claim::AllOthers, "second").await.is_empty());
}

/// P3: what the old owner writes after a take-over changes nothing.
pub(crate) async fn an_old_run_is_fenced(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create_lapsed()).await.unwrap();
    assert_eq!(expired(store, "second").await, [("t".into(), 2)]);
    let mut old = draft.status(TaskState::Working, 2).append();
    old.epoch = Some(1);
    assert!(matches!(
        store.append(old.clone()).await.unwrap(),
        Appended::Conflict(head) if head.epoch == 2
    ));
    old.epoch = Some(2);
    assert_eq!(
        store.append(old).await.unwrap(),
        Appended::Done { epoch: 2 }
    );
    let mut rest = draft.status(TaskState::InputRequired, 3).append();
    rest.epoch = Some(2);
    store.append(rest).await.unwrap();
    let mut answer = draft.message("yes").status(TaskState::Working, 4).append();
    answer.lease = LeaseChange::Take(lease("third"));
    answer.turn = Some(answer.after + 1);
    assert_eq!(
        store.append(answer).await.unwrap(),
        Appended::Done { epoch: 3 }
    );
    let stored = store
        .load(&draft.scope, &draft.id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(stored.head.owner.as_deref(), Some("third"));
    assert_eq!(stored.head.attempt, 1, "another message, another count");
    assert_eq!(*stored.task, draft.task);
}

pub(crate) async fn renewing_prolongs_all_of_an_owner(store: &Shared) {
    for id in ["a", "b"] {
        let new = Draft::new("ada", id, 0).create_lapsed();
        store.create(new).await.unwrap();
    }
    let mut other = Draft::new("ada", "c", 0).create();
    other.lease = Some(lapsed("other"));
    store.create(other).await.unwrap();
    store.renew(lease("process")).await.unwrap();
    store.renew(lapsed("process")).await.unwrap();
    assert_eq!(
        expired(store, "second").await,
        [("c".into(), 2)],
        "prolonged, and never shortened"
    );
}

/// Who was away for too long has lost what another runs now, and keeps the rest.
pub(crate) async fn a_late_renewal_brings_nothing_back(store: &Shared) {
    for id in ["a", "b"] {
        let new = Draft::new("ada", id, 0).create_lapsed();
        store.create(new).await.unwrap();
    }
    let one = store.claim_expired(lapsed("second"), Claim::Expired, 1);
    let lost = one.await.unwrap()[0].stored.task.id.to_string();
    store.renew(lease("process")).await.unwrap();
    assert_eq!(owner_of(store, &lost).await.as_deref(), Some("second"));
    assert_eq!(expired(store, "third").await, [(lost, 3)]);
}

/// A process that has lost an answer can find what it holds.
pub(crate) async fn a_process_can_ask_what_it_holds(store: &Shared) {
    let mut running = Draft::new("ada", "running", 0);
    store.create(running.create()).await.unwrap();
    let mut other = Draft::new("ada", "other", 0).create();
    other.lease = Some(lease("other"));
    store.create(other).await.unwrap();
    let mut ended = Draft::new("bob", "ended", 0);
    store.create(ended.create()).await.unwrap();
    store.append(ended.complete(1)).await.unwrap();
    let lapsed = Draft::new("bob", "lapsed", 0).create_lapsed();
    store.create(lapsed).await.unwrap();
    let mut held = store.held("process").await.unwrap();
    held.sort();
    let held: Vec<_> = held
        .iter()
        .map(|run| (run.scope.caller.as_str(), run.task.as_str(), run.epoch))
        .collect();
    assert_eq!(held, [("ada", "running", 1), ("bob", "lapsed", 1)]);
    assert!(store.held("nobody").await.unwrap().is_empty());
}

pub(crate) async fn releasing_gives_all_up(store: &Shared) {
    for id in ["a", "b"] {
        store
            .create(Draft::new("ada", id, 0).create())
            .await
            .unwrap();
    }
    let mut other = Draft::new("ada", "c", 0).create();
    other.lease = Some(lease("other"));
    store.create(other).await.unwrap();
    store.renew(lease("process")).await.unwrap();
    store.release_all("process").await.unwrap();
    assert_eq!(owner_of(store, "a").await, None);
    let free = [("a".into(), 2), ("b".into(), 2)];
    assert_eq!(expired(store, "second").await, free);
}
