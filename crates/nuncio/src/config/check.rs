//! Checks of values that their types do not make.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use nuncio_protocol::v1::rest::RESERVED_TENANTS;
use nuncio_protocol::webhook::WebhookSecret;
use nuncio_runtime::Fault;
use url::Url;

use super::agents::BindingName;
use super::auth::{KeyConfig, OAuthFlowName, TokensConfig};
use super::server::network;
use super::{AgentConfig, Config, SkillConfig, check_members};

/// Everything wrong with a configuration, and what may not be meant so.
pub(crate) fn check(config: &Config, insecure: bool) -> (Vec<Fault>, Vec<String>) {
    let mut found = Found::default();
    found.server(config);
    found.store(config);
    found.engine(config);
    found.webhooks(config);
    config.telemetry.check(&mut found);
    found.outbound(config);
    found.retention(config);
    found.auth(config);
    found.log(config);
    found.models(config);
    found.mcp(config);
    found.openapi(config);
    found.layers(config);
    found.agents(config);
    found.exposure(config, insecure);
    (found.faults, found.warnings)
}

/// Says that a table of the configuration has no such entry, and which it has.
pub(super) fn unknown<T>(
    what: &str,
    table: &str,
    known: &BTreeMap<String, T>,
    name: &str,
) -> String {
    let known: Vec<_> = known.keys().map(String::as_str).collect();
    match known.is_empty() {
        true => format!("there is no {what} \"{name}\"; [{table}] is empty"),
        false => format!(
            "there is no {what} \"{name}\"; there are: {}",
            known.join(", ")
        ),
    }
}

/// Everything wrong with one agent; paths begin in the agent.
pub(crate) fn check_agent(agent: &AgentConfig) -> Vec<Fault> {
    let mut found = Found::default();
    found.agent_id(".id", &agent.id);
    found.agent("", agent);
    for fault in &mut found.faults {
        fault.path = fault.path.trim_start_matches('.').to_owned();
    }
    found.faults
}

/// What has been found wrong so far.
#[derive(Default)]
pub(super) struct Found {
    faults: Vec<Fault>,
    warnings: Vec<String>,
}

impl Found {
    pub(super) fn add(
        &mut self,
        path: impl Into<String>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.faults.push(Fault {
            path: path.into(),
            message: message.into(),
            hint: hint.into(),
        });
    }

    pub(super) fn range(&mut self, path: &str, value: u64, allowed: RangeInclusive<u64>) {
        if !allowed.contains(&value) {
            let hint = format!("{} to {}", allowed.start(), allowed.end());
            self.add(path, format!("{value} is out of range"), hint);
        }
    }

    fn server(&mut self, config: &Config) {
        let server = &config.server;
        if server.address().is_none() {
            self.add(
                "server.listen",
                format!("\"{}\" is not an address with a port", server.listen),
                "for example `listen = \"127.0.0.1:8080\"`",
            );
        }
        if let Some(url) = &server.public_url
            && !is_public_url(url)
        {
            self.add(
                "server.public_url",
                format!("\"{url}\" is not an http or https URL without query"),
                "for example `public_url = \"https://agents.example.com\"`",
            );
        }
        if server.data.as_os_str().is_empty() {
            self.add(
                "server.data",
                "the folder has no name",
                "for example `data = \"nuncio-data\"`",
            );
        }
        for (index, origin) in server.cors.iter().enumerate() {
            if !is_origin(origin) {
                self.add(
                    format!("server.cors[{index}]"),
                    format!("\"{origin}\" is not a web origin"),
                    "a scheme and a host, such as \"https://app.example.com\", or \"*\"",
                );
            }
        }
        self.networks("server.trusted_proxies", &server.trusted_proxies);
        self.range("server.workers", server.workers as u64, 0..=1_024);
        self.range("server.drain_seconds", server.drain_seconds, 0..=3_600);
        let delay = server.drain_delay_seconds.unwrap_or_default();
        self.range("server.drain_delay_seconds", delay, 0..=600);
        self.range(
            "server.max_body_bytes",
            server.max_body_bytes as u64,
            1_024..=1 << 30,
        );
        self.range(
            "server.max_connections",
            server.max_connections as u64,
            1..=1_000_000,
        );
        self.range(
            "server.heartbeat_seconds",
            server.heartbeat_seconds,
            1..=3_600,
        );
        self.range("server.head_seconds", server.head_seconds, 1..=600);
        self.range(
            "server.keep_alive_seconds",
            server.keep_alive_seconds,
            1..=3_600,
        );
        self.range(
            "server.card_max_age_seconds",
            server.card_max_age_seconds,
            0..=86_400,
        );
        let streams = server.max_streams_per_caller as u64;
        self.range("server.max_streams_per_caller", streams, 1..=1_000_000);
        let burst = u64::from(server.request_burst);
        self.range("server.request_burst", burst, 1..=1_000_000);
    }

