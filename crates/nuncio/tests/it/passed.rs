//! Agents elsewhere that calls are passed on to, by the real binary: whose tasks are whose, between all
//! versions and bindings, and what comes through.

use serde_json::{Value, json};

use crate::fake::{Answer, Fake, Request, events};
use crate::support::{Exchange, Said, Server, exchange, until};

const OUTBOUND: &str = "[outbound]\nallow_networks = [\"127.0.0.0/8\"]\n";

/// Two callers with the keys `alpha` and `beta`.
const CALLERS: &str = "
[[auth.keys]]
sha256 = \"8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\"
caller = \"a\"

[[auth.keys]]
sha256 = \"f44e64e75f3948e9f73f8dfa94721c4ce8cbb4f265c4790c702b2d41cfbf2753\"
caller = \"b\"
";

/// An agent that asks which one is meant, and ends with the answer.
const ASKER: &str = "
[[agents]]
id = \"asker\"
kind = \"script\"
[[agents.rules]]
otherwise = true
steps = [{ pause = { prompt = \"which?\", on_answer = [{ text = \"that one\" }] } }]
";

/// The configuration of a server that passes on to `url`; `more` are settings of the agent.
fn passing(url: &str, more: &str) -> String {
    format!(
        "{OUTBOUND}\n[[agents]]\nid = \"far\"\nkind = \"a2a\"\nurl = \"{url}\"\n\
         pass_through = true\n{more}\n"
    )
}

fn keyed(url: &str, more: &str) -> String {
    format!("{}{CALLERS}", passing(url, more))
}

/// One request; nobody in particular asks with the key `-`.
fn asked(server: &Server, method: &str, path: &str, key: &str, body: &Value) -> Exchange {
    let authorization = format!("Bearer {key}");
    let mut headers = vec![("Content-Type", "application/json"), ("A2A-Version", "1.0")];
    if key != "-" {
        headers.push(("Authorization", &authorization));
    }
    let body = match method {
        "GET" => String::new(),
        _ => body.to_string(),
    };
    exchange(&server.url, method, path, &headers, &body)
}

fn message(id: &str, text: &str) -> Value {
    json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}})
}

/// What each of two callers is told, over every binding: an own task goes on, another's is not there,
/// in the same words as one that nobody has.
#[test]
fn nobody_reaches_a_task_of_another_caller() {
    let far = Server::configured(ASKER);
    let server = Server::configured(&keyed(&far.url, ""));
    for binding in ["JSONRPC", "HTTP+JSON", "GRPC"] {
        let run = |key: &str, words: &[&str], more: &[&str]| -> Said {
            let all = [&["--api-key", key, "--transport", binding][..], more].concat();
            server.run(words, &all)
        };
        let sent = run("alpha", &["send", "go"], &[]);
        let id = sent.field("Task ID");
        assert_eq!(sent.field("State"), "INPUT_REQUIRED", "{binding}");
        let context = sent.field("Context ID");
        for words in [
            &["task", "get"][..],
            &["task", "cancel"],
            &["task", "subscribe"],
            &["send", "the red one", "--task-id"],
        ] {
            let told = |id: &str| {
                let said = run("beta", &[words, &[id]].concat(), &[]).exits(1);
                said.err.replace(id, "ID")
            };
            let (foreign, absent) = (told(&id), told("no-such-task"));
            assert_eq!(foreign, absent, "{binding} {words:?}");
            assert!(foreign.contains("task ID not found"), "{foreign}");
        }
        let words = ["send", "go", "--context-id", &context];
        let spied = run("beta", &words, &[]).exits(1);
        assert!(spied.err.contains("is not known here"), "{spied:?}");
        assert!(!spied.err.contains(&context), "{spied:?}");
        let listed = |key: &str| {
            let listed = run(key, &["task", "list"], &["-o", "json"]).exits(0);
            listed.json()["totalSize"].as_u64().unwrap()
        };
        assert_eq!(listed("beta"), 0, "{binding}");
        let own = listed("alpha");
        let done = run("alpha", &["send", "the red one", "--task-id", &id], &[]);
        assert_eq!(done.field("State"), "COMPLETED", "{binding}: {done:?}");
        assert_eq!(done.field("Task ID"), id, "{binding}");
        assert_eq!(listed("alpha"), own, "{binding}");
    }
}

