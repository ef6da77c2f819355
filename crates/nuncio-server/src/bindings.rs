//! JSON-RPC and HTTP+JSON: from a request to an operation, from an outcome to a reply.
//!
//! Spelling is `nuncio_protocol::v1`'s business, judging is `dispatch`'s.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, VARY};
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode};
use http_body::Body;
use nuncio_protocol::v1::rest::{Route, RouteError};
use nuncio_protocol::v1::{json_rpc, rest};
use nuncio_protocol::{
    A2aError, Binding, ErrorKind, Operation, OperationKind, Outcome, Result, Version,
};

use crate::admission::Permit;
use crate::auth::Admitted;
use crate::body::{self, BodyLimits};
use crate::dispatch::{Asked, no_such_agent};
use crate::failure::Failure;
use crate::reply::{self, A2A_EXTENSIONS, JSON, Reply};
use crate::server::{Server, Visit};
use crate::sse::{Framing, SseBody, StreamContext};
use crate::{Endpoint, content, parameters};

/// What an operation came to.
struct Answer {
    outcome: Outcome,
    permit: Permit,
    /// The extensions in force.
    extensions: Option<HeaderValue>,
}

impl Answer {
    fn name_extensions(self, reply: &mut Reply) {
        if let Some(extensions) = self.extensions {
            reply.headers_mut().insert(A2A_EXTENSIONS, extensions);
        }
    }
}

impl Server {
    /// The JSON-RPC binding. Spec: §9
    pub(crate) async fn json_rpc<B>(
        &self,
        visit: &Visit<'_>,
        endpoint: Option<Arc<Endpoint>>,
        upload: &mut Option<B>,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let nameless = json_rpc::RequestId::null();
        let (admitted, endpoint) = match self.enter(visit, endpoint) {
            Ok(entered) => entered,
            Err(failure) => return failure.json_rpc(&nameless),
        };
        if visit.parts.method != Method::POST {
            return Failure::method_not_allowed(&["POST"]).json_rpc(&nameless);
        }
        let bytes = match self.read_json(visit.parts, &endpoint, upload).await {
            Ok(bytes) => bytes,
            Err(failure) => return failure.json_rpc(&nameless),
        };
        let version = parameters::version(visit.parts, endpoint.strict_version);
        let request = match (json_rpc::Request::decode(&bytes), &version) {
            (Ok(request), _) => request,
            (Err(refusal), Err(error)) => {
                return Failure::from(error.clone()).json_rpc(&refusal.id);
            }
            (Err(refusal), Ok(_)) => return Failure::from(refusal.error).json_rpc(&refusal.id),
        };
        let answered = self.json_rpc_call(visit, &admitted, &endpoint, version, &request);
        answered
            .await
            .unwrap_or_else(|failure| failure.json_rpc(&request.id))
    }

    async fn json_rpc_call(
        &self,
        visit: &Visit<'_>,
        admitted: &Admitted,
        endpoint: &Endpoint,
        version: Result<Version>,
        request: &json_rpc::Request<'_>,
    ) -> Result<Reply, Failure> {
        let version = version?;
        let Some(kind) = OperationKind::from_name(&request.method) else {
            let error = request.operation().err();
            return Err(error.unwrap_or_else(A2aError::internal).into());
        };
        let asking = Asking {
            binding: Binding::JsonRpc,
            admitted,
            version,
            kind,
        };
        let decode = || request.operation();
        let mut answer = self.perform(visit, endpoint, asking, decode).await?;
        let mut reply = match json_rpc::encode_outcome(&request.id, &answer.outcome) {
            Some(body) => reply::with_body(StatusCode::OK, JSON, body),
            None => {
                let framing = Framing::json_rpc(request.id.clone());
                self.stream(&mut answer, admitted, framing).await?
            }
        };
        answer.name_extensions(&mut reply);
        Ok(reply)
    }

    /// The HTTP+JSON binding. Spec: §11
    pub(crate) async fn rest<B>(
        &self,
        visit: &Visit<'_>,
        endpoint: Option<Arc<Endpoint>>,
        path: &str,
        upload: &mut Option<B>,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let profile = endpoint.as_ref().map(|e| e.profile).unwrap_or_default();
        let content_type = content::reply_type(&visit.parts.headers);
        let answered = async {
            let (admitted, endpoint) = self.enter(visit, endpoint)?;
            self.rest_call(visit, &admitted, &endpoint, path, upload)
                .await
        };
        let mut reply = match answered.await {
            Ok(reply) => reply,
            Err(failure) => failure.rest(profile, content_type),
        };
        let vary = HeaderValue::from_static("Accept");
        reply.headers_mut().append(VARY, vary);
        reply
    }