    fn store(&mut self, config: &Config) {
        self.wake_ups(config);
        if let Some(place) = &config.store.parts
            && !["file:", "s3://"]
                .iter()
                .any(|scheme| place.starts_with(scheme))
        {
            self.add(
                "store.parts",
                format!("\"{place}\" is no place for parts"),
                "`file:PATH` or `s3://BUCKET/PREFIX`",
            );
        }
        let Some(url) = &config.store.url else { return };
        let known = url == "memory:"
            || url.strip_prefix("sqlite:").is_some_and(|p| !p.is_empty())
            || nuncio_store::is_shared(url);
        if !known {
            let shown = nuncio_store::shown_url(url);
            self.add(
                "store.url",
                format!("\"{shown}\" is no store that is known here"),
                "`sqlite:PATH`, `postgres://USER:PASSWORD@HOST/DATABASE` or `memory:`",
            );
        }
    }

    fn wake_ups(&mut self, config: &Config) {
        let Some(servers) = &config.store.wake_ups else {
            return;
        };
        let known = |server: &str| server.starts_with("nats://") || server.starts_with("tls://");
        if !servers.split(',').all(known) {
            self.add(
                "store.wake_ups",
                format!("\"{}\" is no URL of NATS", nuncio_store::shown_url(servers)),
                "for example `wake_ups = \"nats://nats.example:4222\"`",
            );
        } else if !nuncio_store::is_shared(&config.store_url()) {
            self.add(
                "store.wake_ups",
                "no other server can share this store".to_owned(),
                "`url = \"postgres://…\"`, or leave wake_ups out",
            );
        }
    }

    fn engine(&mut self, config: &Config) {
        let engine = &config.engine;
        self.range(
            "engine.blocking_ceiling_seconds",
            engine.blocking_ceiling_seconds,
            1..=86_400,
        );
        self.range(
            "engine.run_deadline_seconds",
            engine.run_deadline_seconds,
            1..=2_592_000,
        );
        self.range(
            "engine.cancel_grace_seconds",
            engine.cancel_grace_seconds,
            0..=600,
        );
        // Below two seconds a busy process would be taken for a dead one.
        self.range("engine.lease_seconds", engine.lease_seconds, 2..=300);
        self.range("engine.ring_events", engine.ring_events as u64, 1..=100_000);
        self.range(
            "engine.max_queued_messages",
            engine.max_queued_messages as u64,
            0..=100_000,
        );
        self.range(
            "engine.max_hand_offs",
            engine.max_hand_offs as u64,
            0..=1_000,
        );
    }

    fn webhooks(&mut self, config: &Config) {
        let webhooks = &config.webhooks;
        self.networks("webhooks.allow_networks", &webhooks.allow_networks);
        self.range(
            "webhooks.timeout_seconds",
            webhooks.timeout_seconds,
            1..=300,
        );
        self.range(
            "webhooks.max_attempt_hours",
            webhooks.max_attempt_hours,
            0..=8_760,
        );
        self.range(
            "webhooks.concurrency",
            webhooks.concurrency as u64,
            1..=10_000,
        );
        self.range(
            "webhooks.concurrency_per_host",
            webhooks.concurrency_per_host as u64,
            1..=10_000,
        );
        self.range(
            "webhooks.disable_after_hours",
            webhooks.disable_after_hours,
            1..=87_600,
        );
        self.range(
            "webhooks.max_per_task",
            webhooks.max_per_task as u64,
            0..=1_000,
        );
        self.range("webhooks.log_days", webhooks.log_days, 0..=3_650);
        self.range(
            "webhooks.log_calls",
            webhooks.log_calls as u64,
            0..=1_000_000,
        );
        if let Some(text) = &webhooks.signing_secret {
            let wrong = match WebhookSecret::parse_all(text.reveal()) {
                Ok(secrets) if !secrets.is_empty() => None,
                Ok(_) => Some("there is no secret in it".to_owned()),
                Err(wrong) => Some(wrong.to_string()),
            };
            if let Some(wrong) = wrong {
                let hint = "`nuncio keys create --webhook FILE` makes one";
                self.add("webhooks.signing_secret", wrong, hint);
            }
        }
        if webhooks.jwt && webhooks.signing_keys.is_empty() {
            self.add(
                "webhooks.jwt",
                "there is no key that could sign tokens",
                "set webhooks.signing_keys; `nuncio keys create --card FILE --algorithm EdDSA` makes one",
            );
        }
    }

