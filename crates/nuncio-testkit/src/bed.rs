//! An engine with one agent on a memory store, and short forms of what tests do with it.

use std::sync::Arc;

use futures_util::StreamExt as _;
use nuncio_engine::{Agent, Engine, Environment, HostedAgent, Settings};
use nuncio_protocol::{
    AgentService as _, Call, Caller, Event, EventStream, Message, Part, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse, StreamResponse, Task, TaskId,
};
use nuncio_store::{MemoryOptions, MemoryStore, Scope, Store};

use crate::{Behaviour, FixedClock, NumberedIds, RecordedSpans, TestAgent, Trace};

/// An engine under test.
#[derive(Debug)]
pub struct Bed {
    /// The engine.
    pub engine: Engine,
    /// Its first agent.
    pub agent: Arc<HostedAgent>,
    /// What that agent has seen.
    pub trace: Arc<Trace>,
    /// Its store.
    pub store: Arc<dyn Store>,
    /// Its clock.
    pub clock: Arc<FixedClock>,
}

impl Bed {
    /// An engine in memory with default settings.
    pub fn new(behaviour: Behaviour) -> Self {
        Self::with(TestAgent::new(behaviour), Settings::default())
    }

    /// An engine in memory.
    pub fn with(agent: TestAgent, settings: Settings) -> Self {
        Self::on(
            Arc::new(MemoryStore::new(MemoryOptions::default())),
            agent,
            settings,
        )
    }

    /// An engine on a store; ids differ from those of any other engine on it.
    pub fn on(store: Arc<dyn Store>, agent: TestAgent, settings: Settings) -> Self {
        let (clock, ids) = (Arc::default(), Arc::new(NumberedIds::default()));
        Self::at(store, agent, settings, clock, ids)
    }

    /// An engine on a store, with time and ids that it may share with engines before and after it.
    pub fn at(
        store: Arc<dyn Store>,
        agent: TestAgent,
        settings: Settings,
        clock: Arc<FixedClock>,
        ids: Arc<NumberedIds>,
    ) -> Self {
        let environment = Environment {
            clock: Arc::clone(&clock) as _,
            ids,
            token_key: [7; 32],
        };
        let engine = Engine::new(Arc::clone(&store), environment, settings);
        let trace = Arc::clone(&agent.trace);
        let agent = engine.host(Arc::new(agent));
        Self {
            engine,
            agent,
            trace,
            store,
            clock,
        }
    }

    /// An engine with any agent, whose spans are recorded.
    pub fn of(agent: impl Agent + 'static) -> (Self, Arc<RecordedSpans>) {
        let store = Arc::new(MemoryStore::new(MemoryOptions::default()));
        Self::of_on(store, agent)
    }

    /// The same on a store; ids differ from those of any other engine on it.
    pub fn of_on(store: Arc<dyn Store>, agent: impl Agent + 'static) -> (Self, Arc<RecordedSpans>) {
        let (clock, spans) = (
            Arc::<FixedClock>::default(),
            Arc::<RecordedSpans>::default(),
        );
        let environment = Environment {
            clock: Arc::clone(&clock) as _,
            ids: Arc::new(NumberedIds::default()),
            token_key: [7; 32],
        };
        let engine = Engine::new(Arc::clone(&store), environment, Settings::default());
        let engine = engine.with_spans(Arc::clone(&spans) as _);
        let agent = engine.host(Arc::new(agent));
        let bed = Self {
            engine,
            agent,
            trace: Arc::default(),
            store,
            clock,
        };
        (bed, spans)
    }

    /// Sends a text and waits for the task to end or pause.
    pub async fn ask(&self, id: &str, text: &str) -> Task {
        sent_task(
            self.agent
                .send_message(call("alice"), send(text_message(id, text)))
                .await
                .unwrap(),
        )
    }

    /// Sends a text and returns as soon as the task is stored.
    pub async fn start(&self, id: &str, text: &str) -> Task {
        let mut request = send(text_message(id, text));
        let mut configuration = SendMessageConfiguration::default();
        configuration.return_immediately = true;
        request.configuration = Some(configuration);
        sent_task(
            self.agent
                .send_message(call("alice"), request)
                .await
                .unwrap(),
        )
    }

    /// Sends a text to a task and waits for it to end or pause.
    pub async fn answer(&self, id: &str, task: &Task, text: &str) -> Task {
        let mut message = text_message(id, text);
        message.task_id = Some(task.id.clone());
        sent_task(
            self.agent
                .send_message(call("alice"), send(message))
                .await
                .unwrap(),
        )
    }

    /// The scope of a caller at this agent.
    pub fn scope(&self, caller: &str) -> Scope {
        let agent = self.agent.info().id.clone();
        Scope {
            workspace: "default".into(),
            agent,
            caller: caller.into(),
        }
    }

    /// The newest position in a task's log.
    pub async fn store_position(&self, id: &TaskId) -> u64 {
        self.store
            .load(&self.scope("alice"), id)
            .await
            .unwrap()
            .unwrap()
            .head
            .last
    }

    /// The task as it stands.
    pub async fn task(&self, id: &nuncio_protocol::TaskId) -> Task {
        let request = nuncio_protocol::GetTaskRequest::new(id.clone());
        self.agent.get_task(call("alice"), request).await.unwrap()
    }
}

/// A call of somebody in the workspace `default`.
pub fn call(caller: &str) -> Call {
    Call::new(Caller {
        id: caller.into(),
        workspace: "default".into(),
    })
}

/// A user's message of one text part.
pub fn text_message(id: &str, text: &str) -> Message {
    Message::user(id, vec![Part::text(text)])
}

/// A plain send.
pub fn send(message: Message) -> SendMessageRequest {
    SendMessageRequest::new(message)
}

/// The task of an answer.
///
/// # Panics
/// If the answer is a message.
pub fn sent_task(response: SendMessageResponse) -> Task {
    match response {
        SendMessageResponse::Task(task) => task,
        other => panic!("expected a task, got {other:?}"),
    }
}

/// All events of a stream.
///
/// # Panics
/// If one of them is an error.
pub async fn collect(stream: EventStream) -> Vec<Event> {
    stream.map(|event| event.unwrap()).collect().await
}

/// The text of all artifacts, in order.
pub fn artifact_text(task: &Task) -> String {
    task.artifacts
        .iter()
        .map(nuncio_protocol::Artifact::text)
        .collect()
}

/// Events in short: states, artifact texts, message texts.
pub fn texts(events: &[Event]) -> Vec<String> {
    let short = |event: &Event| match event.response() {
        StreamResponse::Task(task) => format!("task {}", short_state(task.status.state)),
        StreamResponse::Message(message) => format!("message {}", message.text()),
        StreamResponse::StatusUpdate(update) => short_state(update.status.state),
        StreamResponse::ArtifactUpdate(update) => format!("artifact {}", update.artifact.text()),
        _ => "unknown".to_owned(),
    };
    events.iter().map(short).collect()
}

fn short_state(state: nuncio_protocol::TaskState) -> String {
    state
        .as_str()
        .trim_start_matches("TASK_STATE_")
        .to_lowercase()
}
