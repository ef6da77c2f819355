//! Where and how to notify somebody of a task's events.

use crate::wire::wire_message;
use crate::{PushConfigId, TaskId};

wire_message! {
    /// How to authenticate at a webhook. Spec: §4.3.2
    pub struct AuthenticationInfo {
        /// The scheme, written before the credentials as it stands.
        scheme: String => required "scheme",
        /// The credentials; kept sealed, and not read back unless a setting of the server says so.
        credentials: Option<String> => secret "credentials",
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
        /// Sent along with each notification; kept sealed, and not read back unless a setting of the
        /// server says so.
        token: Option<String> => secret "token",
        /// How to authenticate at the webhook.
        authentication: Option<AuthenticationInfo> => optional "authentication",
    }
}

#[cfg(test)]
mod tests {
    use super::{AuthenticationInfo, TaskPushNotificationConfig};
    use crate::json;

    /// S08: what is written to a log by accident holds no secret.
    #[test]
    fn debug_shows_that_there_is_a_secret_and_not_which() {
        let mut config = TaskPushNotificationConfig {
            url: "https://one.example/".to_owned(),
            ..TaskPushNotificationConfig::default()
        };
        assert!(format!("{config:?}").contains("token: None"));
        config.token = Some("seeded-1".to_owned());
        config.authentication = Some(AuthenticationInfo {
            scheme: "Bearer".to_owned(),
            credentials: Some("seeded-2".to_owned()),
        });
        let shown = format!("{config:?}");
        assert!(!shown.contains("seeded"), "{shown}");
        assert!(shown.contains("Some(***)") && shown.contains("one.example"));
        let text = json::encode(&config);
        assert!(text.contains("seeded-1") && text.contains("seeded-2"));
        let read: TaskPushNotificationConfig = json::decode(text.as_bytes()).unwrap();
        assert_eq!(read, config);
    }
}
