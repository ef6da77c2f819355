//! One operation over HTTP: the choice of route, retries, and reading the answer.

use std::time::Duration;

use bytes::Bytes;
use http::{StatusCode, header};
use nuncio_egress::{EgressError, EgressRequest, EgressResponse};
use nuncio_protocol::{
    A2aError, Call, ErrorDetail, ErrorKind, EventStream, Operation, OperationKind, Outcome,
};
use tokio::time::Instant;

use crate::Client;
use crate::client::Route;
use crate::failure::{bad_answer, from_egress};
use crate::headers::{media_type, retry_after};
use crate::reading;
use crate::sender::Prepared;

/// An answer whose head has come, and the route it came by.
struct Head<'a> {
    route: &'a Route,
    response: EgressResponse,
}

/// When a call must be over, and the limit as it was set.
#[derive(Debug, Clone, Copy)]
struct Deadline {
    at: Option<Instant>,
    total: Option<Duration>,
}

impl Deadline {
    fn left(&self) -> Option<Duration> {
        self.at.map(|at| at.duration_since(Instant::now()))
    }
}

impl Client {
    /// Runs an operation that does not stream.
    pub(crate) async fn exchange(
        &self,
        call: &Call,
        operation: Operation,
    ) -> Result<Outcome, A2aError> {
        let outcome = self.exchange_as_is(call, operation).await;
        self.look_for_signs_of_change(&outcome);
        outcome
    }

    /// Opens a stream: what goes wrong before its first event is an error, not a stream.
    pub(crate) async fn open_stream(
        &self,
        call: &Call,
        operation: Operation,
    ) -> Result<EventStream, A2aError> {
        let stream = self.open_stream_as_is(call, operation).await;
        self.look_for_signs_of_change(&stream);
        stream
    }

    /// A version or a method that is no longer known means that the card is of yesterday (CACHE-04).
    fn look_for_signs_of_change<T>(&self, result: &Result<T, A2aError>) {
        if let Err(error) = result
            && matches!(
                error.kind,
                ErrorKind::VersionNotSupported | ErrorKind::MethodNotFound
            )
        {
            self.card_is_outdated();
        }
    }

    async fn exchange_as_is(&self, call: &Call, operation: Operation) -> Result<Outcome, A2aError> {
        let deadline = self.deadline(call);
        let kind = operation.kind();
        let mut attempt = 0;
        loop {
            let head = self.head(call, &operation, deadline).await?;
            match self.read_outcome(kind, head).await {
                Ok(body) => return body,
                // The answer was lost on the way: reading once more does no harm.
                Err(EgressError::Broken { .. })
                    if is_read(kind) && attempt < self.retry().retries =>
                {
                    self.pause(self.retry().backoff.delay(attempt), deadline)
                        .await;
                    attempt += 1;
                }
                Err(error) => return Err(from_egress(error, deadline.total)),
            }
        }
    }

    async fn read_outcome(
        &self,
        kind: OperationKind,
        head: Head<'_>,
    ) -> Result<Result<Outcome, A2aError>, EgressError> {
        let Head { route, response } = head;
        let status = response.status();
        if !status.is_success() {
            return Ok(Err(self.read_refusal(route, response).await));
        }
        let content_type = media_type(response.headers());
        let body = response.bytes_up_to(self.max_response_bytes()).await?;
        let json = content_type.is_empty() || content_type.contains("json");
        let nothing_expected = kind == OperationKind::DeleteTaskPushNotificationConfig;
        if !json && !nothing_expected {
            return Ok(Err(not_json(&content_type)));
        }
        Ok(route.sender.outcome(kind, &body))
    }

    async fn open_stream_as_is(
        &self,
        call: &Call,
        operation: Operation,
    ) -> Result<EventStream, A2aError> {
        let deadline = self.deadline(call);
        let mut head = self.head(call, &operation, deadline).await?;
        if !head.response.status().is_success() {
            let Head { route, response } = head;
            let refusal = self.read_refusal(route, response).await;
            let unknown = matches!(
                refusal.kind,
                ErrorKind::MethodNotFound | ErrorKind::MethodNotAllowed
            );
            let otherwise = route
                .sender
                .prepare_otherwise(&operation)
                .filter(|_| unknown);
            let Some(prepared) = otherwise else {
                return Err(refusal);
            };
            let response = self
                .send(call, &operation, route, prepared, deadline)
                .await
                .map_err(|error| error.told(deadline))?;
            if !response.status().is_success() {
                return Err(self.read_refusal(route, response).await);
            }
            head = Head { route, response };
        }
        let Head { route, response } = head;
        let content_type = media_type(response.headers());
        match content_type.as_str() {
            "" | "text/event-stream" => {
                let settings = reading::Settings {
                    max_event_bytes: self.max_event_bytes(),
                    linger: self.follow_policy().linger,
                    total: deadline.total,
                };
                reading::events(response, route.clone(), settings).await
            }
            json if json.contains("json") => {
                let body = response.bytes_up_to(self.max_response_bytes()).await;
                let body = body.map_err(|error| from_egress(error, deadline.total))?;
                reading::single(&*route.sender, &body)
            }
            other => Err(not_json(other)),
        }
    }

