//! The agents of a running server: those of the configuration, and those that administrators add.
//!
//! The latter are kept in the data folder, one JSON file each, and come back after a restart.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::{Method, StatusCode};
use nuncio_engine::{Agent, Engine, TextSealer};
use nuncio_protocol::{A2aError, AgentCard, AgentId, ErrorKind, FieldViolation};
use nuncio_runtime::RemoteAgent;
use nuncio_server::{AdminReply, AdminRequest, Endpoint, Switchboard};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::call_trees::Kept;
use super::files::KeptFiles;
use super::{failed, secrets};
use crate::config::{AgentConfig, Config, Workshop, check_agent, check_members};
use crate::outcome::{Failure, Outcome};

/// The agents, changeable one at a time.
pub(super) struct Agents {
    engine: Engine,
    switchboard: Arc<Switchboard>,
    config: Config,
    workshop: Workshop,
    sealer: TextSealer,
    /// Where added agents are kept; nowhere if nothing is kept.
    folder: Option<PathBuf>,
    known: Mutex<BTreeMap<String, Known>>,
    this: Weak<Self>,
}

struct Known {
    config: AgentConfig,
    source: Source,
}

/// Where an agent comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The configuration file.
    Configuration,
    /// An administrator added it.
    Api,
    /// The program that embeds the server.
    Code,
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Api => "api",
            Self::Code => "code",
        }
    }

    /// Where it can be changed, if not here.
    fn elsewhere(self) -> Option<&'static str> {
        match self {
            Self::Configuration => Some("is in the configuration file; change it there"),
            Self::Code => Some("is a part of the program; change it there"),
            Self::Api => None,
        }
    }
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agents").finish_non_exhaustive()
    }
}

