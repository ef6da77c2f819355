//! `nuncio task rerun`: a task again, from one of its steps.

use nuncio_engine::{RERUN, RandomIds};
use nuncio_protocol::{
    AgentService as _, Call, GetTaskRequest, Ids as _, Message, Role, SendMessageRequest, Task,
};
use serde_json::{Value, json};

use super::session::{Prepared, Session};
use super::{send, task, trace};
use crate::arguments::TaskRerunArguments;
use crate::outcome::{Failure, Outcome};
use crate::surroundings::Surroundings;

/// Makes a new task that repeats another one up to a step, and prints what comes of it.
pub(super) fn rerun(arguments: &TaskRerunArguments, around: &Surroundings) -> Outcome {
    let (name, value) = change(arguments)?;
    let prepared = Prepared::new(&arguments.client, arguments.follow.layer(), around)?;
    super::block_on(async {
        let session = prepared.connect().await?;
        check_node(&session, arguments).await?;
        let request = GetTaskRequest::new(arguments.task.as_str());
        let earlier = session.client.get_task(Call::client(), request).await;
        let earlier = earlier.map_err(|error| task::failed(&session, "get the task", &error))?;
        let mut request = SendMessageRequest::new(first_message(&earlier)?);
        let mut wish = json!({"task": earlier.id, "node": arguments.node});
        wish[name] = value;
        let metadata = request.metadata.get_or_insert_default();
        metadata.insert(RERUN.to_owned(), wish);
        send::wait(&session, request).await
    })
}

/// The member of the wish and its value.
fn change(arguments: &TaskRerunArguments) -> Outcome<(&'static str, Value)> {
    let (name, text) = match (&arguments.input, &arguments.result) {
        (Some(text), _) => ("input", text),
        (None, Some(text)) => ("output", text),
        (None, None) => return Err(Failure::usage("neither --input nor --result is given")),
    };
    let value = serde_json::from_str(text).map_err(|error| {
        let flag = if name == "input" {
            "--input"
        } else {
            "--result"
        };
        Failure::usage(format!("failed to read {flag} as JSON: {error}"))
            .hint("words are JSON in quotes: '\"like this\"'")
    })?;
    Ok((name, value))
}

/// An agent without call trees would take the request for a new one: it is not asked.
async fn check_node(session: &Session, arguments: &TaskRerunArguments) -> Outcome {
    let tree = trace::read(session, &arguments.task, false).await?;
    let nodes = tree["nodes"].as_array().into_iter().flatten();
    if nodes
        .into_iter()
        .any(|node| node["id"] == arguments.node.as_str())
    {
        return Ok(());
    }
    let message = format!(
        "failed to run the task again: it has no step {}",
        arguments.node
    );
    Err(Failure::usage(message).hint("`nuncio task trace -o json` has the ids of the steps"))
}

/// What the task began with, as a message of a new one.
fn first_message(earlier: &Task) -> Outcome<Message> {
    let spoken = earlier
        .history
        .iter()
        .find(|message| message.role == Role::User);
    let spoken = spoken.ok_or_else(|| {
        Failure::usage("failed to run the task again: its first message is not known")
    })?;
    let mut message = Message::user(RandomIds.next(), spoken.parts.clone());
    message.metadata.clone_from(&spoken.metadata);
    message.context_id.clone_from(&earlier.context_id);
    message.reference_task_ids = vec![earlier.id.clone()];
    Ok(message)
}
