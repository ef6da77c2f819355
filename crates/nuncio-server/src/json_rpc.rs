//! The JSON-RPC binding. Spec: §9

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::Body;
use nuncio_protocol::dialect::{self, JsonRpcDialect, StreamKind};
use nuncio_protocol::v1::json_rpc::{self, Request, RequestId};
use nuncio_protocol::{A2aError, Binding, ErrorKind, OperationKind, Outcome, Result, Version};
use serde::Deserialize;

use crate::auth::Admitted;
use crate::bindings::{Asking, Target, proven};
use crate::dispatch::no_such_agent;
use crate::events::Framing;
use crate::failure::Failure;
use crate::place::Who;
use crate::reply::{self, JSON, Reply};
use crate::server::{Server, Visit};
use crate::{Endpoint, parameters};

impl Server {
    /// Answers one request; `streaming` makes every send a streaming one.
    pub(crate) async fn json_rpc<B>(
        &self,
        visit: &Visit<'_>,
        who: Who<'_>,
        streaming: bool,
        upload: &mut Option<B>,
    ) -> Reply
    where
        B: Body<Data = Bytes> + Send + 'static,
    {
        let entered = async {
            let admitted = self.authenticate(visit)?;
            let endpoint = self.endpoint_for(&admitted, &who, None);
            // Who is at the root shows when the tenant is known.
            if endpoint.is_none() && who != Who::Default {
                return Err(no_such_agent().into());
            }
            if visit.parts.method != Method::POST {
                return Err(Failure::method_not_allowed(&["POST"]));
            }
            let bytes = self
                .read_json(visit.parts, endpoint.as_deref(), upload)
                .await?;
            Ok((Entered { admitted, endpoint }, bytes))
        };
        match entered.await {
            Ok((entered, bytes)) => {
                self.json_rpc_of(visit, entered, (who, streaming), bytes)
                    .await
            }
            Err(failure) => failure.json_rpc(&RequestId::null(), dialect::json_rpc(Version::V1_0)),
        }
    }

    /// Answers the request in a body that has been read.
    pub(crate) async fn json_rpc_of(
        &self,
        visit: &Visit<'_>,
        entered: Entered,
        (who, streaming): (Who<'_>, bool),
        bytes: Bytes,
    ) -> Reply {
        let request = match Request::decode(&bytes) {
            Ok(request) => request,
            Err(refusal) => {
                // An unknown version is judged before anything that may be spelt in it (VER-04).
                let error = unspoken(visit, entered.endpoint.as_deref()).unwrap_or(refusal.error);
                let newest = dialect::json_rpc(Version::V1_0);
                return Failure::from(error).json_rpc(&refusal.id, newest);
            }
        };
        let shown = proven(|version| dialect::json_rpc(version).kind(&request.method).is_some());
        let spoken = dialect::json_rpc(shown.unwrap_or(Version::V1_0));
        let answered = async {
            let target = self.called(entered, who, &request)?;
            let call = RpcCall {
                request: &request,
                streaming,
                shown,
            };
            self.json_rpc_call(visit, &target, call).await
        };
        answered
            .await
            .unwrap_or_else(|failure| failure.json_rpc(&request.id, spoken))
    }

    /// The agent that is called: at the root the one that the tenant names.
    fn called<'a>(
        &self,
        entered: Entered,
        who: Who<'a>,
        request: &Request<'_>,
    ) -> Result<Target<'a>, A2aError> {
        let Entered { admitted, endpoint } = entered;
        let tenant = tenant_of(request.params).filter(|_| who == Who::Default);
        let endpoint = match tenant {
            None => endpoint.ok_or_else(no_such_agent)?,
            Some(tenant) => self
                .endpoint_for(&admitted, &who, Some(&tenant))
                .ok_or_else(|| A2aError::invalid_field("tenant", "is not known here"))?,
        };
        Ok(Target {
            admitted,
            who,
            endpoint,
        })
    }

    async fn json_rpc_call(
        &self,
        visit: &Visit<'_>,
        target: &Target<'_>,
        call: RpcCall<'_>,
    ) -> Result<Reply, Failure> {
        let request = call.request;
        let said = parameters::version(visit.parts)?;
        let version = target
            .endpoint
            .settle(said.as_deref(), call.shown)
            .map_err(A2aError::from)?;
        let dialect = dialect::json_rpc(version);
        let kind = dialect
            .kind(&request.method)
            .filter(|_| target.endpoint.dialects.contains(&version))
            .ok_or_else(|| call.unknown_method(dialect, &target.endpoint))?;
        let kind = match kind {
            OperationKind::SendMessage if call.streaming => OperationKind::SendStreamingMessage,
            kind => kind,
        };
        let asking = Asking {
            binding: Binding::JsonRpc,
            dialect,
            kind,
        };
        let decode = || dialect.decode_params(kind, request.params);
        let performed = self.perform(visit, target, asking, decode).await;
        let mut answer = match performed {
            Ok(answer) => answer,
            Err(failure) if kind.streams() && dialect.streams_errors() => {
                return failure.json_rpc_event(&request.id, dialect);
            }
            Err(failure) => return Err(failure),
        };
        let mut reply = match &answer.outcome {
            Outcome::Stream(_) => {
                let framing = Framing::json_rpc(request.id.clone(), dialect, StreamKind::of(kind));
                self.stream(&mut answer, &target.admitted, framing).await?
            }
            outcome => {
                let result = dialect.encode_result(kind, outcome)?;
                let body = json_rpc::encode_result(&request.id, &result);
                reply::with_body(StatusCode::OK, JSON, body)
            }
        };
        answer.name_extensions(&mut reply);
        Ok(reply)
    }
}

