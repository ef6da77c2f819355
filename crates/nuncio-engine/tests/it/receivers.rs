//! Receivers as they are, and a sender that is killed again and again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nuncio_engine::{DeliverySettings, Settings};
use nuncio_store::{DeliveryFilter, SqliteOptions, SqliteStore, Store, StoreError};
use nuncio_testkit::{
    Answer, Bed, Behaviour, FixedClock, Notified, NumberedIds, Receiver, TestAgent,
};
use parking_lot::Mutex;
use tempfile::TempDir;

use crate::delivery::{Delivering, bodies, has_ended, quick, slow, sorted, told};
use crate::push::{config, create};

const KILLS: usize = 20;

/// Opens a store as soon as the one before has let it go.
async fn open(path: &Path) -> Arc<dyn Store> {
    let opened = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            match SqliteStore::open(path, SqliteOptions::default()) {
                Ok(store) => return Arc::new(store),
                Err(StoreError::Refused(_)) => tokio::time::sleep(Duration::from_millis(2)).await,
                Err(error) => panic!("{error}"),
            }
        }
    });
    opened.await.unwrap()
}

fn hasty() -> DeliverySettings {
    let mut settings = quick();
    settings.call_timeout = Duration::from_millis(60);
    settings.retry_delays = vec![Duration::from_millis(1)];
    settings
}

/// A call and what it was answered with.
type Answered = Arc<Mutex<Vec<(Notified, Answer)>>>;

/// Half of the calls fail, in each of the ways in which calls fail; once it is good, none does.
async fn moody(clock: &Arc<FixedClock>, good: &Arc<AtomicBool>) -> (Receiver, Answered) {
    let answered: Answered = Arc::default();
    let (clock, good) = (Arc::clone(clock), Arc::clone(good));
    let receiver = Receiver::answering({
        let answered = Arc::clone(&answered);
        move |n, call| {
            clock.advance(1_000);
            let answer = match n % 12 {
                _ if good.load(Ordering::SeqCst) => Answer::Status(200),
                0 | 4 => Answer::Status(500),
                2 => Answer::RetryAfter(429, "0".to_owned()),
                6 => Answer::Hang,
                8 => Answer::Garbage,
                10 => Answer::RetryAfter(503, "Sun, 06 Nov 1994 08:49:37 GMT".to_owned()),
                5 => Answer::Endless(200),
                _ => Answer::Status(204),
            };
            answered.lock().push((call.clone(), answer.clone()));
            answer
        }
    })
    .await;
    (receiver, answered)
}

fn position(call: &Notified) -> u64 {
    let id = call.header("webhook-id");
    id.rsplit('.').next().unwrap().parse().unwrap()
}

/// R13, P6: 50 % errors, hangs, 429, slow bodies and broken answers, and a sender that is dropped
/// 20 times in the middle of it: every event at least once, in order, with one id and one body,
/// and a fresh time for each attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r13_every_event_arrives_in_order_whatever_happens() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("nuncio.db");
    let (clock, ids) = (Arc::<FixedClock>::default(), Arc::<NumberedIds>::default());
    let good = Arc::new(AtomicBool::new(false));
    let (receiver, answered) = moody(&clock, &good).await;
    let start = async || {
        let agent = TestAgent::new(Behaviour::Chunk);
        let (store, settings) = (open(&path).await, Settings::default());
        Bed::at(store, agent, settings, Arc::clone(&clock), Arc::clone(&ids))
    };
    let mut tasks = Vec::new();
    for round in 0..KILLS {
        let on = Delivering::with(start().await, hasty());
        let before = answered.lock().len();
        tasks.push(
            on.send_with(&format!("m{round}"), "w", &receiver.url("/"))
                .await,
        );
        let seen = before + 3 + round % 5;
        receiver.until(|calls| calls.len() >= seen).await;
        on.running.abort();
        let _ = on.running.await;
    }
    good.store(true, Ordering::SeqCst);
    let on = Delivering::with(start().await, hasty());
    for task in &tasks {
        let last = on.bed.store_position(&task.id).await;
        let id = format!("{}.{last}", task.id);
        receiver
            .until(|calls| calls.iter().any(|call| call.header("webhook-id") == id))
            .await;
    }
    let bed = on.stop().await;

    let mut by_task: BTreeMap<String, Vec<(Notified, Answer)>> = BTreeMap::new();
    for (call, answer) in answered.lock().iter() {
        let id = call.header("webhook-id");
        let task = id[..id.rfind('.').unwrap()].to_owned();
        by_task
            .entry(task)
            .or_default()
            .push((call.clone(), answer.clone()));
    }
    let mut repeated = 0;
    for task in &tasks {
        let calls = &by_task[task.id.as_str()];
        let log = told(&bed, &task.id, 0).await;
        let mut taken: Vec<Notified> = Vec::new();
        for pair in calls.windows(2) {
            let [before, after] = [position(&pair[0].0), position(&pair[1].0)];
            assert!(
                after == before || after == before + 1,
                "{before} then {after}"
            );
            let was_taken = matches!(pair[0].1, Answer::Status(200 | 204) | Answer::Endless(200));
            assert!(
                was_taken || after == before,
                "{after} before {before} was taken"
            );
            let time = |call: &Notified| call.header("webhook-timestamp").to_owned();
            if after == before {
                repeated += 1;
                assert_eq!(pair[0].0.raw, pair[1].0.raw);
                assert_ne!(time(&pair[0].0), time(&pair[1].0), "a fresh time");
            }
        }
        for (call, _) in calls {
            if taken
                .last()
                .is_none_or(|last| position(last) != position(call))
            {
                taken.push(call.clone());
            }
        }
        assert_eq!(sorted(bodies(&taken)), sorted(log));
    }
    assert!(repeated > KILLS, "{repeated} repetitions");
}

