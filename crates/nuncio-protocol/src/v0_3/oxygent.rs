//! The plain calls of OxyGent's gateway: no JSON-RPC envelope, an `action` in the body.
//!
//! | key | values |
//! |---|---|
//! | `action`, `op` or `operation`, in any case | `send_message`, `get_task`, `cancel_task`, `resubscribe` and their aliases |
//! | none of them | `message` or `query` sends, `taskId` or `id` gets |
//!
//! Ids may be spelt in camelCase or snake_case, beside the message or in it. Answers are `{task}`,
//! or `{event}` for a resubscription; tasks are spelt as in 0.3.

use serde_json::{Map, Value, json};

use super::V0_3;
use crate::dialect::JsonRpcDialect as _;
use crate::{A2aError, ErrorKind, Operation, OperationKind, Outcome, SendMessageResponse, json};

/// A plain call.
#[derive(Debug)]
pub struct PlainCall {
    /// What is asked.
    pub operation: Operation,
    resubscribes: bool,
}

/// The path of a plain call below an agent's address, with what it asks if the body does not say.
pub fn route(path: &str) -> Option<OperationKind> {
    match path.trim_end_matches('/') {
        "" | "/messages/send" => Some(OperationKind::SendMessage),
        "/tasks/get" => Some(OperationKind::GetTask),
        "/tasks/cancel" => Some(OperationKind::CancelTask),
        _ => None,
    }
}

/// Whether a body is a JSON-RPC request, which these paths take too.
pub fn is_json_rpc(body: &[u8]) -> bool {
    json::decode::<Map<String, Value>>(body).is_ok_and(|object| object.contains_key("method"))
}

impl PlainCall {
    /// Reads a body; `fresh_id` names a message that has no id.
    ///
    /// # Errors
    /// [`ErrorKind::ParseError`] or [`ErrorKind::InvalidParams`].
    pub fn decode(
        body: &[u8],
        path: OperationKind,
        at_path: bool,
        fresh_id: &dyn Fn() -> String,
    ) -> Result<Self, A2aError> {
        let body: Map<String, Value> = json::decode(body)?;
        let asked = action(&body)?;
        let resubscribes = asked == Some(OperationKind::SubscribeToTask);
        let kind = match asked {
            Some(OperationKind::SubscribeToTask) => OperationKind::GetTask,
            Some(kind) => kind,
            None if at_path => path,
            None if body.contains_key("message") || body.contains_key("query") => {
                OperationKind::SendMessage
            }
            None if task_id(&body).is_some() || text(&body, &["id"]).is_some() => {
                OperationKind::GetTask
            }
            None => {
                let rule = "is missing, and there is neither message nor taskId";
                return Err(A2aError::invalid_field("action", rule));
            }
        };
        let params = match kind {
            OperationKind::SendMessage => message_params(&body, fresh_id)?,
            _ => {
                let id = task_id(&body).or_else(|| text(&body, &["id"]));
                json!({"id": id.unwrap_or_default(), "metadata": body.get("metadata")})
            }
        };
        let operation = V0_3.decode_params(kind, &params.to_string())?;
        Ok(Self {
            operation,
            resubscribes,
        })
    }

