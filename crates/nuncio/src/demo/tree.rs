//! Who called whom, over both services.

use std::fmt::Write as _;
use std::sync::Arc;

use nuncio_engine::{HostedAgent, Node};
use nuncio_protocol::{Call, Caller, Task, TaskId};

use super::{Service, trouble};
use crate::outcome::{Failure, Outcome};

/// The agent of a service.
pub(super) fn hosted(service: &Service) -> Outcome<Arc<HostedAgent>> {
    let hosted = service.begun.parts.engine.hosted(&service.agent);
    hosted.ok_or_else(|| Failure::internal("the agent of the demo is gone"))
}

/// Whoever calls without a credential.
pub(super) fn caller() -> Call {
    Call::new(Caller {
        id: "anonymous".into(),
        workspace: "default".into(),
    })
}

/// What a service has kept of a task.
pub(super) async fn of(service: &Service, task: &Task) -> Outcome<Vec<Node>> {
    read(service, &task.id).await
}

async fn read(service: &Service, task: &TaskId) -> Outcome<Vec<Node>> {
    let tree = hosted(service)?.call_tree(&caller(), task).await;
    tree.map_err(trouble("read the call tree"))
}

/// Draws a tree, with what the other service has kept of the calls to it.
pub(super) async fn drawn(nodes: &[Node], other: &Service) -> Outcome<String> {
    let mut all: Vec<(&str, Node)> = Vec::new();
    for node in nodes {
        all.push(("support", node.clone()));
    }
    let mut remote: Vec<TaskId> = Vec::new();
    for node in nodes {
        let named = node.attributes.get("a2a.remote.task.id");
        if let Some(task) = named.and_then(|id| id.as_str()).map(TaskId::from)
            && !remote.contains(&task)
        {
            for node in read(other, &task).await? {
                all.push(("fulfilment", node));
            }
            remote.push(task);
        }
    }
    let mut text = String::new();
    let known = |id: &str| all.iter().any(|(_, node)| node.id == id);
    for (service, node) in &all {
        if node.parent.as_deref().is_none_or(|parent| !known(parent)) {
            draw(&all, service, node, 1, &mut text);
        }
    }
    Ok(text)
}

fn draw(all: &[(&str, Node)], service: &str, node: &Node, depth: usize, text: &mut String) {
    let failed = match &node.error {
        Some(why) => format!("  failed: {why}"),
        None => String::new(),
    };
    let _ = writeln!(
        text,
        "{:indent$}{} [{service}]{failed}",
        "",
        node.name,
        indent = depth * 2
    );
    for (service, below) in all {
        if below.parent.as_ref() == Some(&node.id) {
            draw(all, service, below, depth + 1, text);
        }
    }
}
