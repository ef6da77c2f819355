//! How an MCP server is reached, and what of it is used.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderMap;
use nuncio_egress::Egress;
use url::Url;

/// How an MCP server is reached.
#[derive(Clone)]
#[non_exhaustive]
pub enum McpTransport {
    /// A program that speaks on its input and output. It is started when it is first needed.
    Stdio {
        /// The program and its arguments.
        command: Vec<String>,
        /// All of its environment.
        env: BTreeMap<String, String>,
        /// Its working directory; ours if absent.
        folder: Option<PathBuf>,
    },
    /// A service that speaks streamable HTTP.
    Http {
        /// Where it is.
        url: Url,
        /// What goes with every request.
        headers: HeaderMap,
        /// The way to it.
        egress: Box<Egress>,
    },
}

/// An MCP server and what of it is used.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpSettings {
    /// Its name, for logs and errors.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// The only tools that are used; all if absent.
    pub allow: Option<Vec<String>>,
    /// Stands before the names of its tools; nothing if absent.
    pub prefix: Option<String>,
    /// The tools each call of which somebody must approve.
    pub approve: Vec<String>,
    /// Whether the server's word is taken for tools that change nothing: they run beside others, and
    /// again after the server has gone. Yes; it is only a hint of the server.
    pub trust_hints: bool,
    /// How long connecting and listing may take, each; 30 s.
    pub connect_timeout: Duration,
    /// How long a call may take; 60 s.
    pub call_timeout: Duration,
}

impl McpSettings {
    /// All tools of a server.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            allow: None,
            prefix: None,
            approve: Vec::new(),
            trust_hints: true,
            connect_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(60),
        }
    }

    /// Whether a tool of the server is used.
    pub(super) fn allows(&self, tool: &str) -> bool {
        let allow = self.allow.as_ref();
        allow.is_none_or(|allow| allow.iter().any(|name| name == tool))
    }
}

impl McpTransport {
    /// A program with these arguments and this environment.
    pub fn stdio(command: Vec<String>, env: BTreeMap<String, String>) -> Self {
        Self::Stdio {
            command,
            env,
            folder: None,
        }
    }

    /// The same program, in this working directory.
    #[must_use]
    pub fn in_folder(mut self, place: Option<PathBuf>) -> Self {
        if let Self::Stdio { folder, .. } = &mut self {
            *folder = place;
        }
        self
    }

    /// A service at this place.
    pub fn http(url: Url, headers: HeaderMap, egress: Egress) -> Self {
        Self::Http {
            url,
            headers,
            egress: Box::new(egress),
        }
    }
}

/// Values of headers and variables may be secret.
impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, .. } => {
                let program = command.first().map(String::as_str).unwrap_or_default();
                f.debug_tuple("Stdio").field(&program).finish()
            }
            Self::Http { url, .. } => {
                let origin = url.origin().ascii_serialization();
                f.debug_tuple("Http").field(&origin).finish()
            }
        }
    }
}
