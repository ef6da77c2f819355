//! Errors: code, status, name and reason of each kind, in both bindings and both profiles.

use nuncio_protocol::StatusProfile;
use serde_json::{Value, json};

use crate::harness::{Served, Setup, say};

/// A kind of error: how to provoke it, its code, its status in 1.0.1 and in 1.0.0, its reason.
type Case = (
    &'static str,
    fn(&mut Setup),
    Provoke,
    i64,
    u16,
    u16,
    &'static str,
);

#[derive(Clone, Copy)]
enum Provoke {
    Say(&'static str),
    Stream,
    Webhooks,
    ExtendedCard,
    Version,
}

const CASES: &[Case] = &[
    (
        "TaskNotFound",
        |_| {},
        Provoke::Say("missing"),
        -32001,
        404,
        404,
        "TASK_NOT_FOUND",
    ),
    (
        "TaskNotCancelable",
        |_| {},
        Provoke::Say("not-cancelable"),
        -32002,
        400,
        409,
        "TASK_NOT_CANCELABLE",
    ),
    (
        "PushNotificationNotSupported",
        |setup| setup.card.capabilities.push_notifications = None,
        Provoke::Webhooks,
        -32003,
        400,
        400,
        "PUSH_NOTIFICATION_NOT_SUPPORTED",
    ),
    (
        "UnsupportedOperation: streaming",
        |setup| setup.card.capabilities.streaming = Some(false),
        Provoke::Stream,
        -32004,
        400,
        400,
        "UNSUPPORTED_OPERATION",
    ),
    (
        "UnsupportedOperation: extended card",
        |setup| setup.card.capabilities.extended_agent_card = None,
        Provoke::ExtendedCard,
        -32004,
        400,
        400,
        "UNSUPPORTED_OPERATION",
    ),
    (
        "UnsupportedOperation: of the agent",
        |_| {},
        Provoke::Say("ended"),
        -32004,
        400,
        400,
        "UNSUPPORTED_OPERATION",
    ),
    (
        "ContentTypeNotSupported",
        |setup| setup.card.default_output_modes = vec!["image/png".to_owned()],
        Provoke::Say("modes"),
        -32005,
        400,
        415,
        "CONTENT_TYPE_NOT_SUPPORTED",
    ),
    (
        "InvalidAgentResponse",
        |_| {},
        Provoke::Say("bad-agent"),
        -32006,
        500,
        502,
        "INVALID_AGENT_RESPONSE",
    ),
    (
        "ExtendedAgentCardNotConfigured",
        |_| {},
        Provoke::ExtendedCard,
        -32007,
        400,
        400,
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    ),
    (
        "ExtensionSupportRequired",
        |setup| {
            let mut extension = nuncio_protocol::AgentExtension::default();
            extension.uri = "urn:must".to_owned();
            extension.required = true;
            setup.card.capabilities.extensions.push(extension);
        },
        Provoke::Say("hi"),
        -32008,
        400,
        400,
        "EXTENSION_SUPPORT_REQUIRED",
    ),
    (
        "VersionNotSupported",
        |_| {},
        Provoke::Version,
        -32009,
        400,
        400,
        "VERSION_NOT_SUPPORTED",
    ),
];

async fn provoke(served: &Served, how: Provoke) -> [crate::harness::Answer; 2] {
    let wanted = |text: &str| {
        let mut body = say(text);
        if text == "modes" {
            body["configuration"] = json!({"acceptedOutputModes": ["text/plain"]});
        }
        body
    };
    match how {
        Provoke::Say(text) => [
            served.rpc("SendMessage", wanted(text)).await,
            served.post("/message:send", &wanted(text)).await,
        ],
        Provoke::Stream => [
            served.rpc("SendStreamingMessage", json!({})).await,
            served.get("/tasks/unknown:subscribe").await,
        ],
        Provoke::Webhooks => [
            served
                .rpc(
                    "ListTaskPushNotificationConfigs",
                    json!({"taskId": "unknown"}),
                )
                .await,
            served
                .get("/tasks/unknown/pushNotificationConfigs/p1")
                .await,
        ],
        Provoke::ExtendedCard => [
            served.rpc("GetExtendedAgentCard", json!({})).await,
            served.get("/extendedAgentCard").await,
        ],
        Provoke::Version => [
            served
                .ask(
                    "POST",
                    "/?A2A-Version=2.0",
                    &[],
                    crate::harness::rpc("GetTask", &Value::Null).to_string(),
                )
                .await,
            served.get("/tasks?A2A-Version=2.0").await,
        ],
    }
}

/// GEN-01, BR-125, BR-126, BR-127, ERR-01, ERR-02, ERR-03, RPC-11, REST-08, GEN-03, OP-PCRE-01,
/// OP-STRM-01, OP-XCARD-01.
#[tokio::test]
async fn every_kind_has_its_codes() {
    for (name, change, how, code, status, old_status, reason) in CASES {
        for profile in [StatusProfile::V1_0_1, StatusProfile::V1_0_0] {
            let mut setup = Setup::default();
            change(&mut setup);
            if profile == StatusProfile::V1_0_0 {
                setup.shape = |endpoint| endpoint.with_status_profile(StatusProfile::V1_0_0);
            }
            let served = setup.start().await;
            let [rpc, rest] = provoke(&served, *how).await;
            assert_eq!(rpc.status, 200, "RPC-08 {name}");
            assert_eq!(rpc.code(), *code, "{name}: {}", rpc.text());
            check_info(&rpc.json()["error"]["data"][0], reason);
            let error = rpc.json()["error"].as_object().unwrap().clone();
            let mut members: Vec<String> = error.keys().cloned().collect();
            members.sort();
            assert_eq!(members, ["code", "data", "message"], "RPC-11 {name}");
            let expected = if profile == StatusProfile::V1_0_1 {
                status
            } else {
                old_status
            };
            assert_eq!(rest.status, *expected, "{name}: {}", rest.text());
            let body = rest.json();
            assert_eq!(body["error"]["code"], *expected, "{name}");
            check_info(&body["error"]["details"][0], reason);
            assert!(body["error"]["message"].is_string() && body["error"]["status"].is_string());
        }
    }
}

fn check_info(info: &Value, reason: &str) {
    assert_eq!(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo");
    assert_eq!(info["reason"], reason);
    assert_eq!(info["domain"], "a2a-protocol.org");
    let metadata = info["metadata"].as_object().unwrap();
    assert!(metadata.values().all(Value::is_string), "ERR-01");
}

/// OP-SEND-20: a webhook along with a message needs the capability; nothing is stored.
#[tokio::test]
async fn a_webhook_with_a_message_needs_push() {
    let mut setup = Setup::default();
    setup.card.capabilities.push_notifications = Some(false);
    let served = setup.start().await;
    let mut body = say("hi");
    body["configuration"] =
        json!({"taskPushNotificationConfig": {"url": "https://example.com/hook"}});
    assert_eq!(served.rpc("SendMessage", body).await.code(), -32003);
    assert_eq!(served.fake.calls(), 0);
}

/// GEN-07: version before envelope, method before params, capability before params and extensions.
#[tokio::test]
async fn checks_come_in_their_order() {
    let mut setup = Setup::default();
    setup.card.capabilities.streaming = None;
    let mut extension = nuncio_protocol::AgentExtension::default();
    extension.uri = "urn:must".to_owned();
    extension.required = true;
    setup.card.capabilities.extensions.push(extension);
    let served = setup.start().await;
    let old = [("A2A-Version", "9.9")];
    let answer = served.ask("POST", "/", &old, "{").await;
    assert_eq!(answer.code(), -32009, "version before envelope");
    let broken = r#"{"jsonrpc":"1.0","id":7,"method":"GetTask"}"#;
    let answer = served.ask("POST", "/", &old, broken).await;
    assert_eq!((answer.code(), &answer.json()["id"]), (-32009, &json!(7)));
    let answer = served.ask("GET", "/nothing", &old, "").await;
    assert_eq!(
        answer.reason(),
        "VERSION_NOT_SUPPORTED",
        "version before route"
    );
    let answer = served.rpc("Nope", json!([])).await;
    assert_eq!(answer.code(), -32602, "the envelope has params of its own");
    let answer = served.rpc("Nope", json!({"x": 1})).await;
    assert_eq!(answer.code(), -32601);
    let answer = served
        .rpc("SendStreamingMessage", json!({"message": 5}))
        .await;
    assert_eq!(answer.code(), -32004, "capability before params");
    let answer = served.rpc("SendMessage", json!({"message": 5})).await;
    assert_eq!(answer.code(), -32008, "extensions before params");
    let other = [("A2A-Extensions", "urn:must")];
    let body = crate::harness::rpc("SendMessage", &json!({"message": 5}));
    let answer = served.ask("POST", "/", &other, body.to_string()).await;
    assert_eq!(answer.code(), -32602);
    assert_eq!(served.fake.calls(), 0);
}

/// ERR-08, OP-GET-02, GEN-06: what is not there says no more than the id that was sent.
#[tokio::test]
async fn not_found_says_nothing_more() {
    let served = Setup::default().start().await;
    let answer = served.rpc("GetTask", json!({"id": "t7"})).await;
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], -32001);
    assert_eq!(error["message"], "task t7 not found");
    assert_eq!(error["data"][0]["metadata"], json!({"taskId": "t7"}));
}

