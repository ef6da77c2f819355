//! The agent that a service is.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use nuncio_client::retry_after;
use nuncio_egress::{Egress, EgressError, EgressRequest, EgressResponse, Timeouts};
use nuncio_engine::{Agent, AgentError, AgentInfo, Input, Outcome, RunCx, RunFuture, SpanKind};

use super::HttpSettings;
use super::answer::{Answer, Fault};
use crate::foreign::{Turn, told};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// An agent that a service behind HTTP is.
///
/// Each message is posted as one JSON object; the answer is JSON or a stream of events. A cancel
/// closes the connection.
#[derive(Debug)]
pub struct HttpAgent {
    info: AgentInfo,
    egress: Egress,
    settings: HttpSettings,
}

impl HttpAgent {
    /// The agent of a service, which is reached as this door allows.
    pub fn new(mut info: AgentInfo, egress: Egress, settings: HttpSettings) -> Self {
        info.answers_directly = false;
        Self {
            info,
            egress,
            settings,
        }
    }

    async fn ask(&self, cx: &RunCx, input: &Input) -> Result<Outcome, AgentError> {
        let span = cx.span(SpanKind::Remote, format!("invoke_agent {}", self.info.id));
        let cx = &cx.within(&span);
        let turn = Turn { cx, named: false };
        let answer = Answer {
            turn: &turn,
            max_event_bytes: self.settings.max_event_bytes,
        };
        let played = async { answer.play(self.answer(cx, input).await?).await };
        played.await.map_err(|fault| {
            let error = match fault {
                Fault::Failed(message) => AgentError::new(message),
                Fault::Answer(why) => AgentError::new(format!("the agent's service {why}")),
                Fault::Way(error) => unreached(error),
            };
            span.fail(error.message());
            error
        })
    }

    /// Posts the message until there is an answer with content.
    async fn answer(&self, cx: &RunCx, input: &Input) -> Result<EgressResponse, Fault> {
        let request = self.request(cx, input);
        let mut attempt = 0;
        loop {
            let (fault, pause) = match self.egress.send(request.clone()).await {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) => {
                    let fault = Fault::Answer(format!("answered {}", response.status()));
                    let named = retry_after(response.headers());
                    let again = may_pass(response.status());
                    (fault, again.then_some(named))
                }
                Err(error) => {
                    let again = error.is_connect();
                    (Fault::Way(error), again.then_some(None))
                }
            };
            let Some(pause) = pause.filter(|_| attempt < self.settings.retries) else {
                return Err(fault);
            };
            let pause = pause.unwrap_or_else(|| self.settings.backoff.delay(attempt));
            if pause > self.settings.max_retry_after.max(self.settings.backoff.cap) {
                return Err(fault);
            }
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    fn request(&self, cx: &RunCx, input: &Input) -> EgressRequest {
        let body = told(cx, input).to_string();
        let mut request = EgressRequest::post(self.settings.url.clone(), body);
        request.headers = self.headers(cx, input);
        let mut timeouts = Timeouts::default();
        timeouts.first_byte = Some(self.settings.first_byte);
        timeouts.idle = Some(self.settings.idle);
        request.timeouts(timeouts)
    }

    fn headers(&self, cx: &RunCx, input: &Input) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for name in &self.settings.forward {
            let said = input.forwarded.get(name.as_str());
            if let Some(Ok(mut value)) = said.map(HeaderValue::try_from) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        for (name, value) in &self.settings.headers {
            headers.insert(name, value.clone());
        }
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json);
        let both = HeaderValue::from_static("text/event-stream, application/json");
        headers.insert(ACCEPT, both);
        // The same in each attempt, so that a service can tell a repetition.
        let key = format!("{}:{}", cx.task(), input.message.message_id);
        let texts = [
            (IDEMPOTENCY_KEY, key),
            (TRACEPARENT, cx.trace().to_string()),
        ];
        for (name, text) in texts {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(name, value);
            }
        }
        headers
    }
}

/// What the caller learns; where the service is, only the log does.
fn unreached(error: EgressError) -> AgentError {
    let message = match &error {
        error if error.is_connect() => "the agent's service cannot be reached",
        EgressError::Refused(_) => "the agent's service is at an address that is not allowed",
        EgressError::Timeout { .. } => "the agent's service took too long",
        EgressError::TooLarge { .. } => "the answer of the agent's service is too large",
        _ => "the connection to the agent's service broke",
    };
    AgentError::caused(message, error)
}

/// Whether the service may answer if it is asked again.
fn may_pass(status: StatusCode) -> bool {
    status.is_server_error()
        || status == StatusCode::REQUEST_TIMEOUT
        || status == StatusCode::TOO_MANY_REQUESTS
}

impl Agent for HttpAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(async move {
            tokio::select! {
                biased;
                // The engine knows that the task is canceled, whatever a run says.
                () = cx.cancellation().cancelled() => Ok(Outcome::Done),
                outcome = self.ask(cx, &input) => outcome,
            }
        })
    }
}
