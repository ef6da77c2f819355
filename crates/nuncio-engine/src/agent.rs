//! The agent's side: what an author implements and what comes in and out.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use nuncio_protocol::{
    A2aError, AgentCapabilities, AgentCard, AgentExtension, AgentId, AgentProvider, AgentSkill,
    Caller, ForwardedHeaders, Message, Metadata, Task, TaskId,
};
use serde_json::Value;

use crate::RunCx;

/// What a run gives in the end.
pub type RunFuture<'a> = Pin<Box<dyn Future<Output = Result<Outcome, AgentError>> + Send + 'a>>;

/// Something that answers messages.
///
/// One run answers one message. It may be dropped at any await point: after a cancel that it does
/// not notice, at its deadline, at shutdown. It may run again for the same message after a crash,
/// if [`AgentInfo::resumable`] says that this is right; [`RunCx::attempt`] tells.
pub trait Agent: Send + Sync {
    /// Who it is; its card is made from this.
    fn info(&self) -> &AgentInfo;

    /// Refuses what it can never answer, before anything of it is stored; what it takes is answered.
    ///
    /// # Errors
    /// The error that the caller gets, which names the field.
    fn check(
        &self,
        _caller: &Caller,
        _message: &Message,
        _metadata: Option<&Metadata>,
    ) -> Result<(), A2aError> {
        Ok(())
    }

    /// Answers one message.
    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a>;
}

impl<A: Agent + ?Sized> Agent for Arc<A> {
    fn info(&self) -> &AgentInfo {
        (**self).info()
    }

    fn check(
        &self,
        caller: &Caller,
        message: &Message,
        metadata: Option<&Metadata>,
    ) -> Result<(), A2aError> {
        (**self).check(caller, message, metadata)
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        (**self).run(cx, input)
    }
}

/// What an agent says about itself.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentInfo {
    /// Its name in addresses.
    pub id: AgentId,
    /// A name for people.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its own version.
    pub version: String,
    /// Who runs it.
    pub provider: Option<AgentProvider>,
    /// Where to read more.
    pub documentation_url: Option<String>,
    /// A picture of it.
    pub icon_url: Option<String>,
    /// What it can do; at least one.
    pub skills: Vec<AgentSkill>,
    /// Media types it takes.
    pub input_modes: Vec<String>,
    /// Media types it gives.
    pub output_modes: Vec<String>,
    /// Extensions it understands; clients must name the required ones.
    pub extensions: Vec<AgentExtension>,
    /// Whether clients may stream.
    pub streaming: bool,
    /// Whether clients may register webhooks, if the engine [delivers](crate::Engine::deliverer).
    pub push_notifications: bool,
    /// Whether a run that a crash cut off may start again. If so, a run whose sender waits for it
    /// begins before its task is stored, and a short one is stored with its end, in one commit. Of two
    /// servers with one store that get a message at the same moment each may begin with it then; one
    /// task comes of it.
    pub resumable: bool,
    /// Whether it may answer with a message instead of a task. Such an agent runs before anything
    /// is stored; its first event stores the task. What is said of [resumable](Self::resumable) agents
    /// and two servers goes for it too.
    pub answers_directly: bool,
    /// Whether it takes further messages while it works; they are queued.
    pub queues_messages: bool,
    /// Whether callers may run their tasks [again from a step](crate::RERUN) that they change. They
    /// then decide what its tools, and those of agents that work for it, are called with and what has
    /// come out of them.
    pub reruns: bool,
}

impl AgentInfo {
    /// An agent of text with one skill of its own name.
    pub fn new(
        id: impl Into<AgentId>,
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        let (id, name, description) = (id.into(), name.into(), description.into());
        let mut skill = AgentSkill::default();
        skill.id = id.as_str().to_owned();
        skill.name.clone_from(&name);
        skill.description.clone_from(&description);
        skill.tags = vec![id.as_str().to_owned()];
        Self {
            id,
            name,
            description,
            version: "1.0.0".to_owned(),
            provider: None,
            documentation_url: None,
            icon_url: None,
            skills: vec![skill],
            input_modes: vec!["text/plain".to_owned()],
            output_modes: vec!["text/plain".to_owned()],
            extensions: Vec::new(),
            streaming: true,
            push_notifications: true,
            resumable: false,
            answers_directly: false,
            queues_messages: true,
            reruns: false,
        }
    }

    /// The agent card, without addresses and security, which the server knows.
    ///
    /// [`HostedAgent::card`](crate::HostedAgent::card) knows also what its engine delivers.
    pub fn card(&self) -> AgentCard {
        let mut capabilities = AgentCapabilities::default();
        capabilities.streaming = Some(self.streaming);
        capabilities.push_notifications = Some(self.push_notifications);
        capabilities.extended_agent_card = Some(false);
        capabilities.extensions.clone_from(&self.extensions);
        let mut card = AgentCard::default();
        card.name.clone_from(&self.name);
        card.description.clone_from(&self.description);
        card.provider.clone_from(&self.provider);
        card.version.clone_from(&self.version);
        card.documentation_url.clone_from(&self.documentation_url);
        card.icon_url.clone_from(&self.icon_url);
        card.capabilities = capabilities;
        card.default_input_modes.clone_from(&self.input_modes);
        card.default_output_modes.clone_from(&self.output_modes);
        card.skills.clone_from(&self.skills);
        card
    }
}

