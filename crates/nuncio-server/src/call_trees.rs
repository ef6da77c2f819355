//! The call tree of a task, read beside the HTTP+JSON binding at `/tasks/{id}:trace`.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use nuncio_protocol::dialect::RestDialect;
use nuncio_protocol::v1::rest::Route;
use nuncio_protocol::{A2aError, Binding, Call, Operation, OperationKind, Outcome, Result, Task};
use serde_json::Value;

use crate::bindings::{Asking, Target};
use crate::failure::Failure;
use crate::parameters;
use crate::reply::{self, JSON, Reply};
use crate::server::{Server, Visit};

/// Stands after the id of the task.
const VERB: &str = ":trace";

/// Who knows what the runs of an agent's tasks have done, step by step.
pub trait CallTrees: Send + Sync + fmt::Debug {
    /// The call tree of a task that the caller may see, as an object. Steps are in `nodes`; what went
    /// in and came out of one is its `input` and `output`.
    ///
    /// # Errors
    /// TaskNotFound, if the task has just expired.
    fn call_tree(&self, call: Call, task: Task) -> nuncio_protocol::Reply<'_, Value>;
}

/// A call tree that is asked for: where the task is, and who knows.
pub(crate) struct Asked {
    task: Route,
    trees: Arc<dyn CallTrees>,
}

impl Asked {
    /// Reads a path that says `:trace` after a task, at an agent that has call trees.
    pub(crate) fn of(
        trees: Option<&Arc<dyn CallTrees>>,
        path: &str,
        route: &Route,
    ) -> Option<Self> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let trees =
            trees.filter(|_| path.ends_with(VERB) && route.kind == OperationKind::GetTask)?;
        let id = route.task_id.as_deref()?.strip_suffix(VERB)?;
        let task = Route {
            task_id: Some(id.to_owned()),
            ..route.clone()
        };
        Some(Self {
            task,
            trees: Arc::clone(trees),
        })
    }
}

impl Server {
    /// Answers with the call tree of a task: whoever gets the task gets its tree, and nobody else.
    pub(crate) async fn call_tree(
        &self,
        visit: &Visit<'_>,
        target: &Target<'_>,
        dialect: &dyn RestDialect,
        asked: Asked,
    ) -> Result<Reply, Failure> {
        let query = visit.parts.uri.query();
        let with_content = wants_content(query)?;
        let asking = Asking {
            binding: Binding::HttpJson,
            dialect,
            kind: OperationKind::GetTask,
        };
        let decode = || {
            let mut operation = dialect.decode_request(&asked.task, query, b"")?;
            if let Operation::GetTask(request) = &mut operation {
                request.history_length = Some(0);
            }
            Ok(operation)
        };
        let answer = self.perform(visit, target, asking, decode).await?;
        let Outcome::Task(task) = answer.outcome else {
            return Err(A2aError::internal().into());
        };
        let caller = target.admitted.caller.clone();
        let call = parameters::call(&visit.parts.headers, caller, dialect.version())?;
        let mut tree = asked.trees.call_tree(call, task).await?;
        if !with_content {
            leave_content_out(&mut tree);
        }
        Ok(reply::with_body(StatusCode::OK, JSON, tree.to_string()))
    }
}

fn wants_content(query: Option<&str>) -> Result<bool> {
    let mut said = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let said = said.find(|(name, _)| name == "content");
    match said.as_ref().map(|(_, value)| value.as_ref()) {
        None | Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(_) => Err(A2aError::invalid_field("content", "must be true or false")),
    }
}

fn leave_content_out(tree: &mut Value) {
    let nodes = tree.get_mut("nodes").and_then(Value::as_array_mut);
    for node in nodes.into_iter().flatten().filter_map(Value::as_object_mut) {
        node.remove("input");
        node.remove("output");
    }
}
