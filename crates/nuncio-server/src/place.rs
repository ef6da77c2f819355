//! What a path means: which agent, and which face of it.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::card::{CARD_PATH, LEGACY_CARD_PATH};

/// Where the public keys are (PUSH-14).
const KEYS_PATH: &str = "/.well-known/jwks.json";

/// What stands as it is in a segment of a path.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Where workspaces begin; the second is MemoryLake's address.
const WORKSPACES: [(&str, Style); 2] = [
    ("/workspaces/", Style::Plain),
    ("/openapi/memorylake/api/v3/workspaces/", Style::MemoryLake),
];

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// Is the process alive?
    Live,
    /// Can it take requests?
    Ready,
    /// A method of a gRPC service.
    Grpc(&'a str),
    /// The list of agents.
    Agents,
    /// The public keys that sign calls of webhooks.
    Keys,
    /// Administration, at a path below `/admin/v1`.
    Admin(&'a str),
    /// Something of one agent.
    Agent(Who<'a>, Face<'a>),
}

/// Which agent an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Who<'a> {
    /// The one at the root, or the one that the tenant names.
    Default,
    /// The one of that name, in the caller's workspace.
    Named(Cow<'a, str>),
    /// The one of that name in that workspace.
    InWorkspace {
        /// The workspace.
        workspace: Cow<'a, str>,
        /// The agent.
        agent: Cow<'a, str>,
        /// Which of the two addresses it is.
        style: Style,
    },
}

/// The addresses of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Our own.
    Plain,
    /// MemoryLake's, whose callers leave out message ids.
    MemoryLake,
}

/// What of an agent is addressed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Face<'a> {
    /// Its card, perhaps under the older name.
    Card {
        /// Whether it is the older name.
        legacy: bool,
    },
    /// Its JSON-RPC binding.
    JsonRpc {
        /// Whether every send is a streaming one, as at ADK's `/a2a/stream`.
        streaming: bool,
    },
    /// Its HTTP+JSON binding, at a path below its address.
    Rest(&'a str),
}

impl<'a> Place<'a> {
    /// Reads a path, still percent-encoded.
    pub(crate) fn of(path: &'a str) -> Self {
        match path {
            "/livez" => return Self::Live,
            "/readyz" => return Self::Ready,
            "/agents" | "/agents/" => return Self::Agents,
            KEYS_PATH => return Self::Keys,
            _ => {}
        }
        if let Some(below) = path.strip_prefix("/admin/v1")
            && (below.is_empty() || below.starts_with('/'))
        {
            return Self::Admin(below);
        }
        if let Some(rest) = path.strip_prefix("/agents/") {
            let (name, below) = first_segment(rest);
            return Self::Agent(Who::Named(name), Face::of(below));
        }
        let found = WORKSPACES
            .into_iter()
            .find_map(|(prefix, style)| in_workspace(path.strip_prefix(prefix)?, style));
        found.unwrap_or_else(|| Self::Agent(Who::Default, Face::of(path)))
    }

    /// Whether every web page may read what is here: cards and public keys are for everybody
    /// (CARD-12).
    pub(crate) fn is_card(&self) -> bool {
        matches!(self, Self::Keys | Self::Agent(_, Face::Card { .. }))
    }
}

impl Who<'_> {
    /// The path of an agent that is addressed so.
    pub(crate) fn path(&self, agent: &str) -> String {
        match self {
            Self::Default | Self::Named(_) => format!("/agents/{agent}"),
            Self::InWorkspace {
                workspace, style, ..
            } => {
                let prefix = WORKSPACES.iter().find(|(_, other)| other == style);
                let prefix = prefix.map_or("", |(prefix, _)| prefix);
                let workspace = utf8_percent_encode(workspace, SEGMENT);
                format!("{prefix}{workspace}/agents/{agent}/a2a")
            }
        }
    }

    /// Whether messages get an id here if they have none.
    pub(crate) fn completes_messages(&self) -> bool {
        let style = match self {
            Self::InWorkspace { style, .. } => *style,
            Self::Default | Self::Named(_) => Style::Plain,
        };
        style == Style::MemoryLake
    }
}