/// A caller at an address, and the agent there if one is there whatever the request says.
pub(crate) struct Entered {
    pub(crate) admitted: Admitted,
    pub(crate) endpoint: Option<Arc<Endpoint>>,
}

/// One request as its envelope tells.
#[derive(Clone, Copy)]
struct RpcCall<'a> {
    request: &'a Request<'a>,
    streaming: bool,
    /// The version that has such a method.
    shown: Option<Version>,
}

impl RpcCall<'_> {
    /// "No such method", with a hint at the version that has it (VER-07).
    fn unknown_method(&self, dialect: &dyn JsonRpcDialect, endpoint: &Endpoint) -> A2aError {
        let method = &self.request.method;
        let shown: String = method.chars().take(64).collect();
        let asked = dialect.version();
        let send = dialect
            .method(OperationKind::SendMessage)
            .unwrap_or_default();
        let hint = match (self.shown, &**method) {
            (Some(other), _) if !endpoint.dialects.contains(&other) => {
                format!("; this is a method of protocol {other}, which is not spoken here")
            }
            (Some(other), _) => {
                format!("; this is a method of protocol {other}, but the request names {asked}")
            }
            (None, "tasks/send" | "tasks/sendSubscribe") => {
                format!("; this is a method of protocol 0.1, {asked} has names like {send}")
            }
            _ => String::new(),
        };
        A2aError::new(
            ErrorKind::MethodNotFound,
            format!("unknown method \"{shown}\"{hint}"),
        )
    }
}

/// What is wrong with the version that a request names, if it names one.
fn unspoken(visit: &Visit<'_>, endpoint: Option<&Endpoint>) -> Option<A2aError> {
    let said = match parameters::version(visit.parts) {
        Ok(said) => said?,
        Err(error) => return Some(error),
    };
    let settled = endpoint?.settle(Some(&said), None);
    settled.err().map(A2aError::from)
}

/// The tenant in `params`, if there is one that can be read.
fn tenant_of(params: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, default)]
        tenant: Option<Cow<'a, str>>,
    }
    if !params.contains("\"tenant\"") {
        return None;
    }
    let params: Params<'_> = serde_json::from_str(params).ok()?;
    params.tenant.filter(|tenant| !tenant.is_empty())
}