    fn outbound(&mut self, config: &Config) {
        let outbound = &config.outbound;
        self.networks("outbound.allow_networks", &outbound.allow_networks);
        let seconds = outbound.connect_seconds;
        self.range("outbound.connect_seconds", seconds, 1..=300);
    }

    fn retention(&mut self, config: &Config) {
        let seconds = config.retention.sweep_seconds;
        self.range("retention.sweep_seconds", seconds, 1..=86_400);
    }

    fn networks(&mut self, path: &str, networks: &[String]) {
        for (index, net) in networks.iter().enumerate() {
            if network(net).is_none() {
                self.add(
                    format!("{path}[{index}]"),
                    format!("\"{net}\" is not a network"),
                    "for example \"10.0.0.0/8\" or \"127.0.0.1\"",
                );
            }
        }
    }

    fn auth(&mut self, config: &Config) {
        self.keys("keys", &config.auth.keys);
        self.keys("certificates", &config.auth.certificates);
        let tls = config.server.tls.as_ref();
        let asks = tls.is_some_and(|tls| tls.client_authorities.is_some());
        if !config.auth.certificates.is_empty() && !asks {
            self.add(
                "auth.certificates",
                "no client is ever asked for a certificate",
                "set server.tls with client_authorities",
            );
        }
        for (index, place) in config.auth.api_key.iter().flatten().enumerate() {
            if http::HeaderName::from_bytes(place.name.as_bytes()).is_err() {
                let message = format!("\"{}\" cannot be a name there", place.name);
                let hint = "for example \"X-API-Key\"";
                self.add(format!("auth.api_key[{index}].name"), message, hint);
            }
        }
        if let Some(tokens) = &config.auth.tokens {
            self.tokens(tokens);
        }
    }

    fn tokens(&mut self, tokens: &TokensConfig) {
        let oauth2 = tokens.oauth2.as_ref();
        let links = [
            ("open_id_connect_url", tokens.open_id_connect_url.as_ref()),
            ("oauth2.token_url", oauth2.map(|o| &o.token_url)),
            (
                "oauth2.authorization_url",
                oauth2.and_then(|o| o.authorization_url.as_ref()),
            ),
            (
                "oauth2.device_authorization_url",
                oauth2.and_then(|o| o.device_authorization_url.as_ref()),
            ),
            (
                "oauth2.refresh_url",
                oauth2.and_then(|o| o.refresh_url.as_ref()),
            ),
            (
                "oauth2.metadata_url",
                oauth2.and_then(|o| o.metadata_url.as_ref()),
            ),
        ];
        for (field, link) in links {
            if link.is_some_and(|link| !is_link(link)) {
                self.add(
                    format!("auth.tokens.{field}"),
                    "not an http or https URL",
                    "for example \"https://login.example.com/token\"",
                );
            }
        }
        let missing = oauth2.and_then(|o| match o.flow {
            OAuthFlowName::AuthorizationCode if o.authorization_url.is_none() => {
                Some("authorization_url")
            }
            OAuthFlowName::DeviceCode if o.device_authorization_url.is_none() => {
                Some("device_authorization_url")
            }
            _ => None,
        });
        if let Some(field) = missing {
            self.add(
                format!("auth.tokens.oauth2.{field}"),
                "the flow needs it",
                "see the documentation of your OAuth 2 server",
            );
        }
    }

    fn keys(&mut self, kind: &str, keys: &[KeyConfig]) {
        let mut seen = BTreeSet::new();
        for (index, key) in keys.iter().enumerate() {
            let path = |field: &str| format!("auth.{kind}[{index}].{field}");
            match key.hash() {
                None => self.add(
                    path("sha256"),
                    "not a SHA-256 in hexadecimal",
                    "64 hexadecimal digits; `nuncio keys create` prints a key and its hash",
                ),
                Some(hash) if !seen.insert(hash) => self.add(
                    path("sha256"),
                    "the same key twice",
                    "one key stands for one caller; make another with `nuncio keys create`",
                ),
                Some(_) => {}
            }
            for (field, value) in [("caller", &key.caller), ("workspace", &key.workspace)] {
                if !is_name(value) {
                    self.add(path(field), format!("\"{value}\" is not a name"), NAME_HINT);
                }
            }
        }
    }

