//! Tools from an OpenAPI document: its operations, called over HTTP.
//!
//! [`OpenApi`] reads a document of OpenAPI 3 in JSON and makes a tool of each operation: its parameters
//! are arguments, and a JSON body is the argument `body`. Responses are not described to the model;
//! what comes back is given to it as JSON or text.

mod call;
mod document;
mod schema;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use nuncio_egress::Egress;
use nuncio_engine::RunCx;
use serde_json::Value;
use url::Url;

use crate::tool::{ReadyTool, ToolSource, ToolsFuture};
use call::Operation;

/// Why a document gives no tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct OpenApiError {
    /// Where in the document, as a JSON pointer.
    pub path: String,
    /// What is wrong.
    pub message: String,
}

/// What is used of a service, and how it is called.
#[derive(Clone)]
#[non_exhaustive]
pub struct OpenApiSettings {
    /// Its name, for logs.
    pub name: String,
    /// Where the service is; `servers` of the document is not looked at.
    pub base_url: Url,
    /// The way to it.
    pub egress: Egress,
    /// What goes with every request. A parameter of the document that is said here is no argument.
    pub headers: HeaderMap,
    /// The only operations that are used, by their `operationId`; all if absent.
    pub allow: Option<Vec<String>>,
    /// The operations each call of which somebody must approve.
    pub approve: Vec<String>,
    /// Stands before the names of the tools; nothing if absent.
    pub prefix: Option<String>,
    /// How long a call may take; 60 s.
    pub timeout: Duration,
    /// How many bytes of an answer are read; 1 MiB.
    pub max_bytes: u64,
}

impl OpenApiSettings {
    /// All operations of a service.
    pub fn new(name: impl Into<String>, base_url: Url, egress: Egress) -> Self {
        Self {
            name: name.into(),
            base_url,
            egress,
            headers: HeaderMap::new(),
            allow: None,
            approve: Vec::new(),
            prefix: None,
            timeout: Duration::from_secs(60),
            max_bytes: 1 << 20,
        }
    }
}

impl fmt::Debug for OpenApiSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenApiSettings")
            .field("name", &self.name)
            .field("origin", &self.base_url.origin().ascii_serialization())
            .field("allow", &self.allow)
            .finish_non_exhaustive()
    }
}

/// The operations of a service as tools.
#[derive(Clone, Debug)]
pub struct OpenApi {
    name: String,
    tools: Vec<ReadyTool>,
}

impl OpenApi {
    /// Reads a document.
    ///
    /// Operations that need what cannot be given (a cookie, a body that is no JSON) are left out, and
    /// the log says so.
    ///
    /// # Errors
    /// [`OpenApiError`] if it is no document of OpenAPI 3, refers to what it does not contain, has no
    /// operation that can be used, or lacks one that is allowed.
    pub fn new(document: &Value, settings: OpenApiSettings) -> Result<Self, OpenApiError> {
        let settings = Arc::new(settings);
        let mut tools: Vec<ReadyTool> = Vec::new();
        for found in document::operations(document, &settings)? {
            let tool = ReadyTool::new(Arc::new(Operation::new(Arc::clone(&settings), found)));
            match tool {
                Ok(tool) => tools.push(tool),
                Err(error) => {
                    tracing::warn!(service = %settings.name, %error, "an operation is left out");
                }
            }
        }
        if tools.is_empty() {
            return Err(OpenApiError {
                path: "/paths".to_owned(),
                message: "there is no operation that can be used".to_owned(),
            });
        }
        Ok(Self {
            name: settings.name.clone(),
            tools,
        })
    }

    /// The tools.
    pub fn tools(&self) -> &[ReadyTool] {
        &self.tools
    }
}

impl ToolSource for OpenApi {
    fn name(&self) -> &str {
        &self.name
    }

    fn tools<'a>(&'a self, _: &'a RunCx) -> ToolsFuture<'a> {
        let tools = self.tools.clone();
        Box::pin(async move { Ok(tools) })
    }
}
