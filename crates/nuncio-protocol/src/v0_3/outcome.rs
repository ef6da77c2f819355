//! Results of 0.3 in both JSON forms.

use serde_json::Value;

use super::read::{Object, Read, Side};
use super::write::Spelt;
use super::{Form, card, event, push, task};
use crate::json::encode as text;
use crate::{A2aError, ErrorKind, OperationKind, Outcome};

/// Writes a result; a list of webhooks also answers the question for "the" one (V03-08).
pub(super) fn encode(
    asked: OperationKind,
    outcome: &Outcome,
    form: Form,
) -> Result<String, A2aError> {
    Ok(match outcome {
        Outcome::Sent(sent) => text(&Spelt(sent, form)),
        // The items of a stream are written one by one.
        Outcome::Stream(_) => return Err(A2aError::internal()),
        Outcome::Task(task) => text(&Spelt(task, form)),
        Outcome::Tasks(page) => text(&Spelt(page, form)),
        Outcome::PushConfig(config) => text(&Spelt(config, form)),
        Outcome::PushConfigs(list) => match asked {
            OperationKind::GetTaskPushNotificationConfig => {
                let the_one = push::the_one(&list.configs).ok_or_else(no_webhook)?;
                text(&Spelt(the_one, form))
            }
            _ => text(&Spelt(list, form)),
        },
        Outcome::Deleted => match form {
            Form::Schema => "null".to_owned(),
            Form::Proto => "{}".to_owned(),
        },
        Outcome::Card(card) => card::encode(card).to_string(),
    })
}

fn no_webhook() -> A2aError {
    A2aError::new(
        ErrorKind::TaskNotFound,
        "the task has no push notification config",
    )
}

/// Reads the result of an operation that does not stream.
pub(super) fn decode(kind: OperationKind, value: Value, form: Form) -> Read<Outcome> {
    let object = |value| Object::new(value, String::new(), form, Side::Reply);
    Ok(match kind {
        OperationKind::SendMessage => Outcome::Sent(event::read_sent(object(value)?)?),
        OperationKind::GetTask | OperationKind::CancelTask => {
            Outcome::Task(event::read_task(object(value)?)?)
        }
        OperationKind::ListTasks => Outcome::Tasks(task::read_page(object(value)?)?),
        OperationKind::CreateTaskPushNotificationConfig
        | OperationKind::GetTaskPushNotificationConfig => {
            Outcome::PushConfig(push::read(object(value)?)?)
        }
        OperationKind::ListTaskPushNotificationConfigs => {
            Outcome::PushConfigs(push::read_list(value, form)?)
        }
        OperationKind::DeleteTaskPushNotificationConfig => Outcome::Deleted,
        OperationKind::GetExtendedAgentCard => Outcome::Card(Box::new(card::decode(&value)?)),
        OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask => {
            return Err(object(value)?.wrong_itself("a stream was expected"));
        }
    })
}
