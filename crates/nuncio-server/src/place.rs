//! What a path means: which agent, and which face of it.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::card::{CARD_PATH, LEGACY_CARD_PATH};

/// Where a request goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// Is the process alive?
    Live,
    /// Can it take requests?
    Ready,
    /// The list of agents.
    Agents,
    /// Something of one agent.
    Agent(Who<'a>, Face<'a>),
}

/// Which agent an address names. Workspaces will add theirs here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Who<'a> {
    /// The one at the root.
    Default,
    /// The one of that name.
    Named(Cow<'a, str>),
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
    JsonRpc,
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
            _ => {}
        }
        let Some(rest) = path.strip_prefix("/agents/") else {
            return Self::Agent(Who::Default, Face::of(path));
        };
        let (name, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        // What is not text names no agent; the empty name does not either.
        let name = percent_decode_str(name).decode_utf8().unwrap_or_default();
        Self::Agent(Who::Named(name), Face::of(below))
    }

    /// Whether every web page may read what is here: cards are for everybody (CARD-12).
    pub(crate) fn is_card(&self) -> bool {
        matches!(self, Self::Agent(_, Face::Card { .. }))
    }
}

impl<'a> Face<'a> {
    fn of(below: &'a str) -> Self {
        match below {
            "" | "/" => Self::JsonRpc,
            CARD_PATH => Self::Card { legacy: false },
            LEGACY_CARD_PATH => Self::Card { legacy: true },
            path => Self::Rest(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Face, Place, Who};

    #[test]
    fn paths_are_read() {
        let named = |name: &'static str, face| Place::Agent(Who::Named(name.into()), face);
        for (path, place) in [
            ("/", Place::Agent(Who::Default, Face::JsonRpc)),
            ("/livez", Place::Live),
            ("/agents", Place::Agents),
            ("/agents/echo", named("echo", Face::JsonRpc)),
            ("/agents/echo/", named("echo", Face::JsonRpc)),
            ("/agents/%65cho", named("echo", Face::JsonRpc)),
            (
                "/agents/echo/tasks/a%2Fb",
                named("echo", Face::Rest("/tasks/a%2Fb")),
            ),
            (
                "/agents/echo/.well-known/agent.json",
                named("echo", Face::Card { legacy: true }),
            ),
            (
                "/message:send",
                Place::Agent(Who::Default, Face::Rest("/message:send")),
            ),
            (
                "/agentsx",
                Place::Agent(Who::Default, Face::Rest("/agentsx")),
            ),
        ] {
            assert_eq!(Place::of(path), place, "{path}");
        }
    }
}
