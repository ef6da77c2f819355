//! `nuncio task trace`: what the runs of a task have done.

use std::collections::{BTreeMap, BTreeSet};

use nuncio_protocol::{A2aError, AgentService as _, Call, ErrorKind, GetTaskRequest};
use serde_json::Value;

use super::session::{Prepared, Session};
use super::task;
use super::text::Text;
use crate::arguments::TaskTraceArguments;
use crate::outcome::{Code, Failure, Outcome};
use crate::surroundings::Surroundings;

const DOING: &str = "read the call tree";

/// Prints the call tree of a task.
pub(super) fn trace(arguments: &TaskTraceArguments, around: &Surroundings) -> Outcome {
    let prepared = Prepared::new(&arguments.client, Default::default(), around)?;
    super::block_on(async {
        let session = prepared.connect().await?;
        let tree = read(&session, &arguments.task, arguments.content).await?;
        if session.printer.is_json() {
            return session.printer.json(&tree);
        }
        let mut text = Text::new(false);
        for (label, name) in [
            ("Task ID", "task"),
            ("Context ID", "context"),
            ("Trace", "trace"),
        ] {
            text.optional(label, tree[name].as_str());
        }
        match drawn(&tree) {
            steps if steps.is_empty() => text.field("Steps", "none"),
            steps => text.block("Steps", &steps),
        }
        session.printer.text(text)
    })
}

/// Reads the call tree of a task; `content` says whether with what went in and came out.
///
/// # Errors
/// No such task of this caller, an agent without call trees, or one of the way there.
pub(super) async fn read(session: &Session, task: &str, content: bool) -> Outcome<Value> {
    let id = task.into();
    match session.client.call_tree(Call::client(), &id, content).await {
        Ok(tree) => Ok(tree),
        Err(error) => Err(without_tree(session, task, &error).await),
    }
}

/// Why there is no tree. An agent that has none takes the address for a task's, so whether it knows
/// the task tells the two apart.
async fn without_tree(session: &Session, task: &str, error: &A2aError) -> Failure {
    let unknown = matches!(
        error.kind,
        ErrorKind::TaskNotFound | ErrorKind::MethodNotFound | ErrorKind::InvalidAgentResponse
    );
    if !unknown {
        return task::failed(session, DOING, error);
    }
    let mut request = GetTaskRequest::new(task);
    request.history_length = Some(0);
    match session.client.get_task(Call::client(), request).await {
        Ok(_) => {
            let message = format!("failed to {DOING}: this agent shows no call trees");
            Failure::new(Code::Protocol("UnsupportedOperationError"), message)
                .a2a_code(ErrorKind::UnsupportedOperation.json_rpc_code())
                .hint("agents of a nuncio server do; `nuncio task get` shows what is known of the task")
        }
        Err(error) => task::failed(session, DOING, &error),
    }
}

/// The nodes below each other, a line each.
fn drawn(tree: &Value) -> String {
    let nodes = tree["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let known: BTreeSet<&str> = nodes
        .iter()
        .filter_map(|node| node["id"].as_str())
        .collect();
    let mut lines = String::new();
    let mut below: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    let mut tops = Vec::new();
    for node in nodes {
        match node["parent"]
            .as_str()
            .filter(|parent| known.contains(parent))
        {
            Some(parent) => below.entry(parent).or_default().push(node),
            // A run may have begun below a step of somebody else's.
            None => tops.push(node),
        }
    }
    for top in tops {
        draw(top, &mut below, 0, &mut lines);
    }
    lines
}

/// Draws a node and takes those below it out of the map: nothing is drawn twice, whatever was sent.
fn draw(node: &Value, below: &mut BTreeMap<&str, Vec<&Value>>, depth: usize, lines: &mut String) {
    // More than any run goes, less than the stack holds.
    const MAX_DEPTH: usize = 100;
    let indent = "  ".repeat(depth);
    lines.push_str(&format!("{indent}{}\n", line(node)));
    for name in ["input", "output"] {
        if let Some(content) = node.get(name) {
            lines.push_str(&format!("{indent}    {name}: {content}\n"));
        }
    }
    if depth < MAX_DEPTH {
        let nodes = below.remove(node["id"].as_str().unwrap_or_default());
        for node in nodes.into_iter().flatten() {
            draw(node, below, depth + 1, lines);
        }
    }
}

/// A step in a line: its name, how long it took, what is to be known of it.
fn line(node: &Value) -> String {
    let text = |value: &Value| {
        let words = value.as_str().unwrap_or_default().split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    let attributes = &node["attributes"];
    let mut told = vec![match node["durationMs"].as_i64() {
        Some(ms) => format!("{ms} ms"),
        None => "not ended".to_owned(),
    }];
    let tokens = |name: &str| attributes[format!("gen_ai.usage.{name}_tokens")].as_u64();
    if let (Some(input), Some(output)) = (tokens("input"), tokens("output")) {
        told.push(format!("{input} tokens in, {output} out"));
    }
    if let remote @ Value::String(_) = &attributes["a2a.remote.task.id"] {
        told.push(format!("remote task {}", text(remote)));
    }
    if let attempt @ 2.. = node["attempt"].as_u64().unwrap_or_default() {
        told.push(format!("attempt {attempt}"));
    }
    if matches!(node["kind"].as_str(), Some("model" | "tool")) {
        // `task rerun` wants it.
        told.push(format!("node {}", text(&node["id"])));
    }
    if let error @ Value::String(_) = &node["error"] {
        told.push(format!("failed: {}", text(error)));
    }
    let (name, kind) = (text(&node["name"]), text(&node["kind"]));
    format!("{name} [{kind}] {}", told.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::drawn;

    #[test]
    fn a_tree_is_drawn_with_what_is_to_be_known() {
        let tree = json!({"nodes": [
            {"id": "a", "parent": "elsewhere", "kind": "agent", "name": "invoke_agent desk",
             "attempt": 2},
            {"id": "b", "parent": "a", "kind": "model", "name": "chat m", "attempt": 1, "durationMs": 7,
             "attributes": {"gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 3}},
            {"id": "c", "parent": "a", "kind": "tool", "name": "execute_tool x\nchat fake", "attempt": 1,
             "durationMs": 0, "input": {"order": 7}, "error": "no such\norder"},
            {"id": "d", "parent": "c", "kind": "remote", "name": "invoke_agent far", "attempt": 1,
             "durationMs": 5, "attributes": {"a2a.remote.task.id": "t-9"}},
            {"id": "e", "parent": "e", "kind": "tool", "name": "its own parent", "durationMs": 1},
        ]});
        insta::assert_snapshot!(drawn(&tree), @r#"
        invoke_agent desk [agent] not ended, attempt 2
          chat m [model] 7 ms, 12 tokens in, 3 out, node b
          execute_tool x chat fake [tool] 0 ms, node c, failed: no such order
              input: {"order":7}
            invoke_agent far [remote] 5 ms, remote task t-9
        "#);
    }
}