/// What a run is given.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Input {
    /// The message to answer.
    pub message: Message,
    /// The task as it stands, with its history; the message is the newest in it.
    pub task: Arc<Task>,
    /// Free-form additions of the request, unchanged.
    pub metadata: Option<Metadata>,
    /// The earlier tasks that the message names, as far as the caller may see them.
    pub references: Vec<Task>,
    /// Media types the client can take; empty means no wish.
    pub accepted_output_modes: Vec<String>,
    /// URIs of the extensions that the client names.
    pub extensions: Vec<String>,
    /// Headers of the request that this agent may see; none after a crash.
    pub forwarded: ForwardedHeaders,
    /// What an earlier run of the task left with [`RunCx::checkpoint`].
    pub checkpoint: Option<Value>,
}

impl Input {
    /// The input of a first message, for tests and for calling an agent directly.
    pub fn new(message: Message, task: Arc<Task>) -> Self {
        Self {
            message,
            task,
            metadata: None,
            references: Vec::new(),
            accepted_output_modes: Vec::new(),
            extensions: Vec::new(),
            forwarded: ForwardedHeaders::default(),
            checkpoint: None,
        }
    }

    /// What an agent that works for this one is given: the same task and request, its own message and
    /// what it has left itself. `cx` is [its own](RunCx::child).
    #[must_use]
    pub fn for_child(&self, cx: &RunCx, message: Message) -> Self {
        Self {
            message,
            checkpoint: cx.left(),
            ..self.clone()
        }
    }

    /// The task that this one follows: the last of those that the message names.
    pub fn predecessor(&self) -> Option<&TaskId> {
        self.message.reference_task_ids.last()
    }

    /// How many messages the user has sent in this task, this one included.
    pub fn turn(&self) -> usize {
        self.task
            .history
            .iter()
            .filter(|m| m.role == nuncio_protocol::Role::User)
            .count()
            .max(1)
    }
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The task is completed; its results are the artifacts emitted.
    Done,
    /// The task is completed with these words in its status. Callers that do not stream often read
    /// only these; results belong into artifacts all the same.
    Said(Message),
    /// An answer without a task, if nothing has been emitted and the agent
    /// [answers directly](AgentInfo::answers_directly); else an artifact, and the task is completed.
    Reply(Message),
    /// The task waits for somebody.
    Paused(Pause),
    /// The task will not be done, for this reason.
    Rejected(String),
    /// Another agent of this server has the task from now on: it goes on at once with this message,
    /// and is who gets what comes later, after pauses and restarts too. It finds nothing of what the
    /// agent before [has left](RunCx::left), and has its own [session](RunCx::session). A message that
    /// begins another task goes to the agent of its address as ever.
    HandOff {
        /// Which one.
        agent: AgentId,
        /// What to tell it.
        message: Message,
    },
}

/// What a paused task waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Pause {
    /// For whom, or what.
    pub reason: PauseReason,
    /// The question, shown to the user.
    pub prompt: Message,
    /// The JSON Schema of the answer, if it should be data.
    pub schema: Option<Value>,
}

/// Why a task pauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PauseReason {
    /// An answer of the user: INPUT_REQUIRED.
    Input,
    /// A yes or no to one exact call of a tool: INPUT_REQUIRED.
    Approval {
        /// The tool.
        tool: String,
        /// SHA-256 of its arguments in hexadecimal.
        args_hash: String,
    },
    /// An authorisation given elsewhere: AUTH_REQUIRED.
    Auth {
        /// The scheme.
        scheme: String,
        /// Where to give it.
        url: Option<String>,
    },
    /// Something outside, such as a job: INPUT_REQUIRED.
    External,
}

impl Pause {
    /// Asks the user.
    pub fn input(prompt: Message) -> Self {
        Self {
            reason: PauseReason::Input,
            prompt,
            schema: None,
        }
    }

    /// Asks for an authorisation.
    pub fn auth(prompt: Message, scheme: impl Into<String>, url: Option<String>) -> Self {
        Self {
            reason: PauseReason::Auth {
                scheme: scheme.into(),
                url,
            },
            prompt,
            schema: None,
        }
    }
}

/// Why a run failed.
///
/// The message goes to the caller; the source goes to the log only.
#[derive(Debug)]
pub struct AgentError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl AgentError {
    /// A failure to tell the caller in these words.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// A failure whose cause is not the caller's business.
    pub fn internal(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            message: "the agent failed".to_owned(),
            source: Some(source.into()),
        }
    }

    /// A failure to tell the caller in these words, with its cause for the log.
    pub fn caused(
        message: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            message: message.into(),
            source: Some(source.into()),
        }
    }

    /// The run came to its end without saying how (ST-08).
    pub fn ended_without_result() -> Self {
        Self::new("the agent ended without result")
    }

    /// The words for the caller.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for AgentError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<crate::EmitError> for AgentError {
    fn from(error: crate::EmitError) -> Self {
        match error {
            crate::EmitError::Ended => Self::new("the run is over"),
            crate::EmitError::Invalid(message) => Self::new(message),
        }
    }
}
