//! Webhooks as their owners see them: created, read, listed, deleted. Spec: §3.1.7 to §3.1.10

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use nuncio_protocol::{
    A2aError, AgentCard, Call, DeleteTaskPushNotificationConfigRequest, ErrorKind,
    GetTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, PushConfigId, Result, TaskId,
    TaskPushNotificationConfig, Version,
};
use nuncio_store::{PushConfigRow, Scope, Webhook};
use sha2::Sha256;

use crate::HostedAgent;
use crate::delivery::credentials;
use crate::engine::{Core, store_error};
use crate::list::{MAC_BYTES, mac};
use crate::sealing::redact;

impl HostedAgent {
    /// Whether webhooks may be registered: the agent offers it, and somebody delivers.
    pub fn takes_webhooks(&self) -> bool {
        self.info().push_notifications && self.core.outbound.get().is_some()
    }

    /// The agent card with what this engine can keep, without addresses and security.
    pub fn card(&self) -> AgentCard {
        let mut card = self.info().card();
        card.capabilities.push_notifications = Some(self.takes_webhooks());
        card
    }

    /// Takes a webhook as asked for, if it is not certainly bad; `prefix` leads to it in the request.
    ///
    /// Where its name leads to is judged when it is called (P9).
    pub(crate) fn webhook(
        &self,
        prefix: &str,
        mut config: TaskPushNotificationConfig,
        version: Version,
    ) -> Result<Webhook> {
        self.check_offered()?;
        self.core.check_webhook(prefix, &config)?;
        if config.id.as_ref().is_none_or(PushConfigId::is_empty) {
            config.id = Some(self.core.environment.ids.next().into());
        }
        Ok(Webhook { config, version })
    }

    fn check_offered(&self) -> Result<()> {
        if self.takes_webhooks() {
            Ok(())
        } else {
            Err(not_supported())
        }
    }

    /// Refuses one webhook too many.
    pub(crate) async fn check_room(
        &self,
        scope: &Scope,
        task: &TaskId,
        new: &Webhook,
    ) -> Result<()> {
        let rows = self.core.store.push_configs(scope, task).await;
        let rows = rows
            .map_err(|error| store_error(&error))?
            .ok_or_else(|| A2aError::task_not_found(task))?;
        let replaces = |row: &PushConfigRow| row.webhook.config.id == new.config.id;
        let max = self.core.settings.max_webhooks_per_task;
        if rows.len() < max || rows.iter().any(replaces) {
            return Ok(());
        }
        let message = format!(
            "the task has {} push notification configs, and {max} are allowed; delete one first",
            rows.len()
        );
        Err(A2aError::new(ErrorKind::InvalidParams, message).with("taskId", task.as_str()))
    }

    pub(crate) async fn create_webhook(
        &self,
        call: Call,
        request: TaskPushNotificationConfig,
    ) -> Result<TaskPushNotificationConfig> {
        let mut webhook = self.webhook("", request, call.version)?;
        let scope = self.scope(&call);
        let answer = self.shown(webhook.config.clone());
        self.core.sealer.seal(&scope, &mut webhook.config);
        let (Some(task), Some(id)) = (&webhook.config.task_id, &webhook.config.id) else {
            return Err(A2aError::invalid_field("taskId", "is required"));
        };
        let cell = self.open(&scope, task).await?;
        {
            let _writing = cell.writing.lock().await;
            self.check_room(&scope, task, &webhook).await?;
            let stored = self.core.store.put_push_config(&scope, &webhook).await;
            if !stored.map_err(|error| store_error(&error))? {
                return Err(A2aError::task_not_found(task));
            }
            cell.note_webhook();
        }
        self.core.hub.wakes.change(&scope, task, id);
        Ok(answer)
    }

    pub(crate) async fn get_webhook(
        &self,
        call: Call,
        request: GetTaskPushNotificationConfigRequest,
    ) -> Result<TaskPushNotificationConfig> {
        let configs = self.webhooks(&call, &request.task_id).await?;
        let found = |config: &TaskPushNotificationConfig| config.id.as_ref() == Some(&request.id);
        configs.into_iter().find(found).ok_or_else(|| {
            let (task, id) = (&request.task_id, &request.id);
            let message = format!("task {task} has no push notification config {id}");
            A2aError::new(ErrorKind::TaskNotFound, message)
                .with("taskId", task.as_str())
                .with("configId", id.as_str())
        })
    }

