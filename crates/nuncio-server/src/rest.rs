//! The HTTP+JSON binding. Spec: §11

use bytes::Bytes;
use http::header::{CACHE_CONTROL, VARY};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body::Body;
use nuncio_protocol::dialect::{self, RestDialect, StreamKind};
use nuncio_protocol::v1::rest::{Route, RouteError};
use nuncio_protocol::{
    A2aError, Binding, ErrorKind, OperationKind, Outcome, StatusProfile, Version,
};

use crate::bindings::{Asking, proven};
use crate::call_trees;
use crate::events::Framing;
use crate::failure::Failure;
use crate::place::Who;
use crate::reply::{self, JSON, Reply};
use crate::server::{Server, Visit};
use crate::{content, files, parameters};

impl Server {
    /// Answers one request at a path below an agent's address.
    pub(crate) async fn rest<B>(
        &self,
        visit: &Visit<'_>,
        who: Who<'_>,
        path: &str,
        upload: &mut Option<B>,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let method = visit.parts.method.as_str();
        let route_in = |version| dialect::rest(version).route(method, path);
        let shown = proven(|version| route_in(version) != Err(RouteError::NotFound));
        let spoken = dialect::rest(shown.unwrap_or(Version::V1_0));
        let mut form = ErrorForm {
            dialect: spoken,
            profile: StatusProfile::default(),
            content_type: reply_type(&visit.parts.headers, spoken),
        };
        if let Some(asked) = files::Asked::of(path) {
            let answered = self.file(visit, who, asked).await;
            return answered.unwrap_or_else(|failure| varying(failure.rest(&form)));
        }
        let call = RestCall {
            path,
            shown: shown.map(|version| (version, route_in(version))),
        };
        let answered = self.rest_call(visit, who, call, upload, &mut form);
        varying(match answered.await {
            Ok(reply) => reply,
            Err(failure) => failure.rest(&form),
        })
    }

    async fn rest_call<B>(
        &self,
        visit: &Visit<'_>,
        who: Who<'_>,
        call: RestCall<'_>,
        upload: &mut Option<B>,
        form: &mut ErrorForm,
    ) -> Result<Reply, Failure>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let parts = visit.parts;
        let admitted = self.authenticate(visit)?;
        let tenant = match &call.shown {
            Some((_, Ok(route))) => route.tenant.as_deref(),
            _ => None,
        };
        let target = self.find(admitted, who, tenant)?;
        let endpoint = &target.endpoint;
        form.profile = endpoint.profile;
        let said = parameters::version(parts)?;
        let shown = call.shown.as_ref().map(|(version, _)| *version);
        let version = endpoint
            .settle(said.as_deref(), shown)
            .map_err(A2aError::from)?;
        let (dialect, route) = match call.shown {
            Some((shown, route)) if shown == version && endpoint.dialects.contains(&version) => {
                (dialect::rest(version), route.map_err(no_route)?)
            }
            Some((shown, _)) => return Err(other_version(shown, version).into()),
            None => return Err(no_path(call.path).into()),
        };
        if let Some(asked) = call_trees::Asked::of(endpoint.call_trees.as_ref(), call.path, &route)
        {
            return self.call_tree(visit, &target, dialect, asked).await;
        }
        let body = match parts.method {
            Method::POST => self.read_json(parts, Some(endpoint), upload).await?,
            _ => Bytes::new(),
        };
        let asking = Asking {
            binding: Binding::HttpJson,
            dialect,
            kind: route.kind,
        };
        let decode = || dialect.decode_request(&route, parts.uri.query(), &body);
        let mut answer = self.perform(visit, &target, asking, decode).await?;
        let mut reply = match &answer.outcome {
            Outcome::Stream(_) => {
                let framing = Framing::Rest {
                    dialect,
                    kind: StreamKind::of(route.kind),
                    profile: endpoint.profile,
                };
                self.stream(&mut answer, &target.admitted, framing).await?
            }
            outcome => {
                let body = dialect.encode_result(route.kind, outcome)?;
                let content_type = reply_type(&parts.headers, dialect);
                reply::with_body(StatusCode::OK, content_type, body)
            }
        };
        keep_private(&route, &mut reply);
        answer.name_extensions(&mut reply);
        Ok(reply)
    }
}

/// What a path that no version has is refused with.
pub(crate) fn refusal(failure: Failure, headers: &HeaderMap) -> Reply {
    varying(failure.rest(&ErrorForm::plain(headers)))
}

fn varying(mut reply: Reply) -> Reply {
    let vary = HeaderValue::from_static("Accept");
    reply.headers_mut().append(VARY, vary);
    reply
}

/// The newest version that has such a path, and what the path means in it.
struct RestCall<'a> {
    path: &'a str,
    shown: Option<(Version, Result<Route, RouteError>)>,
}

/// What an error body looks like.
#[derive(Debug)]
pub(crate) struct ErrorForm {
    pub(crate) dialect: &'static dyn RestDialect,
    pub(crate) profile: StatusProfile,
    pub(crate) content_type: HeaderValue,
}

impl ErrorForm {
    /// Outside of every binding.
    pub(crate) fn plain(headers: &HeaderMap) -> Self {
        let dialect = dialect::rest(Version::V1_0);
        Self {
            dialect,
            profile: StatusProfile::default(),
            content_type: reply_type(headers, dialect),
        }
    }
}

fn reply_type(headers: &HeaderMap, dialect: &dyn RestDialect) -> HeaderValue {
    if dialect.has_own_media_type() {
        content::reply_type(headers)
    } else {
        JSON
    }
}

fn no_route(error: RouteError) -> Failure {
    match error {
        RouteError::MethodNotAllowed(methods) => Failure::method_not_allowed(methods),
        RouteError::NotFound => no_path("").into(),
    }
}

fn no_path(path: &str) -> A2aError {
    let hint = match path.strip_prefix("/v1") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            "no such path; the paths of protocol 1.0 do not begin with /v1"
        }
        _ => "no such path",
    };
    A2aError::new(ErrorKind::MethodNotFound, hint)
}

/// A path of one version, in a request of another or at an agent that speaks only others (REST-12).
fn other_version(shown: Version, asked: Version) -> A2aError {
    let why = if shown == asked {
        "which is not spoken here".to_owned()
    } else {
        format!("but the request names {asked}")
    };
    A2aError::new(
        ErrorKind::MethodNotFound,
        format!("no such path: it is one of protocol {shown}, {why}"),
    )
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
