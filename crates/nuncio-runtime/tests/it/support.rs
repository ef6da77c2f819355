//! An engine for one agent, and the calls that tests make.

use std::sync::Arc;

use futures_util::StreamExt as _;
use nuncio_engine::{Agent, AgentInfo, Engine, Environment, HostedAgent, Node, Settings};
use nuncio_protocol::{
    AgentService as _, Call, CancelTaskRequest, ContextId, GetTaskRequest, ListTasksRequest,
    Message, Part, Result, SendMessageConfiguration, SendMessageRequest, SendMessageResponse,
    StreamResponse, SubscribeToTaskRequest, Task, TaskId,
};
use nuncio_runtime::model::{FakeModel, FakeRule};
use nuncio_runtime::{Rule, ScriptAgent};
use nuncio_store::{MemoryStore, SqliteOptions, SqliteStore, Store};
use serde::Deserialize;
use tempfile::TempDir;

/// One hosted agent.
pub(crate) struct Hosted {
    pub(crate) engine: Engine,
    agent: Arc<HostedAgent>,
}

impl Hosted {
    pub(crate) fn new(agent: Arc<dyn Agent>) -> Self {
        Self::with_settings(agent, Settings::default())
    }

    pub(crate) fn with_settings(agent: Arc<dyn Agent>, settings: Settings) -> Self {
        Self::on(Arc::new(MemoryStore::default()), agent, settings)
    }

    /// The agent on a database in this folder.
    pub(crate) fn at(folder: &TempDir, agent: Arc<dyn Agent>) -> Self {
        let path = folder.path().join("nuncio.db");
        let store = SqliteStore::open(path, SqliteOptions::default()).unwrap();
        Self::on(Arc::new(store), agent, Settings::default())
    }

    fn on(store: Arc<dyn Store>, agent: Arc<dyn Agent>, settings: Settings) -> Self {
        let engine = Engine::new(store, Environment::system([7; 32]), settings);
        Self {
            agent: engine.host(agent),
            engine,
        }
    }

    /// Ends what goes on and closes the store, as a planned end of the process does.
    pub(crate) async fn stop(self) {
        let limit = std::time::Duration::from_secs(1);
        self.engine.drain(limit).await.unwrap();
    }

    /// An agent that is made with its engine, on a store that others may have used before.
    pub(crate) fn made(
        store: Arc<MemoryStore>,
        make: impl FnOnce(&Engine) -> Arc<dyn Agent>,
    ) -> Self {
        let engine = Engine::new(store, Environment::system([7; 32]), Settings::default());
        let agent = make(&engine);
        Self {
            agent: engine.host(agent),
            engine,
        }
    }

    /// A script agent of rules in TOML.
    pub(crate) fn script(rules: &str) -> Self {
        let info = AgentInfo::new("script", "Script", "a script");
        let agent = ScriptAgent::new(info, self::rules(rules));
        Self::new(Arc::new(agent.unwrap()))
    }

    pub(crate) async fn ask(&self, message: Message) -> Result<SendMessageResponse> {
        self.agent
            .send_message(Call::client(), SendMessageRequest::new(message))
            .await
    }

    /// Sends a request and gives the task as it rests.
    pub(crate) async fn request(&self, request: SendMessageRequest) -> Result<Task> {
        match self.agent.send_message(Call::client(), request).await? {
            SendMessageResponse::Task(task) => Ok(task),
            other => panic!("no task: {other:?}"),
        }
    }

    /// All tasks.
    pub(crate) async fn tasks(&self) -> Vec<Task> {
        let request = ListTasksRequest::default();
        let listed = self.agent.list_tasks(Call::client(), request).await;
        listed.unwrap().tasks
    }

    pub(crate) async fn send(
        &self,
        call: Call,
        request: SendMessageRequest,
    ) -> Result<SendMessageResponse> {
        self.agent.send_message(call, request).await
    }

