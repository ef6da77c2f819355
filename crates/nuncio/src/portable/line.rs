//! The form of a task that is on its way: one JSON object a line.
//!
//! A file begins with a [`Header`], has a [`TaskLine`] for each task, and ends with a [`Footer`],
//! so that one that was cut off is known as such.

use std::sync::Arc;

use nuncio_engine::{Unopened, open_webhook_secrets};
use nuncio_protocol::{
    Event, StreamResponse, Task, TaskPushNotificationConfig, Timestamp, Version,
};
use nuncio_store::{Head, Idempotency, PushConfigRow, Scope, Webhook, WholeTask};
use serde::{Deserialize, Serialize};

/// The version that is written, and the only one so far.
pub(super) const FORMAT: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Header {
    /// Which version of this form follows.
    pub(super) nuncio_tasks: u32,
    /// Which program wrote it.
    pub(super) program: String,
}

/// The last line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Footer {
    /// How many tasks there were.
    pub(super) end_of_tasks: u64,
}

/// A task with all that belongs to it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TaskLine {
    workspace: String,
    agent: String,
    caller: String,
    context_id: String,
    status_time: Timestamp,
    last: u64,
    epoch: u64,
    turn: u64,
    attempt: u64,
    /// JSON text of the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    task: Task,
    /// The events from position 1; absent if they have expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<Vec<StreamResponse>>,
    /// What accompanied messages and is no part of the log.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    requests: Vec<RequestLine>,
    #[serde(default)]
    keys: Vec<KeyLine>,
    #[serde(default)]
    webhooks: Vec<WebhookLine>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RequestLine {
    /// That of the message.
    position: u64,
    /// JSON text.
    body: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KeyLine {
    key: String,
    /// Hexadecimal.
    request_hash: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WebhookLine {
    config: TaskPushNotificationConfig,
    version: String,
    cursor: u64,
}

impl TaskLine {
    /// What is written of a task; secrets of webhooks only if there is the key that opens them.
    ///
    /// # Errors
    /// If it is another one.
    pub(super) fn of(whole: WholeTask, secrets: Option<&[u8; 32]>) -> Result<Self, Unopened> {
        let WholeTask { scope, head, .. } = whole;
        let responses =
            |log: Vec<Event>| log.iter().map(|event| event.response().clone()).collect();
        let request = |(position, body): (u64, Arc<str>)| RequestLine {
            position,
            body: body.to_string(),
        };
        let webhook = |row: PushConfigRow| {
            let mut config = row.webhook.config;
            match secrets {
                Some(key) => open_webhook_secrets(key, &scope, &mut config)?,
                None => (config.token, config.authentication) = (None, None),
            }
            Ok(WebhookLine {
                config,
                version: row.webhook.version.as_str().to_owned(),
                cursor: row.cursor,
            })
        };
        Ok(Self {
            workspace: scope.workspace.to_string(),
            agent: scope.agent.to_string(),
            caller: scope.caller.to_string(),
            context_id: whole.context.to_string(),
            status_time: whole.status_time,
            last: head.last,
            epoch: head.epoch,
            turn: head.turn,
            attempt: head.attempt,
            checkpoint: head.checkpoint.as_deref().map(str::to_owned),
            task: Arc::unwrap_or_clone(whole.task),
            log: whole.log.map(responses),
            requests: whole.requests.into_iter().map(request).collect(),
            keys: whole.keys.into_iter().map(KeyLine::of).collect(),
            webhooks: whole
                .webhooks
                .into_iter()
                .map(webhook)
                .collect::<Result<_, _>>()?,
        })
    }

    /// The task as a store takes it.
    ///
    /// # Errors
    /// A sentence that names the member which is not what it should be.
    pub(super) fn into_whole(self) -> Result<WholeTask, String> {
        let keys = self.keys.into_iter().map(KeyLine::into_key);
        let webhooks = self.webhooks.into_iter().map(WebhookLine::into_row);
        let requests = self.requests.into_iter();
        let requests = requests.map(|request| (request.position, request.body.into()));
        let numbered = |responses: Vec<StreamResponse>| {
            let events = (1..).zip(responses);
            events
                .map(|(position, response)| Event::new(Some(position), response))
                .collect()
        };
        let head = Head {
            last: self.last,
            state: self.task.status.state,
            epoch: self.epoch,
            turn: self.turn,
            attempt: self.attempt,
            owner: None,
            checkpoint: self.checkpoint.map(Into::into),
        };
        Ok(WholeTask {
            scope: Scope {
                workspace: self.workspace.as_str().into(),
                agent: self.agent.as_str().into(),
                caller: self.caller.as_str().into(),
            },
            context: self.context_id.as_str().into(),
            status_time: self.status_time,
            head,
            task: Arc::new(self.task),
            log: self.log.map(numbered),
            requests: requests.collect(),
            keys: keys.collect::<Result<_, _>>()?,
            webhooks: webhooks.collect::<Result<_, _>>()?,
        })
    }
}

impl KeyLine {
    fn of(key: Idempotency) -> Self {
        let hash = key.request_hash.iter();
        Self {
            key: key.key,
            request_hash: hash.map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    fn into_key(self) -> Result<Idempotency, String> {
        let digits = self.request_hash.as_bytes();
        let mut request_hash = [0; 32];
        let fits = digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit);
        if !fits {
            return Err("keys: requestHash is 64 hexadecimal digits".to_owned());
        }
        for (byte, pair) in request_hash.iter_mut().zip(digits.chunks(2)) {
            let pair = std::str::from_utf8(pair).unwrap_or_default();
            *byte = u8::from_str_radix(pair, 16).unwrap_or_default();
        }
        Ok(Idempotency {
            key: self.key,
            request_hash,
        })
    }
}

impl WebhookLine {
    fn into_row(self) -> Result<PushConfigRow, String> {
        let version = Version::parse(&self.version);
        Ok(PushConfigRow {
            webhook: Webhook {
                config: self.config,
                version: version.map_err(|error| format!("webhooks: version: {error}"))?,
            },
            cursor: self.cursor,
        })
    }
}
