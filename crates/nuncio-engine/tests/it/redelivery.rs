//! What an operator sees of deliveries, and does about them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::Duration;

use nuncio_engine::{Settings, Webhooks};
use nuncio_protocol::{Clock as _, Task, Timestamp};
use nuncio_store::{
    CallOutcome, Delivery, DeliveryFilter, Disabled, MemoryStore, Redelivery, Store, WebhookId,
};
use nuncio_testkit::{Answer, Bed, Behaviour, Notified, NumberedIds, Receiver, TestAgent};

use crate::delivery::{Delivering, bodies, has_ended, quick, sorted, told};
use crate::push::{config, create};

fn id(task: &Task, config: &str) -> WebhookId {
    WebhookId {
        task: task.id.clone(),
        config: config.into(),
    }
}

/// Waits until a webhook stands as wanted.
async fn until(
    webhooks: &Webhooks,
    id: &WebhookId,
    wanted: impl Fn(&Delivery) -> bool,
) -> Delivery {
    let found = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            let delivery = webhooks.get(id).await.unwrap().unwrap();
            if wanted(&delivery) {
                return delivery;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    found.await.unwrap()
}

/// A receiver that answers with a status that may be changed.
async fn fickle(status: u16) -> (Receiver, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(status));
    let receiver = Receiver::answering({
        let status = Arc::clone(&status);
        move |_, _| Answer::Status(status.load(Ordering::SeqCst))
    })
    .await;
    (receiver, status)
}

fn of(id: &WebhookId, position: Option<u64>) -> Redelivery {
    Redelivery {
        webhook: Some(id.clone()),
        position,
        since: None,
    }
}

fn ids(calls: &[Notified]) -> Vec<&str> {
    calls.iter().map(|call| call.header("webhook-id")).collect()
}

/// P6: what is refused or fails for 72 hours is a dead letter, and is delivered again on demand,
/// with its old id and in order.
#[tokio::test]
async fn p6_dead_letters_are_delivered_again_in_order() {
    let (receiver, status) = fickle(404).await;
    let on = Delivering::new(Behaviour::Chunk, quick());
    let webhooks = on.bed.engine.webhooks();
    let task = on.send_with("m1", "w", &receiver.url("/")).await;
    let id = id(&task, "w");
    let last = on.bed.store_position(&task.id).await;
    let dead = until(&webhooks, &id, |one| one.dead == last).await;
    assert_eq!((dead.cursor, dead.requested), (last, 0));
    let letters = webhooks.dead_letters(&id, 99).await.unwrap();
    let positions: Vec<u64> = letters.iter().map(|letter| letter.position).collect();
    assert_eq!(positions, (1..=last).collect::<Vec<_>>());
    assert_eq!((letters[0].attempts, letters[0].cause.as_str()), (5, "404"));
    assert_eq!(letters[0].given_up, on.bed.clock.now());
    let trouble = DeliveryFilter {
        in_trouble: true,
        ..DeliveryFilter::default()
    };
    assert_eq!(webhooks.list(&trouble, None, 9).await.unwrap().len(), 1);

    // Still refused: one attempt, and it stays where it is.
    assert_eq!(webhooks.redeliver(&of(&id, Some(2))).await.unwrap(), 1);
    let before = receiver.calls().len();
    let calls = receiver.until(|calls| calls.len() > before).await;
    assert!(calls[before].header("webhook-id").ends_with(".2"));
    until(&webhooks, &id, |one| one.requested == 0).await;
    let letters = webhooks.dead_letters(&id, 99).await.unwrap();
    assert_eq!(
        (letters.len() as u64, letters[1].attempts),
        (last, 1 + letters[2].attempts)
    );

    status.store(200, Ordering::SeqCst);
    receiver.forget();
    assert_eq!(webhooks.redeliver(&of(&id, None)).await.unwrap(), last);
    until(&webhooks, &id, |one| one.dead == 0).await;
    let calls = receiver.calls();
    assert_eq!(
        sorted(bodies(&calls)),
        sorted(told(&on.bed, &task.id, 0).await)
    );
    let expected: Vec<String> = (1..=last).map(|n| format!("{}.{n}", task.id)).collect();
    assert_eq!(ids(&calls), expected);
    let healthy = webhooks.list(&trouble, None, 9).await.unwrap();
    assert_eq!(healthy.len(), 0, "nothing is wrong any more");
    on.stop().await;
}

