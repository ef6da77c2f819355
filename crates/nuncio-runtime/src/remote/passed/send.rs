//! Passing a message on.

use nuncio_protocol::{
    A2aError, AgentService as _, Call, EventStream, Message, Result, SendMessageRequest,
    SendMessageResponse,
};

use super::PassThrough;

impl PassThrough {
    pub(super) async fn send(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Result<SendMessageResponse> {
        let (call, request) = self.outgoing(call, request).await?;
        let client = self.client().await?;
        let sent = client.send_message(call.clone(), request).await;
        let sent = sent.map_err(|error| self.told(error))?;
        let (task, context) = match &sent {
            SendMessageResponse::Task(task) => (Some(&task.id), task.context_id.as_ref()),
            SendMessageResponse::Message(said) => (said.task_id.as_ref(), said.context_id.as_ref()),
            _ => (None, None),
        };
        self.accept(&call, task, context).await?;
        Ok(sent)
    }

    pub(super) async fn send_streaming(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Result<EventStream> {
        let (call, request) = self.outgoing(call, request).await?;
        let client = self.client().await?;
        let events = client.send_streaming_message(call.clone(), request).await;
        let events = events.map_err(|error| self.told(error))?;
        self.checked(call, events).await
    }

    /// A message as it is passed on, if it is about nothing that is somebody else's.
    async fn outgoing(
        &self,
        mut call: Call,
        mut request: SendMessageRequest,
    ) -> Result<(Call, SendMessageRequest)> {
        let passing = &self.passing;
        passing.check_open()?;
        request.tenant = None;
        let rerun = passing.rerun_of(request.metadata.as_ref());
        let message = request.message.as_mut();
        let message = message.ok_or_else(|| A2aError::invalid_field("message", "is required"))?;
        let id = &message.message_id;
        let (name, key) = (passing.send_name(&call, id), passing.send_key(&call, id));
        passing.chain(&mut request.metadata, &name)?;
        for task in rerun.iter().chain(&message.task_id) {
            passing.check_task(&call, task).await?;
        }
        self.keep_own_references(&call, message).await?;
        if let Some(configuration) = &mut request.configuration
            && let Some(webhook) = &mut configuration.task_push_notification_config
        {
            self.check_webhook_of(message, webhook)?;
        }
        self.claim_context(&call, message).await?;
        call.idempotency_key = Some(key);
        Ok((call, request))
    }

    /// Leaves out the tasks that are not the caller's, as an agent here is not shown them.
    async fn keep_own_references(&self, call: &Call, message: &mut Message) -> Result<()> {
        let named = &mut message.reference_task_ids;
        if !named.is_empty() {
            let own = self.passing.tasks(call, named).await?;
            named.retain(|id| own.contains(id));
        }
        Ok(())
    }

    /// A conversation belongs to whoever speaks in it first.
    async fn claim_context(&self, call: &Call, message: &Message) -> Result<()> {
        let context = message.context_id.as_ref();
        match self.passing.take(call, None, context).await? {
            true => Ok(()),
            false => Err(A2aError::invalid_field(
                "message.contextId",
                "is not known here",
            )),
        }
    }
}
