//! The standard gRPC services beside A2A: health and reflection (GRPC-08).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use http::Request;
use http_body::Body;
use http_body_util::BodyExt as _;
use nuncio_protocol::{Version, dialect, grpc};
use tonic::{Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_reflection::server::Builder;
use tower_service::Service as _;

use crate::ResponseBody;
use crate::failure::Failure;
use crate::reply::Reply;
use crate::server::{Server, Visit};

/// How often a watched status is looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// Watches at once; they need no credentials, and each looks at the store.
pub(crate) const MAX_WATCHES: usize = 64;

/// A service that is not A2A's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandardService {
    /// `grpc.health.v1`.
    Health,
    /// `grpc.reflection.v1`.
    Reflection,
    /// `grpc.reflection.v1alpha`, which most tools still ask first.
    ReflectionAlpha,
}

impl StandardService {
    /// The service of a method's path.
    pub(crate) fn of(path: &str) -> Option<Self> {
        match path.trim_start_matches('/').split('/').next()? {
            "grpc.health.v1.Health" => Some(Self::Health),
            "grpc.reflection.v1.ServerReflection" => Some(Self::Reflection),
            "grpc.reflection.v1alpha.ServerReflection" => Some(Self::ReflectionAlpha),
            _ => None,
        }
    }
}

impl Server {
    /// Answers a call of a standard service; health needs no credentials (AUTH-05).
    pub(crate) async fn standard<B>(
        &self,
        visit: &Visit<'_>,
        service: StandardService,
        body: B,
    ) -> Result<Reply, Failure>
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        if service != StandardService::Health {
            self.authenticate(visit)?;
        }
        let body = body.map_err(|_| Status::cancelled("the body ended early"));
        let mut request = Request::new(body);
        *request.method_mut() = visit.parts.method.clone();
        *request.uri_mut() = visit.parts.uri.clone();
        *request.version_mut() = visit.parts.version;
        *request.headers_mut() = visit.parts.headers.clone();
        let answered = match service {
            StandardService::Health => HealthServer::new(self.clone()).call(request).await,
            StandardService::Reflection => {
                let reflection = reflection().build_v1();
                let mut reflection = reflection.map_err(|_| unavailable())?;
                reflection.call(request).await
            }
            StandardService::ReflectionAlpha => {
                let reflection = reflection().build_v1alpha();
                let mut reflection = reflection.map_err(|_| unavailable())?;
                reflection.call(request).await
            }
        };
        let reply = answered.unwrap_or_else(|never| match never {});
        Ok(reply.map(ResponseBody::foreign))
    }
}

fn reflection<'a>() -> Builder<'a> {
    Builder::configure()
        .register_encoded_file_descriptor_set(grpc::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

fn unavailable() -> Failure {
    nuncio_protocol::A2aError::internal().into()
}

type Watch = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

#[tonic::async_trait]
impl Health for Server {
    type WatchStream = Watch;

    async fn check(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if !is_known(&request.get_ref().service) {
            return Err(Status::not_found("no such service"));
        }
        Ok(Response::new(said(self.serving_status().await)))
    }

    /// The status now, then each other one; ends with the server.
    async fn watch(
        &self,
        request: tonic::Request<HealthCheckRequest>,
    ) -> Result<Response<Watch>, Status> {
        let known = is_known(&request.get_ref().service);
        let place = Arc::clone(self.watches()).try_acquire_owned();
        let place = place.map_err(|_| Status::resource_exhausted("too many watches"))?;
        let state = Some((self.clone(), None, place));
        let changes = stream::unfold(state, move |state| async move {
            let (server, told, place) = state?;
            loop {
                let status = match known {
                    true => server.serving_status().await,
                    false => ServingStatus::ServiceUnknown,
                };
                if told != Some(status) {
                    let next = Some((server, Some(status), place));
                    return Some((Ok(said(status)), next));
                }
                tokio::select! {
                    () = server.leaving().cancelled() => return None,
                    () = tokio::time::sleep(WATCH_INTERVAL) => {}
                }
            }
        });
        Ok(Response::new(Box::pin(changes)))
    }
}

impl Server {
    async fn serving_status(&self) -> ServingStatus {
        match self.is_ready().await {
            true => ServingStatus::Serving,
            false => ServingStatus::NotServing,
        }
    }
}

/// The server as a whole, and A2A in its versions.
fn is_known(service: &str) -> bool {
    let mut versions = Version::ALL.iter();
    service.is_empty() || versions.any(|version| dialect::grpc(*version).service() == service)
}

fn said(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}
