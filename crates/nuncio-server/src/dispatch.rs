//! The only door from the bindings to an agent: every check, once, in the order of GEN-07.
//!
//! Whoever gets here has been authenticated: an [`Admitted`] proves it.

use std::panic::AssertUnwindSafe;

use futures_util::{FutureExt as _, stream};
use nuncio_protocol::dialect::Dialect;
use nuncio_protocol::{
    A2aError, Binding, Call, Caller, ErrorKind, Event, Operation, OperationKind, Outcome, Result,
    SendMessageRequest, StreamResponse, Validate as _,
};

use crate::admission::Permit;
use crate::auth::Admitted;
use crate::failure::Failure;
use crate::{Endpoint, Settings};

/// One operation on its way in; its request is read only once it is known to be offered.
pub(crate) struct Asked<'a, D> {
    pub(crate) binding: Binding,
    pub(crate) dialect: &'a dyn Dialect,
    pub(crate) admitted: &'a Admitted,
    pub(crate) call: Call,
    pub(crate) kind: OperationKind,
    /// Whether the caller takes what will be sent (CT-05).
    pub(crate) acceptable: bool,
    pub(crate) decode: D,
}

impl Endpoint {
    /// Runs one operation; the permit lasts as long as a stream does.
    pub(crate) async fn dispatch<D>(
        &self,
        settings: &Settings,
        asked: Asked<'_, D>,
    ) -> Result<(Outcome, Permit), Failure>
    where
        D: FnOnce() -> Result<Operation>,
    {
        let admitted = asked.admitted;
        self.check_binding(asked.binding)?;
        self.check_capability(asked.kind)?;
        self.check_extensions(asked.kind, &asked.call)?;
        let operation = (asked.decode)()?;
        self.check_tenant(&operation, &admitted.caller, asked.binding)?;
        operation.check(&self.limits)?;
        self.check_send(&operation)?;
        if !asked.acceptable {
            return Err(Failure::not_acceptable());
        }
        let permit = admitted.usage.admit(&operation, settings)?;
        let outcome = self
            .run_or_instead(asked.dialect, asked.call, operation)
            .await?;
        if admitted.anonymous && matches!(outcome, Outcome::Card(_)) {
            let message = "the extended card is for authenticated callers";
            return Err(A2aError::new(ErrorKind::Unauthenticated, message).into());
        }
        Ok((outcome, permit))
    }

    /// Is the agent called this way?
    pub(crate) fn check_binding(&self, binding: Binding) -> Result<()> {
        if self.bindings.contains(&binding) {
            return Ok(());
        }
        Err(A2aError::new(
            ErrorKind::MethodNotFound,
            format!("this agent is not called over {}", binding.as_str()),
        ))
    }

    /// Does the card offer it (GEN-03)?
    fn check_capability(&self, kind: OperationKind) -> Result<()> {
        use OperationKind::{
            CreateTaskPushNotificationConfig, DeleteTaskPushNotificationConfig,
            GetExtendedAgentCard, GetTaskPushNotificationConfig, ListTaskPushNotificationConfigs,
            SendStreamingMessage, SubscribeToTask,
        };
        let offers = &self.card.capabilities;
        let (offered, error, what) = match kind {
            SendStreamingMessage | SubscribeToTask => (
                offers.streaming,
                ErrorKind::UnsupportedOperation,
                "streaming",
            ),
            CreateTaskPushNotificationConfig
            | GetTaskPushNotificationConfig
            | ListTaskPushNotificationConfigs
            | DeleteTaskPushNotificationConfig => (
                offers.push_notifications,
                ErrorKind::PushNotificationNotSupported,
                "push notifications",
            ),
            GetExtendedAgentCard => (
                offers.extended_agent_card,
                ErrorKind::UnsupportedOperation,
                "an extended card",
            ),
            _ => return Ok(()),
        };
        if offered == Some(true) {
            return Ok(());
        }
        Err(A2aError::new(
            error,
            format!("this agent does not offer {what}"),
        ))
    }

