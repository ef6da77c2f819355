//! The gRPC binding: calls framed over HTTP/2, errors in trailers. Spec: §10

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body::Body;
use nuncio_protocol::dialect::{self, GrpcDialect, StreamKind};
use nuncio_protocol::grpc::{self, frame, frame::FrameDecoder};
use nuncio_protocol::{
    A2aError, Binding, ErrorKind, Operation, OperationKind, Outcome, StatusProfile, Version,
};

use crate::bindings::Asking;
use crate::body::{self, ResponseBody};
use crate::events::Framing;
use crate::failure::Failure;
use crate::place::Who;
use crate::reply::{self, GRPC, Reply};
use crate::server::{Server, Visit};
use crate::standard::StandardService;
use crate::{Endpoint, parameters};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_STATUS_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// Bytes before each message.
const PREFIX: usize = 5;

impl Server {
    /// Answers one call of a method, `/package.Service/Method`.
    pub(crate) async fn grpc<B>(
        &self,
        visit: &Visit<'_>,
        path: &str,
        upload: &mut Option<B>,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let mut profile = StatusProfile::default();
        if let Some(service) = StandardService::of(path)
            && let Some(body) = upload.take()
        {
            let answered = self.standard(visit, service, body).await;
            return answered.unwrap_or_else(|failure| failure.grpc(profile));
        }
        let answered = self.grpc_call(visit, path, upload, &mut profile).await;
        answered.unwrap_or_else(|failure| failure.grpc(profile))
    }

    async fn grpc_call<B>(
        &self,
        visit: &Visit<'_>,
        path: &str,
        upload: &mut Option<B>,
        profile: &mut StatusProfile,
    ) -> Result<Reply, Failure>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let admitted = self.authenticate(visit)?;
        let (dialect, kind) = method(path)?;
        let message = self.read_message(upload).await?;
        // The agent is named inside the message, so that has to be read first.
        let decoded = dialect.decode_request(kind, &message);
        let tenant = decoded.as_ref().ok().and_then(Operation::tenant);
        let target = self.find(admitted, Who::Default, tenant)?;
        let endpoint = &target.endpoint;
        *profile = endpoint.profile;
        agree_on_version(visit.parts, endpoint, dialect)?;
        let asking = Asking {
            binding: Binding::Grpc,
            dialect,
            kind,
        };
        let mut answer = self.perform(visit, &target, asking, || decoded).await?;
        let mut reply = match &answer.outcome {
            Outcome::Stream(_) => {
                let framing = Framing::Grpc {
                    dialect,
                    kind: StreamKind::of(kind),
                    profile: endpoint.profile,
                };
                self.stream(&mut answer, &target.admitted, framing).await?
            }
            outcome => {
                let message = dialect.encode_result(kind, outcome)?;
                reply::message(frame::encode(&message), ok())
            }
        };
        answer.name_extensions(&mut reply);
        Ok(reply)
    }

    /// Reads the one message of a request.
    async fn read_message<B>(&self, upload: &mut Option<B>) -> Result<Bytes, Failure>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let mut limits = self.body_limits(None);
        limits.max_bytes += PREFIX;
        let body = match upload.take() {
            Some(body) => body::read(body, limits).await?,
            None => Bytes::new(),
        };
        Ok(only_message(body)?)
    }
}

/// The message in the body of a call: exactly one.
fn only_message(body: Bytes) -> Result<Bytes, A2aError> {
    let mut decoder = FrameDecoder::new(body.len());
    decoder.push(&body);
    let message = decoder.next_message()?;
    decoder.finish()?;
    message.ok_or_else(|| A2aError::new(ErrorKind::InvalidRequest, "the call has no message"))
}

/// Which operation of which version a path asks for.
fn method(path: &str) -> Result<(&'static dyn GrpcDialect, OperationKind), A2aError> {
    let mut segments = path.trim_start_matches('/').splitn(2, '/');
    let service = segments.next().unwrap_or_default();
    let method = segments.next().unwrap_or_default();
    let versions = Version::ALL.iter().map(|version| dialect::grpc(*version));
    let found = versions
        .filter(|dialect| dialect.service() == service)
        .find_map(|dialect| Some((dialect, dialect.kind(method)?)));
    found.ok_or_else(|| {
        let shown: String = path.chars().take(128).collect();
        A2aError::new(ErrorKind::MethodNotFound, format!("unknown method {shown}"))
    })
}

/// The package is proof of the version; metadata that names another contradicts it (VER-10).
fn agree_on_version(
    parts: &Parts,
    endpoint: &Endpoint,
    dialect: &dyn GrpcDialect,
) -> Result<(), A2aError> {
    let shown = dialect.version();
    let said = parameters::version(parts)?;
    let settled = endpoint.settle(said.as_deref(), Some(shown))?;
    if settled == shown && endpoint.dialects.contains(&shown) {
        return Ok(());
    }
    let why = if settled == shown {
        "which is not spoken here".to_owned()
    } else {
        format!("but the request names {settled}")
    };
    Err(A2aError::new(
        ErrorKind::MethodNotFound,
        format!("{} is of protocol {shown}, {why}", dialect.service()),
    ))
}

/// Whether a request is one of gRPC.
pub(crate) fn is_call(parts: &Parts) -> bool {
    let kind = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| {
        let rest = kind.strip_prefix(GRPC.as_bytes());
        rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
    })
}

/// How long the caller will wait.
pub(crate) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    frame::parse_timeout(headers.get(GRPC_TIMEOUT)?.to_str().ok()?)
}

/// The trailers of what went well.
pub(crate) fn ok() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    trailers
}

/// The trailers of what failed (GRPC-03).
pub(crate) fn status(error: &A2aError, profile: StatusProfile) -> HeaderMap {
    let status = grpc::encode_status(error, profile);
    let details = STANDARD_NO_PAD.encode(status.details_bin);
    let mut trailers = HeaderMap::with_capacity(3);
    trailers.insert(GRPC_STATUS, status.code.into());
    for (name, value) in [
        (GRPC_MESSAGE, frame::encode_message(&status.message)),
        (GRPC_STATUS_DETAILS, details),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            trailers.insert(name, value);
        }
    }
    trailers
}

/// A reply that is a status and nothing else.
pub(crate) fn refusal(error: &A2aError, profile: StatusProfile) -> Reply {
    let mut reply = Response::new(ResponseBody::empty());
    *reply.status_mut() = StatusCode::OK;
    *reply.headers_mut() = status(error, profile);
    reply.headers_mut().insert(CONTENT_TYPE, GRPC);
    reply
}