/// Reads `{workspace}/agents/{agent}`, which has a card, and what is below its `/a2a`.
fn in_workspace(rest: &str, style: Style) -> Option<Place<'_>> {
    let (workspace, below) = first_segment(rest);
    let (agent, below) = first_segment(below.strip_prefix("/agents/")?);
    let face = match below {
        CARD_PATH => Face::Card { legacy: false },
        LEGACY_CARD_PATH => Face::Card { legacy: true },
        _ => {
            let below = below.strip_prefix("/a2a")?;
            if !(below.is_empty() || below.starts_with('/')) {
                return None;
            }
            Face::of(below)
        }
    };
    let who = Who::InWorkspace {
        workspace,
        agent,
        style,
    };
    Some(Place::Agent(who, face))
}

/// What is not text names nothing; the empty name does not either.
fn first_segment(rest: &str) -> (Cow<'_, str>, &str) {
    let (name, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let name = percent_decode_str(name).decode_utf8().unwrap_or_default();
    (name, below)
}

impl<'a> Face<'a> {
    fn of(below: &'a str) -> Self {
        match below {
            "" | "/" | "/a2a" | "/a2a/" => Self::JsonRpc { streaming: false },
            "/a2a/stream" => Self::JsonRpc { streaming: true },
            CARD_PATH | "/a2a/.well-known/agent-card.json" => Self::Card { legacy: false },
            LEGACY_CARD_PATH | "/a2a/.well-known/agent.json" => Self::Card { legacy: true },
            path => Self::Rest(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Face, Place, Style, Who};

    #[test]
    fn addresses_are_written_as_they_are_read() {
        for path in [
            "/workspaces/a%20b%2Fc/agents/echo/a2a",
            "/openapi/memorylake/api/v3/workspaces/w/agents/echo/a2a",
            "/agents/echo",
        ] {
            let Place::Agent(who, _) = Place::of(path) else {
                panic!("{path}");
            };
            assert_eq!(who.path("echo"), path);
        }
    }

    #[test]
    fn paths_are_read() {
        let rpc = Face::JsonRpc { streaming: false };
        let named = |name: &'static str, face| Place::Agent(Who::Named(name.into()), face);
        let inside = |style, face| {
            let who = Who::InWorkspace {
                workspace: "w".into(),
                agent: "a b".into(),
                style,
            };
            Place::Agent(who, face)
        };
        let card = |legacy| Face::Card { legacy };
        for (path, place) in [
            (
                "/",
                Place::Agent(Who::Default, Face::JsonRpc { streaming: false }),
            ),
            ("/livez", Place::Live),
            ("/agents", Place::Agents),
            ("/.well-known/jwks.json", Place::Keys),
            ("/agents/echo", named("echo", rpc)),
            (
                "/agents/echo/",
                named("echo", Face::JsonRpc { streaming: false }),
            ),
            (
                "/agents/%65cho/a2a",
                named("echo", Face::JsonRpc { streaming: false }),
            ),
            (
                "/a2a/stream",
                Place::Agent(Who::Default, Face::JsonRpc { streaming: true }),
            ),
            (
                "/agents/echo/tasks/a%2Fb",
                named("echo", Face::Rest("/tasks/a%2Fb")),
            ),
            (
                "/agents/echo/.well-known/agent.json",
                named("echo", card(true)),
            ),
            (
                "/message:send",
                Place::Agent(Who::Default, Face::Rest("/message:send")),
            ),
            (
                "/agentsx",
                Place::Agent(Who::Default, Face::Rest("/agentsx")),
            ),
            (
                "/workspaces/w/agents/a%20b/a2a",
                inside(Style::Plain, Face::JsonRpc { streaming: false }),
            ),
            (
                "/workspaces/w/agents/a%20b/a2a/v1/tasks",
                inside(Style::Plain, Face::Rest("/v1/tasks")),
            ),
            (
                "/workspaces/w/agents/a%20b/.well-known/agent-card.json",
                inside(Style::Plain, card(false)),
            ),
            (
                "/openapi/memorylake/api/v3/workspaces/w/agents/a%20b/a2a/message:send",
                inside(Style::MemoryLake, Face::Rest("/message:send")),
            ),
            (
                "/workspaces/w",
                Place::Agent(Who::Default, Face::Rest("/workspaces/w")),
            ),
        ] {
            assert_eq!(Place::of(path), place, "{path}");
        }
    }
}
