//! Security schemes and requirements: by `type` in 0.3, one member of several in 1.0 (V03-CARD-03).

use serde_json::{Map, Value, json};

use crate::{OAuthFlows, SecurityScheme, StringList};

type Object = Map<String, Value>;

/// The flows of `oauth2`, the one to keep first: 1.0 has room for one.
const FLOWS: [(&str, &str); 4] = [
    ("authorizationCode", "authorization_code"),
    ("clientCredentials", "client_credentials"),
    ("implicit", "implicit"),
    ("password", "password"),
];

/// Writes a scheme with its `type`.
pub(super) fn encode_scheme(scheme: &SecurityScheme) -> Value {
    let (kind, inner) = match scheme {
        SecurityScheme::ApiKey(key) => ("apiKey", json!(key)),
        SecurityScheme::HttpAuth(http) => ("http", json!(http)),
        SecurityScheme::OAuth2(oauth) => ("oauth2", json!(oauth)),
        SecurityScheme::OpenIdConnect(connect) => ("openIdConnect", json!(connect)),
        SecurityScheme::MutualTls(tls) => ("mutualTLS", json!(tls)),
    };
    let mut object = object(inner);
    object.insert("type".to_owned(), kind.into());
    if let Some(location) = object.remove("location") {
        object.insert("in".to_owned(), location);
    }
    if let SecurityScheme::OAuth2(oauth) = scheme {
        let flows = oauth.flows.as_ref().map_or(json!({}), encode_flows);
        object.insert("flows".to_owned(), flows);
    }
    object.into()
}

/// The device code flow has no form here, nor has `pkceRequired`.
fn encode_flows(flows: &OAuthFlows) -> Value {
    if matches!(flows, OAuthFlows::DeviceCode(_)) {
        return json!({});
    }
    let mut flows = json!(flows);
    for flow in flows.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(flow) = flow.as_object_mut() {
            flow.remove("pkceRequired");
            flow.entry("scopes").or_insert_with(|| json!({}));
        }
    }
    flows
}

/// Reads a scheme into the JSON of 1.0; `None` for a kind nobody here knows.
///
/// A scheme that has the member of 1.0, as union cards and the proto form of 0.3 do, is read by it.
pub(super) fn decode_scheme(scheme: &Value) -> Option<Value> {
    let typed = || by_type(scheme.as_object()?);
    serde_json::from_value::<SecurityScheme>(scheme.clone())
        .ok()
        .map(|known| json!(known))
        .or_else(typed)
}

fn by_type(scheme: &Object) -> Option<Value> {
    let member = match scheme.get("type")?.as_str()? {
        "apiKey" => "apiKeySecurityScheme",
        "http" => "httpAuthSecurityScheme",
        "oauth2" => "oauth2SecurityScheme",
        "openIdConnect" => "openIdConnectSecurityScheme",
        "mutualTLS" => "mtlsSecurityScheme",
        _ => return None,
    };
    let mut inner = scheme.clone();
    if let Some(location) = inner.remove("in") {
        inner.insert("location".to_owned(), location);
    }
    if let Some(flows) = inner.remove("flows") {
        inner.insert("flows".to_owned(), one_flow(&flows));
    }
    let read: SecurityScheme = serde_json::from_value(json!({ member: inner })).ok()?;
    Some(json!(read))
}

fn one_flow(flows: &Value) -> Value {
    FLOWS
        .iter()
        .find_map(|(name, proto)| {
            let flow = flows.get(name).or_else(|| flows.get(proto))?;
            let read: OAuthFlows = serde_json::from_value(json!({ *name: flow })).ok()?;
            Some(json!(read))
        })
        .unwrap_or_default()
}

/// Writes requirements, given in the JSON of 1.0, as a list of scheme names with their scopes.
pub(super) fn encode_requirements(requirements: &Value) -> Value {
    let entries = requirements.as_array().into_iter().flatten();
    entries
        .map(|requirement| {
            let schemes = requirement["schemes"].as_object().into_iter().flatten();
            schemes
                .map(|(name, scopes)| {
                    let list = scopes.get("list").cloned();
                    (name.clone(), list.unwrap_or_else(|| json!([])))
                })
                .collect::<Object>()
        })
        .collect()
}

/// Reads requirements of either form into the JSON of 1.0.
///
/// A requirement that cannot be read is kept without its scopes: leaving it out would say that
/// less is needed.
pub(super) fn decode_requirements(security: &Value) -> Value {
    let entries = security.as_array().into_iter().flatten();
    entries
        .filter_map(Value::as_object)
        .map(|entry| {
            let proto = entry.get("schemes").and_then(Value::as_object);
            let schemes: Object = proto
                .unwrap_or(entry)
                .iter()
                .map(|(name, scopes)| (name.clone(), json!(string_list(scopes))))
                .collect();
            json!({ "schemes": schemes })
        })
        .collect()
}

fn string_list(scopes: &Value) -> StringList {
    let scopes = scopes.get("list").unwrap_or(scopes).as_array();
    StringList {
        list: scopes
            .into_iter()
            .flatten()
            .filter_map(|scope| scope.as_str().map(str::to_owned))
            .collect(),
    }
}

/// The members of what is known to be an object.
pub(super) fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}
