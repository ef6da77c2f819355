//! The call tree of a run: agents, model calls, tools, calls to other agents.
//!
//! Each is a [`Node`], kept with the task, and a span of the task's trace. Names and attributes are
//! those of OpenTelemetry's GenAI conventions; what goes in and comes out is kept with the task only.

use std::sync::Arc;

use nuncio_protocol::{
    AgentId, Metadata, SpanRecord, SpanRole, TaskState, Timestamp, TraceContext,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::context::RunInner;
use crate::rerun::Rerun;
use crate::{RunCx, place::Place};

/// What a step of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// An agent of this server at work.
    Agent,
    /// A call of a model.
    Model,
    /// A call of a tool.
    Tool,
    /// A call of an agent elsewhere.
    Remote,
    /// A part of a flow.
    Flow,
}

/// A step of a run, as it is kept with the task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Node {
    /// The id of its span, 16 hexadecimal digits.
    pub id: String,
    /// The node above it; absent for the run itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The trace, 32 hexadecimal digits.
    pub trace: String,
    /// What it is.
    pub kind: SpanKind,
    /// Its name, such as `chat gpt-5` or `execute_tool lookup`.
    pub name: String,
    /// The agent that works on it.
    pub agent: AgentId,
    /// The attempt of the run.
    pub attempt: u64,
    /// When it began.
    pub started: Timestamp,
    /// When it ended; absent while it goes on, or after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// What is told of it, by the names of OpenTelemetry.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub attributes: Metadata,
    /// What went in; left out above 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// What came out; left out above 64 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The steps of a run that are still to be kept.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// The run itself, once it has ended.
    root: Option<Node>,
    /// Steps that have begun or ended, each as it is now.
    steps: Vec<Node>,
    /// Whether there have been steps.
    branched: bool,
}

impl Tree {
    fn put(&mut self, node: Node) {
        self.branched = true;
        match self.steps.iter_mut().rfind(|known| known.id == node.id) {
            Some(known) => *known = node,
            None => self.steps.push(node),
        }
    }

    /// Takes what is to be written; of a run that is over, the run too if it had steps.
    pub(crate) fn take(&mut self, over: bool) -> Vec<Node> {
        let root = self.root.take().filter(|_| over && self.branched);
        root.into_iter().chain(self.steps.drain(..)).collect()
    }
}

/// The most that is kept of what goes in and comes out, each.
const MAX_CONTENT_BYTES: usize = 64 << 10;

/// Where a run stands in traces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunTrace {
    /// The span of the run.
    pub(crate) span: TraceContext,
    pub(crate) parent: Option<[u8; 8]>,
    pub(crate) link: Option<TraceContext>,
}

impl RunTrace {
    /// Goes on with the trace of the task's first message; a message of another trace is linked.
    pub(crate) fn new(
        first: Option<TraceContext>,
        message: Option<TraceContext>,
        of_task: TraceContext,
        ids: &dyn nuncio_protocol::Ids,
    ) -> Self {
        let begun = first.unwrap_or(of_task);
        let same = message.filter(|message| message.trace_id == begun.trace_id);
        let parent = same.or(first);
        Self {
            span: begun.child(ids),
            parent: parent.map(|parent| parent.span_id),
            link: message.filter(|message| message.trace_id != begun.trace_id),
        }
    }
}

/// A step that goes on; it ends when this is dropped.
#[derive(Debug)]
pub struct Span {
    run: Arc<RunInner>,
    context: TraceContext,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    node: Node,
    link: Option<TraceContext>,
}

impl Span {
    /// Tells an attribute, by its name in OpenTelemetry's conventions.
    pub fn set(&self, name: &str, value: impl Into<Value>) {
        let mut open = self.open.lock();
        open.node.attributes.insert(name.to_owned(), value.into());
    }

    /// Tells what went in; kept with the task, never exported.
    pub fn input(&self, value: &Value) {
        self.open.lock().node.input = kept(value);
    }

    /// Tells what came out; kept with the task, never exported.
    pub fn output(&self, value: &Value) {
        let mut open = self.open.lock();
        open.node.output = kept(value);
        if open.node.output.is_none() {
            open.node.leave_out();
        }
    }

    /// Tells a part of what came out; a run that [repeats](Self::replay) this one makes the step again.
    pub fn output_in_part(&self, value: &Value) {
        self.output(value);
        self.open.lock().node.leave_out();
    }

    pub(crate) fn node(&self) -> Node {
        self.open.lock().node.clone()
    }

    pub(crate) fn rerun(&self) -> Option<&Rerun> {
        self.run.rerun.get()
    }

    /// Says that it failed, and why in a few words.
    pub fn fail(&self, why: impl Into<String>) {
        self.open.lock().node.error = Some(why.into());
    }

    /// Its place in the trace.
    pub fn context(&self) -> TraceContext {
        self.context
    }
}

