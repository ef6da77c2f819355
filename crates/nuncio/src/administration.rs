//! The server that is administered, and what its answers mean: for the commands that look after it.

use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use nuncio_egress::{EgressError, EgressRequest, Limit, Timeouts};
use nuncio_protocol::v1::rest;
use serde_json::Value;
use url::Url;

use crate::client::{Groundwork, Printer, ServerOptions};
use crate::outcome::{Code, Failure, Outcome, warn};
use crate::surroundings::Surroundings;

const DEFAULT: &str = "http://127.0.0.1:8080";
const TIMEOUT: Duration = Duration::from_secs(30);
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What is asked for below `/admin/v1`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The segments of the path, as they are meant.
    pub(crate) path: &'a [&'a str],
    /// The parameters.
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// What to do where it is refused.
    pub(crate) hints: Hints,
}

/// What to do next where a server refuses; empty if there is nothing to say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hints {
    pub(crate) conflict: &'static str,
    pub(crate) not_found: &'static str,
    pub(crate) bad_request: &'static str,
}

/// A server and the key for it.
#[derive(Debug)]
pub(crate) struct Server {
    ground: Groundwork,
    base: Url,
    /// The value of `Authorization`: there keys are taken whatever the server's settings are.
    key: Option<HeaderValue>,
    pub(crate) printer: Printer,
}

impl Server {
    /// The server that flags, environment and files name.
    ///
    /// # Errors
    /// Settings that make no sense.
    pub(crate) fn new(options: &ServerOptions, around: &Surroundings) -> Outcome<Self> {
        let (options, server) = options.split();
        let ground = Groundwork::new(&options, server, around)?;
        let named = ground.settings.text("server");
        let named = named.as_deref().unwrap_or(DEFAULT);
        let base = Url::parse(named).ok();
        let base = base.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let base = base.ok_or_else(|| {
            Failure::usage(format!(
                "failed to read --server: \"{named}\" is no http or https URL"
            ))
            .hint(format!("for example --server {DEFAULT}"))
        })?;
        let key = ground.settings.text("api-key").map(|key| credential(&key));
        let key = key.transpose()?;
        if key.is_some() && ground.settings.flag("insecure")? {
            warn(&format!(
                "warning: SECURITY: a key is sent to {base} without knowing who is there\n"
            ))?;
        }
        Ok(Self {
            printer: ground.printer,
            ground,
            base,
            key,
        })
    }

    /// Asks for something below `/admin/v1`.
    ///
    /// # Errors
    /// No server, a key that does not do, and whatever else the server says no to.
    pub(crate) async fn ask(
        &self,
        doing: &str,
        method: Method,
        place: Place<'_>,
        body: Option<&Value>,
    ) -> Outcome<(StatusCode, Value)> {
        let mut request = EgressRequest::new(method, self.address(&place)?)
            .header(ACCEPT, JSON)
            .timeouts(Timeouts::total(TIMEOUT));
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key.clone());
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, JSON);
            request.body = body.to_string().into();
        }
        let response = self.ground.egress.send(request).await;
        let response = response.map_err(|error| unreached(doing, &error))?;
        let status = response.status();
        let bytes = response.bytes().await;
        let bytes = bytes.map_err(|error| unreached(doing, &error))?;
        let answer: Option<Value> = serde_json::from_slice(&bytes).ok();
        match answer.filter(Value::is_object) {
            Some(answer) if status.is_success() => Ok((status, answer)),
            Some(answer) if answer["error"].is_object() => {
                Err(self.refused(doing, status, &bytes, place.hints))
            }
            _ => Err(stranger(doing, status)),
        }
    }

    fn address(&self, place: &Place<'_>) -> Outcome<Url> {
        let mut url = self.base.clone();
        url.set_query(None);
        url.set_fragment(None);
        {
            let segments = url.path_segments_mut();
            let mut segments =
                segments.map_err(|()| Failure::usage("failed to read --server: it has no path"))?;
            segments.pop_if_empty().extend(["admin", "v1"]);
            segments.extend(place.path);
        }
        if !place.query.is_empty() {
            url.query_pairs_mut().extend_pairs(place.query);
        }
        Ok(url)
    }

    fn refused(&self, doing: &str, status: StatusCode, body: &[u8], hints: Hints) -> Failure {
        let error = rest::decode_error(status.as_u16(), body);
        let message = format!("failed to {doing}: {error}");
        let (code, hint) = match (status, &self.key) {
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, None) => (
                Code::CredentialsMissing,
                Some("give a key of an administrator: --api-key or A2ACLI_API_KEY"),
            ),
            (StatusCode::UNAUTHORIZED, Some(_)) => (
                Code::AuthFailed,
                Some("the server does not know this key; see [[auth.keys]] of its configuration"),
            ),
            (StatusCode::FORBIDDEN, Some(_)) => (
                Code::AuthFailed,
                Some("the key needs `admin = true` under [[auth.keys]]"),
            ),
            (StatusCode::CONFLICT, _) => {
                (Code::Protocol("InvalidRequestError"), Some(hints.conflict))
            }
            (StatusCode::NOT_FOUND, _) => {
                (Code::Protocol("InvalidRequestError"), Some(hints.not_found))
            }
            (status, _) if status.is_server_error() => (
                Code::Protocol("InternalError"),
                Some("the server's log says why"),
            ),
            (StatusCode::BAD_REQUEST, _) => (
                Code::Protocol("InvalidParamsError"),
                Some(hints.bad_request),
            ),
            _ => (Code::Protocol("InvalidRequestError"), None),
        };
        let failure = Failure::new(code, message).a2a_code(status.as_u16());
        match hint {
            Some(hint) if !hint.is_empty() => failure.hint(hint),
            _ => failure,
        }
    }
}

fn credential(key: &str) -> Outcome<HeaderValue> {
    // It is not repeated: it is a secret.
    let wrong = |_| Failure::usage("failed to send the API key: a header cannot hold it");
    let mut value = HeaderValue::try_from(format!("Bearer {key}")).map_err(wrong)?;
    value.set_sensitive(true);
    Ok(value)
}

fn unreached(doing: &str, error: &EgressError) -> Failure {
    let message = format!("failed to {doing}: {error}");
    match error.limit() {
        Some(Limit::FirstByte | Limit::Idle | Limit::Total) => Failure::new(Code::Timeout, message),
        _ => Failure::new(Code::Unreachable, message)
            .hint("see whether the server runs and --server is right; --debug shows more"),
    }
}

/// An answer that no nuncio gives.
fn stranger(doing: &str, status: StatusCode) -> Failure {
    Failure::new(
        Code::Protocol("InvalidAgentResponseError"),
        format!("failed to {doing}: HTTP status {status}, and no answer of a nuncio server"),
    )
    .a2a_code(status.as_u16())
    .hint("see whether --server is the address of the server, without the path of an agent")
}
