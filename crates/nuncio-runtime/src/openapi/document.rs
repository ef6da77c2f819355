//! The operations of a document.

use http::{HeaderName, Method};
use serde_json::{Map, Value, json};

use super::schema::{follow, inlined};
use super::{OpenApiError, OpenApiSettings};

/// One operation, as far as it matters for calling it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) id: String,
    pub(super) description: String,
    pub(super) method: Method,
    /// Its path with names in braces.
    pub(super) path: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) schema: Value,
}

/// A parameter, and where it goes.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Path,
    Query,
    Header,
}

/// The argument that is the body.
pub(super) const BODY: &str = "body";

const METHODS: [&str; 6] = ["get", "put", "post", "delete", "patch", "head"];

/// The operations of a document that are allowed and can be called.
pub(super) fn operations(
    document: &Value,
    settings: &OpenApiSettings,
) -> Result<Vec<Found>, OpenApiError> {
    let fault = |path: &str, message: String| {
        Err(OpenApiError {
            path: path.to_owned(),
            message,
        })
    };
    if !document["openapi"]
        .as_str()
        .is_some_and(|version| version.starts_with("3."))
    {
        return fault("/openapi", "it is no document of OpenAPI 3".to_owned());
    }
    let Some(paths) = document["paths"].as_object() else {
        return fault("/paths", "there are no paths".to_owned());
    };
    let mut found = Vec::new();
    for (path, item) in paths {
        let item = follow(document, item)?;
        for method in METHODS {
            let Some(operation) = item.get(method) else {
                continue;
            };
            let id = match operation["operationId"].as_str() {
                Some(id) => id.to_owned(),
                None => format!("{method}{path}"),
            };
            let allowed = settings.allow.as_ref();
            if allowed.is_some_and(|allowed| !allowed.contains(&id)) {
                continue;
            }
            let reading = Reading {
                document,
                settings,
                path,
                item,
                operation,
            };
            match reading.operation(id.clone(), method)? {
                Ok(operation) => found.push(operation),
                Err(why) => {
                    tracing::warn!(service = %settings.name, operation = %id, why, "an operation is left out");
                }
            }
        }
    }
    let is_there = |id: &&String| found.iter().any(|operation| operation.id == **id);
    if let Some(missing) = settings.allow.iter().flatten().find(|id| !is_there(id)) {
        return fault(
            "/paths",
            format!("there is no operation \"{missing}\" that can be used"),
        );
    }
    Ok(found)
}

struct Reading<'a> {
    document: &'a Value,
    settings: &'a OpenApiSettings,
    path: &'a str,
    item: &'a Value,
    operation: &'a Value,
}

impl Reading<'_> {
    /// The operation, or why it cannot be called.
    fn operation(&self, id: String, method: &str) -> Result<Result<Found, String>, OpenApiError> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        let mut parameters = Vec::new();
        for given in self.parameters()? {
            let name = given["name"].as_str().unwrap_or_default();
            let needed = given["required"] == true;
            let place = match given["in"].as_str() {
                Some("path") => Place::Path,
                Some("query") => Place::Query,
                Some("header") if self.is_given(name) => continue,
                Some("header") => Place::Header,
                _ if needed => return Ok(Err(format!("parameter {name} is a cookie"))),
                _ => continue,
            };
            if name.is_empty() || name == BODY {
                return Ok(Err(
                    "a parameter has no name that an argument can have".to_owned()
                ));
            }
            if needed || place == Place::Path {
                required.push(Value::from(name));
            }
            properties.insert(name.to_owned(), self.schema_of(given)?);
            let name = name.to_owned();
            parameters.push(Parameter { name, place });
        }
        match self.body()? {
            Body::None => {}
            Body::Json { schema, needed } => {
                properties.insert(BODY.to_owned(), schema);
                if needed {
                    required.push(BODY.into());
                }
            }
            Body::Other => return Ok(Err("its body is no JSON".to_owned())),
        }
        let text = |key: &str| self.operation[key].as_str().filter(|text| !text.is_empty());
        let description = [text("summary"), text("description")].into_iter().flatten();
        let description = description.collect::<Vec<_>>().join("\n");
        Ok(Ok(Found {
            id,
            description,
            method: Method::from_bytes(method.to_uppercase().as_bytes()).unwrap_or(Method::GET),
            path: self.path.to_owned(),
            parameters,
            schema: json!({"type": "object", "properties": properties, "required": required}),
        }))
    }

    /// The parameters of the operation, then those of its path that it does not replace.
    fn parameters(&self) -> Result<Vec<&Value>, OpenApiError> {
        let mut all: Vec<&Value> = Vec::new();
        for list in [&self.operation["parameters"], &self.item["parameters"]] {
            for given in list.as_array().into_iter().flatten() {
                let given = follow(self.document, given)?;
                let same =
                    |known: &&Value| known["name"] == given["name"] && known["in"] == given["in"];
                if !all.iter().any(same) {
                    all.push(given);
                }
            }
        }
        Ok(all)
    }

    /// Whether every request has this header anyway; some are no parameters at all.
    fn is_given(&self, name: &str) -> bool {
        let ignored = ["accept", "content-type", "authorization"];
        let name = name.to_lowercase();
        ignored.contains(&name.as_str())
            || HeaderName::try_from(name).is_ok_and(|name| self.settings.headers.contains_key(name))
    }

    fn schema_of(&self, parameter: &Value) -> Result<Value, OpenApiError> {
        let mut schema = inlined(self.document, &parameter["schema"])?;
        if !schema.is_object() {
            schema = json!({"type": "string"});
        }
        if let Some(text) = parameter["description"].as_str() {
            schema["description"] = text.into();
        }
        Ok(schema)
    }

    fn body(&self) -> Result<Body, OpenApiError> {
        if self.operation["requestBody"].is_null() {
            return Ok(Body::None);
        }
        let body = follow(self.document, &self.operation["requestBody"])?;
        let needed = body["required"] == true;
        match body["content"].get("application/json") {
            Some(content) => {
                let schema = inlined(self.document, &content["schema"])?;
                let schema = if schema.is_object() {
                    schema
                } else {
                    json!({})
                };
                Ok(Body::Json { schema, needed })
            }
            None if needed => Ok(Body::Other),
            None => Ok(Body::None),
        }
    }
}

enum Body {
    None,
    Json { schema: Value, needed: bool },
    Other,
}
