//! `[openapi]`: services whose operations models may call as tools, by name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use nuncio_egress::Egress;
use nuncio_runtime::header_name;
use nuncio_runtime::openapi::{OpenApi, OpenApiSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::Config;
use super::agents::{Given, secret_headers};
use super::check::{Found, unknown};

/// One service, described by a document of OpenAPI 3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenApiConfig {
    /// The document, in JSON.
    pub(crate) document: PathBuf,
    /// Where the service is; what the document says of it does not count.
    pub(crate) base_url: String,
    /// Headers that go with every request to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, Given>,
    /// The token with which the service knows us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bearer: Option<Given>,
    /// The only operations that are used, by their `operationId`; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) allow: Option<Vec<String>>,
    /// The operations each call of which somebody must approve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approve: Vec<String>,
    /// Stands before the names of its tools; nothing if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prefix: Option<String>,
    /// Seconds that a call may take; 60 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_seconds: Option<u64>,
}

/// The services of a configuration.
pub(crate) type OpenApis = BTreeMap<String, OpenApiConfig>;

/// The operations of the service of this name.
///
/// # Errors
/// If there is none, its document cannot be used, or something is missing in the surroundings.
pub(crate) fn service(
    services: &OpenApis,
    name: &str,
    environment: &BTreeMap<String, String>,
    egress: &Egress,
) -> Result<OpenApi, String> {
    let found = services
        .get(name)
        .ok_or_else(|| unknown("service", "openapi", services, name))?;
    let made = found.make(name, environment, egress);
    made.map_err(|why| format!("openapi.{name}: {why}"))
}

impl OpenApiConfig {
    fn make(
        &self,
        name: &str,
        environment: &BTreeMap<String, String>,
        egress: &Egress,
    ) -> Result<OpenApi, String> {
        let shown = self.document.display();
        let bytes = std::fs::read(&self.document)
            .map_err(|error| format!("document: failed to read {shown}: {error}"))?;
        let document = serde_json::from_slice(&bytes)
            .map_err(|error| format!("document: {shown} is no JSON: {error}"))?;
        let url = egress.check_url(&self.base_url).map_err(|refusal| {
            format!("base_url: {refusal}; outbound.allow_networks says what may be reached")
        })?;
        let mut settings = OpenApiSettings::new(name, url, egress.clone());
        settings.headers = secret_headers(&self.headers, self.bearer.as_ref(), environment)?;
        settings.allow.clone_from(&self.allow);
        settings.approve.clone_from(&self.approve);
        settings.prefix.clone_from(&self.prefix);
        if let Some(seconds) = self.timeout_seconds {
            settings.timeout = Duration::from_secs(seconds);
        }
        OpenApi::new(&document, settings).map_err(|error| format!("document: {shown}: {error}"))
    }
}

impl Found {
    /// Finds what is wrong with services, and agents that name others.
    pub(super) fn openapi(&mut self, config: &Config) {
        for (name, service) in &config.openapi {
            self.openapi_service(&format!("openapi.{name}"), service);
        }
        for (index, agent) in config.agents.iter().enumerate() {
            for (at, name) in agent.openapi.iter().enumerate() {
                if !config.openapi.contains_key(name) {
                    let hint = "a name of a table in [openapi]";
                    let path = format!("agents[{index}].openapi[{at}]");
                    self.add(
                        path,
                        unknown("service", "openapi", &config.openapi, name),
                        hint,
                    );
                }
            }
        }
    }

    fn openapi_service(&mut self, path: &str, service: &OpenApiConfig) {
        let good = |url: Url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
        };
        if !Url::parse(&service.base_url).is_ok_and(good) {
            let message = "not an http or https URL without user and password";
            let hint = "for example `base_url = \"https://orders.example/v1\"`";
            self.add(format!("{path}.base_url"), message, hint);
        }
        for name in service.headers.keys() {
            if let Err(fault) = header_name(name) {
                let hint = "for example X-Request-Source";
                self.add(format!("{path}.headers"), fault.to_string(), hint);
            }
        }
        if let Some(seconds) = service.timeout_seconds {
            self.range(&format!("{path}.timeout_seconds"), seconds, 1..=86_400);
        }
    }
}
