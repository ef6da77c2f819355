//! Where in a run an agent works: the run itself, or a part of it that another agent was given.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use nuncio_protocol::{
    AgentId, Artifact, ArtifactId, Message, Task, TaskArtifactUpdateEvent, TraceContext,
};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::context::RunInner;
use crate::holder::Holder;
use crate::outbox::{Artifacts, Emitted};
use crate::{AgentError, EmitError, RunCx};

/// The part of a run that an agent has.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) agent: AgentId,
    /// The agents above it, outermost first.
    pub(crate) above: Arc<[AgentId]>,
    /// Its name among the checkpoints; empty for the run itself.
    pub(crate) path: Arc<str>,
    pub(crate) cancel: CancellationToken,
    /// The span that it works in.
    pub(crate) span: TraceContext,
    pub(crate) text_artifact: Arc<Mutex<Option<ArtifactId>>>,
    /// Where its artifacts go, if not into the task.
    pub(crate) gathered: Option<Gathered>,
    /// Who takes what it says about its work, if not the task.
    pub(crate) listener: Option<Arc<dyn Listener>>,
    /// Whether messages that come meanwhile get runs of their own.
    pub(crate) apart: bool,
}

/// Takes what an agent says about its work in place of the task, such as to look at it first.
pub trait Listener: fmt::Debug + Send + Sync {
    /// Takes a status message.
    ///
    /// # Errors
    /// [`EmitError`], which the agent gets.
    fn hear(
        &self,
        message: Message,
    ) -> Pin<Box<dyn Future<Output = Result<(), EmitError>> + Send + '_>>;
}

impl RunCx {
    /// The same run for an agent that works on a part of it.
    ///
    /// Its texts make an artifact of their own, and it is canceled with this part. `place` names the
    /// part: unique below this one and the same when the task goes on after a pause or a crash, such
    /// as `step-2`, so that it finds [its checkpoint](Self::left).
    ///
    /// # Errors
    /// An [`AgentError`] if the agent is at work above already, or agents are nested deeper than
    /// [`Settings::max_depth`](crate::Settings::max_depth).
    pub fn child(&self, agent: &AgentId, place: &str) -> Result<Self, AgentError> {
        self.inner.chain.admit(self, agent)?;
        let mut above = self.place.above.to_vec();
        above.push(self.place.agent.clone());
        let path = match self.place.path.as_ref() {
            "" => place.into(),
            path => format!("{path}/{place}").into(),
        };
        let place = Place {
            agent: agent.clone(),
            above: above.into(),
            path,
            cancel: self.place.cancel.child_token(),
            span: self.place.span,
            text_artifact: Arc::default(),
            gathered: self.place.gathered.clone(),
            listener: self.place.listener.clone(),
            apart: self.place.apart,
        };
        Ok(Self {
            inner: Arc::clone(&self.inner),
            place: Arc::new(place),
        })
    }

    /// As [`Self::child`], but its artifacts are gathered rather than made the task's.
    ///
    /// # Errors
    /// As [`Self::child`].
    pub fn gathering_child(
        &self,
        agent: &AgentId,
        place: &str,
    ) -> Result<(Self, Gathered), AgentError> {
        let mut child = self.child(agent, place)?;
        let gathered = Gathered::new(self);
        Arc::make_mut(&mut child.place).gathered = Some(gathered.clone());
        Ok((child, gathered))
    }

    /// The name of this part of the run: empty for the run itself, else those given to
    /// [`Self::child`], with slashes between.
    pub fn place(&self) -> &str {
        &self.place.path
    }

    /// The same run, but artifacts are gathered rather than made the task's. What is there already
    /// may be [gone on with](Gathered::goes_on).
    pub fn gathering(&self) -> (Self, Gathered) {
        let gathered = Gathered::new(self);
        gathered.0.lock().before = Some(match &self.place.gathered {
            Some(outer) => Before::Gathered(outer.clone()),
            None => Before::Task(Arc::clone(&self.inner)),
        });
        let place = Place {
            text_artifact: Arc::default(),
            gathered: Some(gathered.clone()),
            ..Place::clone(&self.place)
        };
        let gathering = Self {
            inner: Arc::clone(&self.inner),
            place: Arc::new(place),
        };
        (gathering, gathered)
    }

    /// The same run, but what is said about the work is told to somebody else than the task.
    #[must_use]
    pub fn heard_by(&self, listener: Arc<dyn Listener>) -> Self {
        let place = Place {
            listener: Some(listener),
            ..Place::clone(&self.place)
        };
        Self {
            inner: Arc::clone(&self.inner),
            place: Arc::new(place),
        }
    }