    /// Writes the answer.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for an outcome that no plain call has.
    pub fn encode(&self, outcome: &Outcome) -> Result<String, A2aError> {
        let outcome = match outcome {
            Outcome::Sent(SendMessageResponse::Message(_)) => {
                let message = V0_3.encode_result(OperationKind::SendMessage, outcome)?;
                return Ok(format!(r#"{{"message":{message}}}"#));
            }
            Outcome::Sent(SendMessageResponse::Task(task)) => Outcome::Task(task.clone()),
            Outcome::Task(task) => Outcome::Task(task.clone()),
            _ => return Err(A2aError::internal()),
        };
        let task = V0_3.encode_result(OperationKind::GetTask, &outcome)?;
        let member = if self.resubscribes { "event" } else { "task" };
        Ok(format!(r#"{{"{member}":{task}}}"#))
    }
}

/// Writes an error as the gateway does: HTTP status and `{detail}`.
pub fn encode_error(error: &A2aError) -> (u16, String) {
    let status = match error.kind {
        ErrorKind::TaskNotFound => 404,
        ErrorKind::Internal | ErrorKind::InvalidAgentResponse => 500,
        kind => match kind.http_status(crate::StatusProfile::default()) {
            status @ (401 | 403 | 404 | 413 | 415 | 429 | 503) => status,
            _ => 400,
        },
    };
    (status, json!({"detail": error.message}).to_string())
}

fn action(body: &Map<String, Value>) -> Result<Option<OperationKind>, A2aError> {
    let named = ["action", "op", "operation"].iter().find_map(|key| {
        let value = body.get(*key)?;
        Some((
            *key,
            value.as_str().unwrap_or_default().to_ascii_lowercase(),
        ))
    });
    let Some((key, name)) = named else {
        return Ok(None);
    };
    Ok(Some(match name.as_str() {
        "sendmessage" | "message/send" | "send_message" => OperationKind::SendMessage,
        "gettask" | "tasks/get" | "get_task" => OperationKind::GetTask,
        "canceltask" | "tasks/cancel" | "cancel_task" => OperationKind::CancelTask,
        "resubscribe" | "tasks/resubscribe" => OperationKind::SubscribeToTask,
        _ => {
            let known = "must be send_message, get_task, cancel_task or resubscribe";
            return Err(A2aError::invalid_field(key, known));
        }
    }))
}

/// The params of a send: one text, ids from the body or from the message in it.
fn message_params(
    body: &Map<String, Value>,
    fresh_id: &dyn Fn() -> String,
) -> Result<Value, A2aError> {
    let empty = Map::new();
    let inner = body.get("message").and_then(Value::as_object);
    let inner = inner.unwrap_or(&empty);
    let parts = match (body.get("message"), body.get("query")) {
        (Some(Value::String(text)), _) | (None, Some(Value::String(text))) => {
            json!([{"kind": "text", "text": text}])
        }
        (Some(Value::Object(message)), _) => message
            .get("parts")
            .or_else(|| message.get("content"))
            .map(kinds)
            .ok_or_else(|| A2aError::invalid_field("message.parts", "is required"))?,
        _ => {
            return Err(A2aError::invalid_field(
                "message",
                "must be a text or a message",
            ));
        }
    };
    let find = |names: &[&str]| text(body, names).or_else(|| text(inner, names));
    let list = |names: &[&str]| {
        let found = names
            .iter()
            .find_map(|name| body.get(*name).or_else(|| inner.get(*name)));
        found.cloned().unwrap_or(Value::Null)
    };
    let id = find(&["messageId", "message_id"]).map_or_else(fresh_id, str::to_owned);
    Ok(json!({
        "message": {
            "kind": "message",
            "messageId": id,
            "role": "user",
            "parts": parts,
            "contextId": find(&["contextId", "context_id"]),
            "taskId": find(&["taskId", "task_id"]),
            "referenceTaskIds": list(&["referenceTaskIds", "reference_task_ids"]),
            "metadata": inner.get("metadata"),
        },
        "metadata": body.get("metadata"),
    }))
}

/// Parts with their `kind`, which was called `type` once.
fn kinds(parts: &Value) -> Value {
    let mut parts = parts.clone();
    for part in parts.as_array_mut().into_iter().flatten() {
        if let Some(part) = part.as_object_mut()
            && !part.contains_key("kind")
            && let Some(kind) = part.remove("type")
        {
            part.insert("kind".to_owned(), kind);
        }
    }
    parts
}

fn task_id(body: &Map<String, Value>) -> Option<&str> {
    text(body, &["taskId", "task_id"])
}

fn text<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    let mut values = names.iter().filter_map(|name| object.get(*name));
    values.find_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Result<PlainCall, A2aError> {
        let fresh = || "fresh".to_owned();
        PlainCall::decode(
            body.to_string().as_bytes(),
            OperationKind::SendMessage,
            false,
            &fresh,
        )
    }

    #[test]
    fn actions_are_known_by_all_their_names() {
        for (key, name, kind) in [
            ("action", "send_message", OperationKind::SendMessage),
            ("op", "SendMessage", OperationKind::SendMessage),
            ("operation", "message/send", OperationKind::SendMessage),
            ("action", "getTask", OperationKind::GetTask),
            ("op", "tasks/cancel", OperationKind::CancelTask),
            ("action", "resubscribe", OperationKind::GetTask),
        ] {
            let call = read(&json!({key: name, "query": "hi", "taskId": "t"})).unwrap();
            assert_eq!(call.operation.kind(), kind, "{key} {name}");
        }
        assert_eq!(
            read(&json!({"query": "hi"})).unwrap().operation.kind(),
            OperationKind::SendMessage
        );
        assert_eq!(
            read(&json!({"id": "t"})).unwrap().operation.kind(),
            OperationKind::GetTask
        );
        for wrong in [
            json!({}),
            json!({"action": "dance"}),
            json!({"action": 5}),
            json!({"message": 5}),
        ] {
            assert_eq!(
                read(&wrong).unwrap_err().kind,
                ErrorKind::InvalidParams,
                "{wrong}"
            );
        }
    }

    #[test]
    fn ids_are_found_wherever_they_stand() {
        for body in [
            json!({"query": "hi", "context_id": "c", "task_id": "t", "reference_task_ids": ["a", "b"]}),
            json!({"message": {"parts": [{"type": "text", "text": "hi"}], "contextId": "c",
                "taskId": "t", "referenceTaskIds": ["a", "b"]}}),
        ] {
            let Operation::SendMessage(request) = read(&body).unwrap().operation else {
                panic!("not a send: {body}");
            };
            let message = request.message.unwrap();
            assert_eq!(message.text(), "hi");
            assert_eq!(message.message_id.as_str(), "fresh");
            assert_eq!(message.context_id, Some("c".into()));
            assert_eq!(message.task_id, Some("t".into()));
            assert_eq!(message.reference_task_ids, ["a".into(), "b".into()]);
        }
    }
}
