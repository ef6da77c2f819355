//! One call of a webhook: request, answer, and what the answer means.

use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode, header};
use nuncio_egress::{EgressError, EgressRequest, EgressResponse, Timeouts};
use nuncio_protocol::dialect::Notification;
use nuncio_protocol::{
    AuthenticationInfo, Clock, TaskPushNotificationConfig, Timestamp, TraceContext,
};
use nuncio_store::{CallOutcome, Webhook};
use tokio::time::Instant;

use super::Outbound;
use super::backoff::Failure;
use super::signing::Attempt;

/// How much of an answer is read, so that its connection can be used again.
const MAX_ANSWER_BYTES: u64 = 64 << 10;

/// How long this may take; the answer counts anyway.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// What a call came to.
#[derive(Debug)]
pub(super) enum Answer {
    /// It was taken: any 2xx (PUSH-07).
    Taken,
    /// The receiver wants no further call: 410.
    Gone,
    /// Anything else.
    Failed(Failure),
}

/// What is said of a host by a call to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Health {
    /// Nothing.
    #[default]
    Unknown,
    /// It answers.
    Good,
    /// It does not answer, or asks to be left alone.
    Bad,
}

/// A call that has been made.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) answer: Answer,
    pub(super) outcome: CallOutcome,
    pub(super) health: Health,
    pub(super) at: Timestamp,
    pub(super) took: Duration,
}

/// What a webhook is told.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) message_id: &'a str,
    /// The span of the call.
    pub(super) trace: TraceContext,
    pub(super) notification: Notification,
}

/// Calls a webhook once; its secrets are open.
pub(super) async fn call(
    outbound: &Outbound,
    clock: &dyn Clock,
    webhook: &Webhook,
    asked: Asked<'_>,
) -> Called {
    let (at, began) = (clock.now(), Instant::now());
    let called = |answer, outcome, health| Called {
        answer,
        outcome,
        health,
        at,
        took: began.elapsed(),
    };
    let Some(request) = request(outbound, webhook, at, asked) else {
        let outcome = CallOutcome::Unsendable;
        return called(failed(true), outcome, Health::Unknown);
    };
    match outbound.egress.send(request).await {
        Ok(response) => {
            let (answer, health) = judge(&response, clock);
            let outcome = CallOutcome::Answered(response.status().as_u16());
            let _ = tokio::time::timeout(ANSWER_TIME, response.bytes_up_to(MAX_ANSWER_BYTES)).await;
            called(answer, outcome, health)
        }
        Err(error) => {
            let outcome = outcome_of(&error);
            let (is_refusal, health) = match outcome {
                CallOutcome::Forbidden | CallOutcome::Unsendable => (true, Health::Unknown),
                _ => (false, Health::Bad),
            };
            tracing::debug!(%error, "a webhook was not reached");
            called(failed(is_refusal), outcome, health)
        }
    }
}

impl Called {
    /// A call that could not even begin.
    pub(super) fn not_made(at: Timestamp) -> Self {
        let outcome = CallOutcome::Unsendable;
        Self {
            answer: failed(true),
            outcome,
            health: Health::Unknown,
            at,
            took: Duration::ZERO,
        }
    }
}

/// The error in coarse words: what a network looks like from here is not told (S06).
fn outcome_of(error: &EgressError) -> CallOutcome {
    match error {
        EgressError::Refused(_) => CallOutcome::Forbidden,
        EgressError::Setup(_) => CallOutcome::Unsendable,
        error if error.is_connect() => CallOutcome::Unreachable,
        EgressError::Timeout { .. } => CallOutcome::TimedOut,
        _ => CallOutcome::Broken,
    }
}

fn request(
    outbound: &Outbound,
    webhook: &Webhook,
    at: Timestamp,
    asked: Asked<'_>,
) -> Option<EgressRequest> {
    let Asked {
        message_id,
        trace,
        notification,
    } = asked;
    let url = outbound.egress.check_url(&webhook.config.url).ok()?;
    let attempt = Attempt {
        message_id,
        at,
        body: notification.body.as_ref(),
    };
    let signing = &outbound.settings.signing;
    let signed = signing.headers(attempt).ok()?;
    let token = signing.token(&webhook.config, &url, attempt).ok()?;
    let content_type = HeaderValue::from_static(notification.content_type);
    let version = HeaderValue::from_static(webhook.version.as_str());
    let mut request = EgressRequest::post(url, notification.body)
        .timeouts(Timeouts::total(outbound.settings.call_timeout))
        .header(header::CONTENT_TYPE, content_type)
        .header(HeaderName::from_static("a2a-version"), version)
        .header(HeaderName::from_static("traceparent"), trace_value(trace)?);
    for (name, value) in signed.into_iter().chain(credentials(&webhook.config)?) {
        request = request.header(name, value);
    }
    if let Some((name, value)) = token {
        request.headers.insert(name, value);
    }
    Some(request)
}

