//! What the bindings have in common: who is asked, reading a body, the way through the door.
//!
//! Framing is each binding's own ([`json_rpc`](crate::json_rpc), [`rest`](crate::rest)), spelling is
//! `nuncio_protocol::dialect`'s business, judging is `dispatch`'s.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use http_body::Body;
use nuncio_protocol::dialect::Dialect;
use nuncio_protocol::{A2aError, Binding, Operation, OperationKind, Outcome, Result, Version};

use crate::admission::Permit;
use crate::auth::Admitted;
use crate::body::{self, BodyLimits};
use crate::dispatch::{Asked, no_such_agent};
use crate::events::{EventBody, Framing, StreamContext};
use crate::extensions::Unasked;
use crate::failure::Failure;
use crate::place::Who;
use crate::reply::{self, Reply};
use crate::server::{Server, Visit};
use crate::{Endpoint, content, grpc, parameters};

/// Who asks whom.
pub(crate) struct Target<'a> {
    pub(crate) admitted: Admitted,
    pub(crate) who: Who<'a>,
    pub(crate) endpoint: Arc<Endpoint>,
}

/// What is known of an operation before its request is read.
pub(crate) struct Asking<'a> {
    pub(crate) binding: Binding,
    pub(crate) dialect: &'a dyn Dialect,
    pub(crate) kind: OperationKind,
}

/// What an operation came to.
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    permit: Permit,
    /// The extensions in force, under the name their header has in the version.
    extensions: Option<(HeaderName, HeaderValue)>,
}

impl Answer {
    pub(crate) fn name_extensions(self, reply: &mut Reply) {
        if let Some((name, extensions)) = self.extensions {
            reply.headers_mut().insert(name, extensions);
        }
    }
}

impl Server {
    /// Finds the agent: at the root the one of the tenant, if there is one (TEN-05).
    ///
    /// Callers find what is in their own workspace; everything else is not there.
    pub(crate) fn endpoint_for(
        &self,
        admitted: &Admitted,
        who: &Who<'_>,
        tenant: Option<&str>,
    ) -> Option<Arc<Endpoint>> {
        let own = admitted.caller.workspace.as_str();
        let directory = self.switchboard().now();
        let endpoint = match (who, tenant.filter(|tenant| !tenant.is_empty())) {
            (Who::Default, None) => directory.default_agent(),
            (Who::Default, Some(tenant)) => {
                let (workspace, agent) = tenant.rsplit_once('/').unwrap_or((own, tenant));
                let named = directory.get(&agent.into());
                named.filter(|_| workspace == own)
            }
            (Who::Named(agent), _) => directory.get(&(&**agent).into()),
            (
                Who::InWorkspace {
                    workspace, agent, ..
                },
                _,
            ) => {
                let named = directory.get(&(&**agent).into());
                named.filter(|_| *workspace == own)
            }
        };
        endpoint.filter(|endpoint| endpoint.is_in(own))
    }

    /// Finds the agent, or says that nobody is there.
    pub(crate) fn find<'a>(
        &self,
        admitted: Admitted,
        who: Who<'a>,
        tenant: Option<&str>,
    ) -> Result<Target<'a>, Failure> {
        let endpoint = self.endpoint_for(&admitted, &who, tenant);
        Ok(Target {
            endpoint: endpoint.ok_or_else(no_such_agent)?,
            admitted,
            who,
        })
    }

    pub(crate) async fn read_json<B>(
        &self,
        parts: &Parts,
        endpoint: Option<&Endpoint>,
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
        body::read(body, self.body_limits(endpoint)).await
    }

    pub(crate) fn body_limits(&self, endpoint: Option<&Endpoint>) -> BodyLimits {
        let settings = self.settings();
        let own = endpoint.and_then(|endpoint| endpoint.max_body_bytes);
        BodyLimits {
            max_bytes: own.unwrap_or(settings.max_body_bytes),
            idle: settings.body_idle_timeout,
        }
    }

    /// Runs an operation through the door, and completes what only the server knows.
    pub(crate) async fn perform<D>(
        &self,
        visit: &Visit<'_>,
        target: &Target<'_>,
        asking: Asking<'_>,
        decode: D,
    ) -> Result<Answer, Failure>
    where
        D: FnOnce() -> Result<Operation>,
    {
        self.check_stream(asking.kind)?;
        let headers = &visit.parts.headers;
        let endpoint = &target.endpoint;
        let caller = target.admitted.caller.clone();
        let mut call = parameters::call(headers, caller, asking.dialect.version())?;
        call.forwarded = parameters::forwarded(headers, &endpoint.forwarded);
        if asking.binding == Binding::Grpc {
            call.timeout = grpc::timeout(headers);
        }
        let mut span = self.begin_span(&mut call, asking.kind, asking.binding);
        if let Some(span) = &mut span {
            span.agent(endpoint.id.as_str());
        }
        let extensions = parameters::activated(&call.extensions, &endpoint.card.capabilities);
        let unasked = Unasked::of(&endpoint.card.capabilities, &call.extensions);
        let name = HeaderName::from_static(asking.dialect.extensions_header());
        let decode = || {
            let mut operation = decode()?;
            if target.who.completes_messages() {
                self.complete_message(&mut operation);
            }
            Ok(operation)
        };
        let asked = Asked {
            binding: asking.binding,
            dialect: asking.dialect,
            admitted: &target.admitted,
            call,
            kind: asking.kind,
            acceptable: asking.binding == Binding::Grpc || content::is_acceptable(headers),
            decode,
        };
        let dispatched = endpoint.dispatch(self.settings(), asked).await;
        if let (Some(span), Err(failure)) = (&mut span, &dispatched) {
            span.fail(failure.error());
        }
        let (mut outcome, permit) = dispatched?;
        if let Some(unasked) = unasked {
            unasked.take_from(&mut outcome);
        }
        if let Outcome::Card(card) = &mut outcome {
            self.with_card_context(visit, &target.who, endpoint, |context| {
                endpoint.complete(card, context);
            });
        }
        Ok(Answer {
            outcome: match span {
                Some(span) => span.over(outcome),
                None => outcome,
            },
            permit,
            extensions: extensions.map(|value| (name, value)),
        })
    }

    /// Gives a message the id that its sender left out.
    fn complete_message(&self, operation: &mut Operation) {
        if let Operation::SendMessage(request) | Operation::SendStreamingMessage(request) =
            operation
            && let Some(message) = &mut request.message
            && message.message_id.is_empty()
        {
            message.message_id = self.ids().next().into();
        }
    }

    /// Takes the events out of an answer, to be sent as a body.
    pub(crate) async fn stream(
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
            leaving: self.leaving().clone(),
            expires: self.expiry(admitted),
            _permit: std::mem::take(&mut answer.permit),
        };
        let messages = matches!(framing, Framing::Grpc { .. });
        let body = EventBody::open(events, framing, context).await?;
        Ok(if messages {
            reply::messages(body)
        } else {
            reply::events(body)
        })
    }
}

/// The newest version whose spelling a request shows.
pub(crate) fn proven(shows: impl Fn(Version) -> bool) -> Option<Version> {
    Version::ALL.iter().rev().copied().find(|v| shows(*v))
}
