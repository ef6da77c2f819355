//! One operation over HTTP: the choice of route and version, retries, and reading the answer.

use std::time::Duration;

use bytes::Bytes;
use nuncio_egress::{EgressError, EgressRequest, EgressResponse};
use nuncio_protocol::{
    A2aError, Binding, Call, ErrorKind, Operation, OperationKind, Outcome, Version,
};
use tokio::time::Instant;
use url::Url;

use crate::Client;
use crate::client::Route;
use crate::failure::{Cause, cause, failure, from_egress};
use crate::headers::forward;
use crate::reading;
use crate::sender::{Answer, Prepared, Sizes};

/// What is asked, and of whom.
struct Attempt<'a> {
    call: &'a Call,
    operation: &'a Operation,
    deadline: Deadline,
    /// Only interfaces of versions older than this are asked.
    below: Option<Version>,
}

/// An answer whose head has come, and the route it came by.
struct Head<'a> {
    route: &'a Route,
    response: EgressResponse,
}

/// Why there is no outcome.
struct Failed<'a> {
    error: A2aError,
    /// The route that led to an agent, if one did.
    by: Option<&'a Route>,
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
    /// Runs an operation. Of a stream, what goes wrong before its first event is an error.
    ///
    /// An agent that does not know the version is asked in the next older one of the card (VER-09).
    pub(crate) async fn exchange(
        &self,
        call: &Call,
        operation: &Operation,
    ) -> Result<Outcome, A2aError> {
        let mut attempt = Attempt {
            call,
            operation,
            deadline: self.deadline(call),
            below: None,
        };
        let mut first = None;
        loop {
            let Failed { error, by } = match self.ask(&attempt).await {
                Ok((outcome, route)) => {
                    self.keep_to(route);
                    return Ok(outcome);
                }
                Err(failed) => failed,
            };
            if matches!(
                error.kind,
                ErrorKind::VersionNotSupported | ErrorKind::MethodNotFound
            ) {
                // The card is of yesterday (CACHE-04).
                self.card_is_outdated();
            }
            let refused = refuses_version(operation.kind(), &error);
            match by.filter(|route| refused && self.has_older(route)) {
                Some(route) => {
                    tracing::warn!(
                        "{} does not speak protocol {}: {error}",
                        route.interface.url,
                        route.version
                    );
                    attempt.below = Some(route.version);
                    first.get_or_insert(error);
                }
                // Nobody knows the operation: the newest version knows best why.
                None if refused || by.is_none() => return Err(first.unwrap_or(error)),
                None => return Err(in_time(error, by, attempt.deadline)),
            }
        }
    }

    /// Asks at an address beside an operation's, once, and reads the answer to its end.
    pub(crate) async fn exchange_once(
        &self,
        call: &Call,
        operation: &Operation,
        route: &Route,
        aside: impl FnOnce(&mut Url),
    ) -> Result<Answer, A2aError> {
        let deadline = self.deadline(call);
        let operation = &for_route(operation, route);
        let attempt = Attempt {
            call,
            operation,
            deadline,
            below: None,
        };
        let mut prepared = route.sender.prepare(operation)?;
        aside(&mut prepared.url);
        let sent = self.send(&attempt, operation, route, prepared).await;
        let response = sent.map_err(|error| error.told(deadline))?;
        self.read(Head { route, response }, deadline).await
    }

    fn has_older(&self, route: &Route) -> bool {
        self.routes().any(|other| other.version < route.version)
    }

    async fn ask(&self, attempt: &Attempt<'_>) -> Result<(Outcome, &Route), Failed<'_>> {
        let kind = attempt.operation.kind();
        let mut retries = 0;
        loop {
            let head = self.head(attempt).await?;
            let route = head.route;
            let outcome = if kind.streams() {
                self.read_stream(head, attempt).await
            } else {
                let answer = self.read(head, attempt.deadline).await;
                answer.and_then(|answer| route.sender.outcome(kind, &answer))
            };
            match outcome {
                Ok(outcome) => return Ok((outcome, route)),
                // The answer was lost on the way: reading once more does no harm.
                Err(error)
                    if cause(&error) == Some(Cause::Cut)
                        && is_read(kind)
                        && !kind.streams()
                        && retries < self.retry().retries =>
                {
                    let delay = self.retry().backoff.delay(retries);
                    self.pause(delay, attempt.deadline).await;
                    retries += 1;
                }
                Err(error) => {
                    let by = Some(route);
                    return Err(Failed { error, by });
                }
            }
        }
    }

    async fn read_stream(
        &self,
        mut head: Head<'_>,
        attempt: &Attempt<'_>,
    ) -> Result<Outcome, A2aError> {
        let deadline = attempt.deadline;
        let operation = for_route(attempt.operation, head.route);
        let refused = !head.response.status().is_success();
        if refused && let Some(prepared) = head.route.sender.prepare_otherwise(&operation) {
            let route = head.route;
            let answer = self.read(head, deadline).await?;
            let refusal = route.sender.only_item(&answer).err();
            let refusal = refusal.unwrap_or_else(A2aError::internal);
            if !matches!(
                refusal.kind,
                ErrorKind::MethodNotFound | ErrorKind::MethodNotAllowed
            ) {
                return Err(refusal);
            }
            let sent = self.send(attempt, &operation, route, prepared).await;
            let response = sent.map_err(|error| error.told(deadline))?;
            head = Head { route, response };
        }
        let sizes = Sizes {
            max_response_bytes: self.max_response_bytes(),
            max_event_bytes: self.max_event_bytes(),
        };
        let Head { route, response } = &head;
        let items = route
            .sender
            .items(response.status(), response.headers(), sizes);
        let stream = match items {
            Some(items) => {
                let settings = reading::Settings {
                    linger: self.follow_policy().linger,
                    bears_silence: route.sender.is_http2_only(),
                    total: deadline.total,
                };
                reading::events(head.response, items, settings).await?
            }
            None => {
                let sender = &route.sender.clone();
                let answer = self.read(head, deadline).await?;
                reading::single(sender.only_item(&answer)?)
            }
        };
        Ok(Outcome::Stream(stream))
    }

    /// Reads an answer to its end.
    async fn read(&self, head: Head<'_>, deadline: Deadline) -> Result<Answer, A2aError> {
        let Head {
            route,
            mut response,
        } = head;
        let status = response.status();
        let body = match response.read_up_to(self.max_response_bytes()).await {
            Ok(body) => body,
            // An error whose text is lost is still the error that its status tells.
            Err(_) if !status.is_success() => Bytes::new(),
            Err(error @ EgressError::TooLarge { .. }) => {
                let error = from_egress(error, deadline.total);
                return Err(route.sender.too_large(error));
            }
            Err(error) => return Err(from_egress(error, deadline.total)),
        };
        Ok(Answer {
            status,
            headers: response.headers().clone(),
            body,
            trailers: response.trailers().cloned(),
        })
    }

    /// Sends until there is an answer: by the next route if no connection comes about, and again
    /// after a while if the agent asks for that.
    async fn head(&self, attempt: &Attempt<'_>) -> Result<Head<'_>, Failed<'_>> {
        let retry = self.retry();
        let mut retries = 0;
        loop {
            let delay = match self.by_any_route(attempt).await {
                Ok(head) => match self.declined_for_now(&head) {
                    Some(delay) if retries < retry.retries => delay,
                    _ => return Ok(head),
                },
                Err(error)
                    if retries < retry.retries && error.may_be_repeated(attempt.operation) =>
                {
                    retry.backoff.delay(retries)
                }
                Err(error) => {
                    let error = error.told(attempt.deadline);
                    return Err(Failed { error, by: None });
                }
            };
            tracing::debug!("trying again in {} ms", delay.as_millis());
            self.pause(delay, attempt.deadline).await;
            retries += 1;
        }
    }

    async fn pause(&self, delay: Duration, deadline: Deadline) {
        let delay = deadline.left().map_or(delay, |left| delay.min(left));
        tokio::time::sleep(delay).await;
    }

    /// How long the agent asks to wait, if it did not begin and the wait is short enough.
    fn declined_for_now(&self, head: &Head<'_>) -> Option<Duration> {
        let Head { route, response } = head;
        let delay = route
            .sender
            .declined(response.status(), response.headers())?;
        (delay <= self.retry().max_retry_after).then_some(delay)
    }

    /// By the first route that can say it and leads there. Where one has found nobody, the others
    /// of the same host and port are not tried: whoever comes back there speaks the first as well.
    async fn by_any_route(&self, attempt: &Attempt<'_>) -> Result<Head<'_>, SendError> {
        let (mut last, mut unsaid) = (None, None);
        let mut deserted = Vec::new();
        let acceptable = |route: &&Route| attempt.below.is_none_or(|below| route.version < below);
        for route in self.routes().filter(acceptable) {
            let operation = for_route(attempt.operation, route);
            let prepared = match route.sender.prepare(&operation) {
                Ok(prepared) => prepared,
                Err(error) if error.kind == ErrorKind::UnsupportedOperation => {
                    unsaid.get_or_insert(SendError::Request(error));
                    continue;
                }
                Err(error) => return Err(SendError::Request(error)),
            };
            let origin = prepared.url.origin();
            if deserted.contains(&origin) {
                continue;
            }
            match self.send(attempt, &operation, route, prepared).await {
                Ok(response) => {
                    if attempt.below.is_none() {
                        self.keep_to(route);
                    }
                    return Ok(Head { route, response });
                }
                Err(error) if error.is_connect() => {
                    tracing::debug!("no connection to {}", route.interface.url);
                    deserted.push(origin);
                    last.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        let error = last.or(unsaid);
        Err(error.unwrap_or_else(|| SendError::Request(A2aError::internal())))
    }

    async fn send(
        &self,
        attempt: &Attempt<'_>,
        operation: &Operation,
        route: &Route,
        prepared: Prepared,
    ) -> Result<EgressResponse, SendError> {
        let mut request = EgressRequest::new(prepared.method, prepared.url);
        request.http2_only = route.sender.is_http2_only();
        request.timeouts = self.limits().of_attempt(attempt.deadline.left());
        request.headers = self
            .headers(attempt.call, operation, route, &request)
            .map_err(SendError::Request)?;
        request.body = prepared.body;
        let mut request = self.keyring().attach(request);
        if self.forwards_to(&request.url) {
            forward(attempt.call, &mut request.headers);
        }
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

/// The operation as it is asked by a route: with the interface's tenant, exactly as declared (TEN-01).
fn for_route(operation: &Operation, route: &Route) -> Operation {
    let mut operation = operation.clone();
    if let Some(tenant) = &route.interface.tenant {
        operation.set_tenant(Some(tenant.clone()));
    }
    operation
}

/// Whether an agent says that it does not know the version, and thus did nothing.
///
/// An unknown method counts only where every agent of a version has it.
fn refuses_version(kind: OperationKind, error: &A2aError) -> bool {
    let is_common = matches!(
        kind,
        OperationKind::SendMessage
            | OperationKind::SendStreamingMessage
            | OperationKind::GetTask
            | OperationKind::CancelTask
    );
    match error.kind {
        ErrorKind::VersionNotSupported => true,
        ErrorKind::MethodNotFound => is_common,
        _ => false,
    }
}

/// In gRPC the agent watches the caller's deadline too, and may be the first to tell.
fn in_time(error: A2aError, by: Option<&Route>, deadline: Deadline) -> A2aError {
    let watched = by.is_some_and(|route| route.binding == Binding::Grpc);
    let ours = watched && deadline.total.is_some() && cause(&error).is_none();
    if ours && error.kind == ErrorKind::DeadlineExceeded {
        return failure(error.kind, Cause::TotalTimeout, error.message);
    }
    error
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