    /// The same run, which does not [take](Self::take_message) messages that come meanwhile: each gets a
    /// run of its own.
    #[must_use]
    pub fn apart(&self) -> Self {
        let place = Place {
            apart: true,
            ..Place::clone(&self.place)
        };
        Self {
            inner: Arc::clone(&self.inner),
            place: Arc::new(place),
        }
    }

    /// How many agents are above this one, those of other servers that called this one included.
    pub fn depth(&self) -> usize {
        self.inner.chain.depth() + self.place.above.len()
    }

    /// What an earlier run of the task left here with [`Self::checkpoint`].
    pub fn left(&self) -> Option<Value> {
        self.inner.checkpoints.lock().get(&self.place.path)
    }

    /// Leaves something for a later run of this task to find; on disk with the next event.
    ///
    /// # Errors
    /// [`EmitError::Ended`].
    pub fn checkpoint(&self, value: &Value) -> Result<(), EmitError> {
        let json = {
            let mut checkpoints = self.inner.checkpoints.lock();
            checkpoints.set(&self.place.path, value.clone());
            checkpoints.json()
        };
        self.inner.outbox.checkpoint(json.into())
    }

    /// Forgets what has been left here and below: the work begins anew.
    ///
    /// # Errors
    /// [`EmitError::Ended`].
    pub fn forget(&self) -> Result<(), EmitError> {
        let json = {
            let mut checkpoints = self.inner.checkpoints.lock();
            if !checkpoints.clear(&self.place.path) {
                return Ok(());
            }
            checkpoints.json()
        };
        self.inner.outbox.checkpoint(json.into())
    }
}

/// What the agents of a run have left, by place, and who has the task.
#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    places: BTreeMap<Arc<str>, Value>,
    /// The agent that the task was handed over to.
    pub(crate) holder: Option<Holder>,
}

/// The member of a checkpoint that holds those of several places.
const PLACES: &str = "$places";

/// The member beside it that says who has the task.
const HOLDER: &str = "$holder";

impl Checkpoints {
    pub(crate) fn read(json: Option<&str>) -> Self {
        let value = json.and_then(|json| serde_json::from_str::<Value>(json).ok());
        let mut read = Self::default();
        let is_ours = |object: &Map<String, Value>| {
            let known = |name: &String| name == PLACES || name == HOLDER;
            object.contains_key(PLACES) && object.keys().all(known)
        };
        match value {
            None | Some(Value::Null) => {}
            Some(Value::Object(mut object)) if is_ours(&object) => {
                if let Some(Value::Object(all)) = object.remove(PLACES) {
                    let all = all.into_iter();
                    read.places = all.map(|(place, value)| (place.into(), value)).collect();
                }
                let holder = object.remove(HOLDER);
                read.holder = holder.and_then(|holder| serde_json::from_value(holder).ok());
            }
            Some(own) => {
                read.places.insert("".into(), own);
            }
        }
        read
    }

    pub(crate) fn get(&self, place: &str) -> Option<Value> {
        self.places.get(place).cloned()
    }

    fn set(&mut self, place: &Arc<str>, value: Value) {
        self.places.insert(Arc::clone(place), value);
    }

    /// Whether there was anything to clear.
    fn clear(&mut self, place: &str) -> bool {
        let before = self.places.len();
        let below = |path: &str| match path.strip_prefix(place) {
            Some(rest) => place.is_empty() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        };
        self.places.retain(|path, _| !below(path));
        self.places.len() < before
    }

    /// What the agents before have left is gone: the task is another one's.
    pub(crate) fn hand_over(&mut self, holder: Holder) {
        self.places.clear();
        self.holder = Some(holder);
    }

    /// What one agent left is kept as it is.
    pub(crate) fn json(&self) -> String {
        let alone = self.places.len() == 1 && self.holder.is_none();
        match self.places.get("").filter(|_| alone) {
            Some(own) if own.get(PLACES).is_none() => own.to_string(),
            _ if self.places.is_empty() && self.holder.is_none() => Value::Null.to_string(),
            _ => {
                let places = self.places.iter();
                let places: Map<_, _> = places
                    .map(|(place, value)| (place.to_string(), value.clone()))
                    .collect();
                let mut all = json!({ PLACES: places });
                if let Some(holder) = &self.holder {
                    all[HOLDER] = json!(holder);
                }
                all.to_string()
            }
        }
    }
}

