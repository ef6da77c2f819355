//! Reading an answer: one JSON object, a list of events, or a stream of them.

use http::header::CONTENT_TYPE;
use nuncio_client::sse::SseDecoder;
use nuncio_egress::{EgressError, EgressResponse};
use nuncio_engine::Outcome;
use nuncio_protocol::json;
use serde_json::{Map, Value};

use crate::foreign::{Stop, Turn};

/// Why an answer gives no outcome.
pub(super) enum Fault {
    /// The service says that the task has failed.
    Failed(String),
    /// The answer is not as it must be; why, as a sentence after "the agent's service".
    Answer(String),
    /// The way to the service.
    Way(EgressError),
}

impl From<EgressError> for Fault {
    fn from(error: EgressError) -> Self {
        Self::Way(error)
    }
}

/// An answer being read.
pub(super) struct Answer<'a> {
    pub(super) turn: &'a Turn<'a>,
    pub(super) max_event_bytes: usize,
}

impl Answer<'_> {
    /// Plays all of it.
    pub(super) async fn play(&self, response: EgressResponse) -> Result<Outcome, Fault> {
        let kind = response.header(CONTENT_TYPE.as_str()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default();
        match kind.trim().to_ascii_lowercase().as_str() {
            "text/event-stream" => self.stream(response).await,
            json if json == "application/json" || json.ends_with("+json") => {
                self.whole(response).await
            }
            other => {
                let why = format!("answered with \"{other}\", neither JSON nor an event stream");
                Err(Fault::Answer(why))
            }
        }
    }

    /// A JSON answer is over with its last byte; what has not ended the run ends it as done.
    async fn whole(&self, response: EgressResponse) -> Result<Outcome, Fault> {
        let bytes = response.bytes().await?;
        let mut object: Map<String, Value> = json::decode(&bytes)
            .map_err(|error| Fault::Answer(format!("answered with no JSON object: {error}")))?;
        let events = match object.remove("events") {
            None => vec![Value::Object(object)],
            Some(Value::Array(events)) if object.is_empty() => events,
            Some(_) => {
                let why = "answered with `events` that is no list, or not alone";
                return Err(Fault::Answer(why.to_owned()));
            }
        };
        for (index, event) in events.into_iter().enumerate() {
            let Value::Object(event) = event else {
                return Err(told(index + 1, "is no JSON object"));
            };
            if let Some(outcome) = self.take(index + 1, event).await? {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Done)
    }

    /// A stream must say how the task ends: else it may have been cut.
    async fn stream(&self, mut response: EgressResponse) -> Result<Outcome, Fault> {
        let mut decoder = SseDecoder::new(self.max_event_bytes);
        let mut number = 0;
        while let Some(bytes) = response.chunk().await? {
            let events = decoder.push(&bytes);
            let events =
                events.map_err(|error| Fault::Answer(format!("sent too much: {error}")))?;
            for event in events {
                number += 1;
                let object = json::decode(event.data.as_bytes());
                let object =
                    object.map_err(|error| told(number, &format!("is no JSON object: {error}")))?;
                if let Some(outcome) = self.take(number, object).await? {
                    return Ok(outcome);
                }
            }
        }
        let why = "ended its stream without saying how the task ends";
        Err(Fault::Answer(why.to_owned()))
    }

    async fn take(
        &self,
        number: usize,
        object: Map<String, Value>,
    ) -> Result<Option<Outcome>, Fault> {
        let event = self.turn.event(object);
        let event = event.map_err(|error| told(number, &error.to_string()))?;
        self.turn.play(event).await.map_err(|stop| match stop {
            Stop::Failed(message) => Fault::Failed(message),
            Stop::Refused(error) => told(number, &format!("is refused: {error}")),
        })
    }
}

fn told(number: usize, why: &str) -> Fault {
    Fault::Answer(format!("sent an event, number {number}, that {why}"))
}
