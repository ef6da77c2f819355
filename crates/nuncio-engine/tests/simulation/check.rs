//! What must be true whatever has happened.

use std::collections::{BTreeMap, BTreeSet};

use nuncio_protocol::{Event, StreamResponse, Task, TaskState};
use nuncio_store::Scope;

use crate::client::Told;
use crate::world::{AGENTS, World};

/// Looks at every task; gives the logs as text.
pub(crate) async fn promises_are_kept(world: &World, told: &[Told]) -> Vec<String> {
    let ids: BTreeSet<_> = told.iter().map(|told| &told.task).collect();
    assert_eq!(ids.len(), told.len(), "every key has a task of its own");
    let mut stored = 0;
    for agent in 0..AGENTS.len() {
        let page = world
            .database()
            .list(&scope(agent), &Default::default(), None, 1_000)
            .await;
        stored += page.unwrap().tasks.len();
    }
    assert_eq!(stored, told.len(), "no key made a second task (P2)");
    let mut logs = Vec::new();
    for told in told {
        let log = log(world, told).await;
        one_end(&log);
        the_log_is_the_task(world, told, &log).await;
        attempts_follow_one_another(&log);
        who_has_lost_a_task_writes_nothing(world, told, &log);
        what_was_taken_is_answered(told, &log);
        messages_are_taken_once(told, &log);
        the_reader_missed_nothing(told, &log);
        logs.extend(log.iter().map(|event| event.json().to_owned()));
    }
    logs
}

fn scope(which: usize) -> Scope {
    Scope {
        workspace: "default".into(),
        agent: AGENTS[which].into(),
        caller: "ada".into(),
    }
}

async fn log(world: &World, told: &Told) -> Vec<Event> {
    let scope = scope(told.which);
    let read = world.database().events(&scope, &told.task, 0, 10_000).await;
    let log = read.unwrap();
    let positions: Vec<_> = log.iter().filter_map(|event| event.position).collect();
    let gapless: Vec<_> = (1..=log.len() as u64).collect();
    assert_eq!(positions, gapless, "positions have no gap (P4)");
    log
}

/// P3: exactly one terminal state, the last thing that happened.
fn one_end(log: &[Event]) {
    let ends: Vec<_> = log
        .iter()
        .filter(|event| event.state().is_some_and(TaskState::is_terminal))
        .filter_map(|event| event.position)
        .collect();
    assert_eq!(ends, [log.len() as u64], "one end, and nothing after it");
}

/// P4: the snapshot is the fold of the log, and a cancel that was confirmed is what happened.
async fn the_log_is_the_task(world: &World, told: &Told, log: &[Event]) {
    let loaded = world.database().load(&scope(told.which), &told.task).await;
    let stored = loaded.unwrap().unwrap();
    let mut folded = Task::default();
    for event in log {
        match event.response() {
            StreamResponse::Task(task) => folded = task.clone(),
            other => folded.apply(other).unwrap(),
        }
    }
    assert_eq!(*stored.task, folded);
    if told.canceled {
        assert_eq!(folded.status.state, TaskState::Canceled);
    }
}

/// A step of an attempt, as the agent has told it.
#[derive(Debug)]
struct Step {
    message: String,
    number: u64,
    attempt: u64,
}

fn step(event: &Event) -> Option<Step> {
    let StreamResponse::ArtifactUpdate(update) = event.response() else {
        return None;
    };
    let text = update.artifact.text();
    let mut words = text.split(' ');
    Some(Step {
        message: words.next()?.to_owned(),
        number: words.next()?.parse().ok()?,
        attempt: words.next()?.parse().ok()?,
    })
}

/// P3: attempts are numbered, and none writes after a later one has.
fn attempts_follow_one_another(log: &[Event]) {
    let mut newest: BTreeMap<String, Step> = BTreeMap::new();
    for step in log.iter().filter_map(step) {
        if let Some(known) = newest.get(&step.message) {
            let next = step.attempt == known.attempt && step.number == known.number + 1;
            assert!(
                next || step.attempt > known.attempt,
                "{step:?} after {known:?}"
            );
        }
        newest.insert(step.message.clone(), step);
    }
}

/// R10: from the moment of a take-over on, nothing of the attempt before it is written.
fn who_has_lost_a_task_writes_nothing(world: &World, told: &Told, log: &[Event]) {
    for claim in world
        .claims()
        .iter()
        .filter(|claim| claim.task == told.task)
    {
        let message = message_at(log, claim.turn);
        for event in log.iter().filter(|event| event.position > Some(claim.last)) {
            if let Some(step) = step(event).filter(|step| step.message == message) {
                assert!(step.attempt >= claim.attempt, "{step:?} after {claim:?}");
            }
        }
    }
}

/// The message at a position of the log.
fn message_at(log: &[Event], position: u64) -> String {
    match log[position as usize - 1].response() {
        StreamResponse::Task(task) => task.history[0].message_id.to_string(),
        StreamResponse::Message(message) => message.message_id.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Every message of a completed task has had its steps.
fn what_was_taken_is_answered(told: &Told, log: &[Event]) {
    if log.last().and_then(Event::state) != Some(TaskState::Completed) {
        return;
    }
    for message in &told.taken {
        let mut steps = log.iter().filter_map(step);
        assert!(
            steps.any(|step| step.message == *message),
            "{message} is not answered"
        );
    }
}

/// P2: each message that was taken stands in the log once.
fn messages_are_taken_once(told: &Told, log: &[Event]) {
    let mut seen = Vec::new();
    for event in log {
        match event.response() {
            StreamResponse::Task(task) => {
                seen.extend(task.history.iter().map(|m| m.message_id.to_string()));
            }
            StreamResponse::Message(message) => seen.push(message.message_id.to_string()),
            _ => {}
        }
    }
    assert_eq!(seen, told.taken);
}

/// P5: what a reader got is the log from where it began, once and in order.
fn the_reader_missed_nothing(told: &Told, log: &[Event]) {
    let Some(first) = told.heads.first() else {
        return;
    };
    let got: Vec<_> = told.events.iter().map(|e| (e.position, e.json())).collect();
    let expected: Vec<_> = log
        .iter()
        .filter(|event| event.position > Some(*first))
        .filter(|event| !matches!(event.response(), StreamResponse::Message(_)))
        .map(|event| (event.position, event.json()))
        .collect();
    assert_eq!(got, expected);
}
