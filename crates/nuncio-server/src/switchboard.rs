//! Which agents this server has, changeable while it runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use nuncio_protocol::AgentId;
use nuncio_protocol::v1::rest::RESERVED_TENANTS;
use parking_lot::RwLock;

use crate::Endpoint;

/// The agents of a server by name, one of them the default.
///
/// Agents come and go while requests run; a request keeps the endpoint it began with.
#[derive(Debug, Default)]
pub struct Switchboard {
    directory: RwLock<Arc<Directory>>,
}

/// The agents at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    agents: BTreeMap<AgentId, Arc<Endpoint>>,
    default: Option<AgentId>,
}

/// A name no agent can have in an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" cannot name an agent: use letters, digits, '-', '_' and '.', beginning with a letter or digit, 128 at most, and no word of the binding such as \"tasks\""
)]
pub struct InvalidAgentName(pub AgentId);

impl Switchboard {
    /// A switchboard without agents.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an agent, or replaces the one of the same name.
    ///
    /// # Errors
    /// [`InvalidAgentName`] for a name that does not fit an address.
    pub fn insert(&self, endpoint: Endpoint) -> Result<(), InvalidAgentName> {
        let id = endpoint.id.clone();
        if !is_name(id.as_str()) {
            return Err(InvalidAgentName(id));
        }
        self.change(|directory| {
            directory.agents.insert(id, Arc::new(endpoint));
        });
        Ok(())
    }

    /// Removes an agent; requests under way go on. Says whether there was one.
    pub fn remove(&self, id: &AgentId) -> bool {
        let mut found = false;
        self.change(|directory| {
            found = directory.agents.remove(id).is_some();
            directory.default = directory.default.take().filter(|default| default != id);
        });
        found
    }

    /// Makes an agent the one that is also served at `/`; `None` leaves `/` empty.
    pub fn set_default(&self, id: Option<AgentId>) {
        self.change(|directory| directory.default = id);
    }

    /// The agent of that name.
    pub fn get(&self, id: &AgentId) -> Option<Arc<Endpoint>> {
        self.now().get(id)
    }

    /// The names of all agents, in order.
    pub fn ids(&self) -> Vec<AgentId> {
        self.now().agents.keys().cloned().collect()
    }

    pub(crate) fn now(&self) -> Arc<Directory> {
        Arc::clone(&self.directory.read())
    }

    fn change(&self, change: impl FnOnce(&mut Directory)) {
        change(Arc::make_mut(&mut *self.directory.write()));
    }
}

impl Directory {
    pub(crate) fn get(&self, id: &AgentId) -> Option<Arc<Endpoint>> {
        self.agents.get(id).cloned()
    }

    pub(crate) fn default_agent(&self) -> Option<Arc<Endpoint>> {
        self.default.as_ref().and_then(|id| self.get(id))
    }

    pub(crate) fn agents(&self) -> impl Iterator<Item = &Arc<Endpoint>> {
        self.agents.values()
    }
}

fn is_name(id: &str) -> bool {
    // Below `/` a name stands where tenants stand, and some words there are taken (TEN-03).
    if RESERVED_TENANTS.contains(&id) {
        return false;
    }
    let fits = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
    id.len() <= 128
        && id.bytes().all(fits)
        && id.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
}
