//! Services behind HTTP as agents.

use std::sync::Arc;
use std::time::Duration;

use nuncio_egress::{Egress, EgressPolicy};
use nuncio_engine::AgentInfo;
use nuncio_protocol::{StreamResponse, TaskState};
use nuncio_runtime::{HttpAgent, HttpSettings, secret_header};
use serde_json::{Value, json};

use crate::service::{Sent, Service, egress, head};
use crate::support::{Hosted, said, texts};

fn settings(service: &Service) -> HttpSettings {
    let mut settings = HttpSettings::new(service.url.clone());
    settings.backoff.first = Duration::from_millis(1);
    settings
}

fn hosted(settings: HttpSettings) -> Hosted {
    let info = AgentInfo::new("h", "H", "a service");
    Hosted::new(Arc::new(HttpAgent::new(info, egress(), settings)))
}

async fn answering(answers: impl IntoIterator<Item = Sent>) -> (Service, Hosted) {
    let service = Service::answering(answers).await;
    let hosted = hosted(settings(&service));
    (service, hosted)
}

fn events(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect()
}

#[tokio::test]
async fn a_stream_of_events_becomes_a_task() {
    let text = format!(
        ": hello\n\n{}",
        events(&[
            json!({"type": "status", "text": "soon"}),
            json!({"type": "text", "delta": "é1 "}),
            json!({"type": "text", "delta": "2"}),
            json!({"type": "done"}),
            json!({"type": "text", "delta": "never read"}),
        ])
    );
    let (service, hosted) = answering([Sent::stream(&text)]).await;
    let events = hosted.events("hello").await;
    let pieces: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            StreamResponse::ArtifactUpdate(u) => Some((u.artifact.text(), u.append)),
            _ => None,
        })
        .collect();
    assert_eq!(pieces, [("é1 ".to_owned(), false), ("2".to_owned(), true)]);
    let asked = &service.asked()[0];
    assert_eq!(asked.body["type"], "message");
    assert_eq!(asked.body["version"], 1);
    assert_eq!(asked.body["message"]["parts"], json!([{"text": "hello"}]));
    assert_eq!(asked.headers["content-type"], "application/json");
    assert!(asked.headers["accept"].contains("text/event-stream"));
}

#[tokio::test]
async fn a_json_answer_is_one_event_or_a_list() {
    for (answer, state, text) in [
        (
            json!({"type": "text", "delta": "whole"}),
            TaskState::Completed,
            "whole",
        ),
        (
            json!({"events": [{"type": "text", "delta": "a"}, {"type": "text", "delta": "b"}]}),
            TaskState::Completed,
            "ab",
        ),
        (
            json!({"events": [{"type": "text", "delta": "a"}, {"type": "fail", "message": "no"}]}),
            TaskState::Failed,
            "a",
        ),
    ] {
        let (_service, hosted) = answering([Sent::json(&answer)]).await;
        let task = hosted.task("x").await;
        assert_eq!(task.status.state, state, "{answer}: {}", said(&task));
        assert_eq!(texts(&task).concat(), text, "{answer}");
    }
}

#[tokio::test]
async fn a_pause_and_its_answer_are_two_requests() {
    let ask = json!({"events": [
        {"type": "checkpoint", "value": [7]},
        {"type": "ask", "text": "sure?", "schema": {"type": "boolean"}},
    ]});
    let (service, hosted) =
        answering([Sent::json(&ask), Sent::json(&json!({"type": "done"}))]).await;
    let waiting = hosted.task("x").await;
    assert_eq!(
        (waiting.status.state, said(&waiting).as_str()),
        (TaskState::InputRequired, "sure?")
    );
    let done = hosted.answer(&waiting.id, "yes").await;
    assert_eq!(done.status.state, TaskState::Completed);
    let second = &service.asked()[1].body;
    assert_eq!(
        (&second["checkpoint"], &second["turn"]),
        (&json!([7]), &json!(2))
    );
    assert_eq!(second["task"], json!(done.id));
}

#[tokio::test]
async fn what_is_no_answer_fails_the_task() {
    let stream = |text: &str| Sent::stream(text);
    for (answer, why) in [
        (Sent::status("404 Not Found"), "answered 404 Not Found"),
        (Sent::status("302 Found"), "answered 302 Found"),
        (
            Sent::Bytes(head("text/html") + "<p>"),
            "answered with \"text/html\", neither JSON nor an event stream",
        ),
        (Sent::json(&json!([1])), "answered with no JSON object"),
        (
            Sent::json(&json!({"events": 1})),
            "`events` that is no list",
        ),
        (
            Sent::json(&json!({"events": [{"type": "done"}], "x": 1})),
            "or not alone",
        ),
        (
            Sent::json(&json!({"answer": "hello"})),
            "sent an event, number 1, that has no `type`",
        ),
        (
            stream("data: {\"type\":\"status\",\"text\":\"s\"}\n\ndata: nonsense\n\n"),
            "sent an event, number 2, that is no JSON object",
        ),
        (
            stream("data: {\"type\":\"text\",\"delta\":\"cut\"}\n\n"),
            "ended its stream without saying how the task ends",
        ),
        (
            stream("data: {\"type\":\"done\",\"task\":\"other\"}\n\n"),
            "is about another task",
        ),
    ] {
        let (service, hosted) = answering([answer]).await;
        let task = hosted.task("x").await;
        assert_eq!(task.status.state, TaskState::Failed, "{why}");
        assert!(said(&task).starts_with("the agent's service "), "{task:?}");
        assert!(said(&task).contains(why), "{why}: {}", said(&task));
        assert_eq!(service.asked().len(), 1, "{why}: asked once");
    }
}

