//! `nuncio push` and `nuncio webhook` against the real binary.

use std::fs;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::fake::{Fake, Request};
use crate::support::{Said, Server, exchange, line_from, nuncio, rest, run, signal, wait};

const ADMIN: &str = "admin-secret";

/// An echo agent and an administrator; `webhooks` are settings of that section.
pub(crate) fn config(webhooks: &str) -> String {
    let digest = Sha256::digest(ADMIN);
    let admin: String = digest.iter().map(|b| format!("{b:02x}")).collect();
    format!(
        "[webhooks]\nallow_networks = [\"127.0.0.0/8\"]\n{webhooks}\n\
         [auth]\nanonymous = true\n\
         [[auth.keys]]\nsha256 = \"{admin}\"\ncaller = \"root\"\nadmin = true\n\
         [[agents]]\nid = \"echo\"\nkind = \"echo\"\n"
    )
}

/// A receiver that answers with a status that may be changed.
fn fickle(status: u16) -> (Fake, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(status));
    let told = Arc::clone(&status);
    let receiver = Fake::bare(move |_| {
        let status = match told.load(Ordering::SeqCst) {
            200 => "200 OK",
            404 => "404 Not Found",
            _ => "410 Gone",
        };
        (status, "text/plain", String::new())
    });
    (receiver, status)
}

/// Sends a message with a webhook and gives the task's id.
pub(crate) fn send(server: &Server, message: &str, webhook: &Value) -> String {
    let message = json!({"messageId": message, "role": "ROLE_USER", "parts": [{"text": "hello"}]});
    let body = json!({"message": message,
        "configuration": {"taskPushNotificationConfig": webhook}});
    let headers = [("Content-Type", "application/json")];
    let sent = exchange(
        &server.url,
        "POST",
        "/message:send",
        &headers,
        &body.to_string(),
    );
    sent.json()["task"]["id"].as_str().unwrap().to_owned()
}

pub(crate) fn push(server: &Server, words: &[&str]) -> Said {
    let mut command = nuncio(server.folder.path());
    command.arg("push").args(words);
    command
        .env("A2ACLI_SERVER", &server.url)
        .env("A2ACLI_API_KEY", ADMIN);
    run(command, "")
}

#[track_caller]
pub(crate) fn until<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "it does not come"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Shows a webhook once it stands as wanted.
pub(crate) fn shown(server: &Server, task: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    until(|| {
        let shown = push(server, &["show", task, "w", "-o", "json"])
            .exits(0)
            .json();
        wanted(&shown).then_some(shown)
    })
}

/// R13, P6: a receiver that is gone disables its webhook; an operator sees it and enables it again,
/// and all events arrive.
#[test]
fn an_operator_finds_what_is_disabled_and_delivers_it() {
    let (receiver, status) = fickle(410);
    let server = Server::configured(&config(""));
    assert_eq!(push(&server, &["list"]).exits(0).out, "");
    let url = format!("{}/hook?key=hidden", receiver.url);
    let task = send(&server, "m1", &json!({"id": "w", "url": url}));
    let gone = shown(&server, &task, |one| {
        !one["calls"].as_array().unwrap().is_empty()
    });
    assert_eq!(
        (&gone["state"], &gone["disabled"]),
        (&json!("disabled"), &json!("gone"))
    );
    assert_eq!(gone["calls"][0]["outcome"], "410");
    assert_eq!(gone["url"], format!("{}/hook?***", receiver.url));

    let listed = push(&server, &["list", "--trouble"]).exits(0);
    for (label, value) in [
        ("Webhook", "w"),
        ("Task", &task),
        ("Agent", "echo"),
        ("Workspace", "default"),
        ("State", "disabled"),
        ("Disabled", "gone"),
        ("Delivered", "0"),
    ] {
        assert_eq!(listed.field(label), value);
    }
    assert!(!listed.out.contains("hidden"));
    let listed = push(&server, &["list", "--task", "other", "-o", "json"])
        .exits(0)
        .json();
    assert_eq!(listed, json!({"webhooks": []}));

    assert_eq!(
        push(&server, &["test", &task, "w"])
            .exits(1)
            .field("Outcome"),
        "410"
    );
    status.store(200, Ordering::SeqCst);
    let tried = push(&server, &["test", &task, "w", "-o", "json"])
        .exits(0)
        .json();
    assert_eq!(tried["taken"], true);
    let redelivered = push(&server, &["redeliver", &task, "w"]).exits(0);
    assert_eq!(redelivered.out, "Letters: 0\n");
    let idle = shown(&server, &task, |one| one["state"] == "idle");
    assert_eq!(idle["delivered"], idle["newest"]);
    assert_eq!(push(&server, &["list", "--trouble"]).exits(0).out, "");
}