    /// Does the client know the extensions this agent insists on (EXT-02)?
    fn check_extensions(&self, kind: OperationKind, call: &Call) -> Result<()> {
        if !kind.steers_work() {
            return Ok(());
        }
        let extensions = &self.card.capabilities.extensions;
        let unknown = |uri: &String| !call.extensions.contains(uri);
        match extensions.iter().find(|e| e.required && unknown(&e.uri)) {
            None => Ok(()),
            Some(missing) => Err(A2aError::new(
                ErrorKind::ExtensionSupportRequired,
                format!("this agent requires the extension {}", missing.uri),
            )
            .with("extension", missing.uri.as_str())),
        }
    }

    /// Is the tenant this agent: its name, or workspace and name (TEN-06)?
    fn check_tenant(&self, operation: &Operation, caller: &Caller, binding: Binding) -> Result<()> {
        let tenant = operation.tenant().unwrap_or_default();
        let (workspace, agent) = tenant
            .rsplit_once('/')
            .unwrap_or((caller.workspace.as_str(), tenant));
        if tenant.is_empty()
            || (agent == self.id.as_str() && workspace == caller.workspace.as_str())
        {
            return Ok(());
        }
        Err(match binding {
            Binding::JsonRpc => A2aError::invalid_field("tenant", "is not known here"),
            Binding::Grpc | Binding::HttpJson => no_such_agent(),
        })
    }

    fn check_send(&self, operation: &Operation) -> Result<()> {
        match operation {
            Operation::SendMessage(request) | Operation::SendStreamingMessage(request) => {
                self.check_webhook(request)?;
                self.media.check(request)
            }
            _ => Ok(()),
        }
    }

    /// A webhook along with a message needs what a webhook alone needs (OP-SEND-20).
    fn check_webhook(&self, request: &SendMessageRequest) -> Result<()> {
        let configuration = request.configuration.as_ref();
        match configuration.and_then(|c| c.task_push_notification_config.as_ref()) {
            None => Ok(()),
            Some(_) => self.check_capability(OperationKind::CreateTaskPushNotificationConfig),
        }
    }

    /// Asks the agent, and if it fails what the version wants asked instead.
    async fn run_or_instead(
        &self,
        dialect: &dyn Dialect,
        call: Call,
        operation: Operation,
    ) -> Result<Outcome> {
        let OperationKind::SubscribeToTask = operation.kind() else {
            return self.run(call, operation).await;
        };
        let error = match self.run(call.clone(), operation.clone()).await {
            Ok(outcome) => return Ok(outcome),
            Err(error) => error,
        };
        match dialect.instead(&operation, &error) {
            None => Err(error),
            Some(other) => match self.run(call, other).await? {
                Outcome::Task(task) => {
                    let only = Event::from(StreamResponse::Task(task));
                    Ok(Outcome::Stream(Box::pin(stream::iter([Ok(only)]))))
                }
                outcome => Ok(outcome),
            },
        }
    }

    /// Asks the agent; a panic of its is a fault of ours to the caller.
    async fn run(&self, call: Call, operation: Operation) -> Result<Outcome> {
        if let (Operation::GetExtendedAgentCard(_), Some(card)) = (&operation, &self.extended_card)
        {
            return Ok(Outcome::Card(Box::new(card.clone())));
        }
        let answer = async { self.service.call(call, operation).await };
        let answer = AssertUnwindSafe(answer).catch_unwind();
        answer.await.unwrap_or_else(|_| {
            let message = "the agent panicked";
            Err(A2aError::new(ErrorKind::Internal, message))
        })
    }
}

/// The same for agents that are not there and tenants that are not known.
pub(crate) fn no_such_agent() -> A2aError {
    A2aError::new(ErrorKind::AgentNotFound, "no agent at this address")
}
