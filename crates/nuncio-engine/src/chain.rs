//! Who called whom before this task: against agents that delegate to each other without end.
//!
//! A call that an agent makes names the agents above it in its metadata, under [`CALL_CHAIN`]:
//!
//! ```json
//! { "id": "<one for the whole chain>", "agents": [{ "id": "support", "seal": "<hexadecimal>" }] }
//! ```
//!
//! A seal is an HMAC by the server of that agent, so that nobody else can say that an agent is at
//! work already. Agents without a seal of ours count for the depth only.

use hmac::{Hmac, Mac as _};
use nuncio_protocol::{A2aError, AgentId, ErrorKind, Metadata};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::list::mac;
use crate::{AgentError, RunCx};

/// The member of a request's metadata that names the agents above.
pub const CALL_CHAIN: &str = "https://nuncio.dev/extensions/call-chain/v1";

/// The chain of calls that a task is the end of.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Chain {
    id: String,
    agents: Vec<Link>,
    max_depth: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Link {
    id: String,
    #[serde(default)]
    seal: String,
}

/// Longer names are nobody's.
const MAX_NAME_BYTES: usize = 256;

impl Chain {
    /// Reads the chain of a request; what is no chain counts as none.
    pub(crate) fn read(metadata: Option<&Metadata>, max_depth: usize) -> Self {
        let said = metadata.and_then(|metadata| metadata.get(CALL_CHAIN));
        let field = |name| said.and_then(|said| said.get(name));
        let id = field("id").and_then(Value::as_str).unwrap_or_default();
        let agents = field("agents").and_then(Value::as_array);
        let agents = agents.into_iter().flatten().take(max_depth + 1);
        Self {
            id: id.chars().take(MAX_NAME_BYTES).collect(),
            agents: agents
                .map(|link| Link::deserialize(link).unwrap_or_else(|_| Link::unknown()))
                .collect(),
            max_depth,
        }
    }

    /// How many agents of other tasks are above.
    pub(crate) fn depth(&self) -> usize {
        self.agents.len()
    }

    /// Refuses an agent that is at work in this chain already, and one that is too deep in it.
    pub(crate) fn check(&self, agent: &AgentId, key: &[u8; 32]) -> Result<(), A2aError> {
        let why = if self.agents.iter().any(|link| link.is(&self.id, agent, key)) {
            format!("agent {agent} is at work already in this chain of calls")
        } else if self.agents.len() > self.max_depth {
            too_deep(self.max_depth)
        } else {
            return Ok(());
        };
        let error = A2aError::new(ErrorKind::UnsupportedOperation, why);
        Err(error.with("chain", self.id.as_str()))
    }

    /// The same for an agent within a run.
    pub(crate) fn admit(&self, cx: &RunCx, agent: &AgentId) -> Result<(), AgentError> {
        if *agent == cx.place.agent || cx.place.above.contains(agent) {
            return Err(AgentError::new(format!(
                "agent {agent} is at work already in this chain of calls"
            )));
        }
        if cx.depth() + 1 > self.max_depth {
            return Err(AgentError::new(too_deep(self.max_depth)));
        }
        Ok(())
    }

    /// The chain of a call that is made from here.
    fn below(&self, cx: &RunCx, key: &[u8; 32]) -> Value {
        let here = cx.place.above.iter().chain([&cx.place.agent]);
        self.with(cx.task().as_str(), here, key)
    }

    /// The chain with further agents of ours at its end; `fresh` is its id if it begins with them.
    pub(crate) fn with<'a>(
        &self,
        fresh: &str,
        here: impl IntoIterator<Item = &'a AgentId>,
        key: &[u8; 32],
    ) -> Value {
        let id = match self.id.as_str() {
            "" => fresh,
            id => id,
        };
        let here = here.into_iter().map(|agent| Link::new(id, agent, key));
        let agents: Vec<_> = self.agents.iter().cloned().chain(here).collect();
        json!({ "id": id, "agents": agents })
    }
}

fn too_deep(limit: usize) -> String {
    format!("agents call agents more than {limit} deep")
}

impl Link {
    fn new(chain: &str, agent: &AgentId, key: &[u8; 32]) -> Self {
        let seal = sealed(chain, agent, key).finalize().into_bytes();
        Self {
            id: agent.as_str().to_owned(),
            seal: seal.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    fn unknown() -> Self {
        Self {
            id: String::new(),
            seal: String::new(),
        }
    }

    fn is(&self, chain: &str, agent: &AgentId, key: &[u8; 32]) -> bool {
        let digits = |at: usize| u8::from_str_radix(self.seal.get(at..at + 2)?, 16).ok();
        let seal: Option<Vec<u8>> = (0..self.seal.len()).step_by(2).map(digits).collect();
        let sealed = sealed(chain, agent, key);
        self.id == agent.as_str() && seal.is_some_and(|seal| sealed.verify_slice(&seal).is_ok())
    }
}

fn sealed(chain: &str, agent: &AgentId, key: &[u8; 32]) -> Hmac<Sha256> {
    mac(
        key,
        [
            b"call chain".as_slice(),
            chain.as_bytes(),
            agent.as_str().as_bytes(),
        ],
    )
}

impl RunCx {
    /// What a call to another agent is to carry in the metadata of its request, so that agents do
    /// not call each other without end.
    pub fn call_metadata(&self) -> Metadata {
        let key = &self.inner.environment.token_key;
        let chain = self.inner.chain.below(self, key);
        Metadata::from_iter([(CALL_CHAIN.to_owned(), chain)])
    }
}