/// P6: what was given up is a dead letter until somebody has it delivered again.
#[test]
fn dead_letters_are_recovered() {
    // Each event gets one call, and is given up if it fails.
    let server = Server::configured(&config("max_attempt_hours = 0"));
    let (receiver, status) = fickle(404);
    let task = send(&server, "m1", &json!({"id": "w", "url": receiver.url}));
    let dead = shown(&server, &task, |one| one["delivered"] == one["newest"]);
    let count = dead["newest"].as_u64().unwrap();
    assert_eq!(
        (&dead["deadLetters"], &dead["state"]),
        (&json!(count), &json!("failing"))
    );
    let text = push(&server, &["show", &task, "w"]).exits(0);
    assert_eq!(text.field("Dead Letters"), count.to_string());
    assert_eq!(text.field("Dead Letter"), "1");
    assert_eq!(text.field("Outcome"), "404");

    status.store(200, Ordering::SeqCst);
    let future = push(
        &server,
        &["recover", "--since", "2999-01-31T12:00:00Z", "-o", "json"],
    );
    assert_eq!(future.exits(0).json(), json!({"letters": 0}));
    let one = push(&server, &["redeliver", &task, "w", "--position", "2"]).exits(0);
    assert_eq!(one.out, "Letters: 1\n");
    shown(&server, &task, |one| one["deadLetters"] == count - 1);
    let before = receiver.requests().len();
    let rest = push(&server, &["recover", "--since", "2h"]).exits(0);
    assert_eq!(rest.out, format!("Letters: {}\n", count - 1));
    let healthy = shown(&server, &task, |one| one["deadLetters"] == 0);
    assert_eq!(healthy["state"], "idle");
    let again = &receiver.requests()[before..];
    let again: Vec<&str> = again
        .iter()
        .filter_map(|one| one.header("webhook-id"))
        .collect();
    let expected: Vec<String> = (1..=count)
        .filter(|position| *position != 2)
        .map(|position| format!("{task}.{position}"))
        .collect();
    assert_eq!(again, expected);

    let nobody = push(&server, &["show", "nobody", "w"]).exits(1);
    assert!(nobody.err.contains("nuncio push list"), "{nobody:?}");
    let wrong = push(&server, &["recover", "--since", "yesterday"]).exits(2);
    assert!(wrong.err.contains("--since 2h"), "{wrong:?}");
    let mut keyless = nuncio(server.folder.path());
    keyless.args(["push", "list", "--server", &server.url]);
    run(keyless, "").exits(4);
}

/// The administrators' address refuses what makes no sense, and names it.
#[test]
fn wrong_requests_are_refused_with_their_field() {
    let server = Server::configured(&config(""));
    let headers = [("X-API-Key", ADMIN), ("Content-Type", "application/json")];
    for (method, path, body, status, field) in [
        ("GET", "/push?limit=0", "", 400, "limit"),
        ("GET", "/push?trouble=maybe", "", 400, "trouble"),
        ("GET", "/push?color=blue", "", 400, "color"),
        ("GET", "/push?afterTask=t", "", 400, "afterConfig"),
        ("POST", "/push/recover", "{}", 400, "since"),
        (
            "POST",
            "/push/recover",
            r#"{"since": "soon"}"#,
            400,
            "since",
        ),
        (
            "POST",
            "/push/recover",
            r#"{"until": "soon"}"#,
            400,
            "until",
        ),
        (
            "POST",
            "/push/t/w/redeliver",
            r#"{"position": -1}"#,
            400,
            "position",
        ),
        ("POST", "/push/t/w/redeliver", "{}", 404, "config w"),
        ("POST", "/push/t/w/test", "", 404, "config w"),
        ("DELETE", "/push/t/w", "", 405, "GET"),
        ("GET", "/push/a/b/c/d", "", 404, "no such path"),
    ] {
        let path = format!("/admin/v1{path}");
        let refused = exchange(&server.url, method, &path, &headers, body);
        assert_eq!(refused.status, status, "{path} {refused:?}");
        assert!(refused.body.contains(field), "{path} {refused:?}");
    }
    let open = exchange(&server.url, "GET", "/admin/v1/push", &[], "");
    assert_eq!(open.status, 403, "not without the key of an administrator");
}

