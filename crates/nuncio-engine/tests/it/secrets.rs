//! Secrets of webhooks: sealed where they are kept, and never read back.

use std::sync::Arc;

use nuncio_engine::{Engine, Settings};
use nuncio_protocol::{
    AgentService as _, AuthenticationInfo, ListTaskPushNotificationConfigsRequest, Task,
    TaskPushNotificationConfig,
};
use nuncio_store::{
    DeliveryFilter, MemoryStore, Scope, SqliteOptions, SqliteStore, Store, Webhook, WebhookId,
};
use nuncio_testkit::{Bed, Behaviour, Receiver, TestAgent, call, sent_task};
use tempfile::TempDir;

use crate::delivery::{Delivering, has_ended, quick};
use crate::push::{config, create, deliverer, list, with_webhook};

const TOKEN: &str = "seeded-token-4711";
const CREDENTIALS: &str = "seeded-credentials-4712";

fn secretive(task: Option<&Task>, id: &str, url: &str) -> TaskPushNotificationConfig {
    let mut config = config(task, id, url);
    config.token = Some(TOKEN.to_owned());
    let mut authentication = AuthenticationInfo::default();
    authentication.scheme = "Bearer".to_owned();
    authentication.credentials = Some(CREDENTIALS.to_owned());
    config.authentication = Some(authentication);
    config
}

fn assert_silent(what: &str, text: &str) {
    assert!(!text.contains("seeded"), "{what}: {text}");
}

/// All bytes of the files in a folder.
fn files(folder: &TempDir) -> String {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let bytes = entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    bytes
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect()
}

fn open(folder: &TempDir) -> Arc<dyn Store> {
    let path = folder.path().join("nuncio.db");
    Arc::new(SqliteStore::open(path, SqliteOptions::default()).unwrap())
}

/// S08, PUSH-13, OP-PGET-02: in each way in, and each way out.
#[tokio::test]
async fn s08_secrets_are_sealed_at_rest_and_never_read_back() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start().await);
    let url = receiver.url("/");
    for resumable in [false, true] {
        let agent = TestAgent::new(Behaviour::Ask(1));
        let agent = if resumable { agent.resumable() } else { agent };
        let bed = Bed::on(open(&folder), agent, Settings::default());
        let on = Delivering::with(bed, quick());
        let agent = &on.bed.agent;
        let first = with_webhook(&format!("first {resumable}"), secretive(None, "w", &url));
        let task = sent_task(agent.send_message(call("alice"), first).await.unwrap());
        let created = create(&on.bed, secretive(Some(&task), "x", &url)).await;
        let created = created.unwrap();
        assert_eq!(created.token, None);
        let authentication = created.authentication.as_ref().unwrap();
        assert_eq!(authentication.scheme, "Bearer");
        assert_eq!(authentication.credentials, None);
        let mut further = with_webhook(&format!("m2 {resumable}"), secretive(None, "y", &url));
        further.message.as_mut().unwrap().task_id = Some(task.id.clone());
        agent.send_message(call("alice"), further).await.unwrap();

        let calls = receiver
            .until(|calls| {
                calls
                    .iter()
                    .filter(|call| has_ended(&[(*call).clone()]))
                    .count()
                    >= 3
            })
            .await;
        for call in calls {
            assert_eq!(
                call.header("authorization"),
                format!("Bearer {CREDENTIALS}")
            );
            assert_eq!(call.header("a2a-notification-token"), TOKEN);
        }
        let listed = list(&on.bed, &task).await;
        assert_eq!(listed.len(), 3);
        assert_silent("list", &nuncio_protocol::json::encode(&listed));
        let operator = on.bed.engine.webhooks();
        let all = operator.list(&DeliveryFilter::default(), None, 99).await;
        assert_silent(
            "operator",
            &nuncio_protocol::json::encode(
                &all.unwrap()
                    .into_iter()
                    .map(|one| one.webhook.config)
                    .collect::<Vec<_>>(),
            ),
        );
        let stored = on
            .bed
            .store
            .push_configs(&on.bed.scope("alice"), &task.id)
            .await;
        let stored: Vec<TaskPushNotificationConfig> = stored
            .unwrap()
            .unwrap()
            .into_iter()
            .map(|row| row.webhook.config)
            .collect();
        assert!(stored.iter().all(|config| config.token.is_some()));
        assert_silent("store", &nuncio_protocol::json::encode(&stored));
        let bed = on.stop().await;
        let id = WebhookId {
            task: task.id.clone(),
            config: "w".into(),
        };
        let logged = bed.engine.webhooks().calls(&id, 99).await.unwrap();
        assert!(!logged.is_empty());
        assert_silent("log", &format!("{logged:?}"));
        bed.store.close().await.unwrap();
        drop(bed);
        assert_silent("file", &files(&folder));
        for file in std::fs::read_dir(folder.path()).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
        receiver.forget();
    }
}

