//! What an agent elsewhere needs of an engine if calls are passed on to it as they are: whose its
//! tasks and conversations are, the chain of calls, and the rules for webhooks.
//!
//! Such an agent has its tasks where it is, and knows one client, whoever calls here. So what is
//! somebody's here is kept in the [store](nuncio_store::Owners).

use std::collections::HashSet;
use std::time::Duration;

use hmac::Mac as _;
use nuncio_protocol::{
    A2aError, AgentId, Call, ContextId, ErrorKind, MessageId, Metadata, Result, TaskId,
    TaskPushNotificationConfig,
};
use nuncio_store::{OwnedId, Scope, StoreError};

use crate::chain::Chain;
use crate::engine::{Core, store_error};
use crate::list::mac;
use crate::{CALL_CHAIN, Engine, RERUN};

/// What the callers of an agent elsewhere have there, and what is asked before a call is passed on.
#[derive(Clone, Debug)]
pub struct Passing {
    core: std::sync::Arc<Core>,
    agent: AgentId,
}

/// What was taken longer ago than this is taken anew when it is used.
const FRESH: Duration = Duration::from_secs(60);

impl Engine {
    /// What is needed to pass calls on to an agent elsewhere that has this name here.
    pub fn passing(&self, agent: impl Into<AgentId>) -> Passing {
        Passing {
            core: self.core.clone(),
            agent: agent.into(),
        }
    }
}

impl Passing {
    /// The name of the agent here.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    fn scope(&self, call: &Call) -> Scope {
        Scope {
            workspace: call.caller.workspace.clone(),
            agent: self.agent.clone(),
            caller: call.caller.id.clone(),
        }
    }

    /// Refuses a task that is not the caller's, as one that is not there.
    ///
    /// # Errors
    /// TaskNotFound.
    pub async fn check_task(&self, call: &Call, task: &TaskId) -> Result<()> {
        match self
            .tasks(call, std::slice::from_ref(task))
            .await?
            .is_empty()
        {
            true => Err(A2aError::task_not_found(task)),
            false => Ok(()),
        }
    }

    /// Those of some tasks that are the caller's.
    ///
    /// # Errors
    /// As the store fails.
    pub async fn tasks(&self, call: &Call, tasks: &[TaskId]) -> Result<HashSet<TaskId>> {
        let ids: Vec<_> = tasks.iter().cloned().map(OwnedId::Task).collect();
        let owned = self.core.store.owned(&self.scope(call), &ids).await;
        let owned = owned.map_err(|error| store_error(&error))?;
        let tasks = owned.into_iter().filter_map(|(id, _)| match id {
            OwnedId::Task(id) => Some(id),
            OwnedId::Context(_) => None,
        });
        Ok(tasks.collect())
    }

    /// How many tasks the caller is known to have.
    ///
    /// # Errors
    /// As the store fails.
    pub async fn count_tasks(&self, call: &Call) -> Result<u64> {
        let count = self.core.store.owned_tasks(&self.scope(call)).await;
        count.map_err(|error| store_error(&error))
    }

    /// Whether a conversation is the caller's.
    ///
    /// # Errors
    /// As the store fails.
    pub async fn has_context(&self, call: &Call, context: &ContextId) -> Result<bool> {
        let ids = [OwnedId::Context(context.clone())];
        let owned = self.core.store.owned(&self.scope(call), &ids).await;
        Ok(!owned.map_err(|error| store_error(&error))?.is_empty())
    }

    /// Makes a task and a conversation the caller's, which they are on disk when this is over, or
    /// neither if one of them is somebody else's: `false`. Empty ids are nobody's.
    ///
    /// # Errors
    /// InvalidAgentResponse for an id of more than 256 bytes; as the store fails.
    pub async fn take(
        &self,
        call: &Call,
        task: Option<&TaskId>,
        context: Option<&ContextId>,
    ) -> Result<bool> {
        let task = task.filter(|id| !id.is_empty()).cloned();
        let context = context.filter(|id| !id.is_empty()).cloned();
        let ids = task.map(OwnedId::Task).into_iter();
        let ids: Vec<_> = ids.chain(context.map(OwnedId::Context)).collect();
        if ids.is_empty() {
            return Ok(true);
        }
        let (scope, now) = (self.scope(call), self.core.now());
        let store = &self.core.store;
        let owned = store.owned(&scope, &ids).await;
        let owned = owned.map_err(|error| store_error(&error))?;
        let old = now.unix_ms() - FRESH.as_millis() as i64;
        let fresh = owned.iter().filter(|(_, at)| at.unix_ms() > old).count();
        if fresh == ids.len() {
            return Ok(true);
        }
        match store.take(&scope, &ids, now).await {
            Err(StoreError::TooLarge { bytes, limit, .. }) => {
                let message = format!("the agent has an id of {bytes} bytes, {limit} are allowed");
                Err(A2aError::new(ErrorKind::InvalidAgentResponse, message))
            }
            taken => taken.map_err(|error| store_error(&error)),
        }
    }

    /// Refuses messages while the server is shutting down.
    ///
    /// # Errors
    /// Unavailable.
    pub fn check_open(&self) -> Result<()> {
        match self.core.is_draining() {
            true => Err(crate::send::shutting_down()),
            false => Ok(()),
        }
    }

    /// Adds the agent to the chain of calls in the metadata of a message; `send` tells the sends of
    /// this server from each other.
    ///
    /// # Errors
    /// UnsupportedOperation if the agent is in the chain already, or is too deep in it.
    pub fn chain(&self, metadata: &mut Option<Metadata>, send: &str) -> Result<()> {
        let key = &self.core.environment.token_key;
        let chain = Chain::read(metadata.as_ref(), self.core.settings.max_depth);
        chain.check(&self.agent, key)?;
        let chain = chain.with(send, [&self.agent], key);
        let metadata = metadata.get_or_insert_default();
        metadata.insert(CALL_CHAIN.to_owned(), chain);
        Ok(())
    }

    /// The task that a message asks to [run again](RERUN), by its id: an agent of nuncio looks it up
    /// as ours, whoever of our callers asks.
    pub fn rerun_of(&self, metadata: Option<&Metadata>) -> Option<TaskId> {
        let wish = metadata?.get(RERUN)?;
        Some(wish.get("task")?.as_str()?.into())
    }

    /// A key that makes the sends of one caller happen once and never meets another caller's: the
    /// agent would take the same message id of two of them for one message sent again.
    pub fn send_key(&self, call: &Call, message: &MessageId) -> String {
        self.name_send("passed key", call, message)
    }

    /// What tells the sends of this server from each other, the same if one is repeated.
    pub fn send_name(&self, call: &Call, message: &MessageId) -> String {
        self.name_send("passed send", call, message)
    }

    fn name_send(&self, what: &str, call: &Call, message: &MessageId) -> String {
        let (said, key) = match &call.idempotency_key {
            Some(key) => ("key", key.as_str()),
            None => ("message", message.as_str()),
        };
        let fields = [
            what,
            call.caller.workspace.as_str(),
            self.agent.as_str(),
            call.caller.id.as_str(),
            said,
            key,
        ];
        let mac = mac(&self.core.environment.token_key, fields.map(str::as_bytes));
        let bytes = mac.finalize().into_bytes();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Refuses a webhook that this server would not take for its own agents; `prefix` leads to it in
    /// the request.
    ///
    /// # Errors
    /// InvalidParams; PushNotificationNotSupported if webhooks are switched off here.
    pub fn check_webhook(&self, prefix: &str, config: &TaskPushNotificationConfig) -> Result<()> {
        self.core.check_webhook(prefix, config)
    }
}
