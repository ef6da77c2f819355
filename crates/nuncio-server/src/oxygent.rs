//! The plain calls of OxyGent's gateway, for agents that are to take them.

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::Body;
use nuncio_protocol::v0_3::V0_3;
use nuncio_protocol::v0_3::oxygent::{self, PlainCall};
use nuncio_protocol::v1::json_rpc::RequestId;
use nuncio_protocol::{Binding, OperationKind, Version, dialect};

use crate::bindings::{Asking, Target};
use crate::failure::Failure;
use crate::json_rpc::Entered;
use crate::place::Who;
use crate::reply::{self, JSON, Reply};
use crate::rest;
use crate::server::{Server, Visit};

/// What a plain call's path asks for, whose agent takes such calls.
pub(crate) struct PlainRoute {
    kind: OperationKind,
    /// Whether the path says more than "here".
    specific: bool,
}

impl PlainRoute {
    /// The route of a request; `below` is the path below the agent's address.
    pub(crate) fn of(method: &Method, below: &str) -> Option<Self> {
        let below = below.strip_prefix("/a2a").unwrap_or(below);
        let kind = oxygent::route(below).filter(|_| method == Method::POST)?;
        Some(Self {
            kind,
            specific: !below.trim_matches('/').is_empty(),
        })
    }
}

impl Server {
    /// Whether the agent of an address takes plain calls.
    pub(crate) fn takes_plain_calls(&self, who: &Who<'_>) -> bool {
        self.endpoint_at(who)
            .is_some_and(|endpoint| endpoint.legacy_routes)
    }

    /// Answers a plain call, or a JSON-RPC request that came this way.
    pub(crate) async fn plain_call<B>(
        &self,
        visit: &Visit<'_>,
        who: Who<'_>,
        route: PlainRoute,
        upload: &mut Option<B>,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let admitted = match self.authenticate(visit) {
            Ok(admitted) => admitted,
            // As if no such call were taken here: strangers do not learn which agents there are.
            Err(failure) if route.specific => return rest::refusal(failure, &visit.parts.headers),
            Err(failure) => {
                let newest = dialect::json_rpc(Version::V1_0);
                return failure.json_rpc(&RequestId::null(), newest);
            }
        };
        let bytes = match self.read_json(visit.parts, None, upload).await {
            Ok(bytes) => bytes,
            Err(failure) => return failure.plain(),
        };
        if oxygent::is_json_rpc(&bytes) || (!route.specific && bytes.first() == Some(&b'[')) {
            let endpoint = self.endpoint_for(&admitted, &who, None);
            let entered = Entered { admitted, endpoint };
            return self.json_rpc_of(visit, entered, (who, false), bytes).await;
        }
        let answered = async {
            let target = self.find(admitted, who, None)?;
            self.answer_plainly(visit, &target, &route, &bytes).await
        };
        answered.await.unwrap_or_else(Failure::plain)
    }

    async fn answer_plainly(
        &self,
        visit: &Visit<'_>,
        target: &Target<'_>,
        route: &PlainRoute,
        bytes: &[u8],
    ) -> Result<Reply, Failure> {
        let fresh = || self.ids().next();
        let call = PlainCall::decode(bytes, route.kind, route.specific, &fresh)?;
        let asking = Asking {
            binding: Binding::HttpJson,
            dialect: &V0_3,
            kind: call.operation.kind(),
        };
        let operation = call.operation.clone();
        let answer = self
            .perform(visit, target, asking, || Ok(operation))
            .await?;
        let body = call.encode(&answer.outcome)?;
        Ok(reply::with_body(StatusCode::OK, JSON, body))
    }
}
