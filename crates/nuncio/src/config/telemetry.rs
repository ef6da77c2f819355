//! `[telemetry]`: who is told of spans.

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::agents::Given;
use super::check::Found;
use crate::surroundings::Surroundings;

/// Spans of calls, runs, models, tools and webhooks, for a collector that speaks OTLP over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TelemetryConfig {
    /// The collector, such as `http://127.0.0.1:4318`; spans go to `/v1/traces` below it. Nobody is
    /// told if it is absent here and in `OTEL_EXPORTER_OTLP_ENDPOINT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) otlp_endpoint: Option<String>,
    /// Headers that go with every request to it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, Given>,
    /// The name of this service; `OTEL_SERVICE_NAME`, else `nuncio`, if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service_name: Option<String>,
}

/// Where spans go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Collector {
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) service_name: String,
}

impl TelemetryConfig {
    /// The collector, if there is one.
    ///
    /// # Errors
    /// If a header cannot be had or sent.
    pub(crate) fn collector(&self, around: &Surroundings) -> Result<Option<Collector>, String> {
        let whole = around.variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let base = self.otlp_endpoint.as_deref();
        let base = base.or_else(|| around.variable("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let below = |base: &str| format!("{}/v1/traces", base.trim_end_matches('/'));
        let url = match (whole, base) {
            (Some(whole), _) if self.otlp_endpoint.is_none() => whole.to_owned(),
            (_, Some(base)) => below(base),
            (_, None) => return Ok(None),
        };
        let mut headers = HeaderMap::new();
        for (name, given) in &self.headers {
            let field = format!("telemetry.headers.{name}");
            let value = given.reveal(&around.environment);
            let value = value.map_err(|why| format!("{field}: {why}"))?;
            let name = HeaderName::try_from(name).map_err(|why| format!("{field}: {why}"))?;
            let value = HeaderValue::try_from(value).map_err(|why| format!("{field}: {why}"))?;
            headers.insert(name, value);
        }
        let named = self.service_name.as_deref();
        let named = named.or_else(|| around.variable("OTEL_SERVICE_NAME"));
        Ok(Some(Collector {
            url,
            headers,
            service_name: named.unwrap_or("nuncio").to_owned(),
        }))
    }

    pub(super) fn check(&self, found: &mut Found) {
        let Some(endpoint) = &self.otlp_endpoint else {
            return;
        };
        let good = |url: Url| matches!(url.scheme(), "http" | "https");
        if !Url::parse(endpoint).is_ok_and(good) {
            found.add(
                "telemetry.otlp_endpoint",
                "not an http or https URL",
                "for example `otlp_endpoint = \"http://127.0.0.1:4318\"`; OTLP over gRPC is not spoken",
            );
        }
    }
}