/// P6: everything that was given up since a time, of all webhooks.
#[tokio::test]
async fn what_was_given_up_since_a_time_is_recovered() {
    let (receiver, status) = fickle(404).await;
    let on = Delivering::new(Behaviour::Echo, quick());
    let webhooks = on.bed.engine.webhooks();
    let mut tasks = Vec::new();
    for n in 0..3 {
        let task = on
            .send_with(&format!("m{n}"), "w", &receiver.url("/"))
            .await;
        let last = on.bed.store_position(&task.id).await;
        until(&webhooks, &id(&task, "w"), |one| one.dead == last).await;
        on.bed.clock.advance(60_000);
        tasks.push((task, last));
    }
    status.store(200, Ordering::SeqCst);
    receiver.forget();
    let since = Timestamp::from_unix_ms(on.bed.clock.now().unix_ms() - 150_000);
    let which = Redelivery {
        since: Some(since),
        ..Redelivery::default()
    };
    assert_eq!(
        webhooks.redeliver(&which).await.unwrap(),
        tasks[1].1 + tasks[2].1
    );
    for (task, _) in &tasks[1..] {
        until(&webhooks, &id(task, "w"), |one| one.dead == 0).await;
    }
    let oldest = webhooks.get(&id(&tasks[0].0, "w")).await.unwrap().unwrap();
    assert_eq!((oldest.dead, oldest.requested), (tasks[0].1, 0));
    assert_eq!(receiver.calls().len() as u64, tasks[1].1 + tasks[2].1);
    on.stop().await;
}

/// A dead letter whose receiver fails is tried on, and events that come later are told after it.
#[tokio::test]
async fn a_letter_that_fails_again_is_tried_on() {
    let (receiver, status) = fickle(404).await;
    let on = Delivering::new(Behaviour::Ask(1), quick());
    let webhooks = on.bed.engine.webhooks();
    let task = on.send_with("m1", "w", &receiver.url("/")).await;
    let id = id(&task, "w");
    let last = on.bed.store_position(&task.id).await;
    until(&webhooks, &id, |one| one.dead == last).await;
    status.store(503, Ordering::SeqCst);
    webhooks.redeliver(&of(&id, Some(1))).await.unwrap();
    let before = receiver.calls().len();
    receiver.until(|calls| calls.len() > before + 3).await;
    on.bed.answer("m2", &task, "blue").await;
    receiver.forget();
    status.store(200, Ordering::SeqCst);
    let calls = receiver.until(has_ended).await;
    assert!(calls[0].header("webhook-id").ends_with(".1"));
    let left = until(&webhooks, &id, |one| one.cursor > last).await;
    assert_eq!((left.dead, left.requested), (last - 1, 0));
    on.stop().await;
}

/// R13, P6: 5 days of only failures disable a webhook; its events wait until somebody enables it.
#[tokio::test]
async fn days_of_only_failures_disable_a_webhook() {
    let (receiver, status) = fickle(500).await;
    let mut settings = quick();
    settings.disable_after = Duration::from_millis(50);
    let on = Delivering::new(Behaviour::Ask(1), settings);
    let webhooks = on.bed.engine.webhooks();
    let task = on.send_with("m1", "w", &receiver.url("/")).await;
    let id = id(&task, "w");
    let disabled = until(&webhooks, &id, |one| one.state.disabled.is_some()).await;
    assert_eq!(disabled.state.disabled, Some(Disabled::Failing));
    assert_eq!(
        (disabled.cursor, disabled.dead),
        (0, 0),
        "nothing is given up"
    );
    let calls = receiver.calls().len();
    status.store(200, Ordering::SeqCst);
    on.bed.answer("m2", &task, "blue").await;
    // Another webhook of the task has had everything; the disabled one nothing.
    let good = Receiver::start().await;
    create(&on.bed, config(Some(&task), "x", &good.url("/")))
        .await
        .unwrap();
    assert_eq!(receiver.calls().len(), calls);
    assert_eq!(webhooks.redeliver(&of(&id, None)).await.unwrap(), 0);
    let all = receiver.until(has_ended).await;
    let log = told(&on.bed, &task.id, 0).await;
    assert_eq!(sorted(bodies(&all[calls..])), sorted(log));
    until(&webhooks, &id, |one| one.state.failing_since.is_none()).await;
    on.stop().await;
}

