//! Webhooks as their owners see them.

use std::sync::atomic::Ordering;

use nuncio_egress::{Egress, EgressPolicy};
use nuncio_engine::{Deliverer, DeliverySettings, Settings};
use nuncio_protocol::{
    A2aError, AgentService as _, DeleteTaskPushNotificationConfigRequest, ErrorKind,
    GetTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, SendMessageConfiguration, SendMessageRequest,
    SendMessageResponse, Task, TaskPushNotificationConfig, TaskState,
};
use nuncio_testkit::{Bed, Behaviour, TestAgent, call, send, sent_task, text_message};

/// Webhooks for this machine and for everybody else.
pub(crate) fn deliverer(bed: &Bed, settings: DeliverySettings) -> Deliverer {
    let policy = EgressPolicy::default().allowing("127.0.0.0/8".parse().unwrap());
    bed.engine.deliverer(Egress::new(policy).unwrap(), settings)
}

/// A bed whose engine takes webhooks, though nobody calls them.
fn taking(agent: TestAgent, settings: Settings) -> Bed {
    let bed = Bed::with(agent, settings);
    let egress = Egress::new(EgressPolicy::default()).unwrap();
    drop(bed.engine.deliverer(egress, DeliverySettings::default()));
    bed
}

fn taking_echo() -> Bed {
    taking(TestAgent::new(Behaviour::Echo), Settings::default())
}

pub(crate) fn config(task: Option<&Task>, id: &str, url: &str) -> TaskPushNotificationConfig {
    let mut config = TaskPushNotificationConfig::default();
    config.task_id = task.map(|task| task.id.clone());
    config.id = (!id.is_empty()).then(|| id.into());
    config.url = url.to_owned();
    config
}

/// A send with a webhook.
pub(crate) fn with_webhook(id: &str, webhook: TaskPushNotificationConfig) -> SendMessageRequest {
    let mut configuration = SendMessageConfiguration::default();
    configuration.task_push_notification_config = Some(webhook);
    let mut request = send(text_message(id, "hello"));
    request.configuration = Some(configuration);
    request
}

pub(crate) async fn create(
    bed: &Bed,
    config: TaskPushNotificationConfig,
) -> Result<TaskPushNotificationConfig, A2aError> {
    bed.agent.create_push_config(call("alice"), config).await
}

async fn list_page(
    bed: &Bed,
    task: &Task,
    size: i32,
    token: Option<&str>,
) -> Result<ListTaskPushNotificationConfigsResponse, A2aError> {
    let mut request = ListTaskPushNotificationConfigsRequest::default();
    request.task_id = task.id.clone();
    request.page_size = size;
    request.page_token = token.map(str::to_owned);
    bed.agent.list_push_configs(call("alice"), request).await
}

pub(crate) async fn list(bed: &Bed, task: &Task) -> Vec<TaskPushNotificationConfig> {
    let page = list_page(bed, task, 0, None).await.unwrap();
    assert_eq!(page.next_page_token, None);
    page.configs
}

fn get_request(task: &Task, id: &str) -> GetTaskPushNotificationConfigRequest {
    let mut request = GetTaskPushNotificationConfigRequest::default();
    request.task_id = task.id.clone();
    request.id = id.into();
    request
}

fn delete_request(task: &Task, id: &str) -> DeleteTaskPushNotificationConfigRequest {
    let mut request = DeleteTaskPushNotificationConfigRequest::default();
    request.task_id = task.id.clone();
    request.id = id.into();
    request
}

pub(crate) async fn delete(bed: &Bed, task: &Task, id: &str) -> Result<(), A2aError> {
    let request = delete_request(task, id);
    bed.agent.delete_push_config(call("alice"), request).await
}

/// BR-097, OP-PCRE-03, OP-PCRE-05, OP-PGET-01, OP-PDEL-01.
#[tokio::test]
async fn br_097_webhooks_are_created_replaced_read_and_deleted() {
    let bed = taking_echo();
    let task = bed.ask("m1", "hello").await;
    assert_eq!(list(&bed, &task).await, []);

    let mut asked = config(Some(&task), "mine", "https://one.example/");
    asked.tenant = Some("acme".to_owned());
    asked.token = Some("secret".to_owned());
    let mut shown = asked.clone();
    shown.token = None;
    assert_eq!(create(&bed, asked).await.unwrap(), shown, "write-only");
    let made = create(&bed, config(Some(&task), "", "https://two.example/")).await;
    let made = made.unwrap();
    let made_id = made.id.clone().unwrap();
    assert_ne!(made_id.as_str(), task.id.as_str(), "TRAP-19");
    let replaced = config(Some(&task), "mine", "https://three.example/");
    create(&bed, replaced.clone()).await.unwrap();
    assert_eq!(list(&bed, &task).await, [made, replaced.clone()]);

    let alice = || call("alice");
    let read = bed
        .agent
        .get_push_config(alice(), get_request(&task, "mine"));
    assert_eq!(read.await.unwrap(), replaced);
    let missing = bed.agent.get_push_config(alice(), get_request(&task, "x"));
    let missing = missing.await.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::TaskNotFound);
    assert!(missing.message.contains("config x"), "{missing}");
    assert_eq!(missing.metadata["configId"], "x");
    for id in ["mine", "mine", made_id.as_str()] {
        delete(&bed, &task, id).await.unwrap();
    }
    assert_eq!(list(&bed, &task).await, []);
}

