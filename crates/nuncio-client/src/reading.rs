//! The events of one answer, and the rule that a stream without an end is an error.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::stream;
use nuncio_egress::EgressResponse;
use nuncio_protocol::{
    A2aError, Event, EventStream, SendMessageResponse, StreamResponse, TaskState,
};

use crate::failure::{bad_answer, cut, from_egress};
use crate::sender::{Item, Items};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// How long to read on after the end of the task.
    pub(crate) linger: Duration,
    /// Whether a silence after the first item says nothing: the connection keeps itself alive.
    pub(crate) bears_silence: bool,
    /// The total limit as it was set, for messages.
    pub(crate) total: Option<Duration>,
}

/// The events of an open stream.
///
/// Waits for the first one, so that a refusal in the guise of a stream is an error of the call
/// (BR-037). The stream ends after a terminal or interrupted state or a message; any other end is
/// an error, its last item (OP-STRM-09).
pub(crate) async fn events(
    response: EgressResponse,
    items: Box<dyn Items>,
    settings: Settings,
) -> Result<EventStream, A2aError> {
    let mut reading = Reading {
        response,
        items,
        settings,
        queue: VecDeque::new(),
        reached: Reached::Nothing,
    };
    let first = match reading.next().await {
        Some(first) => first?,
        None => return Err(no_event()),
    };
    if settings.bears_silence {
        reading.response.bear_silence();
    }
    let rest = stream::unfold(reading, |mut reading| async move {
        reading.next().await.map(|item| (item, reading))
    });
    let first = stream::once(async move { Ok(first) });
    Ok(Box::pin(stream::StreamExt::chain(first, rest)))
}

/// A stream call that was answered as a whole: what came of it as the only item (BR-043).
pub(crate) fn single(event: Event) -> EventStream {
    let ended = !is_open(&event);
    let mut items = vec![Ok(event)];
    if !ended {
        items.push(Err(ended_early()));
    }
    Box::pin(stream::iter(items))
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

fn ended_early() -> A2aError {
    cut("the stream ended before the task did")
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
    /// A message, a terminal state, or a pause that the agent calls final: nothing more is needed.
    End,
    /// An error has been given, or the body is over.
    Over,
}

struct Reading {
    response: EgressResponse,
    items: Box<dyn Items>,
    settings: Settings,
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
                for item in self.items.push(&bytes) {
                    self.take(item);
                }
            }
            Ok(None) => {
                let told = self.items.finish(self.response.trailers());
                let error = told.or_else(|| self.verdict());
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

    fn take(&mut self, item: Result<Item, A2aError>) {
        if self.reached == Reached::Over {
            return;
        }
        match item {
            Ok(item) => self.note(item),
            Err(error) => self.over(Some(error)),
        }
    }

    fn note(&mut self, item: Item) {
        let Item { event, is_final } = item;
        let told = match self.reached {
            Reached::Open(state) => state,
            _ => None,
        };
        let state = event.state().or(told);
        let ends = |state: TaskState| state.is_terminal() || (is_final && state.is_interrupted());
        let ended =
            matches!(event.response(), StreamResponse::Message(_)) || state.is_some_and(ends);
        if self.reached != Reached::End {
            self.reached = if ended {
                Reached::End
            } else {
                Reached::Open(state)
            };
        }
        self.queue.push_back(Ok(event));
    }

    /// What the end of the body means, if it tells no error itself.
    fn verdict(&self) -> Option<A2aError> {
        match self.reached {
            Reached::End => None,
            Reached::Nothing => Some(no_event()),
            Reached::Open(Some(state)) if state.is_interrupted() => None,
            _ => Some(ended_early()),
        }
    }
}