/// Says of a step that not all that came out of it was kept.
const LEFT_OUT: &str = "nuncio.output.left_out";

impl Node {
    fn leave_out(&mut self) {
        self.attributes.insert(LEFT_OUT.to_owned(), true.into());
    }

    pub(crate) fn is_left_out(&self) -> bool {
        self.attributes.contains_key(LEFT_OUT)
    }
}

fn kept(value: &Value) -> Option<Value> {
    (value.to_string().len() <= MAX_CONTENT_BYTES).then(|| value.clone())
}

impl Drop for Span {
    fn drop(&mut self) {
        let open = self.open.get_mut();
        open.node.ended = Some(self.run.environment.clock.now());
        let mut tree = self.run.tree.lock();
        match self.context == self.run.trace.span {
            true => tree.root = Some(open.node.clone()),
            false => tree.put(open.node.clone()),
        }
        drop(tree);
        self.run.export(&open.node, self.context, open.link);
    }
}

impl RunCx {
    /// Begins a step below the present one.
    pub fn span(&self, kind: SpanKind, name: impl Into<String>) -> Span {
        let context = self.place.span.child(&*self.inner.environment.ids);
        let node = self.node(kind, name.into(), context, Some(self.place.span.span_hex()));
        if let Some(rerun) = self.inner.rerun.get() {
            rerun.begin(&node, &self.inner.trace.span.span_hex());
        }
        self.inner.tree.lock().put(node.clone());
        Span {
            run: Arc::clone(&self.inner),
            context,
            open: Mutex::new(Open { node, link: None }),
        }
    }

    /// The same run within a step: what begins from now on is below it.
    #[must_use]
    pub fn within(&self, span: &Span) -> Self {
        let place = Place {
            span: span.context,
            ..Place::clone(&self.place)
        };
        Self {
            inner: Arc::clone(&self.inner),
            place: Arc::new(place),
        }
    }

    /// The trace and the present step, for calls to elsewhere.
    pub fn trace(&self) -> TraceContext {
        self.place.span
    }

    fn node(
        &self,
        kind: SpanKind,
        name: String,
        context: TraceContext,
        parent: Option<String>,
    ) -> Node {
        Node {
            id: context.span_hex(),
            parent,
            trace: context.trace_hex(),
            kind,
            name,
            agent: self.place.agent.clone(),
            attempt: self.attempt(),
            started: self.inner.environment.clock.now(),
            ended: None,
            attributes: Map::new(),
            input: None,
            output: None,
            error: None,
        }
    }

    /// The run's own span.
    pub(crate) fn run_span(&self) -> Span {
        let trace = &self.inner.trace;
        let name = format!("invoke_agent {}", self.inner.agent);
        let parent = trace
            .parent
            .map(|id| format!("{:016x}", u64::from_be_bytes(id)));
        let node = self.node(SpanKind::Agent, name, trace.span, parent);
        Span {
            run: Arc::clone(&self.inner),
            context: trace.span,
            open: Mutex::new(Open {
                node,
                link: trace.link,
            }),
        }
    }
}

impl RunInner {
    fn export(&self, node: &Node, context: TraceContext, link: Option<TraceContext>) {
        let Some(sink) = self.spans.as_deref().filter(|_| context.sampled) else {
            return;
        };
        let mut record = SpanRecord::new(context, node.name.clone(), node.started);
        record.parent = node.parent.as_deref().and_then(span_id);
        record.link = link;
        record.role = match node.kind {
            SpanKind::Model | SpanKind::Remote => SpanRole::Client,
            SpanKind::Agent | SpanKind::Tool | SpanKind::Flow => SpanRole::Internal,
        };
        record.ended = node.ended.unwrap_or(node.started);
        record.attributes.clone_from(&node.attributes);
        if let Some(operation) = operation(node.kind) {
            record.set("gen_ai.operation.name", operation);
        }
        record.set("gen_ai.agent.name", node.agent.as_str());
        record.set("gen_ai.conversation.id", self.context.as_str());
        record.set("a2a.task.id", self.task.as_str());
        record.set("a2a.attempt", node.attempt);
        record.error.clone_from(&node.error);
        sink.ended(record);
    }
}

fn operation(kind: SpanKind) -> Option<&'static str> {
    match kind {
        SpanKind::Agent | SpanKind::Remote => Some("invoke_agent"),
        SpanKind::Model => Some("chat"),
        SpanKind::Tool => Some("execute_tool"),
        SpanKind::Flow => None,
    }
}

fn span_id(hex: &str) -> Option<[u8; 8]> {
    u64::from_str_radix(hex, 16).ok().map(u64::to_be_bytes)
}

impl Span {
    /// Says how the task stands when its run ends.
    pub(crate) fn state(&self, state: TaskState) {
        self.set("a2a.task.state", state.as_str());
        if state == TaskState::Failed {
            self.fail("the task failed");
        }
    }
}