/// R13: a receiver whose TLS does not work is one that fails; what it has missed comes later.
#[tokio::test]
async fn r13_tls_errors_are_failures_like_others() {
    let receiver = Receiver::start().await;
    let on = Delivering::new(Behaviour::Echo, hasty());
    let https = receiver.url("/").replace("http://", "https://");
    let task = on.send_with("m1", "w", &https).await;
    let webhooks = on.bed.engine.webhooks();
    let id = nuncio_store::WebhookId {
        task: task.id.clone(),
        config: "w".into(),
    };
    loop {
        let delivery = webhooks.get(&id).await.unwrap().unwrap();
        if delivery.state.attempts >= 3 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(receiver.calls().is_empty());
    create(&on.bed, config(Some(&task), "w", &receiver.url("/")))
        .await
        .unwrap();
    let calls = receiver.until(has_ended).await;
    assert_eq!(
        sorted(bodies(&calls)),
        sorted(told(&on.bed, &task.id, 0).await)
    );
    on.stop().await;
}

/// S06: a host that fails for everybody gets one call at a time, and others are not held up.
#[tokio::test]
async fn s06_a_host_that_fails_is_probed_by_one_call_at_a_time() {
    let hanging = Arc::new(AtomicBool::new(false));
    let receiver = Receiver::answering({
        let hanging = Arc::clone(&hanging);
        move |_, _| match hanging.load(Ordering::SeqCst) {
            true => Answer::Hang,
            false => Answer::Status(500),
        }
    })
    .await;
    let good = Receiver::start().await;
    let mut settings = slow();
    settings.stop_grace = Duration::ZERO;
    let broken = settings.break_after as usize;
    let on = Delivering::new(Behaviour::Echo, settings);
    for n in 0..broken {
        on.send_with(&format!("m{n}"), "w", &receiver.url("/"))
            .await;
        receiver.until(|calls| calls.len() == n + 1).await;
    }
    let webhooks = on.bed.engine.webhooks();
    let filter = DeliveryFilter {
        in_trouble: true,
        ..DeliveryFilter::default()
    };
    // The last answer has been taken in, too.
    while webhooks.list(&filter, None, 99).await.unwrap().len() < broken {
        tokio::task::yield_now().await;
    }
    hanging.store(true, Ordering::SeqCst);
    for n in 0..20 {
        on.send_with(&format!("n{n}"), "w", &receiver.url("/"))
            .await;
    }
    receiver.until(|calls| calls.len() > broken).await;
    on.send_with("good", "w", &good.url("/")).await;
    good.until(has_ended).await;
    assert_eq!(
        receiver.calls().len(),
        broken + 1,
        "eight, if it were not for its failures"
    );
    on.stop().await;
}
