//! What nuncio adds to a call of a model, and to a call of an agent elsewhere?
//!
//! Each pair does the same work without and with nuncio, in one run. At the end a thousand runs go on
//! at once, and what they hold in memory is printed.

use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use futures_util::StreamExt as _;
use nuncio_client::ClientBuilder;
use nuncio_egress::{Egress, EgressPolicy};
use nuncio_engine::{
    Agent, AgentInfo, Engine, Environment, HostedAgent, RandomIds, Settings, SystemClock, agent_fn,
};
use nuncio_protocol::{
    AgentService as _, Call, Ids as _, Message, Part, SendMessageConfiguration, SendMessageRequest,
};
use nuncio_runtime::model::{FakeModel, Model as _, ModelRequest};
use nuncio_runtime::{ModelAgent, RemoteAgent};
use nuncio_server::{Authenticator, Endpoint, Server, Switchboard};
use nuncio_store::MemoryStore;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

const RULES: &str = r#"[{ "otherwise": true, "reply": [{ "text": "Here is the answer." }] }]"#;

fn engine() -> Engine {
    let store = Arc::new(MemoryStore::default());
    Engine::new(store, Environment::system([7; 32]), Settings::default())
}

fn request(return_immediately: bool) -> SendMessageRequest {
    let message = Message::user(RandomIds.next(), vec![Part::text("hello")]);
    let mut request = SendMessageRequest::new(message);
    let mut configuration = SendMessageConfiguration::default();
    configuration.return_immediately = return_immediately;
    request.configuration = Some(configuration);
    request
}

async fn ask(agent: &HostedAgent) {
    let sent = agent.send_message(Call::client(), request(false)).await;
    assert!(sent.is_ok(), "{sent:?}");
}

fn model() -> FakeModel {
    let rules = serde_json::from_str(RULES).expect("the rules are JSON");
    FakeModel::new("fake", rules).expect("the rules can be played")
}

async fn answer(model: &FakeModel) {
    let stream = model.generate(ModelRequest::text("hello")).await;
    let mut stream = stream.expect("the model answers");
    while stream.next().await.is_some() {}
}

/// An agent on a port of its own.
async fn served(agent: Arc<HostedAgent>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    let agents = Arc::new(Switchboard::new());
    let id = agent.info().id.clone();
    let endpoint = Endpoint::new(id.clone(), agent.card(), agent);
    agents.insert(endpoint).expect("the name is one");
    agents.set_default(Some(id));
    let server = Server::new(
        nuncio_server::Settings::default(),
        Authenticator::anonymous(),
        agents,
        Arc::new(SystemClock),
        Arc::new(RandomIds),
    );
    tokio::spawn(async move { server.run(listener, CancellationToken::new()).await });
    format!("http://{address}")
}

fn echo() -> impl Agent + 'static {
    let info = AgentInfo::new("echo", "Echo", "Echoes.");
    agent_fn(info, async |_, input: nuncio_engine::Input| {
        Ok(input.message.text())
    })
}

async fn remote(engine: &Engine, url: &str) -> Arc<HostedAgent> {
    let egress = Egress::new(EgressPolicy::open()).expect("a client can be made");
    let remote = RemoteAgent::connect("remote", ClientBuilder::new(egress), url).await;
    engine.host(Arc::new(remote.expect("the agent is there")))
}

fn runtime() -> Runtime {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime can be made")
}

fn models(criterion: &mut Criterion) {
    let runtime = runtime();
    let alone = model();
    let agent = ModelAgent::builder("model").model(model()).build();
    let agent = engine().host(Arc::new(agent.expect("it has a model")));
    let mut group = criterion.benchmark_group("a call of a model");
    group.bench_function("alone", |b| b.to_async(&runtime).iter(|| answer(&alone)));
    group.bench_function("as an agent", |b| b.to_async(&runtime).iter(|| ask(&agent)));
    group.finish();
}

fn hops(criterion: &mut Criterion) {
    let runtime = runtime();
    let (here, there) = (engine(), engine());
    let near = there.host(Arc::new(echo()));
    let url = runtime.block_on(served(Arc::clone(&near)));
    let far = runtime.block_on(remote(&here, &url));
    let mut group = criterion.benchmark_group("a call of an agent");
    group.bench_function("here", |b| b.to_async(&runtime).iter(|| ask(&near)));
    group.bench_function("elsewhere", |b| b.to_async(&runtime).iter(|| ask(&far)));
    group.finish();
    runtime.block_on(many(&there, &here));
}

/// Memory of a thousand runs that wait for an agent elsewhere, both ends in this process.
async fn many(there: &Engine, here: &Engine) {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let info = AgentInfo::new("slow", "Slow", "Waits.");
    let slow = there.host(Arc::new(agent_fn(info, {
        let gate = Arc::clone(&gate);
        move |_, _| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire()
                    .await
                    .map_err(nuncio_engine::AgentError::internal)?
                    .forget();
                Ok("done")
            }
        }
    })));
    let far = remote(here, &served(slow).await).await;
    let before = resident();
    for _ in 0..1_000 {
        let sent = far.send_message(Call::client(), request(true)).await;
        assert!(sent.is_ok(), "{sent:?}");
    }
    while there.running() < 1_000 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let held = resident().saturating_sub(before);
    println!("1,000 runs at once, each waiting for one elsewhere: {held} KiB more, both ends");
    gate.add_permits(1_000);
    while here.running() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Resident memory in KiB; 0 where nobody tells.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    number.unwrap_or(0)
}

criterion_group!(benches, models, hops);
criterion_main!(benches);
