//! A remote agent as an agent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use nuncio_client::{ClientBuilder, ConnectError, FollowPolicy};
use nuncio_engine::{
    Agent, AgentError, AgentInfo, Input, RunCx, RunFuture, SessionError, SpanKind,
};
use nuncio_protocol::{A2aError, AgentCard, AgentId, ForwardedHeaders};

use super::connection::Connection;
use super::exchange::Exchange;

/// How the end of a remote task is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// By a stream where the agent has one, else by asking for the task again and again.
    #[default]
    Stream,
    /// By one call that the agent answers when the task is done; asked again if it answers before.
    Send,
    /// By asking for the task again and again.
    Poll,
}

/// How a remote agent is used.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RemoteSettings {
    /// How its tasks are waited for; by a stream.
    pub waiting: Waiting,
    /// The longest time for one message; as long as the run has, which is the limit anyway.
    pub max_wait: Option<Duration>,
    /// The only headers of callers that it gets, of those that the client
    /// [forwards](nuncio_client::ClientBuilder::forward_to), by their names in lower case; all if absent.
    pub forward: Option<Vec<String>>,
}

/// An agent that speaks A2A somewhere else, in any version and binding that `nuncio-client` knows.
///
/// Its texts, artifacts and status messages become those of the run; its questions pause the run,
/// and the answer goes to the task that asked; a cancel reaches it. The open task is kept as a
/// checkpoint, so that after a crash the run goes on with it instead of asking again. The messages
/// of a conversation here are one conversation there.
///
/// Requests carry the trace and the [chain of calls](RunCx::call_metadata), never anything of the
/// caller's credentials; what proves who calls is the builder's, bound to its origin.
pub struct RemoteAgent {
    info: AgentInfo,
    pub(super) connection: Arc<Connection>,
    settings: RemoteSettings,
}

/// Why a remote agent did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// It could not be found, or offers nothing that can be used.
    #[error("agent {0} is not to be had: {1}")]
    NotConnected(AgentId, String),
    /// It answered with an error, or could not be reached.
    #[error("agent {agent} answered with an error: {}", error.message)]
    Refused {
        /// Which agent.
        agent: AgentId,
        /// What it answered, or what happened on the way.
        error: A2aError,
    },
    /// Its task failed.
    #[error("agent {agent} failed: {reason}")]
    Failed {
        /// Which agent.
        agent: AgentId,
        /// What it said about it.
        reason: String,
    },
    /// What must be remembered of it could not be read or written.
    #[error("what is known of agent {0} is not to be had: {1}")]
    NotKept(AgentId, SessionError),
    /// Somebody else canceled its task.
    #[error("the task of agent {0} was canceled there")]
    Canceled(AgentId),
}

impl RemoteSettings {
    /// The headers of a caller that it gets.
    pub(super) fn of_callers(&self, said: &ForwardedHeaders) -> ForwardedHeaders {
        let Some(names) = &self.forward else {
            return said.clone();
        };
        let mut passed = ForwardedHeaders::default();
        for (name, value) in said
            .iter()
            .filter(|(name, _)| names.iter().any(|n| n == name))
        {
            passed.insert(name, value);
        }
        passed
    }
}

impl RemoteAgent {
    /// An agent at an address. Its card is read when it is first called, and again every few minutes
    /// in the background.
    ///
    /// The card of the agent here is `info`'s: [`Self::connect`] takes it over from the remote one.
    pub fn new(info: AgentInfo, client: ClientBuilder, url: impl Into<String>) -> Self {
        Self {
            info: Self::as_here(info),
            connection: Arc::new(Connection::to(client, url.into())),
            settings: RemoteSettings::default(),
        }
    }

    /// An agent whose card is at hand; it is never read again.
    ///
    /// # Errors
    /// [`ConnectError`] if the card offers nothing that can be used.
    pub fn of_card(
        id: impl Into<AgentId>,
        client: ClientBuilder,
        card: AgentCard,
    ) -> Result<Self, ConnectError> {
        let info = info_of(id.into(), &card);
        Ok(Self {
            info: Self::as_here(info),
            connection: Arc::new(Connection::with(client.build(card)?)),
            settings: RemoteSettings::default(),
        })
    }

    /// An agent at an address, described here as its card describes it.
    ///
    /// # Errors
    /// [`ConnectError`] if there is no card, or nothing in it that can be used.
    pub async fn connect(
        id: impl Into<AgentId>,
        client: ClientBuilder,
        url: &str,
    ) -> Result<Self, ConnectError> {
        let connected = client.clone().connect(url).await?;
        let info = info_of(id.into(), connected.card());
        let agent = Self::new(info, client, url);
        agent.connection.set(connected);
        Ok(agent)
    }

    /// The same agent, used in another way.
    #[must_use]
    pub fn with_settings(mut self, settings: RemoteSettings) -> Self {
        self.settings = settings;
        self
    }

    /// The same agent, described in another way.
    #[must_use]
    pub fn with_info(mut self, info: AgentInfo) -> Self {
        self.info = Self::as_here(info);
        self
    }

    /// A crash here is no reason to ask again: the run goes on with the open task.
    fn as_here(mut info: AgentInfo) -> AgentInfo {
        info.resumable = true;
        info.answers_directly = false;
        info
    }

    fn follow_policy(&self) -> FollowPolicy {
        FollowPolicy {
            streams: self.settings.waiting == Waiting::Stream,
            ..FollowPolicy::default()
        }
    }
}

impl fmt::Debug for RemoteAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteAgent")
            .field("agent", &self.info.id)
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl Agent for RemoteAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(async move {
            let id = &self.info.id;
            let span = cx.span(SpanKind::Remote, format!("invoke_agent {id}"));
            let within = cx.within(&span);
            let answered = async {
                let client = self.connection.client().await;
                let client = client.map_err(|why| RemoteError::NotConnected(id.clone(), why))?;
                let url = client.interface().url.clone();
                span.set("url.full", without_query(&url));
                let client = client.with_follow(self.follow_policy());
                let exchange = Exchange::new(&within, &span, id, client, &self.settings);
                exchange.answer(input).await
            };
            let answered: Result<_, RemoteError> = answered.await;
            answered.map_err(|error| {
                span.fail(error.to_string());
                AgentError::caused(error.to_string(), error)
            })
        })
    }
}

/// What is behind a question mark may be a secret.
fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(before, _)| before)
}

/// An agent here as a card elsewhere describes it.
fn info_of(id: AgentId, card: &AgentCard) -> AgentInfo {
    let mut info = AgentInfo::new(id, card.name.clone(), card.description.clone());
    info.version.clone_from(&card.version);
    info.provider.clone_from(&card.provider);
    info.documentation_url.clone_from(&card.documentation_url);
    info.icon_url.clone_from(&card.icon_url);
    if !card.skills.is_empty() {
        info.skills.clone_from(&card.skills);
    }
    for skill in &mut info.skills {
        // What it takes to call the agent there is not what it takes to call it here.
        skill.security_requirements.clear();
    }
    if !card.default_input_modes.is_empty() {
        info.input_modes.clone_from(&card.default_input_modes);
    }
    if !card.default_output_modes.is_empty() {
        info.output_modes.clone_from(&card.default_output_modes);
    }
    info
}