/// OP-PGET-02: a setting gives them back to the caller who set them, and to nobody else.
#[tokio::test]
async fn a_setting_gives_secrets_back_to_their_owner() {
    let mut settings = Settings::default();
    settings.return_webhook_secrets = true;
    let bed = Bed::with(TestAgent::new(Behaviour::Echo), settings);
    drop(deliverer(&bed, quick()));
    let task = bed.ask("m1", "hello").await;
    let asked = secretive(Some(&task), "w", "https://one.example/");
    assert_eq!(create(&bed, asked.clone()).await.unwrap(), asked);
    assert_eq!(list(&bed, &task).await, [asked]);
    let mut request = ListTaskPushNotificationConfigsRequest::default();
    request.task_id = task.id.clone();
    let others = bed.agent.list_push_configs(call("bob"), request).await;
    assert!(others.is_err());
    let operator = bed.engine.webhooks();
    let seen = operator
        .list(&DeliveryFilter::default(), None, 9)
        .await
        .unwrap();
    assert_eq!(seen[0].webhook.config.token, None);
}

/// PUSH-13: what an earlier version has left in the clear is read, and sealed at the next start.
#[tokio::test]
async fn plain_secrets_of_an_earlier_version_are_sealed() {
    let (folder, receiver) = (TempDir::new().unwrap(), Receiver::start().await);
    let store = open(&folder);
    let bed = Bed::on(
        Arc::clone(&store),
        TestAgent::new(Behaviour::Ask(1)),
        Settings::default(),
    );
    let task = bed.ask("m1", "hello").await;
    let scope: Scope = bed.scope("alice");
    let plain = Webhook {
        config: secretive(Some(&task), "w", &receiver.url("/")),
        version: nuncio_protocol::Version::V1_0,
    };
    assert!(store.put_push_config(&scope, &plain).await.unwrap());
    store.close().await.unwrap();
    drop((bed, store));
    assert!(files(&folder).contains(TOKEN), "as it was");

    let bed = Bed::on(
        open(&folder),
        TestAgent::new(Behaviour::Ask(1)),
        Settings::default(),
    );
    let on = Delivering::with(bed, quick());
    on.bed.answer("m2", &task, "blue").await;
    let calls = receiver.until(has_ended).await;
    assert!(
        calls
            .iter()
            .all(|call| call.header("a2a-notification-token") == TOKEN)
    );
    let sealed = async || {
        let rows = on.bed.store.push_configs(&scope, &task.id).await;
        let token = rows.unwrap().unwrap()[0].webhook.config.token.clone();
        token.unwrap() != TOKEN
    };
    while !sealed().await {
        tokio::task::yield_now().await;
    }
    let bed = on.stop().await;
    bed.store.close().await.unwrap();
    assert_silent("file", &files(&folder));
}

/// A server with another key calls nobody with what it cannot read, and loses nothing.
#[tokio::test]
async fn without_the_key_nothing_is_sent_and_events_are_dead_letters() {
    let receiver = Receiver::start().await;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let agent = TestAgent::new(Behaviour::Echo);
    let bed = Bed::on(Arc::clone(&store), agent, Settings::default());
    drop(deliverer(&bed, quick()));
    let request = with_webhook("m1", secretive(None, "w", &receiver.url("/")));
    let task = sent_task(
        bed.agent
            .send_message(call("alice"), request)
            .await
            .unwrap(),
    );

    let environment = nuncio_engine::Environment::system([8; 32]);
    let other = Engine::new(Arc::clone(&store), environment, Settings::default());
    let stranger = Bed {
        engine: other,
        ..bed
    };
    let on = Delivering::with(stranger, quick());
    let id = WebhookId {
        task: task.id.clone(),
        config: "w".into(),
    };
    let position = on.bed.store_position(&task.id).await;
    loop {
        let delivery = store.delivery(&id).await.unwrap().unwrap();
        if delivery.cursor == position {
            assert_eq!(delivery.dead, position);
            break;
        }
        tokio::task::yield_now().await;
    }
    on.stop().await;
    assert!(receiver.calls().is_empty());
}
