//! From an error to a reply: the one place where errors get their HTTP form.

use std::net::IpAddr;
use std::time::Duration;

use http::header::{ALLOW, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use nuncio_protocol::dialect::JsonRpcDialect;
use nuncio_protocol::v0_3::oxygent;
use nuncio_protocol::v1::json_rpc::{self, RequestId};
use nuncio_protocol::{A2aError, ErrorDetail, ErrorKind, StatusProfile};

use crate::grpc;
use crate::reply::{self, JSON, Reply};
use crate::rest::ErrorForm;

/// What is asked of callers without a valid credential (AUTH-04).
pub(crate) const CHALLENGE: &str = "Bearer realm=\"nuncio\"";

/// After how long what is unavailable may be there again, if nobody knows better: a restart.
const PASSES: Duration = Duration::from_secs(1);

/// An error with what only HTTP can say about it.
#[derive(Debug)]
pub(crate) struct Failure {
    error: A2aError,
    extra: Option<Box<Extra>>,
}

#[derive(Debug, Default)]
struct Extra {
    /// Another status than the error's own.
    status: Option<StatusCode>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// For the log.
    client: Option<IpAddr>,
}

impl From<A2aError> for Failure {
    fn from(error: A2aError) -> Self {
        Self { error, extra: None }
    }
}

impl Failure {
    /// A wrong HTTP method; these would do (REST-06, RPC-12).
    pub(crate) fn method_not_allowed(methods: &[&str]) -> Self {
        let allowed = methods.join(", ");
        let message = format!("this address takes {allowed}");
        let failure: Self = A2aError::new(ErrorKind::MethodNotAllowed, message).into();
        let allowed = HeaderValue::try_from(allowed).expect("method names are ASCII");
        failure.with_header(ALLOW, allowed)
    }

    /// The caller accepts nothing that could be sent (CT-05).
    pub(crate) fn not_acceptable() -> Self {
        let message = "Accept leaves out every type this address can send";
        Self::with_status(StatusCode::NOT_ACCEPTABLE, message)
    }

    /// The body stopped coming.
    pub(crate) fn request_timeout() -> Self {
        let message = "the body did not arrive in time";
        Self::with_status(StatusCode::REQUEST_TIMEOUT, message)
    }

    pub(crate) fn with_status(status: StatusCode, message: &str) -> Self {
        let mut failure: Self = A2aError::new(ErrorKind::InvalidRequest, message).into();
        failure.extra().status = Some(status);
        failure
    }

    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.extra().headers.push((name, value));
        self
    }

    pub(crate) fn seen_from(mut self, client: Option<IpAddr>) -> Self {
        self.extra().client = client;
        self
    }

    fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// What the caller learns.
    pub(crate) fn error(&self) -> &A2aError {
        &self.error
    }

    fn status(&self) -> Option<StatusCode> {
        self.extra.as_ref()?.status
    }

    /// Notes it once, then hides what is ours to know.
    fn handled(mut self) -> Self {
        log(&self.error, self.extra.as_ref().and_then(|e| e.client));
        self.error = outward(self.error);
        self
    }

    /// The reply of the JSON-RPC binding (RPC-08).
    pub(crate) fn json_rpc(self, id: &RequestId, dialect: &dyn JsonRpcDialect) -> Reply {
        let failure = self.handled();
        let status = failure
            .status()
            .unwrap_or_else(|| json_rpc_status(failure.error.kind));
        let error = dialect.encode_error(&failure.error);
        let body = json_rpc::encode_failure(id, &error);
        failure.finish(status, JSON, body)
    }

    /// The reply of a streaming method, where errors are events; what is below JSON-RPC is not.
    pub(crate) fn json_rpc_event(
        self,
        id: &RequestId,
        dialect: &dyn JsonRpcDialect,
    ) -> Result<Reply, Self> {
        let below = self.status().is_some() || json_rpc_status(self.error.kind) != StatusCode::OK;
        if below {
            return Err(self);
        }
        let error = dialect.encode_error(&self.handled().error);
        let frame = format!("data: {}\n\n", json_rpc::encode_failure(id, &error));
        Ok(reply::one_event(frame))
    }

    /// The reply of the HTTP+JSON binding (REST-08).
    pub(crate) fn rest(self, form: &ErrorForm) -> Reply {
        let profile = form.profile;
        let failure = self.handled();
        let error = &failure.error;
        let own = StatusCode::from_u16(error.kind.http_status(profile));
        let own = own.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let status = failure.status().unwrap_or(own);
        let body = if status == own {
            form.dialect.encode_error(error, profile)
        } else {
            let name = error.kind.grpc_status(profile).as_str();
            let (code, message) = (status.as_u16(), &error.message);
            serde_json::json!({"error": {"code": code, "status": name, "message": message, "details": []}})
                .to_string()
        };
        failure.finish(status, form.content_type.clone(), body)
    }

    /// The reply to a plain call of OxyGent's.
    pub(crate) fn plain(self) -> Reply {
        let failure = self.handled();
        let (status, body) = oxygent::encode_error(&failure.error);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
        failure.finish(status, JSON, body)
    }

    /// The reply of the gRPC binding: a status and nothing else (GRPC-09).
    pub(crate) fn grpc(self, profile: StatusProfile) -> Reply {
        grpc::refusal(&self.handled().error, profile)
    }

    fn finish(self, status: StatusCode, content_type: HeaderValue, body: String) -> Reply {
        let mut reply = reply::with_body(status, content_type, body);
        let headers = reply.headers_mut();
        if let Some(delay) = self.error.retry_after() {
            let seconds = delay.as_secs() + u64::from(delay.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, seconds.max(1).into());
        }
        for (name, value) in self.extra.into_iter().flat_map(|extra| extra.headers) {
            headers.append(name, value);
        }
        if status == StatusCode::UNAUTHORIZED && !headers.contains_key(WWW_AUTHENTICATE) {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
        }
        reply
    }
}

/// Below JSON-RPC a status speaks; above it everything is 200.
fn json_rpc_status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
        ErrorKind::AgentNotFound => StatusCode::NOT_FOUND,
        ErrorKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorKind::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorKind::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    }
}

/// Notes a failure where it is handled, as loud as it deserves.
pub(crate) fn log(error: &A2aError, client: Option<IpAddr>) {
    let (kind, message) = (error.kind, error.message.as_str());
    let client = client.map(tracing::field::display);
    match kind {
        ErrorKind::Internal | ErrorKind::InvalidAgentResponse | ErrorKind::Other(_) => {
            tracing::error!(error.kind = ?kind, error.message = message, client, "request failed");
        }
        ErrorKind::Unauthenticated
        | ErrorKind::PermissionDenied
        | ErrorKind::ResourceExhausted
        | ErrorKind::Unavailable => {
            tracing::warn!(error.kind = ?kind, error.message = message, client, "request refused");
        }
        _ => {
            tracing::debug!(error.kind = ?kind, error.message = message, client, "request refused");
        }
    }
}

/// What a caller may see: of a fault of ours nothing but that it is one (ERR-06); of one that passes
/// when to try again.
pub(crate) fn outward(error: A2aError) -> A2aError {
    match error.kind {
        ErrorKind::Internal => A2aError::internal(),
        ErrorKind::Unavailable if error.retry_after().is_none() => {
            error.with_detail(ErrorDetail::RetryAfter(PASSES))
        }
        _ => error,
    }
}
