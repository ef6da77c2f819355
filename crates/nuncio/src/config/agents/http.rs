//! Agents of kind `http`.

use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use nuncio_engine::Agent;
use nuncio_runtime::{HttpAgent, HttpSettings, header_name};
use url::Url;

use super::{AgentConfig, Workshop, secret_headers};
use crate::config::check::Found;

impl AgentConfig {
    pub(super) fn build_http(&self, workshop: &Workshop) -> Result<Arc<dyn Agent>, String> {
        let plain = self.plain_info("An agent that a service is.");
        let mut settings = HttpSettings::new(self.address(workshop)?);
        settings.headers = self.secret_headers(workshop)?;
        settings.forward = self.forwarded();
        if let Some(seconds) = self.timeout_seconds {
            settings.first_byte = Duration::from_secs(seconds);
        }
        if let Some(seconds) = self.idle_seconds {
            settings.idle = Duration::from_secs(seconds);
        }
        if let Some(retries) = self.retries {
            settings.retries = retries;
        }
        let agent = HttpAgent::new(self.info(plain), workshop.egress.clone(), settings);
        Ok(Arc::new(agent))
    }

    pub(super) fn check_http(&self, path: &str, found: &mut Found) {
        self.check_address(path, "http://127.0.0.1:9000/ask", found);
        self.check_headers(path, found);
        self.check_times(path, found);
    }

    pub(super) fn check_times(&self, path: &str, found: &mut Found) {
        let ranges = [
            ("timeout_seconds", self.timeout_seconds, 1..=86_400),
            ("idle_seconds", self.idle_seconds, 1..=86_400),
            ("retries", self.retries.map(u64::from), 0..=100),
        ];
        for (key, value, allowed) in ranges {
            if let Some(value) = value {
                found.range(&format!("{path}.{key}"), value, allowed);
            }
        }
    }

    /// Where the service is, if it may be reached there.
    pub(super) fn address(&self, workshop: &Workshop) -> Result<Url, String> {
        let url = self.url.as_deref().unwrap_or_default();
        workshop.egress.check_url(url).map_err(|refusal| {
            format!("url: {refusal}; outbound.allow_networks says what may be reached")
        })
    }

    pub(super) fn check_address(&self, path: &str, example: &str, found: &mut Found) {
        let url = self.url.as_deref().unwrap_or_default();
        let good = Url::parse(url).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
        });
        if !good {
            let message = match &self.url {
                None => "the address of the service is missing",
                Some(_) => "not an http or https URL without user and password",
            };
            found.add(
                format!("{path}.url"),
                message,
                format!("for example `url = \"{example}\"`"),
            );
        }
    }

    /// What goes with every request.
    pub(super) fn secret_headers(&self, workshop: &Workshop) -> Result<HeaderMap, String> {
        secret_headers(&self.headers, self.bearer.as_ref(), &workshop.environment)
    }

    /// The headers of callers that reach the agent.
    pub(crate) fn forwarded(&self) -> Vec<HeaderName> {
        let names = self.forward_headers.iter();
        names.filter_map(|name| header_name(name).ok()).collect()
    }

    pub(super) fn check_headers(&self, path: &str, found: &mut Found) {
        let set = self.headers.keys().map(|name| ("headers", name));
        let passed = self
            .forward_headers
            .iter()
            .map(|name| ("forward_headers", name));
        for (key, name) in set.chain(passed) {
            if let Err(fault) = header_name(name) {
                let hint = "for example X-Request-Source";
                found.add(format!("{path}.{key}"), fault.to_string(), hint);
            }
        }
        let is_authorization = |name: &String| name.eq_ignore_ascii_case(AUTHORIZATION.as_str());
        let said = [
            self.bearer.is_some(),
            self.headers.keys().any(is_authorization),
            self.forward_headers.iter().any(is_authorization),
        ];
        if said.into_iter().filter(|said| *said).count() > 1 {
            found.add(
                format!("{path}.bearer"),
                "a request has one Authorization, and here are several",
                "keep one of bearer, headers.Authorization and forward_headers",
            );
        }
    }
}