fn trace_value(trace: TraceContext) -> Option<HeaderValue> {
    HeaderValue::try_from(trace.to_string()).ok()
}

/// The headers by which the receiver knows us; `None` if one cannot be written.
///
/// Senders differ in the header of the token, so that both are sent (PUSH-03, PUSH-04, TRAP-21).
pub(crate) fn credentials(
    config: &TaskPushNotificationConfig,
) -> Option<Vec<(HeaderName, HeaderValue)>> {
    let secret = |text: &str| {
        let mut value = HeaderValue::from_bytes(text.as_bytes()).ok()?;
        value.set_sensitive(true);
        Some(value)
    };
    let mut headers = Vec::new();
    if let Some(authentication) = &config.authentication {
        let value = secret(&authorization(authentication))?;
        headers.push((header::AUTHORIZATION, value));
    }
    if let Some(token) = config.token.as_deref().filter(|token| !token.is_empty()) {
        for name in ["x-a2a-notification-token", "a2a-notification-token"] {
            headers.push((HeaderName::from_static(name), secret(token)?));
        }
    }
    Some(headers)
}

fn authorization(authentication: &AuthenticationInfo) -> String {
    let scheme = &authentication.scheme;
    match authentication.credentials.as_deref() {
        None | Some("") => scheme.clone(),
        Some(credentials) => format!("{scheme} {credentials}"),
    }
}

fn judge(response: &EgressResponse, clock: &dyn Clock) -> (Answer, Health) {
    let status = response.status();
    if status.is_success() {
        return (Answer::Taken, Health::Good);
    }
    if status == StatusCode::GONE {
        return (Answer::Gone, Health::Good);
    }
    let may_change = status.is_server_error()
        || [
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::TOO_EARLY,
            StatusCode::TOO_MANY_REQUESTS,
        ]
        .contains(&status);
    let told = response.header(header::RETRY_AFTER.as_str());
    let answer = Answer::Failed(Failure {
        is_refusal: !may_change,
        retry_after: told.and_then(|told| retry_after(told, clock)),
    });
    let health = if may_change {
        Health::Bad
    } else {
        Health::Good
    };
    (answer, health)
}

fn failed(is_refusal: bool) -> Answer {
    Answer::Failed(Failure {
        is_refusal,
        retry_after: None,
    })
}

/// Reads `Retry-After`: seconds, or a date.
fn retry_after(text: &str, clock: &dyn Clock) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text.trim()).ok()?;
    let date = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    let now = u64::try_from(clock.now().unix_ms()).ok()?;
    Some(date.saturating_sub(Duration::from_millis(now)))
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::Timestamp;

    use super::*;

    #[derive(Debug)]
    struct At(i64);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp::from_unix_ms(self.0)
        }
    }

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let seconds =
            |now: i64, text| retry_after(text, &At(now * 1_000)).map(|duration| duration.as_secs());
        assert_eq!(seconds(0, "120"), Some(120));
        assert_eq!(seconds(784_111_700, date), Some(77));
        assert_eq!(seconds(784_111_999, date), Some(0), "gone by");
        assert_eq!(seconds(0, "soon"), None);
        assert_eq!(seconds(0, "-5"), None);
    }

    /// PUSH-03, PUSH-04.
    #[test]
    fn credentials_are_written_as_they_are_and_never_shown() {
        let mut config = TaskPushNotificationConfig::default();
        assert!(credentials(&config).unwrap().is_empty());
        let mut authentication = AuthenticationInfo::default();
        authentication.scheme = "cUsTom".to_owned();
        config.authentication = Some(authentication);
        config.token = Some("tok".to_owned());
        let headers = credentials(&config).unwrap();
        let shown: Vec<_> = headers.iter().map(|(n, v)| (n.as_str(), v)).collect();
        assert_eq!(
            shown[0],
            ("authorization", &HeaderValue::from_static("cUsTom"))
        );
        assert_eq!(shown[1].0, "x-a2a-notification-token");
        assert_eq!(
            shown[2],
            ("a2a-notification-token", &HeaderValue::from_static("tok"))
        );
        assert!(headers.iter().all(|(_, value)| value.is_sensitive()));
        config.token = Some("two\nlines".to_owned());
        assert!(credentials(&config).is_none());
    }
}
