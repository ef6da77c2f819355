//! Agents on a real port, and agents that call them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use nuncio_client::ClientBuilder;
use nuncio_egress::{Egress, EgressPolicy};
use nuncio_engine::{Agent, Engine, Environment, HostedAgent, RandomIds, Settings, SystemClock};
use nuncio_protocol::{AgentService as _, Binding, ListTasksRequest, SpanSink, Task, Version};
use nuncio_runtime::{PassThrough, RemoteAgent};
use nuncio_server::{Authenticator, Endpoint, Server, Switchboard};
use nuncio_store::{MemoryStore, Store};
use nuncio_testkit::RecordedSpans;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A server of one agent; it stops when this is dropped.
pub(crate) struct Site {
    engine: Engine,
    pub(crate) url: String,
    pub(crate) agent: Arc<HostedAgent>,
    pub(crate) spans: Arc<RecordedSpans>,
    switchboard: Arc<Switchboard>,
    stop: CancellationToken,
}

impl Site {
    pub(crate) async fn of(agent: impl Agent + 'static) -> Self {
        Self::on(Arc::new(MemoryStore::default()), agent).await
    }

    /// A server on a port that is known before.
    pub(crate) async fn at(listener: TcpListener, agent: impl Agent + 'static) -> Self {
        Self::start(Arc::new(MemoryStore::default()), agent, listener)
    }

    /// A server on a store, with a key of its own.
    pub(crate) async fn on(store: Arc<dyn Store>, agent: impl Agent + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start(store, agent, listener)
    }

    fn start(store: Arc<dyn Store>, agent: impl Agent + 'static, listener: TcpListener) -> Self {
        static SITES: AtomicU8 = AtomicU8::new(0);
        let key = [SITES.fetch_add(1, Ordering::Relaxed); 32];
        let spans = Arc::<RecordedSpans>::default();
        let engine = Engine::new(store, Environment::system(key), Settings::default());
        let engine = engine.with_spans(Arc::clone(&spans) as Arc<dyn SpanSink>);
        let agent = engine.host(Arc::new(agent));
        let url = format!("http://{}", listener.local_addr().unwrap());
        let switchboard = Arc::new(Switchboard::new());
        let site = Self {
            engine,
            url,
            spans,
            switchboard: Arc::clone(&switchboard),
            stop: CancellationToken::new(),
            agent,
        };
        site.put(Arc::clone(&site.agent));
        switchboard.set_default(Some(site.agent.info().id.clone()));
        let server = Server::new(
            nuncio_server::Settings::default(),
            Authenticator::anonymous(),
            switchboard,
            Arc::new(SystemClock),
            Arc::new(RandomIds),
        );
        let server = server.with_spans(Arc::clone(&site.spans) as Arc<dyn SpanSink>);
        let stop = site.stop.clone();
        tokio::spawn(async move { server.run(listener, stop).await });
        site
    }

    /// One more agent of the same engine.
    pub(crate) fn put(&self, agent: Arc<HostedAgent>) {
        let (id, card) = (agent.info().id.clone(), agent.card());
        self.switchboard
            .insert(Endpoint::new(id, card, agent))
            .unwrap();
    }

    /// One more agent that calls are passed on to.
    pub(crate) fn pass(&self, id: &str, remote: &RemoteAgent) -> PassThrough {
        let passed = remote.passed_through(self.engine.passing(id));
        let endpoint = Endpoint::new(id, self.agent.card(), Arc::new(passed.clone()));
        self.switchboard.insert(endpoint).unwrap();
        passed
    }

    /// Sends a text and waits for the task to end or pause.
    pub(crate) async fn ask(&self, text: &str) -> Task {
        let message = nuncio_testkit::text_message(text, text);
        let asked = nuncio_testkit::send(message);
        let sent = self
            .agent
            .send_message(nuncio_testkit::call("alice"), asked);
        nuncio_testkit::sent_task(sent.await.unwrap())
    }

    /// How many runs there are at the moment.
    pub(crate) fn running(&self) -> usize {
        self.engine.running()
    }

    /// The tasks of those who call over the network.
    pub(crate) async fn tasks(&self) -> Vec<Task> {
        let caller = nuncio_testkit::call("anonymous");
        let listed = self.agent.list_tasks(caller, ListTasksRequest::default());
        listed.await.unwrap().tasks
    }

    /// The agent as one that is called over the network.
    pub(crate) async fn remote(&self, id: &str) -> RemoteAgent {
        RemoteAgent::connect(id, client(), &self.url).await.unwrap()
    }

    /// The same in one version and binding.
    pub(crate) async fn remote_by(&self, version: Version, binding: Binding) -> RemoteAgent {
        let client = client().versions([version]).binding(binding);
        RemoteAgent::connect("remote", client, &self.url)
            .await
            .unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) fn client() -> ClientBuilder {
    ClientBuilder::new(Egress::new(EgressPolicy::open()).unwrap())
}

/// Waits until something is so.
pub(crate) async fn until(mut so: impl AsyncFnMut() -> bool) {
    for _ in 0..1_000 {
        if so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not become so within ten seconds");
}
