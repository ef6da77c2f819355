//! `[mcp]`: MCP servers whose tools models may call, by name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use nuncio_egress::Egress;
use nuncio_runtime::header_name;
use nuncio_runtime::mcp::{McpServer, McpSettings, McpTransport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

use super::Config;
use super::agents::{Given, INHERITED, secret_headers};
use super::check::{Found, unknown};

/// One MCP server: a program (`command`) or a service (`url`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpConfig {
    /// The program and its arguments. Each agent has one of its own, started when it is needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
    /// Variables that the program gets beside PATH, HOME and LANG.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) env: BTreeMap<String, Given>,
    /// The program's working directory; that of the server if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) folder: Option<PathBuf>,
    /// Where the service is, which speaks streamable HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// Headers that go with every request to it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) headers: BTreeMap<String, Given>,
    /// The token with which the service knows us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bearer: Option<Given>,
    /// The only tools that are used; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) allow: Option<Vec<String>>,
    /// Stands before the names of its tools; nothing if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) prefix: Option<String>,
    /// The tools each call of which somebody must approve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) approve: Vec<String>,
    /// Whether its word is taken for tools that change nothing; yes if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trust_hints: Option<bool>,
    /// Seconds that a call may take; 60 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_seconds: Option<u64>,
    /// Seconds that starting and listing tools may take, each; 30 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) connect_seconds: Option<u64>,
}

/// The MCP servers of a configuration.
pub(crate) type McpServers = BTreeMap<String, McpConfig>;

/// The server of this name, for one agent.
///
/// # Errors
/// If there is none, or something is missing in the surroundings.
pub(crate) fn server(
    servers: &McpServers,
    name: &str,
    environment: &BTreeMap<String, String>,
    egress: &Egress,
) -> Result<McpServer, String> {
    let found = servers
        .get(name)
        .ok_or_else(|| unknown("MCP server", "mcp", servers, name))?;
    let settings = found.settings(name, environment, egress);
    let settings = settings.map_err(|why| format!("mcp.{name}: {why}"))?;
    Ok(McpServer::new(settings))
}

impl McpConfig {
    fn settings(
        &self,
        name: &str,
        environment: &BTreeMap<String, String>,
        egress: &Egress,
    ) -> Result<McpSettings, String> {
        let transport = match &self.url {
            Some(url) => {
                let url = egress.check_url(url).map_err(|refusal| {
                    format!("url: {refusal}; outbound.allow_networks says what may be reached")
                })?;
                let headers = secret_headers(&self.headers, self.bearer.as_ref(), environment)?;
                McpTransport::http(url, headers, egress.clone())
            }
            None => self.program(environment)?,
        };
        let mut settings = McpSettings::new(name, transport);
        settings.allow.clone_from(&self.allow);
        settings.prefix.clone_from(&self.prefix);
        settings.approve.clone_from(&self.approve);
        settings.trust_hints = self.trust_hints.unwrap_or(true);
        if let Some(seconds) = self.timeout_seconds {
            settings.call_timeout = Duration::from_secs(seconds);
        }
        if let Some(seconds) = self.connect_seconds {
            settings.connect_timeout = Duration::from_secs(seconds);
        }
        Ok(settings)
    }

    fn program(&self, environment: &BTreeMap<String, String>) -> Result<McpTransport, String> {
        let inherited = INHERITED
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), environment.get(*name)?.clone())));
        let mut env: BTreeMap<_, _> = inherited.collect();
        for (name, given) in &self.env {
            let value = given.reveal(environment);
            env.insert(
                name.clone(),
                value.map_err(|why| format!("env.{name}: {why}"))?,
            );
        }
        Ok(McpTransport::stdio(self.command.clone(), env).in_folder(self.folder.clone()))
    }
}

impl Found {
    /// Finds what is wrong with MCP servers, and agents that name others.
    pub(super) fn mcp(&mut self, config: &Config) {
        for (name, server) in &config.mcp {
            self.mcp_server(&format!("mcp.{name}"), server);
        }
        for (index, agent) in config.agents.iter().enumerate() {
            for (at, name) in agent.mcp.iter().enumerate() {
                if !config.mcp.contains_key(name) {
                    let hint = "a name of a table in [mcp]";
                    let path = format!("agents[{index}].mcp[{at}]");
                    self.add(path, unknown("MCP server", "mcp", &config.mcp, name), hint);
                }
            }
        }
    }

    fn mcp_server(&mut self, path: &str, server: &McpConfig) {
        let is_program = !server.command.is_empty();
        let hint = "`command = [\"mcp-server-time\"]` for a program, `url` for a service";
        match (is_program, &server.url) {
            (false, None) => self.add(path, "neither a program nor a service", hint),
            (true, Some(_)) => self.add(path, "both a program and a service", hint),
            (true, None) => self.mcp_program(path, server),
            (false, Some(url)) => self.mcp_service(path, server, url),
        }
        for (key, value) in [
            ("timeout_seconds", server.timeout_seconds),
            ("connect_seconds", server.connect_seconds),
        ] {
            if let Some(value) = value {
                self.range(&format!("{path}.{key}"), value, 1..=86_400);
            }
        }
    }

    fn mcp_program(&mut self, path: &str, server: &McpConfig) {
        if server.command.first().is_some_and(String::is_empty) {
            let hint = "for example `command = [\"mcp-server-time\"]`";
            self.add(
                format!("{path}.command"),
                "there is no program to start",
                hint,
            );
        }
        for (key, said) in [
            ("headers", !server.headers.is_empty()),
            ("bearer", server.bearer.is_some()),
        ] {
            if said {
                let message = format!("a program has no {key}");
                self.add(
                    format!("{path}.{key}"),
                    message,
                    "give it variables with `env`",
                );
            }
        }
    }

    fn mcp_service(&mut self, path: &str, server: &McpConfig, url: &str) {
        let good = Url::parse(url).is_ok_and(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
        });
        if !good {
            let message = "not an http or https URL without user and password";
            let hint = "for example `url = \"https://tools.example/mcp\"`";
            self.add(format!("{path}.url"), message, hint);
        }
        for (key, said) in [
            ("env", !server.env.is_empty()),
            ("folder", server.folder.is_some()),
        ] {
            if said {
                let message = format!("a service has no {key}");
                self.add(format!("{path}.{key}"), message, "remove it");
            }
        }
        for name in server.headers.keys() {
            if let Err(fault) = header_name(name) {
                let hint = "for example X-Request-Source";
                self.add(format!("{path}.headers"), fault.to_string(), hint);
            }
        }
    }
}