/// RPC-08: overload is an HTTP matter too.
#[tokio::test]
async fn unavailable_is_503_in_both() {
    let served = Setup::default().start().await;
    let answer = served.rpc("SendMessage", say("busy")).await;
    assert_eq!((answer.status.as_u16(), answer.code()), (503, -32603));
    let answer = served.post("/message:send", &say("busy")).await;
    assert_eq!(answer.status, 503);
}

/// OP-SEND-17, OP-SEND-18, BR-016: media types of card and skills, wildcards, no wish.
#[tokio::test]
async fn media_types_are_judged() {
    let served = Setup::default().start().await;
    let with = |part: Value, modes: Value| {
        let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [part]});
        json!({"message": message, "configuration": {"acceptedOutputModes": modes}})
    };
    let raw = |kind: &str| json!({"raw": "AAAA", "mediaType": kind});
    for (part, modes, code) in [
        (json!({"text": "x"}), json!([]), 0),
        (json!({"data": {"a": 1}}), json!(["text/plain"]), 0),
        (json!({"raw": "AAAA"}), json!(["*/*"]), 0),
        (raw("image/png"), json!(["text/*"]), 0),
        (
            raw("IMAGE/PNG; q=1"),
            json!(["image/png", "text/plain; charset=utf-8"]),
            0,
        ),
        (raw("application/x-none"), json!([]), -32005),
        (
            json!({"url": "https://x", "mediaType": "audio/ogg"}),
            json!([]),
            -32005,
        ),
        (json!({"text": "x"}), json!(["image/png"]), -32005),
    ] {
        let params = with(part.clone(), modes.clone());
        let answer = served.rpc("SendMessage", params).await;
        assert_eq!(answer.code(), code, "{part} {modes}: {}", answer.text());
    }
    let any = with(raw("application/x-none"), json!(["image/png"]));
    let mut setup = Setup::default();
    setup.card.default_input_modes = vec!["*/*".to_owned()];
    setup.card.default_output_modes = vec!["*/*".to_owned()];
    let served = setup.start().await;
    assert_eq!(served.rpc("SendMessage", any).await.code(), 0, "TRAP-09");
}
