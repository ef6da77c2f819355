//! Running a task again from one of its steps, with that step changed.
//!
//! The steps before are given what came out of them then, as long as the run asks for the same ones
//! with the same input; nothing is called for them. The step itself is changed, and what comes after
//! it happens. A request asks for it in its metadata, under [`RERUN`]:
//!
//! ```json
//! { "task": "<the task>", "node": "<a step of its call tree>", "output": "<what it gives now>" }
//! ```
//!
//! With `input` instead of `output` the step is made with that. Only agents whose
//! [`AgentInfo::reruns`](crate::AgentInfo::reruns) says so let their callers do this.
//!
//! Steps are calls of models and tools. Whatever else the run does before the changed one, such as
//! calls of remote agents in a flow, it does again.

use std::collections::{HashMap, HashSet};
use std::fmt;

use nuncio_protocol::{A2aError, ErrorKind, Metadata, SendMessageRequest, Task, TaskId};
use nuncio_store::Scope;
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::engine::store_error;
use crate::{AgentError, CALL_CHAIN, HostedAgent, Node, RunCx, Span, SpanKind};

/// The member of a request's metadata that asks to run a task again from a step.
pub const RERUN: &str = "https://nuncio.dev/extensions/rerun/v1";

/// What stands in for a step of a run that repeats another.
#[derive(Clone, Debug, PartialEq)]
pub enum Replay {
    /// This came out of it then, or is to come out of it now: it is not made.
    Output(Value),
    /// It failed then, for this reason: it is not made.
    Failed(String),
    /// It is made with this.
    Input(Value),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    task: TaskId,
    node: String,
    #[serde(default, deserialize_with = "present")]
    input: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    output: Option<Value>,
}

/// `null` is a value like others.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A run that repeats another up to a step.
pub(crate) struct Rerun {
    /// The task that is repeated, and those that it has repeated itself.
    tasks: Vec<TaskId>,
    repeating: Mutex<Repeating>,
}

impl fmt::Debug for Rerun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rerun")
            .field("tasks", &self.tasks)
            .finish_non_exhaustive()
    }
}

struct Repeating {
    /// The steps of the earlier task, in their order.
    steps: Vec<Step>,
    /// Which of them each step of this run is.
    twins: HashMap<String, usize>,
    /// The step that is changed, and how.
    changed: usize,
    change: Option<Replay>,
    /// The steps around it, which are made.
    around: HashSet<usize>,
    /// Why this run is not the earlier one again.
    astray: Option<String>,
}

struct Step {
    node: Node,
    /// The step above; none for those of the run itself.
    parent: Option<usize>,
    taken: bool,
}

impl HostedAgent {
    /// What a request asks to repeat, of the caller's own tasks. Its message belongs to the
    /// conversation of the earlier task from now on, and begins a task.
    ///
    /// # Errors
    /// A wish that is none, a task or step that the caller does not have, a step that cannot be
    /// changed.
    pub(crate) async fn rerun(
        &self,
        call: &nuncio_protocol::Call,
        request: &mut SendMessageRequest,
    ) -> nuncio_protocol::Result<Option<Rerun>> {
        let Some(mut wish) = wish(request.metadata.as_ref())? else {
            return Ok(None);
        };
        if !self.info().reruns {
            let message = "callers of this agent may not run tasks again from a step";
            return Err(A2aError::new(ErrorKind::UnsupportedOperation, message));
        }
        let scope = self.scope(call);
        let stored = self.core.store.load(&scope, &wish.task).await;
        let stored = stored.map_err(|error| store_error(&error))?;
        let stored = stored.ok_or_else(|| A2aError::task_not_found(&wish.task))?;
        belongs(request, &stored.task)?;
        let nodes = self.call_tree(call, &wish.task).await?;
        let change = wish.change()?;
        let tasks = self.generations(&scope, wish.task, request).await?;
        Rerun::new(tasks, nodes, &wish.node, change).map(Some)
    }

    /// The task to repeat, and those that it repeats itself. What came along with its message and is
    /// not said anew comes along with this one.
    async fn generations(
        &self,
        scope: &Scope,
        task: TaskId,
        request: &mut SendMessageRequest,
    ) -> nuncio_protocol::Result<Vec<TaskId>> {
        let mut tasks = vec![task];
        while let Some(task) = tasks.last().filter(|_| tasks.len() < MAX_GENERATIONS) {
            let earlier = self.core.first_request(scope, task).await;
            let earlier = earlier.map_err(|error| store_error(&error))?.metadata;
            let before = wish(earlier.as_ref()).ok().flatten();
            if tasks.len() == 1 {
                let metadata = request.metadata.get_or_insert_default();
                for (name, value) in earlier.into_iter().flatten() {
                    if name != CALL_CHAIN && !metadata.contains_key(&name) {
                        metadata.insert(name, value);
                    }
                }
            }
            match before {
                Some(wish) => tasks.push(wish.task),
                None => break,
            }
        }
        Ok(tasks)
    }
}

