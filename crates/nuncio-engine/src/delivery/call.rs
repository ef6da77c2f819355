//! One call of a webhook: request, answer, and what the answer means.

use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode, header};
use nuncio_egress::{Egress, EgressError, EgressRequest, EgressResponse, Timeouts};
use nuncio_protocol::dialect::Notification;
use nuncio_protocol::{AuthenticationInfo, Clock, TaskPushNotificationConfig};
use nuncio_store::Webhook;

use super::backoff::Failure;

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

/// Calls a webhook once.
pub(super) async fn call(
    egress: &Egress,
    clock: &dyn Clock,
    webhook: &Webhook,
    event_id: &str,
    notification: Notification,
    limit: Duration,
) -> Answer {
    let Some(request) = request(egress, webhook, event_id, notification, limit) else {
        return failed("the URL or a header of it cannot be used", true);
    };
    match egress.send(request).await {
        Ok(response) => {
            let answer = judge(&response, clock);
            let _ = tokio::time::timeout(ANSWER_TIME, response.bytes_up_to(MAX_ANSWER_BYTES)).await;
            answer
        }
        Err(error) => {
            let refused = matches!(error, EgressError::Refused(_) | EgressError::Setup(_));
            failed(error, refused)
        }
    }
}

fn request(
    egress: &Egress,
    webhook: &Webhook,
    event_id: &str,
    notification: Notification,
    limit: Duration,
) -> Option<EgressRequest> {
    let url = egress.check_url(&webhook.config.url).ok()?;
    let content_type = HeaderValue::from_static(notification.content_type);
    let version = HeaderValue::from_static(webhook.version.as_str());
    let mut request = EgressRequest::post(url, notification.body)
        .timeouts(Timeouts::total(limit))
        .header(header::CONTENT_TYPE, content_type)
        .header(HeaderName::from_static("a2a-version"), version)
        .header(
            HeaderName::from_static("webhook-id"),
            HeaderValue::from_str(event_id).ok()?,
        );
    for (name, value) in credentials(&webhook.config)? {
        request = request.header(name, value);
    }
    Some(request)
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

fn judge(response: &EgressResponse, clock: &dyn Clock) -> Answer {
    let status = response.status();
    if status.is_success() {
        return Answer::Taken;
    }
    if status == StatusCode::GONE {
        return Answer::Gone;
    }
    let may_change = status.is_server_error()
        || [
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::TOO_EARLY,
            StatusCode::TOO_MANY_REQUESTS,
        ]
        .contains(&status);
    let told = response.header(header::RETRY_AFTER.as_str());
    Answer::Failed(Failure {
        cause: format!("the answer was {}", status.as_u16()),
        is_refusal: !may_change,
        retry_after: told.and_then(|told| retry_after(told, clock)),
    })
}

fn failed(cause: impl ToString, is_refusal: bool) -> Answer {
    Answer::Failed(Failure {
        cause: cause.to_string(),
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
