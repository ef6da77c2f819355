//! Calling an operation.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method};
use nuncio_egress::{EgressError, EgressRequest, EgressResponse, Timeouts};
use serde_json::{Map, Value};
use url::Url;

use super::OpenApiSettings;
use super::document::{BODY, Found, Parameter, Place};
use crate::header_name;
use crate::tool::{Tool, ToolCx, ToolError, ToolFuture, ToolOutput, ToolSpec};

/// Characters of a refusal's body that the model is shown.
const WORDS: usize = 2_000;

/// One operation of a service, as a tool.
pub(super) struct Operation {
    settings: Arc<OpenApiSettings>,
    spec: ToolSpec,
    method: Method,
    path: String,
    parameters: Vec<Parameter>,
}

impl Operation {
    pub(super) fn new(settings: Arc<OpenApiSettings>, found: Found) -> Self {
        let fits = |c: char| match c {
            c if c.is_ascii_alphanumeric() || c == '-' => c,
            _ => '_',
        };
        let prefix = settings.prefix.as_deref().unwrap_or_default();
        let name: String = format!("{prefix}{}", found.id).chars().map(fits).collect();
        let mut spec = ToolSpec::new(name, found.description, found.schema);
        spec.read_only = matches!(found.method, Method::GET | Method::HEAD);
        spec.parallel = spec.read_only;
        spec.needs_approval = settings.approve.contains(&found.id);
        spec.timeout = settings.timeout;
        Self {
            method: found.method,
            path: found.path,
            parameters: found.parameters,
            settings,
            spec,
        }
    }

    /// The request for these arguments, which fit the schema.
    pub(super) fn request(&self, args: &Map<String, Value>) -> Result<EgressRequest, ToolError> {
        let url = self.url(args)?;
        let mut request = EgressRequest::new(self.method.clone(), url)
            .timeouts(Timeouts::total(self.settings.timeout));
        request.headers = self.settings.headers.clone();
        request
            .headers
            .insert(ACCEPT, HeaderValue::from_static("application/json"));
        for name in self.names(Place::Header) {
            let Some(value) = args.get(name) else {
                continue;
            };
            let bad = || ToolError::new(format!("{name} cannot be sent as a header"));
            let header = header_name(name).map_err(|_| bad())?;
            let value = HeaderValue::try_from(plain(value)).map_err(|_| bad())?;
            request.headers.insert(header, value);
        }
        if let Some(body) = args.get(BODY) {
            let json = HeaderValue::from_static("application/json");
            request.headers.insert(CONTENT_TYPE, json);
            request.body = body.to_string().into();
        }
        Ok(request)
    }

    fn url(&self, args: &Map<String, Value>) -> Result<Url, ToolError> {
        let mut url = self.settings.base_url.clone();
        let mut segments = Vec::new();
        for segment in self.path.split('/').filter(|segment| !segment.is_empty()) {
            segments.push(self.segment(segment, args)?);
        }
        let fault = |()| ToolError::new("the service has no address that has paths");
        url.path_segments_mut()
            .map_err(fault)?
            .pop_if_empty()
            .extend(segments);
        for name in self.names(Place::Query) {
            match args.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::Array(items)) => {
                    let items = items.iter().map(|item| (name, plain(item)));
                    url.query_pairs_mut().extend_pairs(items);
                }
                Some(value) => {
                    url.query_pairs_mut().append_pair(name, &plain(value));
                }
            }
        }
        Ok(url)
    }

    /// A piece of the path with its values. A value stays within its piece.
    fn segment(&self, template: &str, args: &Map<String, Value>) -> Result<String, ToolError> {
        let mut segment = template.to_owned();
        for name in self.names(Place::Path) {
            let place = format!("{{{name}}}");
            if !template.contains(&place) {
                continue;
            }
            let value = args.get(name).map(plain).unwrap_or_default();
            if value.is_empty() {
                return Err(ToolError::new(format!("{name} may not be empty")));
            }
            segment = segment.replace(&place, &value);
        }
        match segment.as_str() {
            "." | ".." => Err(ToolError::new(format!(
                "\"{segment}\" is no value for a path"
            ))),
            _ => Ok(segment),
        }
    }

    fn names(&self, place: Place) -> impl Iterator<Item = &str> {
        let here = self.parameters.iter().filter(move |p| p.place == place);
        here.map(|parameter| parameter.name.as_str())
    }

    async fn output(&self, answer: EgressResponse) -> Result<ToolOutput, ToolError> {
        let status = answer.status();
        let bytes = answer.bytes_up_to(self.settings.max_bytes).await;
        let bytes = bytes.map_err(|error| self.failed(error))?;
        let text = String::from_utf8_lossy(&bytes);
        if status.is_success() {
            let json = serde_json::from_str(&text);
            return Ok(ToolOutput::Value(json.unwrap_or_else(|_| text.into())));
        }
        let words: String = text.chars().take(WORDS).collect();
        Err(ToolError::new(format!("HTTP status {status}: {words}")))
    }

    /// The model learns that it failed; where the service is, is for the log.
    fn failed(&self, error: EgressError) -> ToolError {
        ToolError::caused(format!("{} cannot be reached", self.settings.name), error)
    }
}

/// A value as it stands in an address or a header.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Tool for Operation {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, _: ToolCx, args: Value) -> ToolFuture<'_> {
        Box::pin(async move {
            let Value::Object(args) = args else {
                return Err(ToolError::new("the arguments are no object"));
            };
            let request = self.request(&args)?;
            let answer = self.settings.egress.send(request).await;
            self.output(answer.map_err(|error| self.failed(error))?)
                .await
        })
    }
}