/// BR-148, OP-PLST-02, OP-PCRE-02.
#[tokio::test]
async fn br_148_webhooks_of_others_are_as_absent_as_their_tasks() {
    let bed = taking_echo();
    let task = bed.ask("m1", "hello").await;
    create(&bed, config(Some(&task), "mine", "https://one.example/"))
        .await
        .unwrap();
    let mut unknown = task.clone();
    unknown.id = "unknown".into();
    for (caller, task) in [("bob", &task), ("alice", &unknown)] {
        let mut list = ListTaskPushNotificationConfigsRequest::default();
        list.task_id = task.id.clone();
        let created = config(Some(task), "mine", "https://bad.example/");
        let agent = &bed.agent;
        let errors = [
            agent
                .create_push_config(call(caller), created)
                .await
                .unwrap_err(),
            agent
                .get_push_config(call(caller), get_request(task, "mine"))
                .await
                .unwrap_err(),
            agent
                .list_push_configs(call(caller), list)
                .await
                .unwrap_err(),
            agent
                .delete_push_config(call(caller), delete_request(task, "mine"))
                .await
                .unwrap_err(),
        ];
        for error in errors {
            let not_found = A2aError::task_not_found(&task.id);
            assert_eq!(format!("{error:?}"), format!("{not_found:?}"));
        }
    }
    let kept = list(&bed, &task).await;
    assert_eq!(kept[0].url, "https://one.example/");
}

/// OP-PLST-01: pages meet, and a token is good for its list only.
#[tokio::test]
async fn webhooks_are_listed_in_pages() {
    let bed = taking_echo();
    let (task, other) = (bed.ask("m1", "hello").await, bed.ask("m2", "hello").await);
    for id in ["c", "a", "d", "b"] {
        create(&bed, config(Some(&task), id, "https://one.example/"))
            .await
            .unwrap();
    }
    let (mut seen, mut token) = (Vec::new(), None);
    loop {
        let page = list_page(&bed, &task, 3, token.as_deref()).await.unwrap();
        seen.push(page.configs.len());
        token = page.next_page_token;
        let Some(token) = &token else { break };
        let foreign = list_page(&bed, &other, 3, Some(token)).await.unwrap_err();
        assert_eq!(foreign.violations()[0].field, "pageToken");
        let altered = format!("{token}A");
        assert!(list_page(&bed, &task, 3, Some(&altered)).await.is_err());
    }
    assert_eq!(seen, [3, 1]);
    let exact = list_page(&bed, &task, 4, Some("")).await.unwrap();
    assert_eq!((exact.configs.len(), exact.next_page_token), (4, None));
}

/// OP-PCRE-01, BR-125: for unknown tasks too.
#[tokio::test]
async fn what_is_not_offered_is_refused_first() {
    let nobody_delivers = Bed::new(Behaviour::Echo);
    let switched_off = taking(
        TestAgent::new(Behaviour::Echo).without_webhooks(),
        Settings::default(),
    );
    for bed in [nobody_delivers, switched_off] {
        assert!(!bed.agent.takes_webhooks());
        let card = bed.agent.card();
        assert_eq!(card.capabilities.push_notifications, Some(false));
        let task = bed.ask("m1", "hello").await;
        let mut unknown = task.clone();
        unknown.id = "unknown".into();
        for task in [&task, &unknown] {
            let refusals = [
                create(&bed, config(Some(task), "", "nonsense"))
                    .await
                    .unwrap_err(),
                delete(&bed, task, "x").await.unwrap_err(),
                list_page(&bed, task, 0, None).await.unwrap_err(),
            ];
            for refusal in refusals {
                assert_eq!(refusal.kind, ErrorKind::PushNotificationNotSupported);
            }
        }
    }
    assert_eq!(
        taking_echo().agent.card().capabilities.push_notifications,
        Some(true)
    );
}

/// BR-092, PUSH-12: what is certainly bad is refused when it is asked for, and no task is made.
#[tokio::test]
async fn br_092_private_and_foreign_addresses_are_refused() {
    let bed = taking_echo();
    let task = bed.ask("m1", "hello").await;
    for (n, url) in [
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://0.0.0.0/",
        "http://169.254.169.254/latest/meta-data",
        "http://10.0.0.1/",
        "http://100.64.0.1/",
        "http://[::ffff:10.0.0.1]/",
        "http://2130706433/",
        "http://localhost:8080/",
        "file:///etc/passwd",
        "https://user:password@example.com/",
        "nonsense",
        "",
    ]
    .into_iter()
    .enumerate()
    {
        let refused = create(&bed, config(Some(&task), "", url)).await;
        let refused = refused.unwrap_err();
        assert_eq!(refused.violations()[0].field, "url", "{url}");
        let request = with_webhook(&format!("w{n}"), config(None, "", url));
        let refused = bed.agent.send_message(call("alice"), request).await;
        let field = refused.unwrap_err().violations()[0].field.clone();
        assert_eq!(field, "configuration.taskPushNotificationConfig.url");
    }
    let named = config(Some(&task), "", "https://internal.example/");
    create(&bed, named).await.unwrap();
    assert_eq!(bed.trace.runs.load(Ordering::SeqCst), 1, "no task was made");
}

