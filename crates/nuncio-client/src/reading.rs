//! The events of one answer, and the rule that a stream without an end is an error.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::stream;
use http::StatusCode;
use nuncio_egress::EgressResponse;
use nuncio_protocol::{
    A2aError, ErrorKind, Event, EventStream, SendMessageResponse, StreamResponse, Task, TaskState,
    json,
};

use crate::client::Route;
use crate::failure::{Cause, bad_answer, failure, from_egress};
use crate::sender::Sender;
use crate::sse::{Leftover, SseDecoder, SseEvent};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) max_event_bytes: usize,
    /// How long to read on after the end of the task.
    pub(crate) linger: Duration,
    /// The total limit as it was set, for messages.
    pub(crate) total: Option<Duration>,
}

/// The events of an open event stream.
///
/// Waits for the first one, so that a refusal in the guise of a stream is an error of the call
/// (BR-037). The stream ends after a terminal or interrupted state or a message; any other end is
/// an error, its last item (OP-STRM-09).
pub(crate) async fn events(
    response: EgressResponse,
    route: Route,
    settings: Settings,
) -> Result<EventStream, A2aError> {
    let mut reading = Reading {
        response,
        route,
        settings,
        decoder: Some(SseDecoder::new(settings.max_event_bytes)),
        queue: VecDeque::new(),
        reached: Reached::Nothing,
    };
    let first = match reading.next().await {
        Some(first) => first?,
        None => return Err(no_event()),
    };
    let rest = stream::unfold(reading, |mut reading| async move {
        reading.next().await.map(|item| (item, reading))
    });
    let first = stream::once(async move { Ok(first) });
    Ok(Box::pin(stream::StreamExt::chain(first, rest)))
}

/// A stream call that was answered with one JSON text: an error, or what came of it (BR-043).
pub(crate) fn single(sender: &dyn Sender, body: &[u8]) -> Result<EventStream, A2aError> {
    let text = sender.result(body)?;
    let event = as_event(text)?;
    let ended = !is_open(&event);
    let mut items = vec![Ok(event)];
    if !ended {
        items.push(Err(cut()));
    }
    Ok(Box::pin(stream::iter(items)))
}

fn as_event(text: &str) -> Result<Event, A2aError> {
    if let Ok(response) = json::decode_checked::<StreamResponse>(text) {
        return Ok(response.into());
    }
    match json::decode_checked::<Task>(text) {
        Ok(task) if !task.id.is_empty() => Ok(StreamResponse::Task(task).into()),
        _ => Err(bad_answer(
            "the agent answered a stream call with JSON that is neither a task nor a message",
        )),
    }
}

fn is_open(event: &Event) -> bool {
    match event.response() {
        StreamResponse::Message(_) => false,
        _ => event
            .state()
            .is_none_or(|state| !state.is_terminal() && !state.is_interrupted()),
    }
}

/// The answer to a plain send as an item of a stream.
pub(crate) fn from_sent(sent: SendMessageResponse) -> Result<Event, A2aError> {
    match sent {
        SendMessageResponse::Task(task) => Ok(StreamResponse::Task(task).into()),
        SendMessageResponse::Message(message) => Ok(StreamResponse::Message(message).into()),
        _ => Err(bad_answer("the agent's answer is of an unknown kind")),
    }
}

fn cut() -> A2aError {
    failure(
        ErrorKind::Unavailable,
        Cause::Cut,
        "the stream ended before the task did",
    )
}

fn no_event() -> A2aError {
    bad_answer("the agent's stream ended without any event")
}

/// How far a stream has come.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reached {
    Nothing,
    /// The last state that was told, if any.
    Open(Option<TaskState>),
    /// A message, or a terminal state: nothing more is needed.
    End,
    /// An error has been given, or the body is over.
    Over,
}

struct Reading {
    response: EgressResponse,
    route: Route,
    settings: Settings,
    decoder: Option<SseDecoder>,
    queue: VecDeque<Result<Event, A2aError>>,
    reached: Reached,
}

