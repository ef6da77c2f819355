//! Several processes at one store: one at a time delivers to a webhook.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use nuncio_engine::Settings;
use nuncio_store::{Deliveries as _, MemoryStore, WebhookId};
use nuncio_testkit::{Answer, Bed, Behaviour, FixedClock, NumberedIds, Receiver, TestAgent};
use parking_lot::Mutex;

use crate::delivery::{Delivering, bodies, has_ended, quick, sorted, told};
use crate::push::{config, create, delete, deliverer};

/// Engines as of several processes.
struct Processes {
    store: MemoryStore,
    clock: Arc<FixedClock>,
    ids: Arc<NumberedIds>,
}

impl Processes {
    fn new() -> Self {
        Self {
            store: MemoryStore::default(),
            clock: Arc::default(),
            ids: Arc::default(),
        }
    }

    fn start(&self) -> Delivering {
        let mut delivery = quick();
        delivery.call_timeout = Duration::from_millis(150);
        delivery.stop_grace = Duration::ZERO;
        Delivering::with(self.bed(), delivery)
    }

    /// One that waits for its receivers.
    fn start_patient(&self) -> Delivering {
        Delivering::with(self.bed(), quick())
    }

    /// One that takes webhooks, and does not come round to calling them.
    fn start_idle(&self) -> Bed {
        let bed = self.bed();
        drop(deliverer(&bed, quick()));
        bed
    }

    fn bed(&self) -> Bed {
        let mut settings = Settings::default();
        settings.lease = Duration::from_millis(300);
        Bed::at(
            Arc::new(self.store.replica()),
            TestAgent::new(Behaviour::Chunk),
            settings,
            Arc::clone(&self.clock),
            Arc::clone(&self.ids),
        )
    }
}

/// P6: of three processes that all know of a webhook, one calls it; each event is told once, in
/// order.
#[tokio::test]
async fn one_process_delivers_for_a_webhook_at_a_time() {
    let (processes, receiver) = (Processes::new(), Receiver::start().await);
    let all = [processes.start(), processes.start(), processes.start()];
    let mut tasks = Vec::new();
    for n in 0..12 {
        let on = &all[n % 3];
        let url = receiver.url(&format!("/{n}"));
        tasks.push(on.send_with(&format!("m{n}"), "w", &url).await);
        for other in &all {
            other
                .bed
                .engine
                .webhooks()
                .redeliver(&Default::default())
                .await
                .unwrap();
        }
    }
    for (n, task) in tasks.iter().enumerate() {
        let path = format!("/{n}");
        let calls = receiver
            .until(|calls| {
                let mine: Vec<_> = calls
                    .iter()
                    .filter(|call| call.path == path)
                    .cloned()
                    .collect();
                has_ended(&mine)
            })
            .await;
        let mine: Vec<_> = calls.into_iter().filter(|call| call.path == path).collect();
        let log = told(&all[0].bed, &task.id, 0).await;
        assert_eq!(sorted(bodies(&mine)), sorted(log));
    }
    for on in all {
        on.stop().await;
    }
}

/// P6, P7: a process that dies in the middle of a call loses its claim after the term, and another
/// one delivers what it has left.
#[tokio::test]
async fn another_process_takes_over_from_one_that_died() {
    let processes = Processes::new();
    let receiver = Receiver::answering(|n, _| match n {
        0 => Answer::Hang,
        _ => Answer::Status(200),
    })
    .await;
    let dying = processes.start();
    let task = dying.send_with("m1", "w", &receiver.url("/")).await;
    receiver.until(|calls| calls.len() == 1).await;
    dying.running.abort();
    let id = WebhookId {
        task: task.id.clone(),
        config: "w".into(),
    };
    let minute = Duration::from_secs(60);
    let taken = processes.store.claim_delivery(&id, "thief", minute).await;
    assert!(!taken.unwrap(), "it still holds");

    let on = processes.start();
    let calls = receiver.until(has_ended).await;
    let mut once = calls;
    once.dedup_by(|a, b| a.header("webhook-id") == b.header("webhook-id"));
    assert_eq!(
        sorted(bodies(&once)),
        sorted(told(&on.bed, &task.id, 0).await)
    );
    on.stop().await;
}

/// P6: what a process has left when it stopped in order is taken up at once, without its term.
#[tokio::test]
async fn a_process_that_stops_gives_its_claims_up() {
    let processes = Processes::new();
    let receiver = Receiver::answering(|_, _| Answer::Hang).await;
    let stopping = processes.start();
    let task = stopping.send_with("m1", "w", &receiver.url("/")).await;
    receiver.until(|calls| calls.len() == 1).await;
    stopping.stop().await;
    let id = WebhookId {
        task: task.id.clone(),
        config: "w".into(),
    };
    let minute = Duration::from_secs(60);
    assert!(
        processes
            .store
            .claim_delivery(&id, "next", minute)
            .await
            .unwrap()
    );
}

/// A receiver that holds its first call until it is let go.
struct Gate {
    receiver: Receiver,
    came: mpsc::Receiver<()>,
    go: mpsc::Sender<()>,
}

impl Gate {
    async fn start() -> Self {
        let (coming, came) = mpsc::channel();
        let (go, gone) = mpsc::channel();
        let gone = Mutex::new(gone);
        let receiver = Receiver::answering(move |n, _| {
            if n == 0 {
                coming.send(()).unwrap();
                // A thread of its own waits: the runtime has more.
                gone.lock().recv().unwrap();
            }
            Answer::Status(200)
        });
        let receiver = receiver.await;
        Self { receiver, came, go }
    }
}

/// Waits until nobody delivers to a webhook.
async fn left_alone(store: &MemoryStore, id: &WebhookId) {
    let claim = async || {
        let claimed = store.claim_delivery(id, "nobody", Duration::ZERO);
        claimed.await.unwrap()
    };
    while !claim().await {
        tokio::task::yield_now().await;
    }
}

/// OP-PDEL-02: no call begins for a webhook that another process has deleted or replaced, though
/// one process is in the middle of telling it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_of_another_process_hold_from_the_next_call_on() {
    for replaced in [false, true] {
        let (processes, gate) = (Processes::new(), Gate::start().await);
        let (telling, other) = (processes.start_patient(), processes.start_idle());
        let task = telling
            .send_with("m1", "w", &gate.receiver.url("/old"))
            .await;
        let came = tokio::task::spawn_blocking(move || gate.came.recv());
        came.await.unwrap().unwrap();
        if replaced {
            let new = config(Some(&task), "w", &gate.receiver.url("/new"));
            create(&other, new).await.unwrap();
        } else {
            delete(&other, &task, "w").await.unwrap();
        }
        gate.go.send(()).unwrap();
        if replaced {
            gate.receiver.until(has_ended).await;
        }
        let id = WebhookId {
            task: task.id.clone(),
            config: "w".into(),
        };
        left_alone(&processes.store, &id).await;
        let calls = gate.receiver.calls();
        let old = calls.iter().filter(|call| call.path == "/old").count();
        assert_eq!(old, 1, "the call that had begun");
        assert_eq!(calls.len() > 1, replaced);
        telling.stop().await;
    }
}