/// A server that signs, with the files that a receiver needs.
fn signing() -> Server {
    let folder = tempfile::tempdir().unwrap();
    let made = |words: &[&str]| {
        let mut command = nuncio(folder.path());
        command.args(["keys", "create"]).args(words);
        run(command, "").exits(0)
    };
    let secret = made(&["--webhook", "secret.txt"]);
    assert!(secret.out.contains("signing_secret_file = \"secret.txt\""));
    made(&["--card", "key.pem", "--algorithm", "EdDSA"]);
    let text = fs::read_to_string(folder.path().join("secret.txt")).unwrap();
    assert!(text.starts_with("whsec_") && !secret.out.contains(text.trim()));
    let path = folder.path().join("nuncio.toml");
    let settings =
        config("signing_secret_file = \"secret.txt\"\nsigning_keys = [\"key.pem\"]\njwt = true");
    fs::write(&path, settings).unwrap();
    Server::start_in(folder, &["--config".as_ref(), path.as_os_str()])
}

fn verify(server: &Server, words: &[&str], input: &str) -> Said {
    let mut command = nuncio(server.folder.path());
    command.args(["webhook", "verify"]).args(words);
    run(command, input)
}

fn head(request: &Request) -> String {
    let mut head = format!("{}\r\n", request.line.trim());
    for (name, value) in &request.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}

/// S07, PUSH-14: signed with a shared secret and with a key that is published; a byte off is
/// exit code 1.
#[test]
fn s07_calls_are_signed_and_verified() {
    let server = signing();
    let (receiver, _) = fickle(200);
    let webhook = json!({"id": "w", "url": receiver.url, "authentication": {"scheme": "Bearer"}});
    send(&server, "m1", &webhook);
    let request = until(|| receiver.requests().first().cloned());
    let jwks = exchange(&server.url, "GET", "/.well-known/jwks.json", &[], "");
    fs::write(server.folder.path().join("jwks.json"), &jwks.body).unwrap();
    fs::write(server.folder.path().join("headers.txt"), head(&request)).unwrap();
    fs::write(server.folder.path().join("body.json"), &request.body).unwrap();
    let files = ["--headers", "headers.txt", "--body", "body.json"];
    for trust in [["--secret-file", "secret.txt"], ["--keys", "jwks.json"]] {
        let words = [&files[..], &trust[..]].concat();
        let good = verify(&server, &words, "").exits(0);
        assert_eq!(good.field("Signature"), "valid");
        let whole = format!("{}\r\n{}", head(&request), request.body);
        let good = verify(&server, &[&trust[..], &["-o", "json"]].concat(), &whole).exits(0);
        assert_eq!(good.json()["signature"], "valid");
        let altered = whole.replace("\"task\"", "\"tusk\"");
        let bad = verify(&server, &trust, &altered).exits(1);
        assert_eq!(bad.field("Signature"), "invalid");
        let late = [&words[..], &["--at", "2999-01-31T12:00:00Z"]].concat();
        let late = verify(&server, &late, "").exits(1);
        assert_eq!(late.field("Reason"), "the call is too old");
    }
    verify(&server, &files, "").exits(2);
    let nothing = verify(&server, &["--secret-file", "secret.txt"], "A: b\n\n{}").exits(2);
    assert!(nothing.err.contains("webhook-id"), "{nothing:?}");

    let token = request
        .header("authorization")
        .unwrap()
        .strip_prefix("Bearer ")
        .unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    assert_eq!(parts.len(), 3, "a token: {token}");
    let kid = &jwks.json()["keys"][0]["kid"];
    assert!(decoded(parts[0]).contains(kid.as_str().unwrap()));
    let claims: Value = serde_json::from_str(&decoded(parts[1])).unwrap();
    assert_eq!(
        (&claims["iss"], &claims["aud"]),
        (&json!(server.url), &json!(receiver.url))
    );
    assert_eq!(claims["jti"], *request.header("webhook-id").unwrap());
}

