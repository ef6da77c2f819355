//! Shapes of webhook answers that one SDK writes and the protocol does not know (TRAP-19).

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// Brings `{taskId, config: {…}}` into the flat form; leaves everything else alone.
pub(super) fn config(text: &str) -> Cow<'_, str> {
    let Ok(Value::Object(object)) = serde_json::from_str(text) else {
        return text.into();
    };
    if object.contains_key("url") {
        return text.into();
    }
    Value::Object(flattened(object)).to_string().into()
}

/// Brings a bare array into `{configs: […]}` and each nested config into the flat form.
pub(super) fn configs(text: &str) -> Cow<'_, str> {
    let list = match serde_json::from_str(text) {
        Ok(Value::Array(list)) => list,
        Ok(Value::Object(mut object)) => match object.get_mut("configs").map(Value::take) {
            Some(Value::Array(list)) if list.iter().any(|entry| entry["url"].is_null()) => {
                object.insert("configs".to_owned(), Value::Array(flat_list(list)));
                return Value::Object(object).to_string().into();
            }
            _ => return text.into(),
        },
        _ => return text.into(),
    };
    json!({ "configs": flat_list(list) }).to_string().into()
}

fn flat_list(list: Vec<Value>) -> Vec<Value> {
    list.into_iter()
        .map(|entry| match entry {
            Value::Object(object) => Value::Object(flattened(object)),
            other => other,
        })
        .collect()
}

fn flattened(mut object: Map<String, Value>) -> Map<String, Value> {
    for member in [
        "config",
        "pushNotificationConfig",
        "push_notification_config",
    ] {
        if let Some(Value::Object(mut inner)) = object.remove(member) {
            for (name, value) in object {
                inner.entry(name).or_insert(value);
            }
            return inner;
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_and_bare_forms_become_flat_ones() {
        let nested = r#"{"taskId":"t","config":{"id":"c","url":"https://h/"}}"#;
        let flat: Value = serde_json::from_str(&config(nested)).unwrap();
        assert_eq!(flat, json!({"taskId": "t", "id": "c", "url": "https://h/"}));
        let listed: Value = serde_json::from_str(&configs(&format!("[{nested}]"))).unwrap();
        assert_eq!(listed, json!({"configs": [flat]}));
        let proper = r#"{"configs":[{"url":"https://h/"}],"nextPageToken":"n"}"#;
        assert_eq!(configs(proper), proper);
    }
}
