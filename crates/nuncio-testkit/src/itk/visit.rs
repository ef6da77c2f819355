//! Asking another agent.

use std::error::Error;

use futures_util::StreamExt as _;
use nuncio_engine::{AgentError, RunCx};
use nuncio_protocol::{
    AgentService, Binding, Call, CancelTaskRequest, Message, Role, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task, TaskId,
    TaskPushNotificationConfig, TaskState,
};

use super::Peers;
use super::agent::FINISHED;
use super::instruction::{Behavior, CallAgent};

/// Asks what it is told to ask, as it is told to, and gives what was said.
pub(super) async fn visit(
    cx: &RunCx,
    peers: &dyn Peers,
    call: &CallAgent,
) -> Result<Vec<String>, AgentError> {
    let binding = binding(&call.transport)?;
    let request = request(cx, call)?;
    let peer = peers.find(&call.agent_card_uri, binding).await?;
    let said = match call.behavior {
        Some(Behavior::Resubscribe(_)) => resubscribe(&*peer, request).await,
        _ if call.streaming => stream(&*peer, request).await,
        _ => send(&*peer, request).await,
    };
    said.map_err(|why| failure(call, &why.to_string()))
}

type Said = Result<Vec<String>, Box<dyn Error + Send + Sync>>;

async fn send(peer: &dyn AgentService, request: SendMessageRequest) -> Said {
    Ok(match peer.send_message(Call::client(), request).await? {
        SendMessageResponse::Task(task) if task.status.state != TaskState::Completed => {
            return Err(format!("the task is {:?}", task.status.state).into());
        }
        SendMessageResponse::Task(task) => words_of(&task),
        SendMessageResponse::Message(message) => vec![message.text()],
        _ => return Err("neither task nor message".into()),
    })
}

async fn stream(peer: &dyn AgentService, request: SendMessageRequest) -> Said {
    let mut events = peer.send_streaming_message(Call::client(), request).await?;
    let (mut said, mut state) = (Vec::new(), None);
    while let Some(event) = events.next().await {
        let event = event?;
        state = event.state().or(state);
        said.extend(words(event.response()));
    }
    match state {
        None | Some(TaskState::Completed) => Ok(said),
        Some(other) => Err(format!("the task is {other:?}").into()),
    }
}

/// Hangs up after the first event, reads the rest as a subscriber, and cancels the held task.
async fn resubscribe(peer: &dyn AgentService, request: SendMessageRequest) -> Said {
    let mut events = peer.send_streaming_message(Call::client(), request).await?;
    let first = events.next().await.ok_or("the stream is empty")??;
    let id = task_of(first.response()).ok_or("the first event is of no task")?;
    drop(events);

    let mut asked = SubscribeToTaskRequest::default();
    asked.id = id.clone();
    let mut events = peer.subscribe_to_task(Call::client(), asked).await?;
    let said = loop {
        let event = events.next().await.ok_or("the task was not held")??;
        let words = words(event.response());
        if words.iter().any(|text| text.contains(FINISHED)) {
            break words;
        }
    };
    drop(events);

    let mut cancel = CancelTaskRequest::default();
    cancel.id = id;
    let task = peer.cancel_task(Call::client(), cancel).await?;
    if task.status.state != TaskState::Canceled {
        return Err(format!("the task is {:?} after its cancel", task.status.state).into());
    }
    Ok(said.iter().map(|text| without_end(text)).collect())
}

fn without_end(text: &str) -> String {
    text.replace(FINISHED, "").trim_end().to_owned()
}

fn request(cx: &RunCx, call: &CallAgent) -> Result<SendMessageRequest, AgentError> {
    let instruction = call.instruction.as_ref();
    let instruction = instruction.ok_or_else(|| failure(call, "there is nothing to ask"))?;
    let message = Message::user(cx.next_id(), vec![instruction.to_part()]);
    let mut request = SendMessageRequest::new(message);
    if let Some(Behavior::PushNotification(push)) = &call.behavior {
        let mut webhook = TaskPushNotificationConfig::default();
        webhook.url = format!("{}/notifications", push.url);
        webhook.token = Some("nuncio".to_owned());
        let mut configuration = SendMessageConfiguration::default();
        configuration.task_push_notification_config = Some(webhook);
        request.configuration = Some(configuration);
    }
    Ok(request)
}

fn binding(transport: &str) -> Result<Binding, AgentError> {
    match transport {
        "jsonrpc" => Ok(Binding::JsonRpc),
        "http_json" => Ok(Binding::HttpJson),
        "grpc" => Ok(Binding::Grpc),
        other => Err(AgentError::new(format!("{other} is no transport"))),
    }
}

fn failure(call: &CallAgent, why: &str) -> AgentError {
    let (agent, transport) = (&call.agent_card_uri, &call.transport);
    AgentError::new(format!("failed to call {agent} over {transport}: {why}"))
}

fn task_of(response: &StreamResponse) -> Option<TaskId> {
    match response {
        StreamResponse::Task(task) => Some(task.id.clone()),
        StreamResponse::StatusUpdate(update) => Some(update.task_id.clone()),
        StreamResponse::ArtifactUpdate(update) => Some(update.task_id.clone()),
        _ => None,
    }
}

/// What the agent says in an item of a stream.
fn words(response: &StreamResponse) -> Vec<String> {
    let message = match response {
        StreamResponse::Task(task) => return words_of(task),
        StreamResponse::StatusUpdate(update) => update.status.message.as_ref(),
        StreamResponse::Message(message) => Some(message),
        _ => None,
    };
    message.map(Message::text).into_iter().collect()
}

/// What the agent has said in a task: a message may stand in its status or in the history already.
fn words_of(task: &Task) -> Vec<String> {
    let history = task.history.iter().chain(&task.status.message);
    let said = history.filter(|message| message.role == Role::Agent);
    let mut said: Vec<String> = said.map(Message::text).collect();
    said.dedup();
    said
}
