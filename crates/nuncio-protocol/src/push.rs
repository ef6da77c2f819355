//! Where and how to notify somebody of a task's events.

use crate::wire::wire_message;
use crate::{PushConfigId, TaskId};

wire_message! {
    /// How to authenticate at a webhook. Spec: §4.3.2
    pub struct AuthenticationInfo {
        /// The scheme, written before the credentials as it stands.
        scheme: String => required "scheme",
        /// The credentials; never read back.
        credentials: Option<String> => text "credentials",
    }
}

wire_message! {
    /// A webhook for one task; also the request that creates it. Spec: §4.3.1
    pub struct TaskPushNotificationConfig {
        /// The agent behind a shared address.
        tenant: Option<String> => text "tenant",
        /// Made by the server if absent.
        id: Option<PushConfigId> => text "id",
        /// The task.
        task_id: Option<TaskId> => text "taskId",
        /// An absolute http or https URL.
        url: String => required "url",
        /// Sent along with each notification; never read back.
        token: Option<String> => text "token",
        /// How to authenticate at the webhook.
        authentication: Option<AuthenticationInfo> => optional "authentication",
    }
}