/// Repetitions of repetitions that are followed back.
const MAX_GENERATIONS: usize = 100;

fn wish(metadata: Option<&Metadata>) -> nuncio_protocol::Result<Option<Wish>> {
    let Some(said) = metadata.and_then(|metadata| metadata.get(RERUN)) else {
        return Ok(None);
    };
    let wish = Wish::deserialize(said);
    wish.map(Some)
        .map_err(|error| invalid("", error.to_string()))
}

impl Wish {
    fn change(&mut self) -> nuncio_protocol::Result<Replay> {
        match (self.input.take(), self.output.take()) {
            (Some(input), None) => Ok(Replay::Input(input)),
            (None, Some(output)) => Ok(Replay::Output(output)),
            _ => Err(invalid("", "needs one of input and output")),
        }
    }
}

fn belongs(request: &mut SendMessageRequest, earlier: &Task) -> nuncio_protocol::Result<()> {
    let Some(message) = &mut request.message else {
        return Ok(());
    };
    if message.task_id.is_some() {
        let why = "must be absent: running again makes a new task";
        return Err(A2aError::invalid_field("message.taskId", why));
    }
    match &message.context_id {
        Some(context) if earlier.context_id.as_ref() != Some(context) => {
            let why = "is not the context of the task that is to run again";
            Err(A2aError::invalid_field("message.contextId", why))
        }
        _ => {
            message.context_id.clone_from(&earlier.context_id);
            Ok(())
        }
    }
}

fn invalid(member: &str, why: impl Into<String>) -> A2aError {
    let field = format!("metadata[\"{RERUN}\"]{member}");
    A2aError::invalid_field(field, why.into())
}

impl Rerun {
    fn new(
        tasks: Vec<TaskId>,
        nodes: Vec<Node>,
        changed: &str,
        change: Replay,
    ) -> nuncio_protocol::Result<Self> {
        let steps = steps(nodes);
        let found = steps.iter().position(|step| step.node.id == changed);
        let changed = found.ok_or_else(|| invalid(".node", "is no step of that task"))?;
        let kind = steps[changed].node.kind;
        if !matches!(kind, SpanKind::Model | SpanKind::Tool) {
            let why = "is no call of a model or a tool: only those can be changed";
            return Err(invalid(".node", why));
        }
        let above = |at: &usize| steps[*at].parent;
        let around = std::iter::successors(steps[changed].parent, above).collect();
        let repeating = Mutex::new(Repeating {
            twins: HashMap::new(),
            change: Some(change),
            astray: None,
            steps,
            changed,
            around,
        });
        Ok(Self { tasks, repeating })
    }

    /// Finds the earlier step that a new one repeats: the next of its kind and name at its place.
    pub(crate) fn begin(&self, node: &Node, run: &str) {
        let mut repeating = self.repeating.lock();
        if repeating.change.is_none() {
            return;
        }
        let parent = node.parent.as_deref().filter(|parent| *parent != run);
        let parent = parent.map(|parent| repeating.twins.get(parent).copied());
        if parent == Some(None) {
            return;
        }
        let parent = parent.flatten();
        let found = (0..repeating.steps.len()).find(|at| {
            let step = &repeating.steps[*at];
            let same = step.node.kind == node.kind && step.node.name == node.name;
            let stays = *at == repeating.changed || repeating.around.contains(at);
            !step.taken && step.parent == parent && same && (stays || step.came_to_something())
        });
        if let Some(at) = found {
            repeating.steps[at].taken = true;
            repeating.twins.insert(node.id.clone(), at);
        }
    }

    /// What went into the step that this one repeats.
    fn input_then(&self, id: &str) -> Option<Value> {
        let repeating = self.repeating.lock();
        let at = *repeating.twins.get(id)?;
        repeating.steps[at].node.input.clone()
    }

    fn ask(&self, id: &str, name: &str, input: Option<&Value>) -> Asked {
        let mut repeating = self.repeating.lock();
        if repeating.change.is_none() {
            return Asked::Live;
        }
        if let Some(why) = &repeating.astray {
            return Asked::Astray(why.clone());
        }
        let Some(at) = repeating.twins.get(id).copied() else {
            return repeating.stray(format!("it makes a step {name} that was not there"));
        };
        if at == repeating.changed {
            return repeating.change.take().map_or(Asked::Live, Asked::Changed);
        }
        if repeating.around.contains(&at) {
            return Asked::Live;
        }
        let earlier = &repeating.steps[at].node;
        match (&earlier.input, &earlier.output, &earlier.error) {
            (Some(before), ..) if Some(before) != input => {
                repeating.stray(format!("the input of {name} is another one"))
            }
            (Some(_), Some(output), _) if !earlier.is_left_out() => {
                Asked::Given(Replay::Output(output.clone()))
            }
            (Some(_), _, Some(why)) => Asked::Given(Replay::Failed(why.clone())),
            _ => Asked::Unrecorded,
        }
    }
}

