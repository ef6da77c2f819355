//! What callers of the older version write into requests of this one.
//!
//! The configuration keeps its older spellings (`blocking`, `pushNotificationConfig`), since they can
//! mean only one thing. A message in the older form is refused with a hint.

use serde::Deserialize;
use serde_json::Value;

use crate::json::{DecodeError, decode_checked};
use crate::{A2aError, Operation, Role, SendMessageRequest, TaskPushNotificationConfig};

#[derive(Default, Deserialize)]
struct OlderRequest {
    #[serde(default)]
    configuration: Option<OlderConfiguration>,
}

#[derive(Default, Deserialize)]
struct OlderConfiguration {
    #[serde(default)]
    blocking: Option<bool>,
    #[serde(default, alias = "return_immediately", rename = "returnImmediately")]
    return_immediately: Option<bool>,
    #[serde(
        default,
        alias = "push_notification_config",
        rename = "pushNotificationConfig"
    )]
    push_notification_config: Option<TaskPushNotificationConfig>,
}

/// Completes a send that has been read from `text`, or says what is wrong with it.
pub(super) fn understood(
    decoded: Result<Operation, DecodeError>,
    text: &str,
) -> Result<Operation, A2aError> {
    let (Ok(Operation::SendMessage(request)) | Ok(Operation::SendStreamingMessage(request))) =
        &decoded
    else {
        let error = decoded.err().map(A2aError::from);
        let error = error.unwrap_or_else(A2aError::internal);
        return Err(older_message(text).unwrap_or(error));
    };
    if is_odd(request)
        && let Some(error) = older_message(text)
    {
        return Err(error);
    }
    let mut operation = decoded?;
    if text.contains("\"blocking\"")
        || text.contains("\"pushNotificationConfig\"")
        || text.contains("\"push_notification_config\"")
    {
        let older: OlderRequest = decode_checked(text)?;
        if let (
            Operation::SendMessage(request) | Operation::SendStreamingMessage(request),
            Some(older),
        ) = (&mut operation, older.configuration)
        {
            configure(request, older)?;
        }
    }
    Ok(operation)
}

fn configure(request: &mut SendMessageRequest, older: OlderConfiguration) -> Result<(), A2aError> {
    let configuration = request.configuration.get_or_insert_default();
    if let Some(blocking) = older.blocking {
        if older.return_immediately == Some(blocking) {
            return Err(A2aError::invalid_field(
                "configuration.blocking",
                "contradicts returnImmediately",
            ));
        }
        configuration.return_immediately = !blocking;
    }
    if let Some(webhook) = older.push_notification_config
        && configuration
            .task_push_notification_config
            .replace(webhook)
            .is_some()
    {
        return Err(A2aError::invalid_field(
            "configuration.pushNotificationConfig",
            "is given as taskPushNotificationConfig too",
        ));
    }
    Ok(())
}

/// Whether a message lacks what one in the older form would seem to lack.
fn is_odd(request: &SendMessageRequest) -> bool {
    let message = request.message.as_ref();
    message.is_some_and(|m| m.role == Role::Unspecified || m.parts.is_empty())
}

/// What shows that a message is written in the form of the older version.
fn older_message(text: &str) -> Option<A2aError> {
    let request: Value = serde_json::from_str(text).ok()?;
    let message = &request["message"];
    let refuse = |field: String, newer: &str| {
        let hint = format!("is a member of protocol 0.3; 1.0 has {newer}");
        Some(A2aError::invalid_field(field, hint))
    };
    if message["content"].is_array() && message["parts"].is_null() {
        return refuse("message.content".to_owned(), "parts");
    }
    let parts = message["parts"].as_array().into_iter().flatten();
    for (n, part) in parts.enumerate() {
        if part["file"].is_object() {
            return refuse(format!("message.parts[{n}].file"), "raw or url");
        }
    }
    if matches!(message["role"].as_str(), Some("user" | "agent")) {
        let hint = "is spelt as in protocol 0.3; 1.0 has ROLE_USER and ROLE_AGENT";
        return Some(A2aError::invalid_field("message.role", hint));
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::v1::decode_operation;
    use crate::{Operation, OperationKind};

    fn read(text: &str) -> Result<crate::SendMessageRequest, String> {
        match decode_operation(OperationKind::SendMessage, text) {
            Ok(Operation::SendMessage(request)) => Ok(request),
            Ok(_) => Err("another operation".to_owned()),
            Err(error) => Err(error.message),
        }
    }

    #[test]
    fn the_configuration_is_read_in_both_spellings() {
        let immediately = |configuration: &str| {
            read(&format!(r#"{{"configuration":{configuration}}}"#))
                .map(|r| r.returns_immediately())
        };
        assert_eq!(immediately(r#"{"blocking":false}"#), Ok(true));
        assert_eq!(immediately(r#"{"blocking":true}"#), Ok(false));
        assert_eq!(immediately(r#"{"blocking":null}"#), Ok(false));
        assert_eq!(
            immediately(r#"{"blocking":false,"returnImmediately":true}"#),
            Ok(true)
        );
        assert_eq!(
            immediately(r#"{"blocking":true,"returnImmediately":true}"#),
            Err("configuration.blocking: contradicts returnImmediately".to_owned())
        );
        let webhook = |configuration: &str| {
            let request = read(&format!(r#"{{"configuration":{configuration}}}"#))?;
            let webhook = request
                .configuration
                .and_then(|c| c.task_push_notification_config);
            Ok::<_, String>(webhook.map(|webhook| webhook.url))
        };
        let url = || Ok(Some("https://h/".to_owned()));
        assert_eq!(
            webhook(r#"{"pushNotificationConfig":{"url":"https://h/"}}"#),
            url()
        );
        assert_eq!(
            webhook(r#"{"taskPushNotificationConfig":{"url":"https://h/"}}"#),
            url()
        );
        assert!(
            webhook(
                r#"{"pushNotificationConfig":{"url":"a"},"taskPushNotificationConfig":{"url":"b"}}"#
            )
            .is_err()
        );
    }

    /// A body of one version on the other's route is refused with a hint.
    #[test]
    fn a_message_of_the_older_version_is_named() {
        for (message, field) in [
            (
                r#"{"role":"ROLE_USER","content":[{"text":"x"}]}"#,
                "message.content",
            ),
            (
                r#"{"role":"user","parts":[{"kind":"text","text":"x"}]}"#,
                "message.role",
            ),
            (
                r#"{"role":"user","parts":[{"kind":"file","file":{"uri":"https://h/"}}]}"#,
                "message.parts[0].file",
            ),
        ] {
            let error = read(&format!(r#"{{"message":{message}}}"#)).unwrap_err();
            assert!(error.starts_with(field) && error.contains("0.3"), "{error}");
        }
        // A member that no version knows is ignored, `kind` like any other (JSON-13).
        let kind = r#"{"message":{"kind":"message","role":"ROLE_USER","parts":[{"kind":"text","text":"x"}]}}"#;
        assert!(read(kind).is_ok());
    }
}
