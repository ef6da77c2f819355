//! Webhooks of tasks elsewhere: the agent keeps them, with their secrets, and calls them itself.

use nuncio_protocol::{
    A2aError, AgentService as _, Call, DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, Message, Result, TaskId, TaskPushNotificationConfig,
};

use super::PassThrough;

/// Where a webhook stands in a send.
const IN_A_SEND: &str = "configuration.taskPushNotificationConfig.";

impl PassThrough {
    /// Checks a webhook that comes along with a message: it is one of the message's task.
    pub(super) fn check_webhook_of(
        &self,
        message: &Message,
        webhook: &mut TaskPushNotificationConfig,
    ) -> Result<()> {
        let named = webhook.task_id.as_ref().filter(|id| !id.is_empty());
        if named.is_some() && named != message.task_id.as_ref() {
            let field = format!("{IN_A_SEND}taskId");
            let why = "is not the task of the message";
            return Err(A2aError::invalid_field(field, why));
        }
        webhook.tenant = None;
        self.passing.check_webhook(IN_A_SEND, webhook)
    }

    pub(super) async fn create_webhook(
        &self,
        call: Call,
        mut request: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig> {
        let task = request.task_id.clone();
        let task = task.ok_or_else(|| A2aError::invalid_field("taskId", "is required"))?;
        self.passing.check_task(&call, &task).await?;
        self.passing.check_webhook("", &request)?;
        request.tenant = None;
        let created = self.client().await?.create_push_config(call, request).await;
        self.shown(&task, created.map_err(|error| self.told(error))?)
    }

    pub(super) async fn get_webhook(
        &self,
        call: Call,
        mut request: GetTaskPushNotificationConfigRequest,
    ) -> Result<TaskPushNotificationConfig> {
        let task = request.task_id.clone();
        self.passing.check_task(&call, &task).await?;
        request.tenant = None;
        let got = self.client().await?.get_push_config(call, request).await;
        self.shown(&task, got.map_err(|error| self.told(error))?)
    }

    pub(super) async fn list_webhooks(
        &self,
        call: Call,
        mut request: ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse> {
        let task = request.task_id.clone();
        self.passing.check_task(&call, &task).await?;
        request.tenant = None;
        let listed = self.client().await?.list_push_configs(call, request).await;
        let mut listed = listed.map_err(|error| self.told(error))?;
        let configs = listed.configs.into_iter();
        let configs = configs.map(|config| self.shown(&task, config));
        listed.configs = configs.collect::<Result<_>>()?;
        Ok(listed)
    }

    pub(super) async fn delete_webhook(
        &self,
        call: Call,
        mut request: DeleteTaskPushNotificationConfigRequest,
    ) -> Result<()> {
        self.passing.check_task(&call, &request.task_id).await?;
        request.tenant = None;
        let deleted = self.client().await?.delete_push_config(call, request).await;
        deleted.map_err(|error| self.told(error))
    }

    /// A webhook as its owner sees it: the agent's tenants are not ours.
    fn shown(
        &self,
        asked: &TaskId,
        mut config: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig> {
        let named = config.task_id.as_ref().filter(|id| !id.is_empty());
        if named.is_some_and(|named| named != asked) {
            return Err(self.not_theirs(named, None));
        }
        config.tenant = None;
        Ok(config)
    }
}