/// BR-165, BR-185: after a restart of the server a task is reached by its owner, and by nobody else.
#[test]
fn br_165_a_passed_task_outlives_the_server() {
    let far = Server::configured(ASKER);
    let server = Server::configured(&keyed(&far.url, ""));
    let sent = asked(
        &server,
        "POST",
        "/message:send",
        "alpha",
        &message("m1", "go"),
    )
    .json();
    let id = sent["task"]["id"].as_str().unwrap().to_owned();
    let folder = server.crash();
    let file = folder.path().join("nuncio.toml");
    let server = Server::start_in(folder, &["--config".as_ref(), file.as_os_str()]);
    let path = format!("/tasks/{id}");
    assert_eq!(
        asked(&server, "GET", &path, "beta", &json!(null)).status,
        404
    );
    let got = asked(&server, "GET", &path, "alpha", &json!(null)).json();
    assert_eq!(got["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{got}");
    let cancel = format!("/tasks/{id}:cancel");
    assert_eq!(
        asked(&server, "POST", &cancel, "beta", &json!({})).status,
        404
    );
    let canceled = asked(&server, "POST", &cancel, "alpha", &json!({})).json();
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
    let kept = std::fs::read(server.folder.path().join("nuncio-data/nuncio.db"));
    let log = kept.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(
        !log.unwrap().contains("which?"),
        "nothing of the content is kept"
    );
}

/// A caller of one version reaches an agent of the other, over every binding.
#[test]
fn both_versions_reach_agents_of_the_other() {
    for (theirs, ours) in [("0.3", "1.0"), ("1.0", "0.3")] {
        let far = ASKER.replace(
            "kind = \"script\"",
            &format!("kind = \"script\"\ndialects = [\"{theirs}\"]"),
        );
        let far = Server::configured(&far);
        for there in ["JSONRPC", "HTTP+JSON", "GRPC"] {
            let more = format!("binding = \"{there}\"");
            let server = Server::configured(&passing(&far.url, &more));
            for here in ["JSONRPC", "HTTP+JSON", "GRPC"] {
                let way = format!("{ours} {here} to {theirs} {there}");
                let more = ["--transport", here, "--a2a-version", ours];
                let sent = server.run(&["send", "go"], &more);
                assert_eq!(sent.field("State"), "INPUT_REQUIRED", "{way}: {sent:?}");
                let id = sent.field("Task ID");
                let words = ["send", "the red one", "--stream", "--task-id", &id];
                let done = server.run(&words, &more).exits(0);
                assert!(done.out.contains("that one"), "{way}: {done:?}");
                let got = server.run(&["task", "get", &id], &more).exits(0);
                assert!(got.out.contains("COMPLETED"), "{way}: {got:?}");
                if theirs == "0.3" {
                    let listed = server.run(&["task", "list"], &more).exits(1);
                    assert!(listed.err.contains("0.3"), "{way}: {listed:?}");
                }
            }
        }
    }
}

fn answered(request: &Request, answer: impl Fn(&str, &Value) -> Value) -> Answer {
    let asked: Value = serde_json::from_str(&request.body).unwrap();
    let method = asked["method"].as_str().unwrap();
    let mut body = answer(method, &asked["params"]);
    if body.get("error").is_none() {
        body = json!({ "result": body });
    }
    body["jsonrpc"] = json!("2.0");
    body["id"] = asked["id"].clone();
    ("200 OK", "application/json", body.to_string())
}

fn task(id: &str, state: Value) -> Value {
    json!({"id": id, "contextId": "c", "status": {"state": state}})
}

fn completed(id: &str) -> Value {
    task(id, json!("TASK_STATE_COMPLETED"))
}

const PUSHING: &str = "{\"capabilities\": {\"streaming\": true, \"pushNotifications\": true}}";

/// An agent that answers each operation, of one task.
fn obliging(request: &Request) -> Answer {
    let working = || task("far", json!("TASK_STATE_WORKING"));
    let config = json!({"id": "w", "taskId": "far", "url": "https://receiver.example/"});
    let asked: Value = serde_json::from_str(&request.body).unwrap();
    if let Some("SendStreamingMessage" | "SubscribeToTask") = asked["method"].as_str() {
        let told = [
            json!({"task": working()}),
            json!({"task": completed("far")}),
        ];
        return ("200 OK", "text/event-stream", events(&told));
    }
    answered(request, |method, _| match method {
        "SendMessage" => json!({"task": working()}),
        "ListTasks" => {
            json!({"tasks": [working()], "nextPageToken": "", "pageSize": 50, "totalSize": 1})
        }
        "ListTaskPushNotificationConfigs" => json!({"configs": [config]}),
        "DeleteTaskPushNotificationConfig" => json!({}),
        method if method.contains("Push") => config.clone(),
        _ => working(),
    })
}

/// The operations below a task of the agent above.
const OPERATIONS: [(&str, &str); 9] = [
    ("GET", "/tasks/far"),
    ("GET", "/tasks"),
    ("POST", "/tasks/far:cancel"),
    ("POST", "/tasks/far:subscribe"),
    ("POST", "/tasks/far/pushNotificationConfigs"),
    ("GET", "/tasks/far/pushNotificationConfigs/w"),
    ("GET", "/tasks/far/pushNotificationConfigs"),
    ("DELETE", "/tasks/far/pushNotificationConfigs/w"),
    ("POST", "/message:stream"),
];

/// BR-164, BR-150: each operation reaches the agent with what is configured, of the caller's headers
/// with those that are let through, and with no other.
#[test]
fn br_164_each_operation_has_the_allowed_headers_only() {
    let far = Fake::with_card(serde_json::from_str(PUSHING).unwrap(), obliging);
    let more = "headers = { X-Fixed = \"f\" }\nbearer = \"ours\"\n\
                forward_headers = [\"X-Team\", \"X-Fixed\"]";
    let server = Server::configured(&passing(&far.url, more));
    let theirs = [
        ("Content-Type", "application/json"),
        ("A2A-Version", "1.0"),
        ("X-Team", "blue"),
        ("X-Fixed", "theirs"),
        ("X-Other", "secret"),
        ("Cookie", "a=secret"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
    ];
    let ask = |method: &str, path: &str, body: &Value| {
        let answer = exchange(&server.url, method, path, &theirs, &body.to_string());
        assert!(
            (200..300).contains(&answer.status),
            "{method} {path}: {answer:?}"
        );
    };
    ask("POST", "/message:send", &message("m1", "go"));
    for (method, path) in OPERATIONS {
        let body = match path {
            "/message:stream" => message("m2", "go"),
            _ => json!({"url": "https://receiver.example/"}),
        };
        ask(method, path, &body);
    }
    let requests = far.requests();
    let calls: Vec<_> = requests
        .iter()
        .filter(|asked| !asked.body.is_empty())
        .collect();
    assert_eq!(calls.len(), OPERATIONS.len() + 1);
    for asked in calls {
        let all = |name: &str| -> Vec<&str> {
            let named = asked.headers.iter();
            let named = named.filter(|(known, _)| known.eq_ignore_ascii_case(name));
            named.map(|(_, value)| value.as_str()).collect()
        };
        assert_eq!(all("authorization"), ["Bearer ours"], "{}", asked.body);
        assert_eq!(all("x-fixed"), ["f"], "{}", asked.body);
        assert_eq!(all("x-team"), ["blue"], "{}", asked.body);
        let trace = all("traceparent");
        assert!(
            trace[0].starts_with("00-0af7651916cd43dd8448eb211c80319c-"),
            "{trace:?}"
        );
        assert!(
            !format!("{:?}", asked.headers).contains("secret"),
            "{}",
            asked.body
        );
    }
}

/// BR-138, BR-141: states that are not known here and numbers of any size come through.
#[test]
fn br_138_br_141_states_and_numbers_come_through() {
    let data = json!({"rev": 1, "f": 1.5, "big": 9_007_199_254_740_993_i64});
    let parts = json!([{"data": data}]);
    let far = Fake::answering(move |request| {
        answered(request, |method, _| {
            let mut far = task("far", json!(99));
            far["artifacts"] = json!([{"artifactId": "a", "parts": parts}]);
            match method {
                "SendMessage" => json!({"task": far}),
                _ => far,
            }
        })
    });
    let server = Server::configured(&passing(&far.url, ""));
    let sent = asked(&server, "POST", "/message:send", "-", &message("m1", "go"));
    let got = asked(&server, "GET", "/tasks/far", "-", &json!(null));
    for told in [sent.json()["task"].clone(), got.json()] {
        let state = &told["status"]["state"];
        assert_eq!(
            *state, "TASK_STATE_UNSPECIFIED",
            "of a newer version: {told}"
        );
        let text = told["artifacts"][0]["parts"][0]["data"].to_string();
        assert_eq!(text, data.to_string(), "digit for digit");
    }
}

/// What the agent tells one caller is not another's, whatever it answers with.
#[test]
fn an_answer_about_another_callers_task_is_not_passed_on() {
    let far = Fake::answering(|request| {
        let asked: Value = serde_json::from_str(&request.body).unwrap();
        if asked["method"] == "SendStreamingMessage" {
            let told = [
                json!({"task": {"id": "new", "contextId": "d",
                    "status": {"state": "TASK_STATE_WORKING"}}}),
                json!({"statusUpdate": {"taskId": "far", "contextId": "c", "final": true,
                    "status": {"state": "TASK_STATE_COMPLETED"}}}),
            ];
            return ("200 OK", "text/event-stream", events(&told));
        }
        answered(request, |method, _| match method {
            "SendMessage" => json!({"task": completed("far")}),
            _ => completed("other"),
        })
    });
    let server = Server::configured(&keyed(&far.url, ""));
    let send = |key: &str, path: &str| asked(&server, "POST", path, key, &message("m1", "go"));
    assert_eq!(send("alpha", "/message:send").status, 200);
    let refused = [
        send("beta", "/message:send"),
        asked(&server, "GET", "/tasks/far", "alpha", &json!(null)),
        asked(&server, "POST", "/tasks/far:cancel", "alpha", &json!({})),
    ];
    for refused in refused {
        let told = refused.json()["error"].clone();
        assert_eq!(
            told["details"][0]["reason"], "INVALID_AGENT_RESPONSE",
            "{told}"
        );
    }
    let stream = send("beta", "/message:stream").body;
    assert!(stream.contains("\"new\""), "{stream}");
    assert!(stream.contains("INVALID_AGENT_RESPONSE"), "{stream}");
    assert!(!stream.contains("\"far\""), "{stream}");
    let warned = server.log();
    let warned = warned
        .matches("answers with a task or a context of another caller")
        .count();
    assert_eq!(warned, 4);
}

/// A stream that the agent cuts off ends with an error, and says nothing of the way to the agent.
#[test]
fn a_stream_that_breaks_off_ends_with_an_error() {
    let far = Fake::answering(|_| {
        let told = [json!({"task": task("far", json!("TASK_STATE_WORKING"))})];
        ("200 OK", "text/event-stream", events(&told))
    });
    let server = Server::configured(&passing(&far.url, ""));
    let stream = asked(
        &server,
        "POST",
        "/message:stream",
        "-",
        &message("m1", "go"),
    )
    .body;
    assert!(stream.contains("TASK_STATE_WORKING"), "{stream}");
    assert!(stream.contains("event: error"), "{stream}");
    assert!(stream.contains("UNAVAILABLE"), "{stream}");
    let port = far.url.rsplit(':').next().unwrap();
    assert!(!stream.contains(port), "{stream}");
}

/// A caller with few tasks among many of others makes ten requests there at most, and goes on with the
/// token of the last one.
#[test]
fn a_list_asks_the_agent_ten_times_at_most() {
    let far = Fake::answering(|request| {
        answered(request, |method, params| {
            if method == "SendMessage" {
                let text = params["message"]["parts"][0]["text"].as_str().unwrap();
                return json!({"task": completed(text)});
            }
            let from: usize = params["pageToken"]
                .as_str()
                .map_or(0, |at| at.parse().unwrap());
            let size = params["pageSize"].as_u64().unwrap() as usize;
            let next = (from + size).min(25);
            let tasks: Vec<Value> = (from..next).map(|n| completed(&format!("t{n}"))).collect();
            let token = if next < 25 {
                next.to_string()
            } else {
                String::new()
            };
            json!({"tasks": tasks, "nextPageToken": token, "pageSize": size, "totalSize": 25})
        })
    });
    let server = Server::configured(&keyed(&far.url, ""));
    for (n, id) in ["t3", "t24"].into_iter().enumerate() {
        let sent = message(&format!("m{n}"), id);
        assert_eq!(
            asked(&server, "POST", "/message:send", "alpha", &sent).status,
            200
        );
    }
    let list = |query: &str| {
        let before = far.requests().len();
        let listed = asked(
            &server,
            "GET",
            &format!("/tasks?{query}"),
            "alpha",
            &json!(null),
        )
        .json();
        let tasks = listed["tasks"].as_array().unwrap();
        let ids: Vec<_> = tasks
            .iter()
            .map(|t| t["id"].as_str().unwrap().to_owned())
            .collect();
        let token = listed["nextPageToken"].as_str().unwrap().to_owned();
        let requests = far.requests().len() - before;
        (ids, token, listed["totalSize"].as_u64().unwrap(), requests)
    };
    let first = list("pageSize=2");
    assert_eq!(first, (vec!["t3".to_owned()], "12".to_owned(), 2, 10));
    let second = list("pageSize=2&pageToken=12");
    assert_eq!(second, (vec!["t24".to_owned()], String::new(), 2, 7));
    let all = list("pageSize=100");
    assert_eq!(
        all,
        (vec!["t3".to_owned(), "t24".to_owned()], String::new(), 2, 1)
    );
}

/// Webhooks are the agent's: it calls them itself. Those that this server would not call it does not
/// pass on, and a task of another caller gets none.
#[test]
fn webhooks_are_kept_and_called_by_the_agent() {
    let receiver = Fake::bare(|_| ("200 OK", "text/plain", String::new()));
    let allowed = "[webhooks]\nallow_networks = [\"127.0.0.0/8\"]\n";
    let far = Server::configured(&format!("{allowed}{ASKER}"));
    let strict = Server::configured(&keyed(&far.url, ""));
    let server = Server::configured(&format!("{allowed}{}", keyed(&far.url, "")));
    let config = json!({"url": receiver.url, "token": "seeded"});
    let mut with_webhook = message("m1", "go");
    with_webhook["configuration"] = json!({"taskPushNotificationConfig": config});
    let refused = asked(&strict, "POST", "/message:send", "alpha", &with_webhook);
    assert_eq!(refused.status, 400, "{refused:?}");
    let field = "configuration.taskPushNotificationConfig.url";
    assert!(refused.body.contains(field), "{refused:?}");
    let card = || {
        asked(
            &server,
            "GET",
            "/.well-known/agent-card.json",
            "alpha",
            &json!(null),
        )
        .json()
    };
    until(|| card()["capabilities"]["pushNotifications"] == true);
    let sent = asked(&server, "POST", "/message:send", "alpha", &with_webhook).json();
    let id = sent["task"]["id"].as_str().unwrap();
    until(|| {
        receiver
            .requests()
            .iter()
            .any(|call| call.body.contains("INPUT_REQUIRED"))
    });
    let path = format!("/tasks/{id}/pushNotificationConfigs");
    let listed = |key: &str| asked(&server, "GET", &path, key, &json!(null));
    let configs = listed("alpha").json()["configs"].clone();
    assert_eq!(configs.as_array().unwrap().len(), 1);
    assert_eq!(listed("beta").status, 404);
    assert_eq!(asked(&server, "POST", &path, "beta", &config).status, 404);
    let other = json!({"url": "http://10.0.0.1/"});
    let refused = asked(&server, "POST", &path, "alpha", &other);
    assert_eq!(
        (refused.status, refused.body.contains("\"url\"")),
        (400, true)
    );
    let one = format!("{path}/{}", configs[0]["id"].as_str().unwrap());
    assert_eq!(
        asked(&server, "DELETE", &one, "beta", &json!({})).status,
        404
    );
    assert!(asked(&server, "DELETE", &one, "alpha", &json!({})).status < 300);
    assert_eq!(
        listed("alpha").json()["configs"].as_array().map(Vec::len),
        Some(0)
    );
    for server in [&server, &strict] {
        let kept = std::fs::read(server.folder.path().join("nuncio-data/nuncio.db")).unwrap();
        assert!(!String::from_utf8_lossy(&kept).contains("seeded"));
    }
}

/// BR-109, BR-163, BR-186: the card is the agent's description at our address, with what both offer and
/// without the agent's signatures; callers name the agent's extensions, and the agent is told of them.
#[test]
fn br_109_the_card_is_ours_with_the_agents_words() {
    let extra = json!({
        "capabilities": {"streaming": true, "pushNotifications": false, "extendedAgentCard": true,
            "extensions": [{"uri": "urn:far", "description": "theirs"}]},
        "signatures": [{"protected": "eyJhbGciOiJFUzI1NiJ9", "signature": "AAAA"}],
        "securitySchemes": {"k": {"apiKeySecurityScheme": {"location": "header", "name": "X"}}},
    });
    let far = Fake::with_card(extra, |request| {
        answered(request, |_, _| json!({"task": completed("far")}))
    });
    let server = Server::configured(&passing(&far.url, ""));
    let card = || exchange(&server.url, "GET", "/.well-known/agent-card.json", &[], "").json();
    until(|| card()["name"] == "Fake");
    let card = card();
    let offers = &card["capabilities"];
    assert_eq!(
        (&offers["streaming"], &offers["pushNotifications"]),
        (&json!(true), &json!(false))
    );
    assert_ne!(offers["extendedAgentCard"], true);
    assert_eq!(offers["extensions"][0]["uri"], "urn:far");
    assert!(
        card.get("signatures").is_none() && card.get("securitySchemes").is_none(),
        "{card}"
    );
    let far_port = far.url.rsplit(':').next().unwrap();
    assert!(!card.to_string().contains(far_port), "{card}");
    for interface in card["supportedInterfaces"].as_array().unwrap() {
        let url = interface["url"].as_str().unwrap();
        assert!(url.contains(&server.url["http://".len()..]), "{interface}");
    }
    let headers = [
        ("Content-Type", "application/json"),
        ("A2A-Version", "1.0"),
        ("A2A-Extensions", "urn:far"),
    ];
    let body = message("m1", "go").to_string();
    let sent = exchange(&server.url, "POST", "/message:send", &headers, &body);
    assert_eq!(sent.status, 200, "{sent:?}");
    let told = far.requests().pop().unwrap();
    assert_eq!(told.header("a2a-extensions"), Some("urn:far"));
    let card = exchange(&server.url, "GET", "/extendedAgentCard", &headers, "");
    assert_eq!(card.status, 400, "{card:?}");
}

/// A flow asks the same agent as a member: then there is a task here, and one there.
#[test]
fn a_flow_has_a_task_of_its_own_at_a_passing_agent() {
    let far = Server::echo();
    let flow = "[[agents]]\nid = \"flow\"\nkind = \"sequence\"\nmembers = [\"far\"]\n";
    let server = Server::configured(&format!("{}{flow}", passing(&far.url, "")));
    let path = "/agents/flow/message:send";
    let done = asked(&server, "POST", path, "-", &message("m1", "hello")).json()["task"].clone();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    assert_eq!(done["artifacts"][0]["parts"][0]["text"], "hello", "{done}");
    let there = exchange(&far.url, "GET", "/tasks", &[], "").json();
    assert_eq!(there["tasks"].as_array().unwrap().len(), 1);
    assert_ne!(there["tasks"][0]["id"], done["id"]);
    let passed = asked(&server, "GET", "/agents/far/tasks", "-", &json!(null)).json();
    assert_eq!(passed["tasks"], json!([]), "nobody has passed a message on");
}