    fn log(&mut self, config: &Config) {
        let level = &config.log.level;
        // A bare word that is no level would name a module, and silence all others.
        if !level.split(',').all(is_level) {
            self.add(
                "log.level",
                format!("\"{level}\" is not a level"),
                "off, error, warn, info, debug, trace, or per module: \"info,nuncio_engine=debug\"",
            );
        }
    }

    fn agents(&mut self, config: &Config) {
        let mut seen = BTreeSet::new();
        for (index, agent) in config.agents.iter().enumerate() {
            let path = format!("agents[{index}]");
            self.agent_id(&format!("{path}.id"), &agent.id);
            if !seen.insert(agent.id.as_str()) {
                let message = format!("there are two agents \"{}\"", agent.id);
                self.add(
                    format!("{path}.id"),
                    message,
                    "every agent needs an id of its own",
                );
            }
            self.agent(&path, agent);
            let find = |id: &str| config.agents.iter().find(|agent| agent.id == id);
            for fault in check_members(agent, find) {
                self.add(format!("{path}.{}", fault.path), fault.message, fault.hint);
            }
        }
        if let Some(default) = &config.server.default_agent {
            let ids: Vec<String> = config.agents().into_iter().map(|agent| agent.id).collect();
            if !ids.contains(default) {
                let hint = format!("one of: {}", ids.join(", "));
                self.add(
                    "server.default_agent",
                    format!("there is no agent \"{default}\""),
                    hint,
                );
            }
        }
    }

    /// Names stand in addresses, and some words there are taken (TEN-03).
    fn agent_id(&mut self, path: &str, id: &str) {
        if !is_name(id) {
            self.add(path, format!("\"{id}\" is not a name"), NAME_HINT);
        } else if RESERVED_TENANTS.contains(&id) {
            let message = format!("\"{id}\" has another meaning in addresses");
            self.add(path, message, "take another name");
        }
    }

