//! Webhooks of 0.3: nested under the task's id, or under a resource name.

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::Form;
use super::read::{Object, Read, Side};
use super::write::{Out, Spelt};
use crate::{
    AuthenticationInfo, ListTaskPushNotificationConfigsResponse, PushConfigId, TaskId,
    TaskPushNotificationConfig,
};

const CONFIGS: &str = "/pushNotificationConfigs/";

/// What SDKs write into a name for want of an id.
const NO_IDS: [&str; 3] = ["", "None", "undefined"];

impl Serialize for Spelt<'_, TaskPushNotificationConfig> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(config, form) = *self;
        let task = config.task_id.as_ref().map_or("", |id| id.as_str());
        let mut out = Out::new(serializer)?;
        match form {
            Form::Schema => out.put("taskId", task)?,
            Form::Proto => out.put("name", &config_name(config))?,
        }
        out.put("pushNotificationConfig", &Webhook(config))?;
        out.end()
    }
}

/// The config without its task.
pub(super) struct Webhook<'a>(pub(super) &'a TaskPushNotificationConfig);

impl Serialize for Webhook<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let config = self.0;
        let mut out = Out::new(serializer)?;
        out.text("id", config.id.as_ref().map(|id| id.as_str()))?;
        out.put("url", &config.url)?;
        out.text("token", config.token.as_deref())?;
        out.some(
            "authentication",
            config.authentication.as_ref().map(Schemes),
        )?;
        out.end()
    }
}

struct Schemes<'a>(&'a AuthenticationInfo);

impl Serialize for Schemes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = Out::new(serializer)?;
        out.put("schemes", &[&self.0.scheme])?;
        out.text("credentials", self.0.credentials.as_deref())?;
        out.end()
    }
}

/// `tasks/{id}`.
pub(super) fn task_name(task: &str) -> String {
    format!("tasks/{task}")
}

/// `tasks/{id}/pushNotificationConfigs/{id}`.
pub(super) fn config_name(config: &TaskPushNotificationConfig) -> String {
    let task = config.task_id.as_ref().map_or("", |id| id.as_str());
    let id = config.id.as_ref().map_or("", |id| id.as_str());
    format!("tasks/{task}{CONFIGS}{id}")
}

/// The ids in a resource name, without those it lacks.
pub(super) fn ids_of(name: &str) -> (Option<TaskId>, Option<PushConfigId>) {
    let path = ["tasks/", "task/"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix));
    let Some(path) = path else {
        return (None, None);
    };
    let (task, config) = path.split_once(CONFIGS).unwrap_or((path, ""));
    let config = Some(config).filter(|id| !NO_IDS.contains(id));
    let task = Some(task).filter(|id| !id.is_empty());
    (task.map(TaskId::from), config.map(PushConfigId::from))
}

/// Reads a config without its task.
pub(super) fn read_webhook(mut object: Object) -> Read<TaskPushNotificationConfig> {
    let mut config = TaskPushNotificationConfig {
        id: object.some_id("id")?,
        url: object.any_text("url")?.unwrap_or_default(),
        token: object.text("token")?,
        ..TaskPushNotificationConfig::default()
    };
    let authentication = object.object(&["authentication"])?;
    config.authentication = authentication
        .map(read_authentication)
        .transpose()?
        .filter(says_anything);
    Ok(config)
}

/// The id by which some callers ask for a task's webhook that they set without one.
pub(super) const DEFAULT_ID: &str = "default";

/// The webhook that is meant where none is named: the one called so, else the first (V03-08).
pub(super) fn the_one(
    configs: &[TaskPushNotificationConfig],
) -> Option<&TaskPushNotificationConfig> {
    let is_default = |config: &&TaskPushNotificationConfig| {
        config
            .id
            .as_ref()
            .is_some_and(|id| id.as_str() == DEFAULT_ID)
    };
    configs.iter().find(is_default).or(configs.first())
}

/// One that names nothing is as good as none: proto writers leave an empty one.
pub(crate) fn says_anything(authentication: &AuthenticationInfo) -> bool {
    !authentication.scheme.is_empty() || authentication.credentials.is_some()
}

/// Keeps the first scheme that every sender knows, else the first.
fn read_authentication(mut object: Object) -> Read<AuthenticationInfo> {
    object.refuse_newer("scheme", "`schemes`")?;
    let schemes: Vec<String> = object.texts("schemes")?;
    let known = |scheme: &&String| {
        ["Bearer", "Basic"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(scheme))
    };
    let chosen = schemes.iter().find(known).or(schemes.first()).cloned();
    Ok(AuthenticationInfo {
        scheme: match chosen {
            Some(scheme) => scheme,
            None => object.any_text("scheme")?.unwrap_or_default(),
        },
        credentials: object.text("credentials")?,
        ..AuthenticationInfo::default()
    })
}

/// Reads a config with its task; a reply may also be nested or flat as in other SDKs (TRAP-19).
pub(super) fn read(mut object: Object) -> Read<TaskPushNotificationConfig> {
    object.refuse_newer("url", "`pushNotificationConfig` with `url`")?;
    let name = object.any_text("name")?.unwrap_or_default();
    let (named_task, named_config) = ids_of(&name);
    let task: Option<TaskId> = object.some_id("taskId")?;
    let mut config = match object.object(&["pushNotificationConfig", "config"])? {
        Some(inner) => read_webhook(inner)?,
        None if object.side == Side::Request => {
            return Err(object.wrong("pushNotificationConfig", "is required"));
        }
        None => read_webhook(object)?,
    };
    config.task_id = task.or(named_task);
    config.id = config.id.or(named_config);
    Ok(config)
}

/// A list of configs with the page's end; the schema has a bare array.
impl Serialize for Spelt<'_, ListTaskPushNotificationConfigsResponse> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(list, form) = *self;
        let configs = Spelt(list.configs.as_slice(), form);
        if form == Form::Schema {
            return configs.serialize(serializer);
        }
        let mut out = Out::new(serializer)?;
        out.put("configs", &configs)?;
        out.text("nextPageToken", list.next_page_token.as_deref())?;
        out.end()
    }
}

/// Reads a list in either form.
pub(super) fn read_list(value: Value, form: Form) -> Read<ListTaskPushNotificationConfigsResponse> {
    let value = match value {
        Value::Array(list) => serde_json::json!({ "configs": list }),
        other => other,
    };
    let mut object = Object::new(value, String::new(), form, Side::Reply)?;
    Ok(ListTaskPushNotificationConfigsResponse {
        configs: object.list(&["configs"], read)?,
        next_page_token: object.text("nextPageToken")?,
    })
}
