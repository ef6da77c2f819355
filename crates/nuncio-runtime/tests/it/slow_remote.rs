//! Remote agents that are slow to say how things stand.

use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::{
    AgentCard, AgentInterface, AgentService as _, Binding, CancelTaskRequest, TaskState,
};
use nuncio_runtime::{RemoteAgent, RemoteSettings, Waiting};
use nuncio_testkit::{Bed, artifact_text, call};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::network::{client, until};
use crate::service::{Sent, Service, head};

fn remote(service: &Service, waiting: Waiting) -> RemoteAgent {
    let mut card = AgentCard::default();
    card.name = "Slow".to_owned();
    card.version = "1".to_owned();
    card.capabilities.streaming = Some(true);
    card.supported_interfaces = vec![AgentInterface::new(service.url.as_str(), Binding::HttpJson)];
    let mut settings = RemoteSettings::default();
    settings.waiting = waiting;
    let remote = RemoteAgent::of_card("remote", client(), card).unwrap();
    remote.with_settings(settings)
}

fn task(state: &str, message: Value) -> Value {
    let time = "2026-01-01T00:00:00Z";
    json!({
        "id": "t1", "contextId": "c1",
        "status": { "state": state, "timestamp": time, "message": message },
    })
}

/// An agent that takes the answer and shows the question for a while before it goes on: the answer is
/// sent once, and the question not asked again.
#[tokio::test]
async fn a_question_that_still_shows_is_not_asked_again() {
    let question = json!({"messageId": "q1", "role": "ROLE_AGENT", "parts": [{"text": "which?"}]});
    let asks = task("TASK_STATE_INPUT_REQUIRED", question);
    let mut done = task("TASK_STATE_COMPLETED", Value::Null);
    done["artifacts"] = json!([{"artifactId": "a1", "parts": [{"text": "the red one"}]}]);
    let sent = Sent::json(&json!({ "task": asks }));
    let shows = Sent::json(&asks);
    let answers = [sent.clone(), sent, shows.clone(), shows, Sent::json(&done)];
    let service = Service::answering(answers).await;

    let (bed, _) = Bed::of(remote(&service, Waiting::Poll));
    let asking = bed.ask("m1", "go").await;
    assert_eq!(asking.status.state, TaskState::InputRequired);
    let ended = bed.answer("m2", &asking, "red").await;
    assert_eq!(
        ended.status.state,
        TaskState::Completed,
        "{:?}",
        ended.status
    );
    assert_eq!(artifact_text(&ended), "the red one");
    let lines: Vec<_> = service
        .asked()
        .into_iter()
        .map(|asked| asked.line)
        .collect();
    let sends = lines.iter().filter(|line| line.ends_with("/message:send"));
    assert_eq!(sends.count(), 2, "{lines:?}");
    assert_eq!(lines.len(), 5, "{lines:?}");
}

/// A cancel that comes before the agent has said which task it is reaches that task all the same.
#[tokio::test]
async fn a_cancel_that_comes_early_finds_its_task() {
    let leave = Arc::new(Semaphore::new(0));
    let working = json!({ "task": task("TASK_STATE_WORKING", Value::Null) });
    let stream = format!("{}data: {working}\n\n", head("text/event-stream"));
    let canceled = Sent::json(&task("TASK_STATE_CANCELED", Value::Null));
    let answers = [Sent::Later(Arc::clone(&leave), stream), canceled];
    let service = Service::answering(answers).await;

    let (bed, _) = Bed::of(remote(&service, Waiting::Stream));
    let begun = bed.start("m1", "go").await;
    until(async || service.asked().len() == 1).await;
    let request = CancelTaskRequest::new(begun.id.clone());
    let agent = Arc::clone(&bed.agent);
    let cancel =
        tokio::spawn(async move { agent.cancel_task(call("alice"), request).await.unwrap() });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(
        service.asked().len(),
        1,
        "it is not known yet what to cancel"
    );
    leave.add_permits(1);
    assert_eq!(cancel.await.unwrap().status.state, TaskState::Canceled);
    until(async || {
        let asked = service.asked();
        asked
            .iter()
            .any(|asked| asked.line.ends_with("/tasks/t1:cancel"))
    })
    .await;
}
