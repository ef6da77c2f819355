//! Checks of requests before anything happens: every wrong field, by its path. Spec: §5.7

use crate::{
    A2aError, CancelTaskRequest, DeleteTaskPushNotificationConfigRequest, FieldViolation,
    GetExtendedAgentCardRequest, GetTaskPushNotificationConfigRequest, GetTaskRequest,
    ListTaskPushNotificationConfigsRequest, ListTasksRequest, Message, Part, Role,
    SendMessageConfiguration, SendMessageRequest, SubscribeToTaskRequest,
    TaskPushNotificationConfig,
};

/// How large the pieces of a request may be (LIM-01).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of an id; 256 if not set otherwise.
    pub max_id_bytes: usize,
    /// Parts of one message; 1,000.
    pub max_parts: usize,
    /// Entries of `referenceTaskIds`, `extensions` and `acceptedOutputModes`; 100.
    pub max_list_entries: usize,
    /// Bytes of a webhook's URL, token or credentials; 8,192.
    pub max_url_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_id_bytes: 256,
            max_parts: 1_000,
            max_list_entries: 100,
            max_url_bytes: 8_192,
        }
    }
}

/// A request that can tell what is wrong with it.
pub trait Validate {
    /// Notes every wrong field; paths are relative to the request.
    fn validate(&self, found: &mut Violations<'_>);

    /// Checks against the limits.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidParams`] naming every wrong field.
    fn check(&self, limits: &Limits) -> Result<(), A2aError> {
        let mut found = Violations {
            limits,
            list: Vec::new(),
        };
        self.validate(&mut found);
        if found.list.is_empty() {
            Ok(())
        } else {
            Err(A2aError::invalid_fields(found.list))
        }
    }
}

/// What is wrong so far.
#[derive(Debug)]
pub struct Violations<'a> {
    limits: &'a Limits,
    list: Vec<FieldViolation>,
}

impl Violations<'_> {
    fn add(&mut self, field: &str, description: impl Into<String>) {
        self.list.push(FieldViolation {
            field: field.to_owned(),
            description: description.into(),
        });
    }

    fn required_id(&mut self, field: &str, id: &str) {
        if id.is_empty() {
            self.add(field, "is required");
        }
        self.id(field, Some(id));
    }

    fn id(&mut self, field: &str, id: Option<&str>) {
        let Some(id) = id else { return };
        let max = self.limits.max_id_bytes;
        if id.len() > max {
            self.add(field, format!("is longer than {max} bytes"));
        }
        if id.chars().any(char::is_control) {
            self.add(field, "contains a control character");
        }
    }

    fn entries(&mut self, field: &str, count: usize) {
        let max = self.limits.max_list_entries;
        if count > max {
            self.add(field, format!("has more than {max} entries"));
        }
    }

    fn history_length(&mut self, field: &str, length: Option<i32>) {
        if length.is_some_and(|length| length < 0) {
            self.add(field, "must not be negative");
        }
    }

    fn message(&mut self, message: &Message) {
        self.required_id("message.messageId", message.message_id.as_str());
        self.id(
            "message.contextId",
            message.context_id.as_ref().map(|id| id.as_str()),
        );
        self.id(
            "message.taskId",
            message.task_id.as_ref().map(|id| id.as_str()),
        );
        match message.role {
            Role::User => {}
            Role::Unspecified => self.add("message.role", "is required and must be ROLE_USER"),
            Role::Agent => self.add("message.role", "must be ROLE_USER in a request"),
        }
        self.parts("message.parts", &message.parts);
        self.entries("message.extensions", message.extensions.len());
        self.entries("message.referenceTaskIds", message.reference_task_ids.len());
        for (place, id) in message.reference_task_ids.iter().enumerate() {
            self.id(
                &format!("message.referenceTaskIds[{place}]"),
                Some(id.as_str()),
            );
        }
    }

    fn parts(&mut self, field: &str, parts: &[Part]) {
        let max = self.limits.max_parts;
        if parts.is_empty() {
            self.add(field, "needs at least one part");
        }
        if parts.len() > max {
            self.add(field, format!("has more than {max} parts"));
        }
    }

    fn configuration(&mut self, configuration: &SendMessageConfiguration) {
        self.history_length("configuration.historyLength", configuration.history_length);
        self.entries(
            "configuration.acceptedOutputModes",
            configuration.accepted_output_modes.len(),
        );
        if let Some(config) = &configuration.task_push_notification_config {
            self.webhook("configuration.taskPushNotificationConfig.", config);
        }
    }

    fn webhook(&mut self, prefix: &str, config: &TaskPushNotificationConfig) {
        let url = format!("{prefix}url");
        let max = self.limits.max_url_bytes;
        if config.url.is_empty() {
            self.add(&url, "is required");
        } else if !is_absolute_http(&config.url) {
            self.add(&url, "must be an absolute http or https URL");
        } else if config.url.len() > max {
            self.add(&url, format!("is longer than {max} bytes"));
        }
        self.id(
            &format!("{prefix}id"),
            config.id.as_ref().map(|id| id.as_str()),
        );
        if config
            .authentication
            .as_ref()
            .is_some_and(|auth| auth.scheme.is_empty())
        {
            self.add(&format!("{prefix}authentication.scheme"), "is required");
        }
    }
}