    /// The call tree of a task that rests, once all of it is kept.
    pub(crate) async fn tree(&self, task: &Task) -> Vec<Node> {
        loop {
            let tree = self
                .agent
                .call_tree(&Call::client(), &task.id)
                .await
                .unwrap();
            if !tree.is_empty() && tree.iter().all(|node| node.ended.is_some()) {
                return tree;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Sends a text and gives the task as it rests.
    pub(crate) async fn task(&self, text: &str) -> Task {
        self.task_of(self.message(text)).await
    }

    /// Sends a text to a task that waits.
    pub(crate) async fn answer(&self, task: &TaskId, text: &str) -> Task {
        let mut message = self.message(text);
        message.task_id = Some(task.clone());
        self.task_of(message).await
    }

    /// Sends a text to a conversation.
    pub(crate) async fn in_context(&self, context: &ContextId, text: &str) -> Task {
        let mut message = self.message(text);
        message.context_id = Some(context.clone());
        self.task_of(message).await
    }

    /// Sends a message and gives the task as it rests.
    pub(crate) async fn task_of(&self, message: Message) -> Task {
        match self.ask(message).await.unwrap() {
            SendMessageResponse::Task(task) => task,
            other => panic!("no task: {other:?}"),
        }
    }

    pub(crate) fn message(&self, text: &str) -> Message {
        use nuncio_protocol::Ids as _;
        Message::user(nuncio_engine::RandomIds.next(), vec![Part::text(text)])
    }

    /// Sends a text and gives the task as it begins.
    pub(crate) async fn begin(&self, text: &str) -> Task {
        self.begin_with(self.message(text)).await
    }

    /// Sends a text to a task that works, and does not wait for the answer.
    pub(crate) async fn queue(&self, task: &TaskId, text: &str) -> Task {
        let mut message = self.message(text);
        message.task_id = Some(task.clone());
        self.begin_with(message).await
    }

    async fn begin_with(&self, message: Message) -> Task {
        let mut request = SendMessageRequest::new(message);
        let mut configuration = SendMessageConfiguration::default();
        configuration.return_immediately = true;
        request.configuration = Some(configuration);
        match self
            .agent
            .send_message(Call::client(), request)
            .await
            .unwrap()
        {
            SendMessageResponse::Task(task) => task,
            other => panic!("no task: {other:?}"),
        }
    }

    /// Sends a text and waits until the agent has said this about its work.
    pub(crate) async fn begin_and_hear(&self, text: &str, word: &str) -> Task {
        let request = SendMessageRequest::new(self.message(text));
        let mut stream = self
            .agent
            .send_streaming_message(Call::client(), request)
            .await
            .unwrap();
        while let Some(event) = stream.next().await {
            if let StreamResponse::StatusUpdate(update) = event.unwrap().response() {
                let message = update.status.message.as_ref();
                if message.is_some_and(|message| message.text() == word) {
                    return self.get(&update.task_id).await;
                }
            }
        }
        panic!("nobody said {word}");
    }

    /// Waits until a task neither works nor is about to.
    pub(crate) async fn rests(&self, task: &TaskId) -> Task {
        let request = SubscribeToTaskRequest::new(task.clone());
        if let Ok(mut stream) = self.agent.subscribe_to_task(Call::client(), request).await {
            while stream.next().await.is_some() {}
        }
        self.get(task).await
    }

    /// A task as it is now.
    pub(crate) async fn get(&self, task: &TaskId) -> Task {
        let request = GetTaskRequest::new(task.clone());
        self.agent.get_task(Call::client(), request).await.unwrap()
    }

    /// Waits until the artifacts of a task say this.
    pub(crate) async fn until_text(&self, task: &TaskId, text: &str) {
        while texts(&self.get(task).await).concat() != text {
            tokio::task::yield_now().await;
        }
    }

    pub(crate) async fn cancel(&self, task: &TaskId) -> Task {
        let request = CancelTaskRequest::new(task.clone());
        self.agent
            .cancel_task(Call::client(), request)
            .await
            .unwrap()
    }

    /// Sends a text and gives everything that comes of it.
    pub(crate) async fn events(&self, text: &str) -> Vec<StreamResponse> {
        let request = SendMessageRequest::new(self.message(text));
        let stream = self
            .agent
            .send_streaming_message(Call::client(), request)
            .await
            .unwrap();
        stream
            .map(|event| event.unwrap().response().clone())
            .collect()
            .await
    }
}

/// Rules in TOML.
pub(crate) fn rules(text: &str) -> Vec<Rule> {
    #[derive(Deserialize)]
    struct Script {
        rules: Vec<Rule>,
    }
    let script: Script = toml::from_str(text).unwrap();
    script.rules
}

/// The words that go with a task's state.
pub(crate) fn said(task: &Task) -> String {
    task.status
        .message
        .as_ref()
        .map(Message::text)
        .unwrap_or_default()
}

/// The texts of a task's artifacts.
pub(crate) fn texts(task: &Task) -> Vec<String> {
    task.artifacts
        .iter()
        .map(nuncio_protocol::Artifact::text)
        .collect()
}

/// A scripted model of rules in TOML.
pub(crate) fn fake(name: &str, rules: &str) -> FakeModel {
    #[derive(Deserialize)]
    struct Script {
        rules: Vec<FakeRule>,
    }
    let script: Script = toml::from_str(rules).unwrap();
    FakeModel::new(name, script.rules).unwrap()
}