/// The artifacts of an agent that works for another one; at most 16 MiB.
#[derive(Clone, Debug)]
pub struct Gathered(Arc<Mutex<Gathering>>);

#[derive(Debug)]
struct Gathering {
    task: Task,
    artifacts: Artifacts,
    bytes: usize,
    before: Option<Before>,
    /// Those that go on with what was there before.
    continued: BTreeSet<ArtifactId>,
}

/// Where artifacts are that may be gone on with.
#[derive(Debug)]
enum Before {
    Task(Arc<RunInner>),
    Gathered(Gathered),
}

impl Before {
    fn has_open(&self, id: &ArtifactId) -> bool {
        match self {
            Self::Task(run) => run.outbox.has_open(id),
            Self::Gathered(outer) => outer.0.lock().artifacts.has_open(id),
        }
    }
}

const MAX_GATHERED_BYTES: usize = 16 << 20;

impl Gathered {
    fn new(cx: &RunCx) -> Self {
        let mut task = Task::default();
        task.id = cx.task().clone();
        task.context_id = Some(cx.context().clone());
        Self(Arc::new(Mutex::new(Gathering {
            task,
            artifacts: Artifacts::default(),
            bytes: 0,
            before: None,
            continued: BTreeSet::new(),
        })))
    }

    /// Begins with what an earlier run of the same part gave, before it paused or handed over; that may be
    /// gone on with.
    pub fn begin_with(&self, artifacts: Vec<Artifact>) {
        let mut gathering = self.0.lock();
        for artifact in &artifacts {
            gathering.bytes += artifact.parts.iter().map(size).sum::<usize>();
            gathering.artifacts.open(artifact);
        }
        gathering.task.artifacts = artifacts;
    }

    /// Whether this artifact is more of one that was there before.
    pub fn goes_on(&self, artifact: &ArtifactId) -> bool {
        self.0.lock().continued.contains(artifact)
    }

    /// Whether the last piece of this artifact has come.
    pub fn has_ended(&self, artifact: &ArtifactId) -> bool {
        !self.0.lock().artifacts.has_open(artifact)
    }

    /// The artifacts so far, each whole.
    pub fn artifacts(&self) -> Vec<Artifact> {
        self.0.lock().task.artifacts.clone()
    }

    /// All text: what the agent said at its end, then its artifacts, a line break between two.
    pub fn text(&self, said: Option<&Message>) -> String {
        let artifacts = self.artifacts();
        let said = said.map(Message::text);
        let texts = said.into_iter().chain(artifacts.iter().map(Artifact::text));
        let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
        texts.join("\n")
    }

    pub(crate) fn take(&self, event: Emitted) -> Result<(), EmitError> {
        let Emitted::Artifact {
            artifact,
            append,
            last_chunk,
        } = event
        else {
            return Ok(());
        };
        let invalid = |text: String| EmitError::Invalid(text);
        let mut gathering = self.0.lock();
        let append = append && !gathering.begins_with(&artifact.artifact_id);
        gathering.artifacts.check(&artifact, append, last_chunk)?;
        gathering.bytes += artifact.parts.iter().map(size).sum::<usize>();
        if gathering.bytes > MAX_GATHERED_BYTES {
            return Err(invalid(format!(
                "the agent gives more than {MAX_GATHERED_BYTES} bytes to the one it works for"
            )));
        }
        let (id, context) = (
            gathering.task.id.clone(),
            gathering.task.context_id.clone().unwrap_or_default(),
        );
        let mut event = TaskArtifactUpdateEvent::new(id, context, artifact);
        (event.append, event.last_chunk) = (append, last_chunk);
        let response = nuncio_protocol::StreamResponse::ArtifactUpdate(event);
        let folded = gathering.task.apply(&response);
        folded.map_err(|error| invalid(error.to_string()))
    }
}

impl Gathering {
    /// Whether an artifact that is appended to is the first piece here of one that was there before.
    fn begins_with(&mut self, id: &ArtifactId) -> bool {
        let begins = !self.artifacts.has(id)
            && self
                .before
                .as_ref()
                .is_some_and(|before| before.has_open(id));
        if begins {
            self.continued.insert(id.clone());
        }
        begins
    }
}

fn size(part: &nuncio_protocol::Part) -> usize {
    use nuncio_protocol::PartContent::{Data, Raw, Text, Url};
    match &part.content {
        Text(text) | Url(text) => text.len(),
        Raw(bytes) => bytes.len(),
        Data(value) => value.to_string().len(),
    }
}