impl Agents {
    /// Serves `own` agents and those of the configuration, then those added before.
    ///
    /// # Errors
    /// If an agent cannot be made, or the folder cannot be read.
    pub(super) fn start(
        config: &Config,
        engine: &Engine,
        workshop: Workshop,
        sealer: TextSealer,
        kept: bool,
        own: Vec<Arc<dyn Agent>>,
    ) -> Outcome<Arc<Self>> {
        let this = Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            engine: engine.clone(),
            switchboard: Arc::new(Switchboard::new()),
            config: config.clone(),
            workshop,
            sealer,
            folder: kept.then(|| config.server.data.join("agents")),
            known: Mutex::default(),
        });
        let agents = &this;
        let mut known: BTreeMap<String, Known> = BTreeMap::new();
        let default = config.server.default_agent.as_deref();
        let mut default: Option<AgentId> = default.map(Into::into);
        let configured = match own.is_empty() {
            true => config.agents(),
            false => config.agents.clone(),
        };
        for agent in own {
            let id = agent.info().id.clone();
            let of_code = AgentConfig::of_code(id.as_str());
            agents
                .put_on(&of_code, agent)
                .map_err(|why| Failure::usage(format!("failed to serve agent {id}: {why}")))?;
            known.insert(id.to_string(), Known::of(of_code, Source::Code));
            default.get_or_insert(id);
        }
        for agent in configured {
            agents.serve(&agent).map_err(|why| {
                Failure::usage(format!("failed to make agent {}: {why}", agent.id))
            })?;
            default.get_or_insert_with(|| agent.id.as_str().into());
            known.insert(agent.id.clone(), Known::of(agent, Source::Configuration));
        }
        for agent in agents.added_before()? {
            if known.contains_key(&agent.id) {
                tracing::warn!(agent.id, "there is another agent of this name");
                continue;
            }
            if let Err(why) = agents.serve(&agent) {
                tracing::error!(agent.id, "failed to make an agent added before: {why}");
                continue;
            }
            known.insert(agent.id.clone(), Known::of(agent, Source::Api));
        }
        agents.switchboard.set_default(default);
        agents.renew_flows(&known);
        // Nobody has seen it yet.
        if let Ok(mut empty) = agents.known.try_lock() {
            *empty = known;
        }
        Ok(this)
    }

    pub(super) fn switchboard(&self) -> &Arc<Switchboard> {
        &self.switchboard
    }

    /// Makes an agent and puts it on the switchboard.
    fn serve(&self, agent: &AgentConfig) -> Result<(), String> {
        match agent.pass_through {
            true => self.pass_on(agent, agent.build_remote(&self.workshop)?)?,
            false => self.put_on(agent, agent.build(&self.workshop)?)?,
        }
        if agent.is_described_elsewhere() {
            tokio::spawn(describe(Weak::clone(&self.this), agent.clone()));
        }
        Ok(())
    }

    /// Offers an agent whose tasks are kept here.
    fn put_on(&self, agent: &AgentConfig, built: Arc<dyn Agent>) -> Result<(), String> {
        let hosted = self.engine.host(built);
        let card = hosted.card();
        let trees = Arc::new(Kept {
            agent: Arc::clone(&hosted),
            content: agent.trace_content,
        });
        let files = Arc::new(KeptFiles(Arc::clone(&hosted)));
        let endpoint = |card| {
            let endpoint = Endpoint::new(agent.id.as_str(), card, hosted);
            endpoint.with_call_trees(trees).with_files(files)
        };
        self.offer(agent, card, endpoint)
    }

    /// Offers an agent whose tasks are kept elsewhere. Flows and models that ask it have a task of it
    /// here all the same.
    fn pass_on(&self, agent: &AgentConfig, remote: Arc<RemoteAgent>) -> Result<(), String> {
        let passing = self.engine.passing(agent.id.as_str());
        let passed = agent.passed_through(&remote, passing);
        let card = passed.offered(self.engine.host(remote).card());
        let endpoint = |card| Endpoint::new(agent.id.as_str(), card, Arc::new(passed));
        self.offer(agent, card, endpoint)
    }

    fn offer(
        &self,
        agent: &AgentConfig,
        mut card: AgentCard,
        endpoint: impl FnOnce(AgentCard) -> Endpoint,
    ) -> Result<(), String> {
        let extended = agent.extended_card(&card);
        card.capabilities.extended_agent_card = Some(extended.is_some());
        let mut endpoint = endpoint(card)
            .with_dialects(agent.versions())
            .with_bindings(agent.bindings.iter().map(|name| name.binding()))
            .with_workspaces(agent.workspaces.iter().map(String::as_str))
            .with_legacy_routes(agent.legacy_routes)
            .with_forwarded_headers(agent.forwarded())
            .with_status_profile(self.config.server.status_profile.into())
            .with_strict_version(self.config.server.strict_version);
        if let Some(mut card) = extended {
            card.capabilities.extended_agent_card = Some(true);
            endpoint = endpoint.with_extended_card(card);
        }
        let inserted = self.switchboard.insert(endpoint);
        inserted.map_err(|error| error.to_string())
    }

    /// Serves flows anew whose members take or give something else than before.
    fn renew_flows(&self, known: &BTreeMap<String, Known>) {
        let flows = known.values().map(|known| &known.config);
        let flows: Vec<_> = flows.filter(|config| config.kind.is_flow()).collect();
        let modes = |agent: &dyn Agent| {
            let info = agent.info();
            (info.input_modes.clone(), info.output_modes.clone())
        };
        // A flow within a flow settles in the next round.
        for _ in 0..flows.len() {
            let mut settled = true;
            for config in &flows {
                let now = self.engine.directory().agent(&config.id.as_str().into());
                let Ok(built) = config.build(&self.workshop) else {
                    continue;
                };
                if now.is_some_and(|now| modes(&*now) == modes(&*built)) {
                    continue;
                }
                settled = false;
                if let Err(why) = self.put_on(config, built) {
                    tracing::error!(agent.id = config.id, "a flow is not served anew: {why}");
                }
            }
            if settled {
                return;
            }
        }
    }

    fn added_before(&self) -> Outcome<Vec<AgentConfig>> {
        let Some(folder) = self.folder.as_deref().filter(|folder| folder.exists()) else {
            return Ok(Vec::new());
        };
        let unreadable =
            |path: &Path, error: &io::Error| failed(&format!("read {}", path.display()), error);
        let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
        let mut agents = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| unreadable(folder, &error))?.path();
            if path.extension().is_none_or(|kind| kind != "json") {
                continue;
            }
            let bytes = fs::read(&path).map_err(|error| unreadable(&path, &error))?;
            let failure = |why: String| {
                Failure::internal(format!("failed to read {}: {why}", path.display()))
                    .hint("move the file away to start without this agent")
            };
            let agent = serde_json::from_slice::<AgentConfig>(&bytes);
            let mut agent = agent.map_err(|error| failure(error.to_string()))?;
            agent.open(&self.sealer).map_err(failure)?;
            agents.push(agent);
        }
        Ok(agents)
    }

    /// Writes an agent's file, whole or not at all.
    fn keep(&self, agent: &AgentConfig) -> io::Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        secrets::make_private_folder(folder)?;
        let text = json!(agent.sealed(&self.sealer)).to_string();
        secrets::make(&file(folder, &agent.id), text.as_bytes())?;
        fs::File::open(folder)?.sync_all()
    }

    fn forget(&self, id: &str) -> io::Result<()> {
        match &self.folder {
            Some(folder) => fs::remove_file(file(folder, id)),
            None => Ok(()),
        }
    }

    /// Answers a request below `/agents`.
    pub(super) async fn answer(&self, request: AdminRequest) -> Result<AdminReply, A2aError> {
        let path = request.path.trim_end_matches('/');
        let id = path.strip_prefix("/agents/");
        match (&request.method, path, id) {
            (&Method::GET, "/agents", _) => self.list(&request.public_url).await,
            (&Method::POST, "/agents", _) => {
                self.put(read_agent(&request.body, None)?, false).await
            }
            (&Method::GET, _, Some(id)) => self.get(id, &request.public_url).await,
            (&Method::PUT, _, Some(id)) => {
                self.put(read_agent(&request.body, Some(id))?, true).await
            }
            (&Method::DELETE, _, Some(id)) => self.remove(id).await,
            (_, "/agents", _) | (_, _, Some(_)) => {
                let methods = if id.is_some() {
                    "GET, PUT, DELETE"
                } else {
                    "GET, POST"
                };
                let message = format!("this address takes {methods}");
                Err(A2aError::new(ErrorKind::MethodNotAllowed, message))
            }
            _ => Err(A2aError::new(ErrorKind::MethodNotFound, "no such path")),
        }
    }

    async fn list(&self, public_url: &str) -> Result<AdminReply, A2aError> {
        let known = self.known.lock().await;
        let agents: Vec<Value> = known
            .values()
            .map(|agent| self.shown(agent, public_url))
            .collect();
        Ok(good(StatusCode::OK, json!({ "agents": agents })))
    }

    async fn get(&self, id: &str, public_url: &str) -> Result<AdminReply, A2aError> {
        let known = self.known.lock().await;
        let agent = known.get(id).ok_or_else(|| unknown(id))?;
        Ok(good(StatusCode::OK, self.shown(agent, public_url)))
    }

    fn shown(&self, agent: &Known, public_url: &str) -> Value {
        let id = &agent.config.id;
        let url = format!("{public_url}/agents/{id}");
        let mut shown = json!({
            "id": id,
            "source": agent.source.as_str(),
            "url": url,
            "cardUrl": format!("{url}/.well-known/agent-card.json"),
        });
        if let Some(endpoint) = self.switchboard.get(&id.as_str().into()) {
            shown["name"] = json!(endpoint.card().name);
            shown["description"] = json!(endpoint.card().description);
        }
        if agent.source != Source::Code {
            shown["config"] = json!(agent.config);
        }
        shown
    }

    /// Adds an agent; one that was added before is replaced if `replace` says so.
    async fn put(&self, mut agent: AgentConfig, replace: bool) -> Result<AdminReply, A2aError> {
        let mut known = self.known.lock().await;
        self.check(&mut agent, &known)?;
        let before = known.get(&agent.id);
        if let Some(before) = before {
            if let Some(elsewhere) = before.source.elsewhere() {
                return Ok(conflict(&agent.id, elsewhere));
            }
            if !replace {
                return Ok(conflict(&agent.id, "is there already; PUT replaces it"));
            }
        }
        let status = if before.is_some() {
            StatusCode::OK
        } else {
            StatusCode::CREATED
        };
        self.serve(&agent)
            .map_err(|why| A2aError::invalid_field("kind", why))?;
        // What has been answered for is there after a crash.
        if let Err(error) = self.keep(&agent) {
            self.serve_as_before(&agent.id, before);
            return Err(unkept(&error));
        }
        tracing::info!(agent.id, "an agent has been added");
        let shown = json!(agent);
        known.insert(agent.id.clone(), Known::of(agent, Source::Api));
        self.renew_flows(&known);
        Ok(good(status, shown))
    }

    /// Checks an agent that comes over the wire, by itself and among the others.
    fn check(
        &self,
        agent: &mut AgentConfig,
        known: &BTreeMap<String, Known>,
    ) -> Result<(), A2aError> {
        let before = known.get(&agent.id).map(|known| &known.config);
        let mut faults = match self.config.server.admin_host_access {
            true => Vec::new(),
            false => agent.reaches_for(),
        };
        faults.extend(agent.keep_hidden(before).err().into_iter().flatten());
        faults.extend(check_agent(agent));
        let find = |id: &str| known.get(id).map(|known| &known.config);
        faults.extend(check_members(agent, find));
        faults.extend(agent.check_layers(&self.config.layers));
        if faults.is_empty() {
            return Ok(());
        }
        let violations = faults.into_iter().map(|fault| FieldViolation {
            field: fault.path,
            description: format!("{} ({})", fault.message, fault.hint),
        });
        Err(A2aError::invalid_fields(violations.collect()))
    }

    /// Undoes a change that could not be kept.
    fn serve_as_before(&self, id: &str, before: Option<&Known>) {
        let undone = before.map(|before| self.serve(&before.config));
        if undone.is_none_or(|undone| undone.is_err()) {
            self.switchboard.remove(&id.into());
            self.engine.dismiss(&id.into());
        }
    }

    async fn remove(&self, id: &str) -> Result<AdminReply, A2aError> {
        let mut known = self.known.lock().await;
        let agent = known.get(id).ok_or_else(|| unknown(id))?;
        if let Some(elsewhere) = agent.source.elsewhere() {
            return Ok(conflict(id, elsewhere));
        }
        let needs_it = |other: &Known| Some((other.config.needs(id)?, other.config.id.clone()));
        if let Some((needed, other)) = known.values().find_map(needs_it) {
            let why = format!("{needed} agent {other}; change that one first");
            return Ok(conflict(id, &why));
        }
        self.forget(id).map_err(|error| unkept(&error))?;
        self.switchboard.remove(&id.into());
        self.engine.dismiss(&id.into());
        known.remove(id);
        tracing::info!(agent.id = id, "an agent has been removed");
        Ok(good(StatusCode::OK, json!({})))
    }
}