    fn agent(&mut self, path: &str, agent: &AgentConfig) {
        for (field, text) in [("name", &agent.name), ("description", &agent.description)] {
            if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
                let hint = "clients show it to people; leave it out to get a default";
                self.add(format!("{path}.{field}"), "empty", hint);
            }
        }
        let modes = [
            ("input_modes", &agent.input_modes),
            ("output_modes", &agent.output_modes),
        ];
        for (field, modes) in modes {
            let Some(modes) = modes else { continue };
            self.modes(&format!("{path}.{field}"), modes);
            if modes.is_empty() {
                let hint = "for example [\"text/plain\"]";
                self.add(
                    format!("{path}.{field}"),
                    "at least one media type is needed",
                    hint,
                );
            }
        }
        for (index, skill) in agent.skills.iter().enumerate() {
            self.skill(&format!("{path}.skills[{index}]"), skill);
        }
        self.presence(path, agent);
        agent.check_kind(path, self);
    }

    fn bindings(&mut self, path: &str, agent: &AgentConfig) {
        let bindings = &agent.bindings;
        let hint = "for example [\"JSONRPC\", \"HTTP+JSON\"]; leave it out for all";
        if bindings.is_empty() {
            self.add(path, "nobody could talk to it: no binding", hint);
        }
        if (1..bindings.len()).any(|at| bindings[..at].contains(&bindings[at])) {
            self.add(path, "a binding is there twice", hint);
        }
        if agent.legacy_routes && !bindings.contains(&BindingName::HttpJson) {
            let hint = "add \"HTTP+JSON\", or remove `legacy_routes`";
            self.add(path, "the legacy routes are HTTP with JSON", hint);
        }
    }

    /// Where an agent is found, in which versions, and what its card says besides skills.
    fn presence(&mut self, path: &str, agent: &AgentConfig) {
        for (index, workspace) in agent.workspaces.iter().enumerate() {
            if !is_name(workspace) {
                let message = format!("\"{workspace}\" is not a name");
                self.add(format!("{path}.workspaces[{index}]"), message, NAME_HINT);
            }
        }
        if agent.dialects.is_empty() {
            self.add(
                format!("{path}.dialects"),
                "nobody could talk to it: no protocol version",
                "for example [\"0.3\", \"1.0\"]; leave it out for both",
            );
        }
        self.bindings(&format!("{path}.bindings"), agent);
        let provider = agent.provider.as_ref().map(|provider| &provider.url);
        let links = [
            ("provider.url", provider),
            ("documentation_url", agent.documentation_url.as_ref()),
            ("icon_url", agent.icon_url.as_ref()),
        ];
        for (field, link) in links {
            if link.is_some_and(|link| !is_link(link)) {
                self.add(
                    format!("{path}.{field}"),
                    "not an http or https URL",
                    "for example \"https://agents.example.com/docs\"",
                );
            }
        }
        for (index, extension) in agent.extensions.iter().enumerate() {
            if Url::parse(&extension.uri).is_err() {
                self.add(
                    format!("{path}.extensions[{index}].uri"),
                    format!("\"{}\" is not a URI", extension.uri),
                    "for example \"https://example.com/extensions/timing/v1\"",
                );
            }
        }
        let extended = agent.extended.iter().flat_map(|extended| &extended.skills);
        for (index, skill) in extended.enumerate() {
            self.skill(&format!("{path}.extended.skills[{index}]"), skill);
        }
    }

    fn skill(&mut self, path: &str, skill: &SkillConfig) {
        let texts = [
            ("id", &skill.id),
            ("name", &skill.name),
            ("description", &skill.description),
        ];
        for (field, text) in texts {
            if text.trim().is_empty() {
                let message = format!("the skill's {field} is empty");
                self.add(
                    format!("{path}.{field}"),
                    message,
                    "strict clients refuse such a card",
                );
            }
        }
        if skill.tags.is_empty() {
            let message = format!("the skill \"{}\" has no tags", skill.id);
            self.add(
                format!("{path}.tags"),
                message,
                "add at least one word to find it by",
            );
        }
        self.modes(&format!("{path}.input_modes"), &skill.input_modes);
        self.modes(&format!("{path}.output_modes"), &skill.output_modes);
    }

    fn modes(&mut self, path: &str, modes: &[String]) {
        for (index, mode) in modes.iter().enumerate() {
            let halves = mode.split_once('/');
            if !halves.is_some_and(|(a, b)| !a.is_empty() && !b.is_empty() && !b.contains('/')) {
                let message = format!("\"{mode}\" is not a media type");
                self.add(
                    format!("{path}[{index}]"),
                    message,
                    "for example \"text/plain\" or \"*/*\"",
                );
            }
        }
    }

    /// Nobody is served to the network without authentication by accident (BR-146).
    fn exposure(&mut self, config: &Config, insecure: bool) {
        let Some(address) = config.server.address() else {
            return;
        };
        if config.auth.anonymous == Some(false) && !config.auth.knows_anybody() {
            let hint = "add a key under [[auth.keys]]; `nuncio keys create` makes one";
            self.add(
                "auth.anonymous",
                "nobody could call: no anonymous callers and no keys",
                hint,
            );
        }
        if !address.ip().is_loopback() && config.auth.takes_anonymous() {
            if insecure {
                let warning = format!("{address} takes calls from anybody, as --insecure asks");
                self.warnings.push(warning);
            } else {
                self.open_to_all(config, address);
            }
        }
        if config.server.public_url.is_none() && needs_public_url(address.ip()) {
            let hint = "cards will name whatever host the request names; set server.public_url";
            self.warnings.push(format!(
                "{address} is no address that callers can use: {hint}"
            ));
        }
    }

    fn open_to_all(&mut self, config: &Config, address: SocketAddr) {
        let (path, message) = if !config.auth.knows_anybody() {
            (
                "server.listen",
                format!("{address} is open to the network, and no key is needed"),
            )
        } else {
            (
                "auth.anonymous",
                format!("{address} is open to the network, and anonymous calls are taken"),
            )
        };
        let hint =
            "add [[auth.keys]] (see `nuncio keys create`), listen on 127.0.0.1, or say --insecure";
        self.add(path, message, hint);
    }
}

/// A level, or a module with one.
fn is_level(text: &str) -> bool {
    let level = text.split_once('=').map_or(text, |(_, level)| level).trim();
    ["off", "error", "warn", "info", "debug", "trace"].contains(&level)
}

pub(crate) const NAME_HINT: &str =
    "letters, digits, `-`, `_` and `.`, beginning with a letter or digit, 128 at most";

/// Whether something may be the id of an agent, caller or workspace.
pub(crate) fn is_name(name: &str) -> bool {
    let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    let first = name.as_bytes().first();
    name.len() <= 128 && name.bytes().all(fits) && first.is_some_and(u8::is_ascii_alphanumeric)
}

fn is_public_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
    })
}

fn is_link(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

fn is_origin(text: &str) -> bool {
    text == "*"
        || Url::parse(text).is_ok_and(|url| {
            let bare = text.trim_end_matches('/') == url.origin().ascii_serialization();
            bare && matches!(url.scheme(), "http" | "https") && !text.ends_with('/')
        })
}

fn needs_public_url(ip: IpAddr) -> bool {
    ip.is_unspecified()
}
