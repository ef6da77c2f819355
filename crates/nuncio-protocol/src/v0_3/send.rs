//! The request to send a message. What is unset differs between the forms (V03-03).

use serde::{Serialize, Serializer};

use super::push::{self, Webhook};
use super::read::{Object, Read};
use super::write::{Out, Spelt};
use super::{Form, message};
use crate::{SendMessageConfiguration, SendMessageRequest};

impl Serialize for Spelt<'_, SendMessageRequest> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(request, form) = *self;
        let mut out = Out::new(serializer)?;
        let said = request.message.as_ref();
        out.some("message", said.map(|message| Spelt(message, form)))?;
        let unset = SendMessageConfiguration::default();
        // The proto takes an absent configuration for "do not wait".
        let needed = (form == Form::Proto).then_some(&unset);
        let configuration = request.configuration.as_ref().or(needed);
        out.some("configuration", configuration.map(|c| Spelt(c, form)))?;
        out.some("metadata", request.metadata.as_ref())?;
        out.end()
    }
}

impl Serialize for Spelt<'_, SendMessageConfiguration> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(configuration, form) = *self;
        let mut out = Out::new(serializer)?;
        out.list("acceptedOutputModes", &configuration.accepted_output_modes)?;
        let webhook = configuration.task_push_notification_config.as_ref();
        out.some(webhook_names(form)[0], webhook.map(Webhook))?;
        out.some("historyLength", configuration.history_length)?;
        // Always, since readers differ on what its absence means.
        out.put("blocking", &!configuration.return_immediately)?;
        out.end()
    }
}

fn webhook_names(form: Form) -> &'static [&'static str] {
    match form {
        Form::Schema => &["pushNotificationConfig", "pushNotification"],
        Form::Proto => &["pushNotification", "pushNotificationConfig"],
    }
}

/// Whether a request that does not say so waits.
fn blocks_if_unset(form: Form) -> bool {
    form == Form::Schema
}

/// Reads the request.
pub(super) fn read(mut object: Object) -> Read<SendMessageRequest> {
    let form = object.form;
    let mut request = SendMessageRequest::default();
    let said = object.object(&["message", "request"])?;
    request.message = said.map(message::read).transpose()?;
    let configuration = object.object(&["configuration"])?;
    request.configuration = configuration.map(read_configuration).transpose()?;
    if request.configuration.is_none() && !blocks_if_unset(form) {
        let unset = SendMessageConfiguration {
            return_immediately: true,
            ..SendMessageConfiguration::default()
        };
        request.configuration = Some(unset);
    }
    request.metadata = object.metadata()?;
    Ok(request)
}

fn read_configuration(mut object: Object) -> Read<SendMessageConfiguration> {
    let form = object.form;
    let webhook = webhook_names(form);
    object.refuse_newer("returnImmediately", "`blocking`")?;
    object.refuse_newer("taskPushNotificationConfig", &format!("`{}`", webhook[0]))?;
    let blocking = object.flag("blocking")?.unwrap_or(blocks_if_unset(form));
    let mut configuration = SendMessageConfiguration {
        accepted_output_modes: object.texts("acceptedOutputModes")?,
        ..SendMessageConfiguration::default()
    };
    let config = object.object(webhook)?;
    configuration.task_push_notification_config = config.map(push::read_webhook).transpose()?;
    configuration.history_length = object.int("historyLength")?;
    configuration.return_immediately = !blocking;
    Ok(configuration)
}
