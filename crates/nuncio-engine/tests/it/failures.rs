//! What goes wrong: agents that fail, hang or panic, and a store that refuses.

use std::sync::Arc;
use std::time::Duration;

use nuncio_engine::Settings;
use nuncio_protocol::{AgentService as _, ErrorKind, TaskState};
use nuncio_store::{MemoryOptions, MemoryStore};
use nuncio_testkit::{
    Bed, Behaviour, FaultyStore, TestAgent, artifact_text, call, collect, send, text_message, texts,
};

/// BR-035, R25: errors and panics end the task, without telling what must stay inside.
#[tokio::test]
async fn br_035_errors_and_panics_are_stored_as_failed() {
    for after_event in [false, true] {
        for behaviour in [
            Behaviour::Fail { after_event },
            Behaviour::Panic { after_event },
        ] {
            let bed = Bed::new(behaviour.clone());
            let task = bed.ask("m1", "go").await;
            assert_eq!(task.status.state, TaskState::Failed, "{behaviour:?}");
            assert_eq!(artifact_text(&task), if after_event { "half" } else { "" });
            let text = nuncio_protocol::json::encode(&task);
            assert!(!text.contains("sk_secret"), "{text}");
            let request = send(text_message("m2", "go"));
            let events = bed
                .agent
                .send_streaming_message(call("alice"), request)
                .await
                .unwrap();
            assert_eq!(texts(&collect(events).await).last().unwrap(), "failed");
            assert_eq!(bed.task(&task.id).await.status.state, TaskState::Failed);
        }
    }
}

/// BR-056, ART-02, EV-04: a broken event fails the task, it is not dropped.
#[tokio::test]
async fn br_056_appending_to_nothing_fails_the_task() {
    let task = Bed::new(Behaviour::BadAppend).ask("m1", "go").await;
    assert_eq!(task.status.state, TaskState::Failed);
    let reason = task.status.message.unwrap().text();
    assert!(
        reason.contains("appended to, but does not exist"),
        "{reason}"
    );
}

/// BR-079, R25: a hung agent is ended at its deadline, though nobody looks.
#[tokio::test(start_paused = true)]
async fn br_079_a_hung_agent_fails_at_its_deadline() {
    let mut settings = Settings::default();
    settings.run_deadline = Duration::from_secs(5);
    let bed = Bed::with(TestAgent::new(Behaviour::Deaf), settings);
    let task = bed.start("m1", "go").await;
    tokio::time::sleep(Duration::from_millis(5_500)).await;
    let task = bed.task(&task.id).await;
    assert_eq!(task.status.state, TaskState::Failed);
    assert!(task.status.message.unwrap().text().contains("5 seconds"));
}

/// ST-10: rejection is its own end.
#[tokio::test]
async fn a_rejected_task_says_why() {
    let task = Bed::new(Behaviour::Reject).ask("m1", "go").await;
    assert_eq!(task.status.state, TaskState::Rejected);
    assert_eq!(task.status.message.unwrap().text(), "not my job");
}

/// BR-035, R05: a store that refuses gives a retryable error, and no task.
#[tokio::test]
async fn a_refusing_store_gives_a_retryable_error() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new(
        MemoryOptions::default(),
    ))));
    let bed = Bed::on(
        Arc::clone(&store) as _,
        TestAgent::new(Behaviour::Echo),
        Settings::default(),
    );
    store.refuse_writes(true);
    let error = bed
        .agent
        .send_message(call("alice"), send(text_message("m1", "go")))
        .await
        .unwrap_err();
    assert!(error.kind.is_retryable(), "{error:?}");
    store.refuse_writes(false);
    let task = bed.ask("m1", "go").await;
    assert_eq!(
        task.status.state,
        TaskState::Completed,
        "the same message, sent again"
    );
}

/// R05: a store that refuses while a run goes on loses nothing once it is back.
#[tokio::test(start_paused = true)]
async fn a_run_survives_a_store_that_refuses_for_a_while() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new(
        MemoryOptions::default(),
    ))));
    let bed = Bed::on(
        Arc::clone(&store) as _,
        TestAgent::new(Behaviour::Slow(5)),
        Settings::default(),
    );
    let task = bed.start("m1", "go").await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    store.refuse_writes(true);
    tokio::time::sleep(Duration::from_secs(2)).await;
    // Nobody waits in vain for what cannot be stored.
    let error = bed
        .agent
        .send_message(call("alice"), send(text_message("m1", "go")))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unavailable);
    store.refuse_writes(false);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let task = bed.task(&task.id).await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(artifact_text(&task), "1 2 3 4 5 ");
}

/// EV-03: a reader sees nothing that is not stored.
#[tokio::test(start_paused = true)]
async fn nothing_is_told_before_it_is_stored() {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new(
        MemoryOptions::default(),
    ))));
    let bed = Bed::on(
        Arc::clone(&store) as _,
        TestAgent::new(Behaviour::Slow(3)),
        Settings::default(),
    );
    let task = bed.start("m1", "go").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    store.refuse_writes(true);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let seen = artifact_text(&bed.task(&task.id).await);
    assert_eq!(seen, "1 ");
}