/// Gives an agent the description that its card elsewhere has, once that can be read.
async fn describe(agents: Weak<Agents>, config: AgentConfig) {
    let mut pause = Duration::from_secs(1);
    loop {
        let Some(agents) = agents.upgrade() else {
            return;
        };
        match config.described(&agents.workshop).await {
            Ok(agent) => {
                let known = agents.known.lock().await;
                let current = known.get(&config.id).map(|known| &known.config);
                if current == Some(&config) {
                    let put_on = match config.pass_through {
                        true => agents.pass_on(&config, agent),
                        false => config
                            .within_layers(agent, &agents.workshop.layers)
                            .and_then(|agent| agents.put_on(&config, agent)),
                    };
                    if let Err(why) = put_on {
                        tracing::error!(agent.id = config.id, "an agent is not described: {why}");
                    }
                    agents.renew_flows(&known);
                }
                return;
            }
            Err(why) => tracing::warn!(agent.id = config.id, "its card is not read yet: {why}"),
        }
        drop(agents);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(60));
    }
}

impl Known {
    fn of(config: AgentConfig, source: Source) -> Self {
        Self { config, source }
    }
}

fn file(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

/// Reads an agent; the id may be left out where the path has it.
fn read_agent(body: &[u8], id: Option<&str>) -> Result<AgentConfig, A2aError> {
    let mut value: Value = nuncio_protocol::json::decode(body)?;
    let object = value
        .as_object_mut()
        .ok_or_else(|| A2aError::invalid_field("", "expected an object with an agent"))?;
    if let Some(id) = id {
        let said = object.entry("id").or_insert_with(|| id.into());
        if said != id {
            return Err(A2aError::invalid_field("id", "differs from the path"));
        }
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { String::new() } else { path };
        A2aError::invalid_field(field, error.inner().to_string())
    })
}

fn good(status: StatusCode, body: Value) -> AdminReply {
    AdminReply { status, body }
}

fn conflict(id: &str, why: &str) -> AdminReply {
    let status = StatusCode::CONFLICT;
    let message = format!("agent {id} {why}");
    let error = json!({
        "code": status.as_u16(), "status": "ALREADY_EXISTS", "message": message, "details": []
    });
    good(status, json!({ "error": error }))
}

fn unknown(id: &str) -> A2aError {
    let shown: String = id.chars().take(128).collect();
    A2aError::new(ErrorKind::AgentNotFound, format!("no agent {shown}"))
}

fn unkept(error: &io::Error) -> A2aError {
    tracing::error!(%error, "the folder of added agents cannot be written");
    A2aError::internal()
}
