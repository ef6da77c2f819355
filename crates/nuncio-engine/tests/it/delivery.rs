//! Events on their way to webhooks, to a receiver that really listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nuncio_engine::{DeliverySettings, Settings};
use nuncio_protocol::{
    AgentService as _, AuthenticationInfo, PushConfigId, StreamResponse, Task, TaskId, TaskState,
    Version, json, v0_3,
};
use nuncio_store::{MemoryOptions, MemoryStore, Store};
use nuncio_testkit::{
    Answer, Bed, Behaviour, FaultyStore, Notified, Receiver, TestAgent, call, collect, sent_task,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::push::{config, create, delete, deliverer, list, with_webhook};

/// Retries without much waiting.
pub(crate) fn quick() -> DeliverySettings {
    let mut settings = DeliverySettings::default();
    settings.retry_delays = vec![Duration::from_millis(2)];
    settings
}

/// Retries that no test lives to see.
pub(crate) fn slow() -> DeliverySettings {
    let mut settings = DeliverySettings::default();
    settings.retry_delays = vec![Duration::from_secs(3_600)];
    settings
}

/// A bed whose webhooks are called.
pub(crate) struct Delivering {
    pub(crate) bed: Bed,
    pub(crate) shutdown: CancellationToken,
    pub(crate) running: JoinHandle<()>,
}

impl Delivering {
    pub(crate) fn new(behaviour: Behaviour, settings: DeliverySettings) -> Self {
        let bed = Bed::new(behaviour);
        Self::with(bed, settings)
    }

    pub(crate) fn with(bed: Bed, settings: DeliverySettings) -> Self {
        let (deliverer, shutdown) = (deliverer(&bed, settings), CancellationToken::new());
        let running = tokio::spawn(deliverer.run(shutdown.clone()));
        Self {
            bed,
            shutdown,
            running,
        }
    }

    pub(crate) async fn stop(self) -> Bed {
        self.shutdown.cancel();
        self.running.await.unwrap();
        self.bed
    }

    pub(crate) async fn send_with(&self, id: &str, webhook: &str, url: &str) -> Task {
        let request = with_webhook(id, config(None, webhook, url));
        let sent = self.bed.agent.send_message(call("alice"), request).await;
        sent_task(sent.unwrap())
    }
}

/// What a webhook of 1.0 is to be told: the log without the user's messages.
pub(crate) async fn told(bed: &Bed, task: &TaskId, after: u64) -> Vec<String> {
    let scope = bed.scope("alice");
    let events = bed.store.events(&scope, task, after, 1_000).await;
    events
        .unwrap()
        .iter()
        .filter(|event| !matches!(event.response(), StreamResponse::Message(_)))
        .map(|event| event.json().to_owned())
        .collect()
}

pub(crate) fn bodies(calls: &[Notified]) -> Vec<String> {
    calls.iter().map(|call| json::encode(&call.body)).collect()
}

pub(crate) fn sorted(bodies: Vec<String>) -> Vec<serde_json::Value> {
    bodies
        .iter()
        .map(|body| serde_json::from_str(body).unwrap())
        .collect()
}

pub(crate) fn has_ended(calls: &[Notified]) -> bool {
    let state = |call: &Notified| call.body["statusUpdate"]["status"]["state"].clone();
    calls
        .last()
        .is_some_and(|call| state(call) == "TASK_STATE_COMPLETED")
}

pub(crate) async fn cursor(store: &dyn Store, bed: &Bed, task: &Task, id: &str) -> u64 {
    let scope = bed.scope("alice");
    let rows = store.push_configs(&scope, &task.id).await;
    let id: PushConfigId = id.into();
    let mut rows = rows.unwrap().unwrap().into_iter();
    let row = rows.find(|row| row.webhook.config.id.as_ref() == Some(&id));
    row.unwrap().cursor
}

/// BR-088, PUSH-01, PUSH-02, PUSH-08, PUSH-16: every event in order, the last one last.
#[tokio::test]
async fn br_088_every_event_is_told_in_order_however_the_task_began() {
    for way in ["blocking", "immediate", "stream"] {
        for agent in [
            TestAgent::new(Behaviour::Chunk),
            TestAgent::new(Behaviour::Chunk).resumable(),
        ] {
            let bed = Bed::with(agent, Settings::default());
            let (on, receiver) = (Delivering::with(bed, quick()), Receiver::start().await);
            let mut request = with_webhook("m1", config(None, "w", &receiver.url("/hook")));
            let agent = &on.bed.agent;
            if way == "stream" {
                let events = agent.send_streaming_message(call("alice"), request);
                collect(events.await.unwrap()).await;
            } else {
                let configuration = request.configuration.as_mut().unwrap();
                configuration.return_immediately = way == "immediate";
                agent.send_message(call("alice"), request).await.unwrap();
            }
            let calls = receiver.until(has_ended).await;
            let task = calls[0].body["task"]["id"].as_str().unwrap().into();
            let log = told(&on.bed, &task, 0).await;
            assert_eq!(sorted(bodies(&calls)), sorted(log), "{way}");
            for (call, position) in calls.iter().zip(1..) {
                assert_eq!(call.path, "/hook");
                assert_eq!(call.header("content-type"), "application/a2a+json");
                assert_eq!(call.header("a2a-version"), "1.0");
                assert_eq!(call.header("webhook-id"), format!("{task}.{position}"));
                assert_eq!(call.header("authorization"), "");
                assert_eq!(call.body.as_object().unwrap().len(), 1);
            }
            on.stop().await;
            assert_eq!(receiver.calls().len(), calls.len(), "nothing after the end");
        }
    }
}

/// PUSH-03, PUSH-04, TRAP-21.
#[tokio::test]
async fn credentials_and_token_go_along() {
    let (on, receiver) = (
        Delivering::new(Behaviour::Echo, quick()),
        Receiver::start().await,
    );
    let mut webhook = config(None, "w", &receiver.url("/"));
    let mut authentication = AuthenticationInfo::default();
    authentication.scheme = "bEarer".to_owned();
    authentication.credentials = Some("abc".to_owned());
    webhook.authentication = Some(authentication);
    webhook.token = Some("tok".to_owned());
    let request = with_webhook("m1", webhook);
    on.bed
        .agent
        .send_message(call("alice"), request)
        .await
        .unwrap();
    for call in receiver.until(has_ended).await {
        assert_eq!(call.header("authorization"), "bEarer abc");
        assert_eq!(call.header("x-a2a-notification-token"), "tok");
        assert_eq!(call.header("a2a-notification-token"), "tok");
    }
}

/// PUSH-15, V03-PUSH-01: who asked in 0.3 is told in 0.3; the end is always told.
#[tokio::test]
async fn a_webhook_of_0_3_is_told_the_task() {
    let (on, receiver) = (
        Delivering::new(Behaviour::Chunk, quick()),
        Receiver::start().await,
    );
    let mut asked = call("alice");
    asked.version = Version::V0_3;
    let request = with_webhook("m1", config(None, "w", &receiver.url("/")));
    let task = on.bed.agent.send_message(asked, request).await;
    let task = sent_task(task.unwrap());
    let calls = receiver
        .until(|calls| {
            calls
                .last()
                .is_some_and(|call| call.body["status"]["state"] == "completed")
        })
        .await;
    for call in &calls {
        assert_eq!(call.header("content-type"), "application/json");
        assert_eq!(call.header("a2a-version"), "0.3");
        assert_eq!(call.body["kind"], "task");
    }
    let last = json::encode(&calls.last().unwrap().body);
    let told = v0_3::decode_webhook(last.as_bytes()).unwrap();
    assert_eq!(told, on.bed.task(&task.id).await);
    let bed = on.stop().await;
    assert_eq!(receiver.calls().len(), calls.len(), "nothing after the end");
    let last = bed.store_position(&task.id).await;
    assert_eq!(cursor(&*bed.store, &bed, &task, "w").await, last);
}

/// OP-PCRE-04, PUSH-08: each has everything, and one that hangs holds up nobody.
#[tokio::test]
async fn a_receiver_that_hangs_delays_nobody_else() {
    let hanging = Receiver::answering(|_, _| Answer::Hang).await;
    let good = Receiver::start().await;
    let mut settings = quick();
    settings.stop_grace = Duration::ZERO;
    settings.max_calls = 6;
    settings.max_calls_per_host = 2;
    let on = Delivering::new(Behaviour::Ask(1), settings);
    let mut tasks = Vec::new();
    for n in 0..5 {
        tasks.push(on.send_with(&format!("m{n}"), "a", &hanging.url("/")).await);
    }
    hanging.until(|calls| calls.len() == 2).await;
    let task = &tasks[0];
    for id in ["b", "c"] {
        let url = good.url(&format!("/{id}"));
        create(&on.bed, config(Some(task), id, &url)).await.unwrap();
    }
    let before = on.bed.store_position(&task.id).await;
    on.bed.answer("again", task, "blue").await;
    let ended = |calls: &[Notified]| {
        let of = |path: &str| {
            let calls = calls.iter().filter(|call| call.path == path);
            calls.cloned().collect::<Vec<_>>()
        };
        has_ended(&of("/b")) && has_ended(&of("/c"))
    };
    let calls = good.until(ended).await;
    let log = sorted(told(&on.bed, &task.id, before).await);
    for path in ["/b", "/c"] {
        let calls: Vec<_> = calls
            .iter()
            .filter(|call| call.path == path)
            .cloned()
            .collect();
        assert_eq!(sorted(bodies(&calls)), log);
    }
    assert_eq!(hanging.calls().len(), 2, "so many at once for one host");
    assert_eq!(cursor(&*on.bed.store, &on.bed, task, "a").await, 0);
    on.stop().await;
}

/// BR-095, PUSH-05, PUSH-07: repeated with the same id, and the order stays.
#[tokio::test]
async fn br_095_what_fails_is_repeated_and_keeps_the_order() {
    let receiver = Receiver::answering(|n, _| match n {
        0 | 1 => Answer::Status(500),
        3 => Answer::Status(429),
        5 => Answer::Status(302),
        _ => Answer::Status(204),
    })
    .await;
    let on = Delivering::new(Behaviour::Chunk, quick());
    let task = on.send_with("m1", "w", &receiver.url("/")).await;
    let calls = receiver.until(has_ended).await;
    let positions: Vec<&str> = calls
        .iter()
        .map(|call| call.header("webhook-id").rsplit('.').next().unwrap())
        .collect();
    let last = on.bed.store_position(&task.id).await;
    let mut expected = vec!["1", "1", "1", "2", "2", "3", "3", "4", "5", "6"];
    expected.truncate(4 + usize::try_from(last).unwrap());
    assert_eq!(positions, expected);
    let mut once = calls.clone();
    once.dedup_by(|a, b| a.header("webhook-id") == b.header("webhook-id"));
    assert_eq!(
        sorted(bodies(&once)),
        sorted(told(&on.bed, &task.id, 0).await)
    );
}

/// BR-095, PUSH-06: a call has its time, and then it is one that failed.
#[tokio::test]
async fn br_095_a_call_that_takes_too_long_is_cut_and_repeated() {
    let receiver = Receiver::answering(|n, _| match n {
        0 => Answer::Hang,
        _ => Answer::Status(200),
    })
    .await;
    let mut settings = quick();
    settings.call_timeout = Duration::from_millis(100);
    let on = Delivering::new(Behaviour::Echo, settings);
    on.send_with("m1", "w", &receiver.url("/")).await;
    let calls = receiver.until(has_ended).await;
    let ids: Vec<&str> = calls.iter().map(|call| call.header("webhook-id")).collect();
    assert_eq!(ids[0], ids[1]);
}

/// R13: not earlier than the receiver asks.
#[tokio::test]
async fn retry_after_is_honoured() {
    let receiver = Receiver::answering(|n, _| match n {
        0 => Answer::RetryAfter(503, "1".to_owned()),
        _ => Answer::Status(200),
    })
    .await;
    let on = Delivering::new(Behaviour::Echo, quick());
    on.send_with("m1", "w", &receiver.url("/")).await;
    let calls = receiver.until(has_ended).await;
    let waited = calls[1].at - calls[0].at;
    assert!(waited >= Duration::from_secs(1), "{waited:?}");
}

/// PUSH-05, R13: a receiver that is gone is not called again; its webhook stays listed (OP-PCRE-06),
/// and creating it anew enables it.
#[tokio::test]
async fn a_receiver_that_is_gone_is_called_no_more() {
    let (gone, good) = (
        Receiver::answering(|_, _| Answer::Status(410)).await,
        Receiver::start().await,
    );
    let on = Delivering::new(Behaviour::Ask(1), quick());
    let task = on.send_with("m1", "gone", &gone.url("/")).await;
    gone.until(|calls| calls.len() == 1).await;
    create(&on.bed, config(Some(&task), "good", &good.url("/")))
        .await
        .unwrap();
    on.bed.answer("m2", &task, "blue").await;
    good.until(has_ended).await;
    let ids = [Some("gone".into()), Some("good".into())];
    let listed = list(&on.bed, &task).await;
    assert_eq!(listed.into_iter().map(|c| c.id).collect::<Vec<_>>(), ids);
    assert_eq!(gone.calls().len(), 1);
    let moved = Receiver::start().await;
    create(&on.bed, config(Some(&task), "gone", &moved.url("/")))
        .await
        .unwrap();
    let calls = moved.until(has_ended).await;
    let log = told(&on.bed, &task.id, 0).await;
    assert_eq!(sorted(bodies(&calls)), sorted(log), "all that it had not");
    on.stop().await;
}

/// OP-PDEL-02: what waits to be repeated is dropped with its webhook.
#[tokio::test]
async fn a_deleted_webhook_is_not_called_again() {
    let bad = Receiver::answering(|_, _| Answer::Status(500)).await;
    let good = Receiver::start().await;
    let on = Delivering::new(Behaviour::Ask(1), quick());
    let task = on.send_with("m1", "bad", &bad.url("/")).await;
    bad.until(|calls| calls.len() > 2).await;
    delete(&on.bed, &task, "bad").await.unwrap();
    let at_most = bad.calls().len() + 1;
    create(&on.bed, config(Some(&task), "good", &good.url("/")))
        .await
        .unwrap();
    on.bed.answer("m2", &task, "blue").await;
    good.until(has_ended).await;
    on.stop().await;
    // One may have been on its way when the deletion was answered.
    assert!(bad.calls().len() <= at_most, "{}", bad.calls().len());
}

/// A replaced webhook goes on where the old one was, at once and at its new address.
#[tokio::test]
async fn a_replaced_webhook_does_not_wait() {
    let bad = Receiver::answering(|_, _| Answer::Status(500)).await;
    let good = Receiver::start().await;
    let on = Delivering::new(Behaviour::Echo, slow());
    let task = on.send_with("m1", "w", &bad.url("/")).await;
    bad.until(|calls| calls.len() == 1).await;
    create(&on.bed, config(Some(&task), "w", &good.url("/")))
        .await
        .unwrap();
    let calls = good.until(has_ended).await;
    assert_eq!(
        sorted(bodies(&calls)),
        sorted(told(&on.bed, &task.id, 0).await)
    );
    assert_eq!(bad.calls().len(), 1);
}

/// PUSH-05: what is refused for good is given up after some attempts, and the next is tried.
#[tokio::test]
async fn what_is_refused_is_given_up() {
    let receiver = Receiver::answering(|_, call| {
        let is_artifact = call.body.get("artifactUpdate").is_some();
        Answer::Status(if is_artifact { 404 } else { 200 })
    })
    .await;
    let on = Delivering::new(Behaviour::Echo, quick());
    let task = on.send_with("m1", "w", &receiver.url("/")).await;
    let calls = receiver.until(has_ended).await;
    let artifacts = |call: &&Notified| call.body.get("artifactUpdate").is_some();
    assert_eq!(calls.iter().filter(artifacts).count(), 5);
    let bed = on.stop().await;
    let last = bed.store_position(&task.id).await;
    assert_eq!(cursor(&*bed.store, &bed, &task, "w").await, last);
}

/// BR-095: after its time an event is given up, whatever the receiver says.
#[tokio::test]
async fn what_fails_for_long_is_given_up() {
    let works = Arc::new(AtomicBool::new(false));
    let receiver = Receiver::answering({
        let works = Arc::clone(&works);
        move |_, _| {
            Answer::Status(if works.load(Ordering::SeqCst) {
                200
            } else {
                500
            })
        }
    })
    .await;
    let mut settings = quick();
    settings.give_up_after = Duration::from_millis(50);
    let on = Delivering::new(Behaviour::Ask(1), settings);
    let task = on.send_with("m1", "w", &receiver.url("/")).await;
    let asked = receiver
        .until(|calls| {
            calls.iter().any(|call| {
                call.body["statusUpdate"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
            })
        })
        .await;
    assert!(asked.len() >= 3, "none of them was taken");
    works.store(true, Ordering::SeqCst);
    on.bed.answer("m2", &task, "blue").await;
    receiver.until(has_ended).await;
}

/// PUSH-09, OP-PCRE-06: what one process could not deliver, the next one does.
#[tokio::test]
async fn a_new_process_takes_up_the_backlog() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
    let bed = |behaviour| {
        let agent = TestAgent::new(behaviour);
        Bed::on(Arc::clone(&store), agent, Settings::default())
    };
    let (bad, good) = (
        Receiver::answering(|_, _| Answer::Hang).await,
        Receiver::start().await,
    );
    let mut settings = quick();
    settings.stop_grace = Duration::ZERO;
    let before = Delivering::with(bed(Behaviour::Ask(1)), settings);
    let task = before.send_with("m1", "w", &bad.url("/")).await;
    bad.until(|calls| calls.len() == 1).await;
    let stopped = before.stop().await;
    create(&stopped, config(Some(&task), "w", &good.url("/")))
        .await
        .unwrap();
    drop(stopped);

    let after = Delivering::with(bed(Behaviour::Ask(1)), quick());
    let position = after.bed.store_position(&task.id).await;
    let calls = good.until(|calls| calls.len() as u64 == position).await;
    assert_eq!(
        sorted(bodies(&calls)),
        sorted(told(&after.bed, &task.id, 0).await)
    );
    // Nothing is behind now; a webhook of a task that rested is remembered all the same.
    let stopped = after.stop().await;
    drop(stopped);
    let third = Delivering::with(bed(Behaviour::Ask(1)), quick());
    third.bed.answer("m2", &task, "blue").await;
    let calls = good.until(has_ended).await;
    assert_eq!(
        sorted(bodies(&calls)),
        sorted(told(&third.bed, &task.id, 0).await)
    );
}

/// P6, PUSH-09: an answer that could not be noted is asked for again; nothing is left out.
#[tokio::test]
async fn a_crash_between_answer_and_cursor_repeats_and_loses_nothing() {
    let inner: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
    let faulty = Arc::new(FaultyStore::new(Arc::clone(&inner)));
    let store: Arc<dyn Store> = Arc::clone(&faulty) as _;
    let agent = TestAgent::new(Behaviour::Chunk);
    let bed = Bed::on(store, agent, Settings::default());
    let receiver = Receiver::answering({
        let faulty = Arc::clone(&faulty);
        move |n, _| {
            if n == 2 {
                faulty.refuse_writes(true);
            }
            Answer::Status(200)
        }
    })
    .await;
    drop(deliverer(&bed, quick()));
    let request = with_webhook("m1", config(None, "w", &receiver.url("/")));
    let sent = bed.agent.send_message(call("alice"), request).await;
    let task = sent_task(sent.unwrap());
    let before = Delivering::with(bed, quick());
    receiver.until(|calls| calls.len() == 3).await;
    before.stop().await;

    let agent = TestAgent::new(Behaviour::Chunk);
    let bed = Bed::on(Arc::clone(&inner), agent, Settings::default());
    assert_eq!(cursor(&*inner, &bed, &task, "w").await, 2);
    let after = Delivering::with(bed, quick());
    let calls = receiver.until(has_ended).await;
    let ids: Vec<&str> = calls.iter().map(|call| call.header("webhook-id")).collect();
    assert_eq!(ids[2], ids[3], "told twice, with the same id");
    let mut once = calls.clone();
    once.dedup_by(|a, b| a.header("webhook-id") == b.header("webhook-id"));
    assert_eq!(
        sorted(bodies(&once)),
        sorted(told(&after.bed, &task.id, 0).await)
    );
}

/// A webhook that is created late is told what happens from then on, a message before the others too.
#[tokio::test]
async fn messages_of_the_user_are_not_told() {
    let receiver = Receiver::start().await;
    let on = Delivering::new(Behaviour::Ask(1), quick());
    let task = on.bed.ask("m1", "hello").await;
    create(&on.bed, config(Some(&task), "w", &receiver.url("/")))
        .await
        .unwrap();
    let before = on.bed.store_position(&task.id).await;
    let done = on.bed.answer("m2", &task, "blue").await;
    assert_eq!(done.status.state, TaskState::Completed);
    let calls = receiver.until(has_ended).await;
    assert!(calls.iter().all(|call| call.body.get("message").is_none()));
    assert_eq!(
        sorted(bodies(&calls)),
        sorted(told(&on.bed, &task.id, before).await)
    );
}

#[tokio::test]
async fn the_delivery_ends_when_told() {
    let receiver = Receiver::answering(|_, _| Answer::Hang).await;
    let mut settings = quick();
    settings.stop_grace = Duration::from_millis(20);
    let on = Delivering::new(Behaviour::Echo, settings);
    on.send_with("m1", "w", &receiver.url("/")).await;
    receiver.until(|calls| calls.len() == 1).await;
    let stopped = tokio::time::timeout(Duration::from_secs(5), on.stop());
    stopped.await.unwrap();
}
