//! The call trees of an agent's tasks, as the server shows them.

use std::sync::Arc;

use nuncio_engine::{HostedAgent, Node};
use nuncio_protocol::{Call, Reply, Task};
use nuncio_server::CallTrees;
use serde_json::{Map, Value, json};

/// The call trees that the engine keeps for an agent.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) agent: Arc<HostedAgent>,
    /// Whether callers see what went in and came out.
    pub(super) content: bool,
}

impl CallTrees for Kept {
    fn call_tree(&self, call: Call, task: Task) -> Reply<'_, Value> {
        Box::pin(async move {
            let mut nodes = self.agent.call_tree(&call, &task.id).await?;
            if !self.content {
                for node in &mut nodes {
                    (node.input, node.output) = (None, None);
                }
            }
            Ok(shown(&task, &nodes))
        })
    }
}

fn shown(task: &Task, nodes: &[Node]) -> Value {
    let mut tree = Map::new();
    tree.insert("task".to_owned(), json!(task.id));
    if let Some(context) = &task.context_id {
        tree.insert("context".to_owned(), json!(context));
    }
    // All runs of a task go on with one trace.
    if let Some(node) = nodes.first() {
        tree.insert("trace".to_owned(), json!(node.trace));
    }
    let nodes: Vec<Value> = nodes.iter().map(shown_node).collect();
    tree.insert("nodes".to_owned(), nodes.into());
    tree.into()
}

fn shown_node(node: &Node) -> Value {
    let mut shown = json!(node);
    if let Some(object) = shown.as_object_mut() {
        object.remove("trace");
        if let Some(ended) = node.ended {
            let took = ended.unix_ms() - node.started.unix_ms();
            object.insert("durationMs".to_owned(), took.max(0).into());
        }
    }
    shown
}
