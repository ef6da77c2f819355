//! What a server asks the user while a tool runs.
//!
//! A server does not say for which call it asks. With one call on the connection it is clear; with
//! several, it is told that nobody can be asked. A call can ask once.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nuncio_engine::{Pause, RunCx};
use nuncio_protocol::{Message, Part, PartContent};
use parking_lot::Mutex;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, Implementation,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

/// A question of a server.
pub(super) struct Question {
    pub(super) asks: ElicitRequestParams,
    pub(super) answer: oneshot::Sender<ElicitResult>,
}

/// Where questions come in, for the calls that go on.
#[derive(Default)]
pub(super) struct Desk {
    calls: Mutex<HashMap<u64, mpsc::UnboundedSender<Question>>>,
    next: Mutex<u64>,
}

/// A call that can be asked for; it leaves the desk when it is dropped.
pub(super) struct Seat {
    desk: Arc<Desk>,
    number: u64,
    pub(super) questions: mpsc::UnboundedReceiver<Question>,
}

impl Desk {
    /// Takes a seat for a call.
    pub(super) fn sit(self: &Arc<Self>) -> Seat {
        let (sender, questions) = mpsc::unbounded_channel();
        let number = {
            let mut next = self.next.lock();
            *next += 1;
            *next
        };
        self.calls.lock().insert(number, sender);
        Seat {
            desk: Arc::clone(self),
            number,
            questions,
        }
    }

    /// The one call that goes on, if there is only one.
    fn only(&self) -> Option<mpsc::UnboundedSender<Question>> {
        let calls = self.calls.lock();
        let mut senders = calls.values();
        let first = senders.next()?;
        senders.next().is_none().then(|| first.clone())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.desk.calls.lock().remove(&self.number);
    }
}

/// Our side of the connection.
pub(super) struct Handler {
    changed: Arc<AtomicBool>,
    desk: Arc<Desk>,
}

impl Handler {
    pub(super) fn new(changed: Arc<AtomicBool>, desk: Arc<Desk>) -> Self {
        Self { changed, desk }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(
            capabilities,
            Implementation::new("nuncio", env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.store(true, Ordering::Release);
    }

    async fn create_elicitation(
        &self,
        asks: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let nobody = || ElicitResult::new(ElicitationAction::Cancel);
        let Some(call) = self.desk.only() else {
            tracing::warn!("an MCP server asks while several of its tools run, or none");
            return Ok(nobody());
        };
        let (answer, answered) = oneshot::channel();
        if call.send(Question { asks, answer }).is_err() {
            return Ok(nobody());
        }
        Ok(answered.await.unwrap_or_else(|_| nobody()))
    }
}

/// The pause in which the user is asked. Data answers a form; an address is gone to, and any answer
/// says that it was.
pub(super) fn pause(cx: &RunCx, asks: &ElicitRequestParams) -> Pause {
    match asks {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => {
            let schema = serde_json::to_value(requested_schema).unwrap_or_default();
            let form = serde_json::json!({"form": schema});
            let prompt = cx.message(vec![Part::text(message.as_str()), Part::data(form)]);
            Pause {
                schema: Some(schema),
                ..Pause::input(prompt)
            }
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let parts = vec![Part::text(message.as_str()), Part::url(url.as_str())];
            Pause::auth(cx.message(parts), "url", Some(url.clone()))
        }
        _ => Pause::input(cx.message(vec![Part::text("The tool asks something.")])),
    }
}

/// A message as the answer to what was asked.
///
/// Data that is an object fills the form. A text fills a form of one field; `no` and `cancel` decline.
pub(super) fn answer(asks: &ElicitRequestParams, message: &Message) -> ElicitResult {
    let text = message.text();
    let word = text.trim().to_lowercase();
    if matches!(word.as_str(), "no" | "cancel" | "decline") {
        return ElicitResult::new(ElicitationAction::Decline);
    }
    let ElicitRequestParams::FormElicitationParams {
        requested_schema, ..
    } = asks
    else {
        return ElicitResult::new(ElicitationAction::Accept);
    };
    let data = message.parts.iter().find_map(|part| match &part.content {
        PartContent::Data(Value::Object(data)) => Some(data.clone()),
        _ => None,
    });
    let schema = serde_json::to_value(requested_schema).unwrap_or_default();
    let filled = data.unwrap_or_else(|| of_text(&schema, text.trim()));
    ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(filled))
}

/// The text as the first field that is required, or the first one at all.
fn of_text(schema: &Value, text: &str) -> Map<String, Value> {
    let required = schema["required"]
        .as_array()
        .and_then(|names| names.first());
    let first = schema["properties"]
        .as_object()
        .and_then(|fields| fields.keys().next());
    let name = required
        .and_then(Value::as_str)
        .or(first.map(String::as_str));
    let Some(name) = name else {
        return Map::new();
    };
    let value = match schema["properties"][name]["type"].as_str() {
        Some("string") | None => Value::from(text),
        Some(_) => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
    };
    Map::from_iter([(name.to_owned(), value)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(schema: Value) -> ElicitRequestParams {
        let params = json!({"mode": "form", "message": "?", "requestedSchema": schema});
        serde_json::from_value(params).unwrap()
    }

    #[test]
    fn answers_fill_the_form() {
        let asks = form(json!({"type": "object", "properties": {
            "age": {"type": "integer"}, "name": {"type": "string"}
        }, "required": ["name"]}));
        let of = |part: Part| answer(&asks, &Message::user("m", vec![part]));
        assert_eq!(of(Part::text("Ann")).content, Some(json!({"name": "Ann"})));
        let data = json!({"name": "Bob", "age": 3});
        assert_eq!(of(Part::data(data.clone())).content, Some(data));
        assert_eq!(of(Part::text(" No ")).action, ElicitationAction::Decline);

        let asks = form(json!({"type": "object", "properties": {"age": {"type": "integer"}}}));
        let message = Message::user("m", vec![Part::text("41")]);
        assert_eq!(answer(&asks, &message).content, Some(json!({"age": 41})));
    }
}