impl Reading {
    async fn next(&mut self) -> Option<Result<Event, A2aError>> {
        loop {
            if let Some(item) = self.queue.pop_front() {
                return Some(item);
            }
            if self.reached == Reached::Over {
                return None;
            }
            self.read().await;
        }
    }

    /// Reads one piece of the body.
    async fn read(&mut self) {
        let chunk = if self.reached == Reached::End {
            // Some servers forget to close; what comes late is at most one more snapshot.
            let read = tokio::time::timeout(self.settings.linger, self.response.chunk());
            read.await.unwrap_or(Ok(None)).or(Ok(None))
        } else {
            self.response.chunk().await
        };
        match chunk {
            Ok(Some(bytes)) => {
                let Some(decoder) = &mut self.decoder else {
                    return self.over(None);
                };
                match decoder.push(&bytes) {
                    Ok(events) => events.into_iter().for_each(|event| self.take(&event)),
                    Err(error) => self.over(Some(bad_answer(error.to_string()))),
                }
            }
            Ok(None) => {
                let leftover = self.decoder.take().map(SseDecoder::finish);
                let error = self.verdict(leftover.unwrap_or_default());
                self.over(error);
            }
            Err(error) => self.over(Some(from_egress(error, self.settings.total))),
        }
    }

    fn over(&mut self, error: Option<A2aError>) {
        // What goes wrong after the end takes nothing away from it.
        let error = error.filter(|_| self.reached != Reached::End);
        self.queue.extend(error.map(Err));
        self.reached = Reached::Over;
    }

    fn take(&mut self, event: &SseEvent) {
        if self.reached == Reached::Over {
            return;
        }
        match self.route.sender.event(event.data.as_bytes()) {
            Ok(Some(response)) => {
                let position = event.id.as_deref().and_then(|id| id.parse().ok());
                self.note(Event::new(position, response));
            }
            Ok(None) => tracing::warn!(event.name = %event.event, "unknown item in a stream"),
            Err(_) if is_foreign(event) => {}
            Err(error) => self.over(Some(error)),
        }
    }

    fn note(&mut self, event: Event) {
        let told = match self.reached {
            Reached::Open(state) => state,
            _ => None,
        };
        let state = event.state().or(told);
        let ended = matches!(event.response(), StreamResponse::Message(_))
            || state.is_some_and(TaskState::is_terminal);
        if self.reached != Reached::End {
            self.reached = if ended {
                Reached::End
            } else {
                Reached::Open(state)
            };
        }
        self.queue.push_back(Ok(event));
    }

    /// What the end of the body means.
    fn verdict(&self, leftover: Leftover) -> Option<A2aError> {
        if self.reached == Reached::End {
            return None;
        }
        let refusal = [leftover.data, leftover.stray]
            .into_iter()
            .find_map(|text| self.as_error(text.trim()));
        match self.reached {
            _ if refusal.is_some() => refusal,
            Reached::Nothing => Some(no_event()),
            Reached::Open(Some(state)) if state.is_interrupted() => None,
            _ => Some(cut()),
        }
    }

    /// The error in a text that was never an event, if it is one.
    fn as_error(&self, text: &str) -> Option<A2aError> {
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        let object = value.as_object()?;
        if object.get("error").is_some_and(|error| !error.is_null()) {
            return self.route.sender.result(text.as_bytes()).err();
        }
        let bare = object.get("code").is_some() && object.get("message").is_some();
        bare.then(|| {
            self.route
                .sender
                .refusal(StatusCode::INTERNAL_SERVER_ERROR, text.as_bytes())
        })
    }
}

/// Whether an event has a name of its own and is thus nothing of A2A (BR-022).
fn is_foreign(event: &SseEvent) -> bool {
    !matches!(event.event.as_str(), "" | "message" | "error")
}