/// P6: every call is in the log, with what came of it, and in bounds.
#[tokio::test]
async fn every_call_is_logged_within_bounds() {
    let receiver = Receiver::answering(|n, _| match n {
        0 => Answer::Status(500),
        1 => Answer::Garbage,
        2 => Answer::Hang,
        _ => Answer::Status(204),
    })
    .await;
    let mut settings = quick();
    settings.call_timeout = Duration::from_millis(100);
    settings.keep_calls = 5;
    let on = Delivering::new(Behaviour::Chunk, settings);
    let task = on.send_with("m1", "w", &receiver.url("/")).await;
    let calls = receiver.until(has_ended).await;
    let bed = on.stop().await;
    let webhooks = bed.engine.webhooks();
    let mut logged = webhooks.calls(&id(&task, "w"), 99).await.unwrap();
    assert_eq!(logged.len(), 5.min(calls.len()), "the newest five");
    logged.reverse();
    let called: Vec<&str> = ids(&calls);
    let in_log: Vec<&str> = logged.iter().map(|call| call.message_id.as_str()).collect();
    assert_eq!(in_log, called[called.len() - 5..]);
    assert!(
        logged
            .iter()
            .all(|call| call.outcome == CallOutcome::Answered(204))
    );
    let last = logged.last().unwrap();
    assert_eq!((last.first, last.attempt), (last.last, 1));
    drop(bed);

    let receiver = Receiver::answering(|n, _| match n {
        0 => Answer::Status(500),
        1 => Answer::Garbage,
        2 => Answer::Hang,
        _ => Answer::Status(204),
    })
    .await;
    let mut settings = quick();
    settings.call_timeout = Duration::from_millis(100);
    let on = Delivering::new(Behaviour::Echo, settings);
    let task = on.send_with("m1", "w", &receiver.url("/")).await;
    receiver.until(has_ended).await;
    let bed = on.stop().await;
    let mut logged = bed
        .engine
        .webhooks()
        .calls(&id(&task, "w"), 99)
        .await
        .unwrap();
    logged.reverse();
    let outcomes: Vec<CallOutcome> = logged.iter().take(4).map(|call| call.outcome).collect();
    let expected = [
        CallOutcome::Answered(500),
        CallOutcome::Broken,
        CallOutcome::TimedOut,
        CallOutcome::Answered(204),
    ];
    assert_eq!(outcomes, expected);
    let attempts: Vec<u32> = logged.iter().take(5).map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 1]);
}

/// A call for trying out tells the task as it stands, and changes nothing.
#[tokio::test]
async fn a_webhook_is_tried_out() {
    let (receiver, status) = fickle(404).await;
    let on = Delivering::new(Behaviour::Echo, quick());
    let webhooks = on.bed.engine.webhooks();
    let task = on.send_with("m1", "w", &receiver.url("/")).await;
    let id = id(&task, "w");
    let last = on.bed.store_position(&task.id).await;
    let before = until(&webhooks, &id, |one| one.dead == last).await;
    let refused = webhooks.test(&id).await.unwrap().unwrap();
    assert_eq!(refused.outcome, CallOutcome::Answered(404));
    status.store(202, Ordering::SeqCst);
    let tried = webhooks.test(&id).await.unwrap().unwrap();
    assert!(tried.outcome.is_taken());
    assert!(tried.message_id.starts_with(&format!("{}.test-", task.id)));
    let calls = receiver.calls();
    let call = calls.last().unwrap();
    assert_eq!(call.header("webhook-id"), tried.message_id);
    assert_eq!(call.body["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(webhooks.get(&id).await.unwrap().unwrap(), before);
    let nobody = WebhookId {
        config: "x".into(),
        ..id
    };
    assert_eq!(webhooks.test(&nobody).await.unwrap(), None);
    on.stop().await;
}

/// P6: the schedule and the 72 hours outlive the process; a new one does not begin at the beginning.
#[tokio::test]
async fn a_new_process_waits_as_the_old_one_would_have() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let ids = Arc::<NumberedIds>::default();
    let bed = || {
        let agent = TestAgent::new(Behaviour::Echo);
        let (store, ids) = (Arc::clone(&store), Arc::clone(&ids));
        Bed::at(store, agent, Settings::default(), Arc::default(), ids)
    };
    let works = Arc::new(AtomicBool::new(false));
    let receiver = Receiver::answering({
        let works = Arc::clone(&works);
        move |_, _| {
            Answer::Status(if works.load(Ordering::SeqCst) {
                200
            } else {
                503
            })
        }
    })
    .await;
    let mut settings = quick();
    let minute = Duration::from_secs(60);
    settings.retry_delays = vec![Duration::from_millis(2), Duration::from_millis(2), minute];
    let on = Delivering::with(bed(), settings.clone());
    let task = on.send_with("m1", "w", &receiver.url("/")).await;
    let id = id(&task, "w");
    let old = until(&on.bed.engine.webhooks(), &id, |one| {
        one.state.attempts == 3
    })
    .await;
    let stopped = on.stop().await;
    let began = stopped.clock.now();
    assert_eq!(old.state.last_call, Some(began));
    let next = old.state.next_call.unwrap().unix_ms() - began.unix_ms();
    assert!((48_000..=72_000).contains(&next), "{next}");

    // At once, it would be too early; a minute and more later it is time.
    works.store(true, Ordering::SeqCst);
    let on = Delivering::with(bed(), settings.clone());
    let other = on.send_with("m2", "w", &receiver.url("/other")).await;
    receiver.until(has_ended).await;
    let first = |calls: &[Notified]| calls.iter().filter(|call| call.path == "/").count();
    assert_eq!(first(&receiver.calls()), 3, "not called before its time");
    assert_ne!(other.id, task.id);
    on.stop().await;
    receiver.forget();
    let late = bed();
    late.clock.advance(80_000);
    let on = Delivering::with(late, settings);
    let calls = receiver.until(has_ended).await;
    assert_eq!(first(&calls) as u64, on.bed.store_position(&task.id).await);
    on.stop().await;
}
