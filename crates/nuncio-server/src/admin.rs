//! The door to administration: who may, and nothing of what it does.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::Body;
use nuncio_protocol::{A2aError, ErrorKind};
use serde_json::Value;

use crate::failure::Failure;
use crate::reply::{self, JSON, Reply};
use crate::server::{Server, Visit};

/// What administrators ask for below `/admin/v1`.
///
/// Only credentials that are marked for it get here; see [`crate::ApiKey::with_admin`].
pub trait Administration: Send + Sync + fmt::Debug {
    /// Answers one request.
    fn handle(&self, request: AdminRequest) -> AdminFuture<'_>;
}

/// What a request to [`Administration`] gives.
pub type AdminFuture<'a> = Pin<Box<dyn Future<Output = Result<AdminReply, A2aError>> + Send + 'a>>;

/// A request of an administrator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AdminRequest {
    /// The HTTP method.
    pub method: Method,
    /// The path below `/admin/v1`, still percent-encoded, beginning with `/`.
    pub path: String,
    /// The query, still percent-encoded; empty if there is none.
    pub query: String,
    /// The body; JSON, or nothing.
    pub body: Bytes,
    /// The server's address as the administrator sees it, without a trailing slash.
    pub public_url: String,
}

/// The answer to an administrator.
#[derive(Clone, Debug)]
pub struct AdminReply {
    /// The HTTP status.
    pub status: StatusCode,
    /// The JSON body.
    pub body: Value,
}

impl Server {
    pub(crate) async fn administer<B>(
        &self,
        visit: &Visit<'_>,
        path: &str,
        upload: &mut Option<B>,
    ) -> Result<Reply, Failure>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let admitted = self.authenticate(visit)?;
        let Some(administration) = self.administration() else {
            return Err(A2aError::new(ErrorKind::MethodNotFound, "no such path").into());
        };
        if !admitted.admin {
            let message = "this needs a key of an administrator";
            return Err(A2aError::new(ErrorKind::PermissionDenied, message).into());
        }
        let request = AdminRequest {
            method: visit.parts.method.clone(),
            path: path.to_owned(),
            query: visit.parts.uri.query().unwrap_or_default().to_owned(),
            body: self.read_json(visit.parts, None, upload).await?,
            public_url: self.public_url(visit),
        };
        tracing::info!(
            caller.id = %admitted.caller.id,
            http.method = %request.method,
            http.path = %request.path,
            "administration"
        );
        let answer = administration.handle(request).await?;
        Ok(reply::with_body(
            answer.status,
            JSON,
            answer.body.to_string(),
        ))
    }
}