/// Reads base64url.
fn decoded(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for digit in text.bytes() {
        let value = DIGITS.iter().position(|known| *known == digit).unwrap();
        bits = bits << 6 | u32::try_from(value).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Without keys nothing is published, and a wrong configuration is refused by name.
#[test]
fn what_signs_is_checked_at_the_start() {
    let server = Server::configured(&config(""));
    let none = exchange(&server.url, "GET", "/.well-known/jwks.json", &[], "");
    assert_eq!(none.status, 404);
    let folder = server.folder.path();
    let mut made = nuncio(folder);
    made.args(["keys", "create", "--card", "p256.pem"]);
    run(made, "").exits(0);
    fs::write(folder.join("empty.txt"), "\n").unwrap();
    for (webhooks, said) in [
        (
            "signing_secret = \"seeded-hunter2\"",
            "webhooks.signing_secret",
        ),
        ("signing_secret = \"\"", "webhooks.signing_secret"),
        ("jwt = true", "webhooks.jwt"),
        (
            "signing_secret_file = \"empty.txt\"",
            "empty.txt holds none",
        ),
        (
            "signing_keys = [\"p256.pem\"]",
            "webhooks are signed with Ed25519",
        ),
        ("signing_keys = [\"nowhere.pem\"]", "nowhere.pem"),
        ("max_per_task = 1001", "webhooks.max_per_task"),
    ] {
        fs::write(folder.join("wrong.toml"), config(webhooks)).unwrap();
        let mut command = nuncio(folder);
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", "memory:"]);
        command.args(["--config", "wrong.toml"]);
        let refused = run(command, "");
        assert_ne!(refused.code, 0);
        assert!(refused.err.contains(said), "{webhooks}: {refused:?}");
        assert!(!refused.err.contains("hunter2"), "{refused:?}");
    }
}

/// A receiver of ours.
struct Listening {
    child: Child,
    url: String,
}

impl Listening {
    fn start(server: &Server, words: &[&str]) -> Self {
        let mut command = nuncio(server.folder.path());
        command.args(["push", "listen"]).args(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let line = line_from(child.stderr.as_mut().unwrap(), "receiving at ");
        let url = line
            .trim_start_matches("receiving at ")
            .trim_end_matches('/');
        Self {
            url: url.to_owned(),
            child,
        }
    }

    /// Ends it and gives what it has printed.
    fn end(mut self) -> Vec<Value> {
        signal(self.child.id(), "TERM");
        assert_eq!(wait(&mut self.child, Duration::from_secs(10)), 0);
        let printed = rest(self.child.stdout.take().unwrap());
        printed
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A receiver for development prints, verifies and passes on; what its target says is its answer.
#[test]
fn notifications_are_received_verified_and_passed_on() {
    let server = signing();
    let (target, _) = fickle(200);
    let to = format!("{}/inner", target.url);
    let words = [
        "--secret-file",
        "secret.txt",
        "--forward-to",
        &to,
        "-o",
        "json",
    ];
    let listening = Listening::start(&server, &words);
    let url = format!("{}/hook", listening.url);
    let webhook = json!({"id": "w", "url": url, "token": "seeded-token"});
    let task = send(&server, "m1", &webhook);
    shown(&server, &task, |one| one["state"] == "idle");
    let passed = target.requests();
    assert!(
        passed
            .iter()
            .all(|request| request.line.starts_with("POST /inner "))
    );
    assert_eq!(
        passed[0].header("x-a2a-notification-token"),
        Some("seeded-token")
    );
    let forged = exchange(
        &listening.url,
        "POST",
        "/hook",
        &[("webhook-id", "x")],
        "{}",
    );
    assert_eq!(forged.status, 401);
    let told = listening.end();
    assert_eq!(told.len(), passed.len() + 1);
    assert!(
        !json!(told).to_string().contains("seeded"),
        "no credentials are shown"
    );
    let forgery = told.last().unwrap();
    assert_eq!(
        (&forgery["signature"], &forgery["forwarded"]),
        (&json!("invalid"), &json!(null))
    );
    for (one, request) in told.iter().zip(&passed) {
        assert_eq!(
            (&one["signature"], &one["forwarded"]),
            (&json!("valid"), &json!("200"))
        );
        assert_eq!(one["path"], "/hook");
        assert_eq!(one["webhookId"], *request.header("webhook-id").unwrap());
        assert_eq!(
            one["body"],
            serde_json::from_str::<Value>(&request.body).unwrap()
        );
    }
}

/// A target that refuses is a webhook that refuses; one that is not there is a gateway without a way.
#[test]
fn what_the_target_answers_is_passed_back() {
    let server = Server::configured(&config(""));
    let (target, _) = fickle(410);
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    for (to, status) in [(target.url.as_str(), 410), (&nobody, 502)] {
        let listening = Listening::start(&server, &["--forward-to", to, "-o", "json"]);
        let answer = exchange(&listening.url, "POST", "/", &[], "{}");
        assert_eq!(answer.status, status);
        assert_eq!(listening.end()[0]["signature"], "unchecked");
    }
    let mut wrong = nuncio(server.folder.path());
    wrong.args(["push", "listen", "--forward-to", "nonsense"]);
    run(wrong, "").exits(2);
}

/// S08: seeded secrets are in no answer, no log, no file and no command's output.
#[test]
fn s08_no_secret_is_ever_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nuncio.toml");
    let secret = "whsec_c2VlZGVkLXNlY3JldC1zZWVkZWQtc2VjcmV0LTEyMzQ=";
    let settings = config(&format!("signing_secret = \"{secret}\""));
    fs::write(&path, settings).unwrap();
    let words = [
        "--config".as_ref(),
        path.as_os_str(),
        "--log-level".as_ref(),
        "trace".as_ref(),
    ];
    let server = Server::start_in(folder, &words);
    let seeds = ["seeded-token", "seeded-credentials", "c2VlZGVk"];
    let silent = |what: &str, text: &str| {
        for seed in seeds {
            assert!(!text.contains(seed), "{seed} in {what}");
        }
    };
    let (receiver, _) = fickle(404);
    let webhook = |id: &str| {
        json!({"id": id, "url": receiver.url, "token": "seeded-token",
            "authentication": {"scheme": "Bearer", "credentials": "seeded-credentials"}})
    };
    let task = send(&server, "m1", &webhook("w"));
    let called = until(|| receiver.requests().first().cloned());
    assert_eq!(
        called.header("authorization"),
        Some("Bearer seeded-credentials")
    );

    let configs = format!("/tasks/{task}/pushNotificationConfigs");
    let json_type = [("Content-Type", "application/json")];
    let made = exchange(
        &server.url,
        "POST",
        &configs,
        &json_type,
        &webhook("x").to_string(),
    );
    assert_eq!((made.status, &made.json()["id"]), (200, &json!("x")));
    silent("create", &made.body);
    let mut older = webhook("y");
    older["authentication"] = json!({"schemes": ["Bearer"], "credentials": "seeded-credentials"});
    let older = json!({"taskId": task, "pushNotificationConfig": older});
    let of_older = json!({"id": task});
    for (version, method, params) in [
        (
            "1.0",
            "ListTaskPushNotificationConfigs",
            json!({"taskId": task}),
        ),
        (
            "1.0",
            "GetTaskPushNotificationConfig",
            json!({"taskId": task, "id": "w"}),
        ),
        ("0.3", "tasks/pushNotificationConfig/set", older),
        ("0.3", "tasks/pushNotificationConfig/get", of_older.clone()),
        ("0.3", "tasks/pushNotificationConfig/list", of_older),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers = [json_type[0], ("A2A-Version", version)];
        let reply = exchange(&server.url, "POST", "/", &headers, &body.to_string());
        assert!(reply.json().get("result").is_some(), "{method}: {reply:?}");
        silent(method, &reply.body);
    }
    // A webhook that cannot be registered is refused without its secrets.
    let mut wrong = webhook("z");
    wrong["url"] = json!("http://10.0.0.1/");
    let refused = exchange(
        &server.url,
        "POST",
        &configs,
        &json_type,
        &wrong.to_string(),
    );
    assert_eq!(refused.status, 400);
    silent("refusal", &refused.body);
    let admin = [("X-API-Key", ADMIN)];
    for path in [
        configs.clone(),
        format!("{configs}/w"),
        format!("/tasks/{task}"),
        "/.well-known/agent-card.json".to_owned(),
        "/admin/v1/push".to_owned(),
        format!("/admin/v1/push/{task}/w"),
    ] {
        let headers = if path.starts_with("/admin") {
            &admin[..]
        } else {
            &[]
        };
        let got = exchange(&server.url, "GET", &path, headers, "");
        assert_eq!(got.status, 200, "{path}");
        silent(&path, &got.body);
    }
    for words in [
        &["list"][..],
        &["show", &task, "w"],
        &["redeliver", &task, "w"],
    ] {
        let said = push(&server, words).exits(0);
        silent("a command", &(said.out + &said.err));
    }
    let mut dump = nuncio(server.folder.path());
    dump.args(["config", "dump", "--config", "nuncio.toml"]);
    let dumped = run(dump, "").exits(0);
    assert!(
        dumped.out.contains("signing_secret = \"***\""),
        "{dumped:?}"
    );
    silent("config dump", &dumped.out);

    let mut server = server;
    server.signal("TERM");
    assert_eq!(server.ends_within(Duration::from_secs(20)), 0);
    silent("the log", &server.log());
    assert!(server.log().contains("TRACE"), "everything was logged");
    let data = server.folder.path().join("nuncio-data");
    let mut files = 0;
    for entry in fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            silent(
                &path.display().to_string(),
                &String::from_utf8_lossy(&bytes),
            );
            files += 1;
        }
    }
    assert!(files >= 2, "the database and the key");
}
