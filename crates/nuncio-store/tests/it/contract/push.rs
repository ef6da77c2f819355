//! Webhooks and how far they have come.

use nuncio_protocol::{TaskState, Version};
use nuncio_store::{Appended, PushConfigRow, Webhook};

use super::Shared;
use crate::draft::{Draft, key, scope, webhook};

fn hook(task: &str, id: &str, url: &str) -> Webhook {
    webhook(task.into(), id, url)
}

async fn rows(store: &Shared, task: &str) -> Vec<PushConfigRow> {
    let rows = store.push_configs(&scope("ada"), &task.into()).await;
    rows.unwrap().unwrap()
}

pub(crate) async fn webhooks_are_kept_by_id(store: &Shared) {
    let ada = scope("ada");
    let mut draft = Draft::new("ada", "t", 0);
    draft.status(TaskState::Working, 1);
    store.create(draft.create()).await.unwrap();
    assert!(rows(store, "t").await.is_empty());
    for id in ["b", "a"] {
        let config = hook("t", id, "https://one.example/");
        assert!(store.put_push_config(&ada, &config).await.unwrap());
    }
    let kept = rows(store, "t").await;
    let ids: Vec<_> = kept
        .iter()
        .map(|row| row.webhook.config.id.clone().unwrap())
        .collect();
    assert_eq!(ids, ["a".into(), "b".into()]);
    assert!(kept.iter().all(|row| row.cursor == 2), "from now on");
    store.append(draft.complete(2)).await.unwrap();
    let mut config = hook("t", "a", "https://two.example/");
    config.version = Version::V0_3;
    assert!(store.put_push_config(&ada, &config).await.unwrap());
    let kept = rows(store, "t").await;
    assert_eq!(kept.len(), 2);
    assert_eq!(
        (&kept[0].webhook, kept[0].cursor),
        (&config, 2),
        "in its old place"
    );
    for _ in 0..2 {
        let deleted = store
            .delete_push_config(&ada, &"t".into(), &"a".into())
            .await;
        assert!(deleted.unwrap(), "the task is there");
    }
    assert_eq!(rows(store, "t").await.len(), 1);

    let config = hook("nobody", "a", "https://one.example/");
    assert!(!store.put_push_config(&ada, &config).await.unwrap());
    let nobody = store.push_configs(&ada, &"nobody".into()).await.unwrap();
    assert!(nobody.is_none());
    let deleted = store
        .delete_push_config(&ada, &"nobody".into(), &"a".into())
        .await;
    assert!(!deleted.unwrap());
}

pub(crate) async fn a_webhook_comes_with_its_task(store: &Shared) {
    let mut new = Draft::new("ada", "t", 0).create();
    let mut webhook = hook("t", "a", "https://one.example/");
    webhook.version = Version::V0_3;
    new.push_config = Some(webhook.clone());
    store.create(new).await.unwrap();
    let row = PushConfigRow { webhook, cursor: 0 };
    assert_eq!(rows(store, "t").await, [row]);
}

/// A message brings its webhook along, or neither is stored.
pub(crate) async fn a_webhook_comes_with_a_message(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create()).await.unwrap();
    let waiting = draft.status(TaskState::InputRequired, 1).append();
    store.append(waiting).await.unwrap();
    let mut append = draft.message("again").append();
    append.idempotency = Some(key("k", 1));
    append.push_config = Some(hook("t", "a", "https://one.example/"));
    let mut late = append.clone();
    late.push_config = Some(hook("t", "b", "https://one.example/"));
    store.append(append).await.unwrap();
    let again = store.append(late.clone()).await.unwrap();
    assert!(matches!(again, Appended::Existing { .. }));
    late.idempotency = None;
    let conflict = store.append(late).await.unwrap();
    assert!(matches!(conflict, Appended::Conflict(_)));
    let webhook = hook("t", "a", "https://one.example/");
    let row = PushConfigRow { webhook, cursor: 2 };
    assert_eq!(rows(store, "t").await, [row], "it gets the message too");
}

pub(crate) async fn a_loaded_task_tells_whether_it_has_webhooks(store: &Shared) {
    let ada = scope("ada");
    let has = async || {
        let stored = store.load(&ada, &"t".into()).await.unwrap();
        stored.unwrap().has_webhooks
    };
    store
        .create(Draft::new("ada", "t", 0).create())
        .await
        .unwrap();
    assert!(!has().await);
    let webhook = hook("t", "a", "https://one.example/");
    store.put_push_config(&ada, &webhook).await.unwrap();
    assert!(has().await);
    let deleted = store
        .delete_push_config(&ada, &"t".into(), &"a".into())
        .await;
    deleted.unwrap();
    assert!(!has().await);
}

pub(crate) async fn a_cursor_never_goes_back(store: &Shared) {
    let mut new = Draft::new("ada", "t", 0).create();
    new.push_config = Some(hook("t", "a", "https://one.example/"));
    store.create(new).await.unwrap();
    for (cursor, expected) in [(3, 3), (2, 3), (7, 7), (0, 7)] {
        let advanced = store
            .advance_push_cursor(&"t".into(), &"a".into(), cursor)
            .await;
        advanced.unwrap();
        assert_eq!(rows(store, "t").await[0].cursor, expected);
    }
    let nobody = store
        .advance_push_cursor(&"t".into(), &"nobody".into(), 9)
        .await;
    nobody.unwrap();
}

pub(crate) async fn the_backlog_names_what_is_behind(store: &Shared) {
    assert!(store.push_backlog(None, 9).await.unwrap().is_empty());
    for id in ["a", "b", "c"] {
        let mut new = Draft::new("ada", id, 0).create();
        new.push_config = (id != "c").then(|| hook(id, "hook", "https://one.example/"));
        store.create(new).await.unwrap();
    }
    assert_eq!(store.push_backlog(None, 9).await.unwrap().len(), 2);
    let first = store.push_backlog(None, 1).await.unwrap();
    assert_eq!(first, [(scope("ada"), "a".into())]);
    let rest = store.push_backlog(Some(&first[0].1), 9).await.unwrap();
    assert_eq!(rest, [(scope("ada"), "b".into())]);
    let advanced = store
        .advance_push_cursor(&"a".into(), &"hook".into(), 1)
        .await;
    advanced.unwrap();
    let behind = store.push_backlog(None, 9).await.unwrap();
    assert_eq!(behind, [(scope("ada"), "b".into())]);
}