#[tokio::test]
async fn credentials_that_are_no_header_are_refused() {
    let bed = taking_echo();
    let task = bed.ask("m1", "hello").await;
    let mut bad = config(Some(&task), "", "https://one.example/");
    bad.token = Some("two\r\nlines".to_owned());
    let refused = create(&bed, bad).await.unwrap_err();
    assert_eq!(refused.violations()[0].field, "token");
    assert!(!refused.message.contains("lines"), "{refused}");
}

#[tokio::test]
async fn a_task_has_so_many_webhooks_and_no_more() {
    let mut settings = Settings::default();
    settings.max_webhooks_per_task = 2;
    let bed = taking(TestAgent::new(Behaviour::Ask(9)), settings);
    let task = bed.ask("m1", "hello").await;
    for id in ["a", "b", "a"] {
        create(&bed, config(Some(&task), id, "https://one.example/"))
            .await
            .unwrap();
    }
    let refused = create(&bed, config(Some(&task), "c", "https://one.example/")).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::InvalidParams);
    assert!(refused.message.contains("2 are allowed"), "{refused}");
    let mut request = with_webhook("m2", config(None, "c", "https://one.example/"));
    request.message.as_mut().unwrap().task_id = Some(task.id.clone());
    let refused = bed.agent.send_message(call("alice"), request).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::InvalidParams);
    assert_eq!(bed.task(&task.id).await, task, "nothing was recorded");
}

/// OP-SEND-20: with a first message, with a further one, and not twice if it is repeated.
#[tokio::test]
async fn a_webhook_comes_along_with_a_message() {
    for agent in [
        TestAgent::new(Behaviour::Ask(9)),
        TestAgent::new(Behaviour::Ask(9)).resumable(),
    ] {
        let bed = taking(agent, Settings::default());
        let first = with_webhook("m1", config(None, "", "https://one.example/"));
        let mut tasks = Vec::new();
        for _ in 0..2 {
            let sent = bed.agent.send_message(call("alice"), first.clone()).await;
            tasks.push(sent_task(sent.unwrap()));
        }
        let task = &tasks[0];
        assert_eq!(task.id, tasks[1].id);
        let kept = list(&bed, task).await;
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].task_id.as_ref(), Some(&task.id));

        let mut further = with_webhook("m2", config(Some(task), "", "https://two.example/"));
        further.message.as_mut().unwrap().task_id = Some(task.id.clone());
        for _ in 0..2 {
            let sent = bed.agent.send_message(call("alice"), further.clone()).await;
            sent_task(sent.unwrap());
        }
        assert_eq!(list(&bed, task).await.len(), 2);

        let mut wrong = with_webhook("m3", config(Some(task), "", "https://two.example/"));
        let other = bed.agent.send_message(call("alice"), wrong.clone()).await;
        let field = "configuration.taskPushNotificationConfig.taskId";
        assert_eq!(other.unwrap_err().violations()[0].field, field);
        wrong.message.as_mut().unwrap().task_id = Some(task.id.clone());
        let webhook = config(None, "", "https://two.example/");
        let configuration = wrong.configuration.as_mut().unwrap();
        let webhook = configuration.task_push_notification_config.insert(webhook);
        webhook.task_id = Some("other".into());
        let other = bed.agent.send_message(call("alice"), wrong).await;
        assert_eq!(other.unwrap_err().violations()[0].field, field);
        assert_eq!(bed.trace.runs.load(Ordering::SeqCst), 2);
    }
}

#[tokio::test]
async fn a_webhook_of_a_direct_answer_is_dropped() {
    let bed = taking(TestAgent::new(Behaviour::Message), Settings::default());
    let request = with_webhook("m1", config(None, "", "https://one.example/"));
    let sent = bed.agent.send_message(call("alice"), request).await;
    assert!(matches!(sent.unwrap(), SendMessageResponse::Message(_)));
    assert!(bed.store.push_backlog(None, 9).await.unwrap().is_empty());
}

/// OP-PCRE-05: it may be created on a task that has ended.
#[tokio::test]
async fn a_webhook_of_an_ended_task_has_nothing_to_get() {
    let bed = taking_echo();
    let task = bed.ask("m1", "hello").await;
    assert_eq!(task.status.state, TaskState::Completed);
    create(&bed, config(Some(&task), "", "https://one.example/"))
        .await
        .unwrap();
    assert!(bed.store.push_backlog(None, 9).await.unwrap().is_empty());
}
