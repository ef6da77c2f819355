//! Webhooks through the real binary: registered over each form of the protocol, called for real.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::fake::{Fake, Request};
use crate::support::{Exchange, Server, exchange};

const CONFIG: &str = "[webhooks]\nallow_networks = [\"127.0.0.0/8\"]\n\
                      [[agents]]\nid = \"echo\"\nkind = \"echo\"\n";

fn json_rpc(server: &Server, version: &str, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let headers = [
        ("Content-Type", "application/json"),
        ("A2A-Version", version),
    ];
    let reply: Exchange = exchange(&server.url, "POST", "/", &headers, &body.to_string());
    reply.json()
}

fn receiver() -> Fake {
    Fake::bare(|_| ("200 OK", "text/plain", String::new()))
}

#[track_caller]
fn told(receiver: &Fake, last: impl Fn(&Value) -> bool) -> Vec<(Request, Value)> {
    let began = Instant::now();
    loop {
        let read = |request: Request| {
            let body = serde_json::from_str(&request.body).unwrap();
            (request, body)
        };
        let told: Vec<_> = receiver.requests().into_iter().map(read).collect();
        if told.last().is_some_and(|(_, body)| last(body)) {
            return told;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{told:#?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn is_completed(body: &Value) -> bool {
    body["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
}

/// BR-088, V03-PUSH-01: in the version of who asked, to the end.
#[test]
fn a_webhook_is_called_in_the_version_of_who_asked() {
    let server = Server::configured(CONFIG);
    let card = exchange(&server.url, "GET", "/.well-known/agent-card.json", &[], "");
    assert_eq!(card.json()["capabilities"]["pushNotifications"], true);

    let newer = receiver();
    let webhook = json!({"url": newer.url, "token": "tok",
        "authentication": {"scheme": "Bearer", "credentials": "abc"}});
    let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]});
    let params = json!({"message": message,
        "configuration": {"taskPushNotificationConfig": webhook}});
    let sent = json_rpc(&server, "1.0", "SendMessage", params);
    let task = sent["result"]["task"]["id"].as_str().unwrap();
    for (request, body) in told(&newer, is_completed) {
        assert_eq!(request.header("authorization"), Some("Bearer abc"));
        assert_eq!(request.header("x-a2a-notification-token"), Some("tok"));
        assert_eq!(body.as_object().unwrap().len(), 1);
    }
    let listed = json_rpc(
        &server,
        "1.0",
        "ListTaskPushNotificationConfigs",
        json!({"taskId": task}),
    );
    assert_eq!(listed["result"]["configs"][0]["url"], newer.url.as_str());

    let older = receiver();
    let message = json!({"kind": "message", "messageId": "m2", "role": "user",
        "parts": [{"kind": "text", "text": "hello"}]});
    let params = json!({"message": message, "configuration": {"acceptedOutputModes": [],
        "pushNotificationConfig": {"url": older.url}}});
    let sent = json_rpc(&server, "0.3", "message/send", params);
    let task = sent["result"]["id"].clone();
    let told = told(&older, |body| body["status"]["state"] == "completed");
    let (request, last) = told.last().unwrap();
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!((&last["kind"], &last["id"]), (&json!("task"), &task));
    let params = json!({"id": task});
    let got = json_rpc(&server, "0.3", "tasks/pushNotificationConfig/get", params);
    assert_eq!(
        got["result"]["pushNotificationConfig"]["url"],
        older.url.as_str()
    );
}

/// BR-092: nothing inside is called unless the operator says so.
#[test]
fn br_092_private_addresses_and_switched_off_webhooks_are_refused() {
    let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]});
    let off = "[webhooks]\nenabled = false\n";
    for (config, code) in [("", -32602), (off, -32003)] {
        let (server, inside) = (Server::configured(config), receiver());
        let params = json!({"message": message,
            "configuration": {"taskPushNotificationConfig": {"url": inside.url}}});
        let refused = json_rpc(&server, "1.0", "SendMessage", params);
        assert_eq!(refused["error"]["code"], code, "{refused}");
        assert!(inside.requests().is_empty());
    }
}

/// P6: a crash loses nothing.
#[test]
fn what_was_not_delivered_is_delivered_after_a_crash() {
    let works = Arc::new(AtomicBool::new(false));
    let receiver = Fake::bare({
        let works = Arc::clone(&works);
        move |_| {
            let status = if works.load(Ordering::SeqCst) {
                "200 OK"
            } else {
                "503 Service Unavailable"
            };
            (status, "text/plain", String::new())
        }
    });
    let server = Server::configured(CONFIG);
    let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]});
    let params = json!({"message": message,
        "configuration": {"taskPushNotificationConfig": {"url": receiver.url}}});
    let sent = json_rpc(&server, "1.0", "SendMessage", params);
    assert_eq!(
        sent["result"]["task"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    told(&receiver, |_| true);
    let folder = server.crash();
    works.store(true, Ordering::SeqCst);
    let path = folder.path().join("nuncio.toml");
    let mut server = Server::start_in(folder, &["--config".as_ref(), path.as_os_str()]);
    let told = told(&receiver, is_completed);
    assert!(told.len() > 3, "one refused, then task, artifact and end");
    server.signal("TERM");
    assert_eq!(server.ends_within(Duration::from_secs(20)), 0);
}

/// R13, P6: the sender is killed 20 times while it delivers: every event of every task arrives at
/// least once and in order, with one id.
#[test]
fn r13_twenty_kills_lose_no_event_and_keep_the_order() {
    let receiver = Fake::bare(|_| {
        // Long enough for a kill to fall between call and cursor.
        std::thread::sleep(Duration::from_millis(3));
        ("200 OK", "text/plain", String::new())
    });
    let mut server = Server::configured(CONFIG);
    let mut tasks: Vec<String> = Vec::new();
    for round in 0..20 {
        for n in 0..5 {
            let id = format!("{round}.{n}");
            let message =
                json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": "hello"}]});
            let params = json!({"message": message,
                "configuration": {"taskPushNotificationConfig": {"url": receiver.url}}});
            let sent = json_rpc(&server, "1.0", "SendMessage", params);
            tasks.push(sent["result"]["task"]["id"].as_str().unwrap().to_owned());
        }
        let folder = server.crash();
        let path = folder.path().join("nuncio.toml");
        server = Server::start_in(folder, &["--config".as_ref(), path.as_os_str()]);
    }
    let positions = |task: &str| -> Vec<u64> {
        let of_task = |request: Request| {
            let (of, position) = request.header("webhook-id")?.rsplit_once('.')?;
            (of == task).then(|| position.parse().unwrap())
        };
        receiver
            .requests()
            .into_iter()
            .filter_map(of_task)
            .collect()
    };
    let began = Instant::now();
    for task in &tasks {
        // An echo is told in four events, or in three if its task begins with its end.
        loop {
            let told = positions(task);
            let request = receiver.requests().into_iter().rfind(|request| {
                request
                    .header("webhook-id")
                    .is_some_and(|id| id.starts_with(task))
            });
            let ended = request
                .is_some_and(|request| is_completed(&serde_json::from_str(&request.body).unwrap()));
            if ended {
                let mut once = told.clone();
                once.dedup();
                let expected: Vec<u64> = (1..=*told.last().unwrap()).collect();
                assert_eq!(once, expected, "in order and without gaps: {told:?}");
                break;
            }
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "{task}: {told:?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