enum Asked {
    /// What it was.
    Given(Replay),
    /// What it is now.
    Changed(Replay),
    /// It is made.
    Live,
    /// It is made, since it is not known what came of it.
    Unrecorded,
    Astray(String),
}

impl Repeating {
    fn stray(&mut self, why: String) -> Asked {
        let why = format!(
            "the run does not repeat the earlier one up to the step that is changed: {why}"
        );
        Asked::Astray(self.astray.insert(why).clone())
    }
}

impl Step {
    /// Not if it paused, or was cut off. What a model has failed to say was asked for again.
    fn came_to_something(&self) -> bool {
        let node = &self.node;
        match node.kind {
            SpanKind::Model => node.output.is_some() || node.is_left_out(),
            SpanKind::Tool => node.output.is_some() || node.error.is_some() || node.is_left_out(),
            SpanKind::Agent | SpanKind::Remote | SpanKind::Flow => true,
        }
    }
}

/// The nodes without the runs that they are of: those of several turns are one sequence.
fn steps(nodes: Vec<Node>) -> Vec<Step> {
    let ids: HashSet<String> = nodes.iter().map(|node| node.id.clone()).collect();
    let is_top = |node: &Node| node.parent.as_ref().is_none_or(|id| !ids.contains(id));
    let nodes = nodes.into_iter();
    let nodes: Vec<Node> = nodes
        .filter(|node| node.kind != SpanKind::Agent || !is_top(node))
        .collect();
    let at: HashMap<&str, usize> = nodes
        .iter()
        .enumerate()
        .map(|(n, node)| (&*node.id, n))
        .collect();
    let parents: Vec<Option<usize>> = nodes
        .iter()
        .map(|node| at.get(node.parent.as_deref()?).copied())
        .collect();
    nodes
        .into_iter()
        .zip(parents)
        .map(|(node, parent)| Step {
            node,
            parent,
            taken: false,
        })
        .collect()
}

impl Span {
    /// What stands in for this step, whose input has been told, if the run repeats another one.
    ///
    /// Whoever makes calls of models and tools asks before each. `None` in a run that repeats none,
    /// after the step that is changed, and where it was not recorded what came out.
    ///
    /// # Errors
    /// If the run has gone another way than the one that it repeats.
    pub fn replay(&self) -> Result<Option<Replay>, AgentError> {
        let Some(rerun) = self.rerun() else {
            return Ok(None);
        };
        let node = self.node();
        match rerun.ask(&node.id, &node.name, node.input.as_ref()) {
            Asked::Live => Ok(None),
            Asked::Astray(why) => Err(AgentError::new(why)),
            Asked::Unrecorded => {
                self.set(REPLAYED, "no: it was not recorded what came out");
                Ok(None)
            }
            Asked::Given(replay) => {
                self.set(REPLAYED, "yes");
                Ok(Some(replay))
            }
            Asked::Changed(Replay::Input(input)) => {
                self.set(REPLAYED, "with another input");
                self.input(&input);
                Ok(Some(Replay::Input(input)))
            }
            Asked::Changed(replay) => {
                self.set(REPLAYED, "with another output");
                Ok(Some(replay))
            }
        }
    }
}

impl Span {
    /// What went into the earlier step that this one repeats, if the run repeats another one: for what
    /// changes with time alone, such as a date, and is to be said again as it was.
    pub fn input_then(&self) -> Option<Value> {
        self.rerun()?.input_then(&self.node().id)
    }
}

/// Says of a step in a run that repeats another whether it was made.
const REPLAYED: &str = "nuncio.replayed";

impl RunCx {
    /// Whether the run still repeats another one: its steps are given rather than made.
    pub fn repeats(&self) -> bool {
        let rerun = self.inner.rerun.get();
        rerun.is_some_and(|rerun| rerun.repeating.lock().change.is_some())
    }

    /// Whether this run repeats one of that task up to a step, or one that repeats it in turn.
    pub fn repeats_task(&self, task: &str) -> bool {
        let rerun = self.inner.rerun.get();
        rerun.is_some_and(|rerun| rerun.tasks.iter().any(|known| known.as_str() == task))
    }
}

/// A run that was to repeat another one cannot be taken up again after a crash: what it has been
/// given is not known any more.
pub(crate) fn is_rerun(metadata: Option<&Metadata>) -> bool {
    metadata.is_some_and(|metadata| metadata.contains_key(RERUN))
}
