//! Deliveries through the real binary while everything goes wrong that can.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use nuncio_engine::SystemClock;
use nuncio_protocol::Clock as _;
use nuncio_testkit::{Answer, Notified, Receiver};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::push::{config, push, send, shown, until};
use crate::report::Report;
use crate::support::{Server, exchange};

const KILLS: usize = 20;

/// A runtime for receivers, which go on while the test waits for something else.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

/// A call, with when it came by the wall clock, in seconds, and what it was answered.
#[derive(Clone)]
struct Taken {
    call: Notified,
    at: i64,
    answer: Answer,
}

/// A receiver that fails half of its calls in each way there is, until it is good.
struct Moody {
    receiver: Receiver,
    good: Arc<AtomicBool>,
    calls: Arc<Mutex<Vec<Taken>>>,
}

impl Moody {
    async fn start() -> Self {
        let good = Arc::<AtomicBool>::default();
        let calls = Arc::<Mutex<Vec<Taken>>>::default();
        let receiver = Receiver::answering({
            let (good, calls) = (Arc::clone(&good), Arc::clone(&calls));
            move |n, call| {
                let at = SystemClock.now().unix_ms() / 1_000;
                let mut calls = calls.lock().unwrap();
                let again = calls.iter().any(|one| id(&one.call) == id(call));
                let answer = match good.load(Ordering::SeqCst) {
                    true => Answer::Status(200),
                    false if call.path == "/gone" => Answer::Status(410),
                    false => answer(n, again),
                };
                calls.push(Taken {
                    call: call.clone(),
                    at,
                    answer: answer.clone(),
                });
                answer
            }
        });
        Self {
            receiver: receiver.await,
            good,
            calls,
        }
    }

    fn calls_of(&self, task: &str) -> Vec<Taken> {
        let calls = self.calls.lock().unwrap();
        let of_task = |one: &&Taken| split(&one.call).0 == task;
        calls.iter().filter(of_task).cloned().collect()
    }

    fn count(&self) -> usize {
        self.calls.lock().unwrap().len()
    }
}

/// Half of the answers are failures. Those after which a sender waits long by itself are for an
/// event that comes for the first time, so that the test ends today.
fn answer(n: usize, again: bool) -> Answer {
    let at_once = |status| Answer::RetryAfter(status, "0".to_owned());
    match n % 12 {
        0 if !again => Answer::Hang,
        6 if !again => Answer::Garbage,
        10 if !again => Answer::Status(500),
        0 | 6 | 10 => at_once(500),
        2 | 4 => at_once(429),
        8 => Answer::RetryAfter(503, "Sun, 06 Nov 1994 08:49:37 GMT".to_owned()),
        5 => Answer::Endless(200),
        _ => Answer::Status(204),
    }
}

fn id(call: &Notified) -> &str {
    call.header("webhook-id")
}

/// The task and the position that a call is about.
pub(crate) fn split(call: &Notified) -> (&str, u64) {
    let (task, position) = id(call).rsplit_once('.').unwrap();
    (task, position.parse().unwrap())
}

pub(crate) fn has_ended(call: &Notified) -> bool {
    call.body["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
        || call.body["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
}

fn restart(server: Server) -> Server {
    let folder = server.crash();
    let path = folder.path().join("nuncio.toml");
    Server::start_in(folder, &["--config".as_ref(), path.as_os_str()])
}

/// R13, P6: 50 % errors, hangs, 429, 503, broken answers, slow bodies, a 410 and an address without
/// TLS, and a server that is killed 20 times in the middle of it: every event arrives, in order, with
/// one id and one body, with the time of each attempt, and is repeated only if it was not taken, or
/// if the server was killed before it knew.
#[test]
fn r13_every_event_arrives_in_order_through_failures_and_kills() {
    let mut report = Report::new("webhooks", "R13");
    let runtime = runtime();
    let moody = runtime.block_on(Moody::start());
    let mut server = Server::configured(&config("timeout_seconds = 1"));
    let gone = json!({"id": "w", "url": moody.receiver.url("/gone")});
    let gone = send(&server, "gone", &gone);
    shown(&server, &gone, |one| one["disabled"] == "gone");
    let https = moody.receiver.url("/").replace("http:", "https:");
    let insecure = send(&server, "tls", &json!({"id": "w", "url": https}));
    let mut tasks = Vec::new();
    for round in 0..KILLS {
        let seen = moody.count() + 4 + round % 7;
        for n in 0..3 {
            let webhook = json!({"id": "w", "url": moody.receiver.url("/")});
            tasks.push(send(&server, &format!("{round}.{n}"), &webhook));
        }
        until(|| (moody.count() >= seen).then_some(()));
        server = restart(server);
    }
    assert_eq!(moody.calls_of(&gone).len(), 1, "disabled, over 20 restarts");
    let failing = shown(&server, &insecure, |one| one["state"] == "failing");
    assert_eq!(failing["delivered"], 0);

    moody.good.store(true, Ordering::SeqCst);
    push(&server, &["redeliver", &gone, "w"]).exits(0);
    let plain = json!({"id": "w", "url": moody.receiver.url("/")});
    let path = format!("/tasks/{insecure}/pushNotificationConfigs");
    let headers = [("Content-Type", "application/json")];
    let changed = exchange(&server.url, "POST", &path, &headers, &plain.to_string());
    assert_eq!(changed.json()["url"], plain["url"]);
    tasks.extend([gone, insecure]);
    let mut repeated = 0;
    for task in &tasks {
        shown(&server, task, |one| one["delivered"] == one["newest"]);
        repeated += in_order(&moody.calls_of(task));
    }
    assert!(repeated > KILLS, "{repeated} repetitions");
    let failures = moody
        .calls
        .lock()
        .unwrap()
        .iter()
        .filter(|one| !is_taken(one))
        .count();
    report.set("tasks", tasks.len());
    report.set("kills", KILLS);
    report.set("calls", moody.count());
    report.set("calls_that_failed", failures);
    report.set("calls_that_were_repetitions", repeated);
    report.passed();
}

fn is_taken(one: &Taken) -> bool {
    matches!(one.answer, Answer::Status(200 | 204) | Answer::Endless(200))
}

/// Looks whether the calls of one task are as they must be, and counts the repetitions.
fn in_order(calls: &[Taken]) -> usize {
    let positions: Vec<u64> = calls.iter().map(|one| split(&one.call).1).collect();
    assert_eq!(positions[0], 1, "{positions:?}");
    assert!(has_ended(&calls.last().unwrap().call), "{positions:?}");
    let mut repeated = 0;
    for pair in calls.windows(2) {
        let [before, after] = [&pair[0], &pair[1]];
        let time = |one: &Taken| -> i64 { one.call.header("webhook-timestamp").parse().unwrap() };
        assert!(
            time(before) <= before.at && before.at <= time(after),
            "a time of its own"
        );
        if id(&before.call) == id(&after.call) {
            repeated += 1;
            assert_eq!(before.call.raw, after.call.raw);
        } else {
            let [told, next] = [before, after].map(|one| split(&one.call).1);
            assert_eq!(next, told + 1, "{positions:?}");
            assert!(is_taken(before), "{told} is not taken yet: {positions:?}");
        }
    }
    let ids: BTreeSet<&str> = calls.iter().map(|one| id(&one.call)).collect();
    assert_eq!(ids.len(), calls.len() - repeated, "in order: {positions:?}");
    repeated
}