    async fn rest_call<B>(
        &self,
        visit: &Visit<'_>,
        admitted: &Admitted,
        endpoint: &Endpoint,
        path: &str,
        upload: &mut Option<B>,
    ) -> Result<Reply, Failure>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let parts = visit.parts;
        let version = parameters::version(parts, endpoint.strict_version)?;
        let route = rest::route(parts.method.as_str(), path).map_err(|e| no_route(e, path))?;
        let body = match parts.method {
            Method::POST => self.read_json(parts, endpoint, upload).await?,
            _ => Bytes::new(),
        };
        let asking = Asking {
            binding: Binding::HttpJson,
            admitted,
            version,
            kind: route.kind,
        };
        let decode = || route.operation(parts.uri.query(), &body);
        let mut answer = self.perform(visit, endpoint, asking, decode).await?;
        let mut reply = match rest::encode_outcome(&answer.outcome) {
            Some(body) => {
                let content_type = content::reply_type(&parts.headers);
                reply::with_body(StatusCode::OK, content_type, body)
            }
            None => {
                let profile = endpoint.profile;
                let framing = Framing::Rest { profile };
                self.stream(&mut answer, admitted, framing).await?
            }
        };
        keep_private(&route, &mut reply);
        answer.name_extensions(&mut reply);
        Ok(reply)
    }

    /// Who is calling, and is there such an agent: in this order, so that only callers learn it.
    fn enter(
        &self,
        visit: &Visit<'_>,
        endpoint: Option<Arc<Endpoint>>,
    ) -> Result<(Admitted, Arc<Endpoint>), Failure> {
        let admitted = self.authenticate(visit)?;
        let endpoint = endpoint.ok_or_else(no_such_agent)?;
        Ok((admitted, endpoint))
    }

    async fn read_json<B>(
        &self,
        parts: &Parts,
        endpoint: &Endpoint,
        upload: &mut Option<B>,
    ) -> Result<Bytes, Failure>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let Some(body) = upload.take_if(|body| !body.is_end_stream()) else {
            return Ok(Bytes::new());
        };
        if let Err(error) = content::check_body_type(&parts.headers) {
            body::discard(body);
            return Err(error.into());
        }
        let settings = self.settings();
        let limits = BodyLimits {
            max_bytes: endpoint.max_body_bytes.unwrap_or(settings.max_body_bytes),
            idle: settings.body_idle_timeout,
        };
        body::read(body, limits).await
    }

    /// Runs an operation through the door, and completes what only the server knows.
    async fn perform<D>(
        &self,
        visit: &Visit<'_>,
        endpoint: &Endpoint,
        asking: Asking<'_>,
        decode: D,
    ) -> Result<Answer, Failure>
    where
        D: FnOnce() -> Result<Operation>,
    {
        let headers = &visit.parts.headers;
        let caller = asking.admitted.caller.clone();
        let call = parameters::call(headers, caller, asking.version)?;
        let extensions = parameters::activated(&call.extensions, &endpoint.card.capabilities);
        let asked = Asked {
            binding: asking.binding,
            admitted: asking.admitted,
            call,
            kind: asking.kind,
            acceptable: content::is_acceptable(headers),
            decode,
        };
        let (mut outcome, permit) = endpoint.dispatch(self.settings(), asked).await?;
        if let Outcome::Card(card) = &mut outcome {
            let public_url = self.public_url(visit);
            endpoint.complete(card, self.card_context(&public_url));
        }
        Ok(Answer {
            outcome,
            permit,
            extensions,
        })
    }

    async fn stream(
        &self,
        answer: &mut Answer,
        admitted: &Admitted,
        framing: Framing,
    ) -> Result<Reply, Failure> {
        let outcome = std::mem::replace(&mut answer.outcome, Outcome::Deleted);
        let Outcome::Stream(events) = outcome else {
            return Err(A2aError::internal().into());
        };
        let context = StreamContext {
            heartbeat: self.settings().heartbeat,
            closing: self.closing().clone(),
            expires: self.expiry(admitted),
            _permit: std::mem::take(&mut answer.permit),
        };
        let body = SseBody::open(events, framing, context).await?;
        Ok(reply::events(body))
    }
}

/// What is known of an operation before its request is read.
struct Asking<'a> {
    binding: Binding,
    admitted: &'a Admitted,
    version: Version,
    kind: OperationKind,
}

fn no_route(error: RouteError, path: &str) -> Failure {
    match error {
        RouteError::MethodNotAllowed(methods) => Failure::method_not_allowed(methods),
        RouteError::NotFound => {
            let hint = match path.strip_prefix("/v1") {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                    "no such path: paths under /v1 are of protocol 0.3, which is not spoken here"
                }
                _ => "no such path",
            };
            A2aError::new(ErrorKind::MethodNotFound, hint).into()
        }
    }
}

/// What depends on the caller is for the caller alone (OP-XCARD-03).
fn keep_private(route: &Route, reply: &mut Reply) {
    if route.kind == OperationKind::GetExtendedAgentCard {
        let headers = reply.headers_mut();
        let private = HeaderValue::from_static("private, no-cache");
        headers.insert(CACHE_CONTROL, private);
        let vary = HeaderValue::from_static("Authorization, X-API-Key");
        headers.append(VARY, vary);
    }
}