#[tokio::test]
async fn it_is_asked_again_only_before_there_is_an_answer() {
    let done = || Sent::json(&json!({"type": "text", "delta": "ok"}));
    let busy = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 0\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let (service, hosted) = answering([
        Sent::status("503 Service Unavailable"),
        Sent::Bytes(busy.to_owned()),
        done(),
    ])
    .await;
    let task = hosted.task("x").await;
    assert_eq!(task.status.state, TaskState::Completed, "{}", said(&task));
    let asked = service.asked();
    assert_eq!(asked.len(), 3);
    let keys: Vec<_> = asked
        .iter()
        .map(|a| &a.headers["idempotency-key"])
        .collect();
    assert!(keys[0] == keys[1] && keys[1] == keys[2], "{keys:?}");

    let (service, hosted) = answering([Sent::status("500 Internal Server Error"), done()]).await;
    let mut once = settings(&service);
    once.retries = 0;
    let task = self::hosted(once).task("x").await;
    assert_eq!(task.status.state, TaskState::Failed);
    drop(hosted);

    // What has begun is not asked for again.
    let (service, hosted) = answering([Sent::stream("data: {\"type\":\"sta"), done()]).await;
    let task = hosted.task("x").await;
    assert_eq!(task.status.state, TaskState::Failed);
    assert_eq!(service.asked().len(), 1);
}

/// A service that names a long pause is not waited for.
#[tokio::test]
async fn a_long_retry_after_fails_the_task() {
    let busy = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 3600\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let (service, hosted) = answering([Sent::Bytes(busy.to_owned())]).await;
    let task = hosted.task("x").await;
    assert_eq!(
        said(&task),
        "the agent's service answered 503 Service Unavailable"
    );
    assert_eq!(service.asked().len(), 1);
}

#[tokio::test]
async fn a_cancel_closes_the_connection() {
    let text = events(&[json!({"type": "status", "text": "ready"})]);
    let (service, hosted) = answering([Sent::held(&text)]).await;
    let task = hosted.begin_and_hear("x", "ready").await;
    let canceled = hosted.cancel(&task.id).await;
    assert_eq!(canceled.status.state, TaskState::Canceled);
    service.closed().await;
}

#[tokio::test]
async fn silence_has_a_limit() {
    let text = events(&[json!({"type": "text", "delta": "half"})]);
    let (service, hosted) = answering([Sent::held(&text)]).await;
    drop(hosted);
    let mut short = settings(&service);
    short.idle = Duration::from_millis(50);
    let task = self::hosted(short).task("x").await;
    assert_eq!(said(&task), "the agent's service took too long");
    assert_eq!(texts(&task), ["half"]);
    service.closed().await;
}

/// Where a service is, is not the caller's business.
#[tokio::test]
async fn an_address_that_is_not_allowed_or_not_there_is_not_told() {
    let service = Service::answering([Sent::status("200 OK")]).await;
    let closed = Egress::new(EgressPolicy::default()).unwrap();
    let info = AgentInfo::new("h", "H", "a service");
    let agent = HttpAgent::new(info, closed, settings(&service));
    let task = Hosted::new(Arc::new(agent)).task("x").await;
    assert_eq!(
        said(&task),
        "the agent's service is at an address that is not allowed"
    );
    assert_eq!(service.asked().len(), 0);

    let url = service.url.clone();
    drop(service);
    let mut gone = HttpSettings::new(url);
    gone.retries = 0;
    let task = hosted(gone).task("x").await;
    assert_eq!(said(&task), "the agent's service cannot be reached");
}

#[tokio::test]
async fn configured_headers_go_with_every_message() {
    let (service, _) = answering([Sent::json(&json!({"type": "done"}))]).await;
    let mut settings = settings(&service);
    for (name, value) in [("X-Team", "blue"), ("Authorization", "Bearer s3cret")] {
        let (name, value) = secret_header(name, value).unwrap();
        settings.headers.insert(name, value);
    }
    hosted(settings).task("x").await;
    let headers = &service.asked()[0].headers;
    assert_eq!(headers["x-team"], "blue");
    assert_eq!(headers["authorization"], "Bearer s3cret");
}