    pub(crate) async fn list_webhooks(
        &self,
        call: Call,
        request: ListTaskPushNotificationConfigsRequest,
    ) -> Result<ListTaskPushNotificationConfigsResponse> {
        let mut configs = self.webhooks(&call, &request.task_id).await?;
        let scope = self.scope(&call);
        let tokens = PageTokens {
            key: &self.core.environment.token_key,
            scope: &scope,
            task: &request.task_id,
        };
        if let Some(token) = request.page_token.as_deref().filter(|t| !t.is_empty()) {
            let last = tokens.open(token).ok_or_else(|| {
                A2aError::invalid_field("pageToken", "is not a token of this list")
            })?;
            configs.retain(|config| config.id.as_ref().is_some_and(|id| *id > last));
        }
        let mut response = ListTaskPushNotificationConfigsResponse::default();
        let size = usize::try_from(request.page_size).unwrap_or(0);
        if size > 0 && configs.len() > size {
            configs.truncate(size);
            let last = configs.last().and_then(|config| config.id.as_ref());
            response.next_page_token = last.map(|last| tokens.seal(last));
        }
        response.configs = configs;
        Ok(response)
    }

    pub(crate) async fn delete_webhook(
        &self,
        call: Call,
        request: DeleteTaskPushNotificationConfigRequest,
    ) -> Result<()> {
        self.check_offered()?;
        let scope = self.scope(&call);
        let (task, id) = (&request.task_id, &request.id);
        let there = self.core.store.delete_push_config(&scope, task, id).await;
        if !there.map_err(|error| store_error(&error))? {
            return Err(A2aError::task_not_found(task));
        }
        self.core.hub.wakes.change(&scope, task, id);
        Ok(())
    }

    /// The webhooks of a task, by id.
    async fn webhooks(
        &self,
        call: &Call,
        task: &TaskId,
    ) -> Result<Vec<TaskPushNotificationConfig>> {
        self.check_offered()?;
        let scope = self.scope(call);
        let rows = self.core.store.push_configs(&scope, task).await;
        let rows = rows
            .map_err(|error| store_error(&error))?
            .ok_or_else(|| A2aError::task_not_found(task))?;
        let shown = rows.into_iter().map(|row| {
            let mut config = row.webhook.config;
            if let Err(error) = self.core.sealer.open(&scope, &mut config) {
                tracing::error!(task.id = %task, %error, "a webhook is shown without its secrets");
                redact(&mut config);
            }
            self.shown(config)
        });
        Ok(shown.collect())
    }

    /// A webhook as its owner sees it: its secrets are never read back, unless a setting says so
    /// (OP-PGET-02).
    fn shown(&self, mut config: TaskPushNotificationConfig) -> TaskPushNotificationConfig {
        if !self.core.settings.return_webhook_secrets {
            redact(&mut config);
        }
        config
    }
}

impl Core {
    /// Refuses a webhook that is certainly bad.
    pub(crate) fn check_webhook(
        &self,
        prefix: &str,
        config: &TaskPushNotificationConfig,
    ) -> Result<()> {
        let outbound = self.outbound.get().ok_or_else(not_supported)?;
        let wrong =
            |field: &str, why: &str| A2aError::invalid_field(format!("{prefix}{field}"), why);
        outbound
            .egress
            .check_url(&config.url)
            .map_err(|refusal| wrong("url", &refusal.to_string()))?;
        if credentials(config).is_none() {
            let field = match config.token {
                Some(_) => "token",
                None => "authentication",
            };
            return Err(wrong(field, "cannot be sent in a header"));
        }
        Ok(())
    }
}

pub(crate) fn not_supported() -> A2aError {
    A2aError::new(
        ErrorKind::PushNotificationNotSupported,
        "this agent sends no push notifications",
    )
}

/// Makes and reads the page tokens of one task's webhooks (OP-PLST-01).
struct PageTokens<'a> {
    key: &'a [u8; 32],
    scope: &'a Scope,
    task: &'a TaskId,
}

impl PageTokens<'_> {
    fn seal(&self, last: &PushConfigId) -> String {
        let id = last.as_str().as_bytes();
        let mac = self.mac(id).finalize().into_bytes();
        URL_SAFE_NO_PAD.encode([&mac[..MAC_BYTES], id].concat())
    }

    fn open(&self, token: &str) -> Option<PushConfigId> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (mac, id) = bytes.split_at_checked(MAC_BYTES)?;
        self.mac(id).verify_truncated_left(mac).ok()?;
        Some(PushConfigId::from(std::str::from_utf8(id).ok()?))
    }

    fn mac(&self, id: &[u8]) -> Hmac<Sha256> {
        let fields: [&[u8]; 6] = [
            b"webhooks-1",
            self.scope.workspace.as_str().as_bytes(),
            self.scope.agent.as_str().as_bytes(),
            self.scope.caller.as_str().as_bytes(),
            self.task.as_str().as_bytes(),
            id,
        ];
        mac(self.key, fields)
    }
}