fn is_absolute_http(url: &str) -> bool {
    url.split_once("://").is_some_and(|(scheme, rest)| {
        let http = ["http", "https"]
            .iter()
            .any(|known| scheme.eq_ignore_ascii_case(known));
        http && !rest.is_empty() && !rest.starts_with(['/', '?', '#'])
    })
}

impl Validate for SendMessageRequest {
    fn validate(&self, found: &mut Violations<'_>) {
        match &self.message {
            Some(message) => found.message(message),
            None => found.add("message", "is required"),
        }
        if let Some(configuration) = &self.configuration {
            found.configuration(configuration);
        }
    }
}

impl Validate for GetTaskRequest {
    fn validate(&self, found: &mut Violations<'_>) {
        found.required_id("id", self.id.as_str());
        found.history_length("historyLength", self.history_length);
    }
}

impl Validate for ListTasksRequest {
    fn validate(&self, found: &mut Violations<'_>) {
        found.id("contextId", self.context_id.as_ref().map(|id| id.as_str()));
        if self
            .page_size
            .is_some_and(|size| !(1..=100).contains(&size))
        {
            found.add("pageSize", "must be between 1 and 100");
        }
        found.history_length("historyLength", self.history_length);
    }
}

impl Validate for CancelTaskRequest {
    fn validate(&self, found: &mut Violations<'_>) {
        found.required_id("id", self.id.as_str());
    }
}

impl Validate for SubscribeToTaskRequest {
    fn validate(&self, found: &mut Violations<'_>) {
        found.required_id("id", self.id.as_str());
    }
}

impl Validate for TaskPushNotificationConfig {
    fn validate(&self, found: &mut Violations<'_>) {
        let task = self.task_id.as_ref().map_or("", |id| id.as_str());
        found.required_id("taskId", task);
        found.webhook("", self);
    }
}

impl Validate for GetTaskPushNotificationConfigRequest {
    fn validate(&self, found: &mut Violations<'_>) {
        found.required_id("taskId", self.task_id.as_str());
        found.required_id("id", self.id.as_str());
    }
}

impl Validate for ListTaskPushNotificationConfigsRequest {
    fn validate(&self, found: &mut Violations<'_>) {
        found.required_id("taskId", self.task_id.as_str());
        if self.page_size < 0 {
            found.add("pageSize", "must not be negative");
        }
    }
}

impl Validate for DeleteTaskPushNotificationConfigRequest {
    fn validate(&self, found: &mut Violations<'_>) {
        found.required_id("taskId", self.task_id.as_str());
        found.required_id("id", self.id.as_str());
    }
}

impl Validate for GetExtendedAgentCardRequest {
    fn validate(&self, _found: &mut Violations<'_>) {}
}