    async fn read_refusal(&self, route: &Route, response: EgressResponse) -> A2aError {
        let status = response.status();
        let headers = response.headers().clone();
        // An error whose text is lost is still the error that its status tells.
        let body = response.bytes_up_to(self.max_response_bytes()).await;
        let body = body.unwrap_or_else(|_| Bytes::new());
        let mut error = route.sender.refusal(status, &body);
        if error.retry_after().is_none()
            && let Some(delay) = retry_after(&headers)
        {
            error = error.with_detail(ErrorDetail::RetryAfter(delay));
        }
        if let Some(challenge) = headers.get(header::WWW_AUTHENTICATE)
            && let Ok(challenge) = challenge.to_str()
        {
            error = error.with("wwwAuthenticate", challenge);
        }
        error
    }

    /// Sends until there is an answer: by the next route if no connection comes about, and again
    /// after a while if the agent asks for that.
    async fn head(
        &self,
        call: &Call,
        operation: &Operation,
        deadline: Deadline,
    ) -> Result<Head<'_>, A2aError> {
        let retry = self.retry();
        let mut attempt = 0;
        loop {
            let delay = match self.by_any_route(call, operation, deadline).await {
                Ok(head) => match self.declined_for_now(&head.response) {
                    Some(delay) if attempt < retry.retries => delay,
                    _ => return Ok(head),
                },
                Err(error) if attempt < retry.retries && error.may_be_repeated(operation) => {
                    retry.backoff.delay(attempt)
                }
                Err(error) => return Err(error.told(deadline)),
            };
            tracing::debug!("trying again in {} ms", delay.as_millis());
            self.pause(delay, deadline).await;
            attempt += 1;
        }
    }

    async fn pause(&self, delay: Duration, deadline: Deadline) {
        let delay = deadline.left().map_or(delay, |left| delay.min(left));
        tokio::time::sleep(delay).await;
    }

    /// How long the agent asks to wait, if it did not begin and the wait is short enough.
    fn declined_for_now(&self, response: &EgressResponse) -> Option<Duration> {
        let declined = matches!(
            response.status(),
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
        );
        retry_after(response.headers())
            .filter(|delay| declined && *delay <= self.retry().max_retry_after)
    }

    async fn by_any_route(
        &self,
        call: &Call,
        operation: &Operation,
        deadline: Deadline,
    ) -> Result<Head<'_>, SendError> {
        let mut last = None;
        for route in self.routes() {
            let mut operation = operation.clone();
            // TEN-01: the chosen interface's tenant, exactly as declared.
            if let Some(tenant) = &route.interface.tenant {
                operation.set_tenant(Some(tenant.clone()));
            }
            let prepared = route
                .sender
                .prepare(&operation)
                .map_err(SendError::Request)?;
            match self.send(call, &operation, route, prepared, deadline).await {
                Ok(response) => {
                    self.keep_to(route);
                    return Ok(Head { route, response });
                }
                Err(error) if error.is_connect() => {
                    tracing::debug!("no connection to {}", route.interface.url);
                    last.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| SendError::Request(A2aError::internal())))
    }

    async fn send(
        &self,
        call: &Call,
        operation: &Operation,
        route: &Route,
        prepared: Prepared,
        deadline: Deadline,
    ) -> Result<EgressResponse, SendError> {
        let mut request = EgressRequest::new(prepared.method, prepared.url);
        request.headers = self
            .headers(call, operation, route, &request)
            .map_err(SendError::Request)?;
        request.body = prepared.body;
        request.timeouts = self.limits().of_attempt(deadline.left());
        let request = self.keyring().attach(request);
        self.egress().send(request).await.map_err(SendError::Egress)
    }

    fn deadline(&self, call: &Call) -> Deadline {
        let total = [call.timeout, self.limits().total]
            .into_iter()
            .flatten()
            .min();
        Deadline {
            at: total.map(|total| Instant::now() + total),
            total,
        }
    }
}

/// Why nothing could be sent, or no answer came.
enum SendError {
    Egress(EgressError),
    Request(A2aError),
}

impl SendError {
    fn is_connect(&self) -> bool {
        matches!(self, Self::Egress(error) if error.is_connect())
    }

    fn may_be_repeated(&self, operation: &Operation) -> bool {
        let broken = matches!(self, Self::Egress(EgressError::Broken { .. }));
        self.is_connect() || (broken && is_read(operation.kind()))
    }

    fn told(self, deadline: Deadline) -> A2aError {
        match self {
            Self::Egress(error) => from_egress(error, deadline.total),
            Self::Request(error) => error,
        }
    }
}

/// Whether an operation changes nothing.
fn is_read(kind: OperationKind) -> bool {
    matches!(
        kind,
        OperationKind::GetTask
            | OperationKind::ListTasks
            | OperationKind::SubscribeToTask
            | OperationKind::GetTaskPushNotificationConfig
            | OperationKind::ListTaskPushNotificationConfigs
            | OperationKind::GetExtendedAgentCard
    )
}

fn not_json(content_type: &str) -> A2aError {
    bad_answer(format!(
        "the agent answered with {content_type}, which is no answer of the protocol"
    ))
}
