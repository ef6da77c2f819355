//! Answering one message.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use nuncio_engine::{AgentError, Input, Outcome, Pause, Replay, RunCx, Span, SpanKind};
use nuncio_protocol::{Message, Metadata, Part};
use serde_json::json;

use super::ModelAgent;
use super::again::told;
use super::answer::Answer;
use super::approval::{Decision, decision};
use super::budget::{Used, shown};
use super::conversation::{Conversation, Entry, turns};
use super::otherwise::Otherwise;
use super::past::Past;
use super::pending::{Answering, Asked, HandingOver, Left, Pending};
use super::skill::{Wish, wish};
use super::structured;
use crate::layer::{LayeredModel, layered};
use crate::model::{ModelChunk, ModelError, ModelRequest, StopReason, Thought, ToolCall, Usage};
use crate::tool::ReadyTool;

/// One message being answered.
pub(super) struct Exchange<'a> {
    pub(super) agent: &'a ModelAgent,
    pub(super) cx: &'a RunCx,
    pub(super) input: &'a Input,
    pub(super) tools: Vec<ReadyTool>,
    pub(super) left: Left,
    /// What was said in earlier tasks.
    pub(super) past: Past,
    pub(super) used: Used,
    /// What a call that the caller asked for has given.
    pub(super) direct: Vec<Part>,
    /// What the message is answered with.
    pub(super) with: Otherwise,
    pub(super) system: String,
    /// In a run that repeats another: the instructions of any moment, with [`HOLE`]s.
    earlier: Option<String>,
    pub(super) answer: Answer<'a>,
    /// Whether the model has been told that its answer does not fit.
    repaired: bool,
    /// Whether a run of this message was cut off before.
    repeated: bool,
    /// Whether it had written its part of the conversation then.
    written: bool,
}

/// What the model said in one turn.
#[derive(Default)]
pub(super) struct Reply {
    pub(super) text: String,
    pub(super) thoughts: Vec<Thought>,
    pub(super) calls: Vec<ToolCall>,
    pub(super) stop: Option<StopReason>,
}

impl<'a> Exchange<'a> {
    /// Answers the message.
    pub(super) async fn run(
        agent: &'a ModelAgent,
        cx: &'a RunCx,
        input: &'a Input,
    ) -> Result<Outcome, AgentError> {
        let mut exchange = Self::begin(agent, cx, input).await?;
        match exchange.take_message()? {
            Some(outcome) => Ok(outcome),
            None => exchange.go_on().await,
        }
    }

    async fn begin(
        agent: &'a ModelAgent,
        cx: &'a RunCx,
        input: &'a Input,
    ) -> Result<Self, AgentError> {
        let message = &input.message;
        let mut left = left_by(cx, input)?;
        let id = message.message_id.as_str();
        let answering = left.answering.take().filter(|a| a.message == id);
        let repeated = answering.is_some();
        let answering = answering.unwrap_or_else(|| Answering::new(id, cx));
        if left.remembered && !repeated {
            left = Left::default();
        }
        if left.run.is_empty() {
            left.run = format!("{}:{id}", cx.task());
        }
        let run = repeated.then_some(left.run.as_str());
        let (past, written) = Past::load(cx, run).await?;
        if input.checkpoint.is_none() {
            // A task that has come back: what the agent knows of it need not be said again.
            let is_known = |entry: &Entry| past.entries().any(|known| known == entry);
            left.conversation.0.retain(|entry| !is_known(entry));
        }
        let mut with = Otherwise::of(agent, cx, input)?;
        with.model = LayeredModel::around(with.model, &agent.layers, cx);
        Ok(Self {
            system: match &with.prompt {
                Some(prompt) => prompt.clone(),
                None => system(agent, cx, &past, Moment::of(agent, cx)).await?,
            },
            earlier: match (cx.repeats(), &with.prompt) {
                (true, None) => Some(system(agent, cx, &past, Moment::any()).await?),
                _ => None,
            },
            tools: layered(with.tools(agent, tools(agent, cx).await)?, &agent.layers),
            with,
            answer: Answer::new(cx, answering),
            used: Used::default(),
            direct: Vec::new(),
            repaired: false,
            agent,
            cx,
            input,
            left,
            past,
            repeated,
            written,
        })
    }

    /// Takes the message for what it is: an answer, a call of a skill, or words for the model.
    fn take_message(&mut self) -> Result<Option<Outcome>, AgentError> {
        if self.repeated {
            return Ok(None);
        }
        let input = self.input;
        let asked = self.left.pending.as_mut().and_then(|p| p.asked.take());
        if let Some(asked) = asked {
            let again = self.take_answer(asked, &input.message);
            self.save()?;
            return Ok(again.map(Outcome::Paused));
        }
        self.give_up_calls();
        match wish(self.agent, &input.message, self.cx.next_id()) {
            Wish::Talk => {}
            Wish::Refused(why) => return Ok(Some(Outcome::Rejected(why))),
            Wish::Call(call) => {
                let mut pending = Pending::new(vec![call]);
                pending.direct = true;
                self.left.pending = Some(pending);
            }
        }
        self.left.conversation.push(Entry::user(&input.message));
        self.save()?;
        Ok(None)
    }

    /// Takes an answer to what was asked, or asks again.
    fn take_answer(&mut self, asked: Asked, message: &Message) -> Option<Pause> {
        match asked {
            Asked::Tool { call } => self.pending_mut().answered = Some(call),
            Asked::Approval { call, args_hash } => match decision(message, &args_hash) {
                Decision::Approved => self.pending_mut().calls[call].approved = true,
                Decision::Denied(why) => {
                    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
                    let told = format!("the user does not allow this call{why}");
                    self.pending_mut().calls[call].end(told, true);
                }
                Decision::Unclear => return Some(self.ask_about(call, true)),
            },
        }
        None
    }

    /// Ends calls that an earlier run has left open without a question.
    fn give_up_calls(&mut self) {
        let Some(mut pending) = self.left.pending.take() else {
            return;
        };
        for at in pending.open() {
            pending.calls[at].end("the call was given up", true);
        }
        self.left.pending = Some(pending);
        self.push_results();
    }

    async fn go_on(&mut self) -> Result<Outcome, AgentError> {
        if self.left.pending.is_none()
            && let Some(outcome) = self.hand_over().await?
        {
            return Ok(outcome);
        }
        if let Some(outcome) = self.finish_again().await? {
            return Ok(outcome);
        }
        loop {
            if self.left.pending.is_some() {
                if let Some(pause) = self.settle().await? {
                    self.save()?;
                    return Ok(Outcome::Paused(pause));
                }
                if self.pending().direct {
                    return self.end_direct().await;
                }
                self.push_results();
                if let Some(outcome) = self.hand_over().await? {
                    return Ok(outcome);
                }
            }
            if let Some(why) = self.used.exceeds(&self.with.budgets) {
                return Err(AgentError::new(why));
            }
            self.compact(false).await;
            self.save()?;
            let reply = self.ask_model().await?;
            self.left.conversation.push(Entry::Assistant {
                text: reply.text.clone(),
                thoughts: reply.thoughts,
                calls: reply.calls.clone(),
            });
            if reply.calls.is_empty() {
                if let Some(outcome) = self.finish(&reply.text, reply.stop.as_ref()).await? {
                    return Ok(outcome);
                }
            } else {
                self.answer.end_round();
                self.left.pending = Some(Pending::new(reply.calls));
            }
        }
    }

    /// Ends the run if another agent is to have the task.
    async fn hand_over(&mut self) -> Result<Option<Outcome>, AgentError> {
        let Some(HandingOver { agent, message }) = self.left.handing_over.clone() else {
            return Ok(None);
        };
        self.remember().await?;
        if !self.answer.is_empty() {
            let metadata = self.usage();
            self.answer.end(metadata).await?;
        }
        Ok(Some(Outcome::HandOff { agent, message }))
    }

    /// Ends a run that a crash cut off when everything was said.
    async fn finish_again(&mut self) -> Result<Option<Outcome>, AgentError> {
        match self.left.conversation.0.last() {
            Some(Entry::Assistant { text, calls, .. }) if self.repeated && calls.is_empty() => {
                let text = text.clone();
                self.finish(&text, None).await
            }
            _ => Ok(None),
        }
    }

    /// Asks the model; a conversation that it finds too long is shortened once.
    async fn ask_model(&mut self) -> Result<Reply, AgentError> {
        self.used.turns += 1;
        match self.hear().await {
            Err(Unheard::Model(ModelError::ContextTooLong)) if self.compact(true).await => {
                self.hear().await
            }
            heard => heard,
        }
        .map_err(AgentError::from)
    }

    /// Asks the model once, and hears it to the end.
    async fn hear(&mut self) -> Result<Reply, Unheard> {
        let span = self.model_span();
        let heard = self.hear_or_repeat(&span).await;
        match &heard {
            Ok(reply) => span.output(&reply.told()),
            Err(Unheard::Model(error)) => {
                span.set("error.type", error.kind());
                span.fail(error.to_string());
            }
            Err(Unheard::Agent(error)) => span.fail(error.message()),
        }
        heard
    }

    fn model_span(&mut self) -> Span {
        let name = self.with.model.name();
        let span = self.cx.span(SpanKind::Model, format!("chat {name}"));
        if let Some(system) = self.system_then(&span) {
            self.system = system;
        }
        span.set("gen_ai.operation.name", "chat");
        span.set("gen_ai.request.model", name);
        span.input(&json!({"system": self.system, "conversation": told(self.entries())}));
        span
    }

    /// The instructions of the run that this one repeats, if only the task and the time are others.
    fn system_then(&self, span: &Span) -> Option<String> {
        let then = span.input_then()?;
        let then = then.get("system")?.as_str()?;
        fits(self.earlier.as_ref()?, then).then(|| then.to_owned())
    }

    async fn hear_or_repeat(&mut self, span: &Span) -> Result<Reply, Unheard> {
        match span.replay()? {
            Some(Replay::Output(said)) => return self.hear_again(said).await,
            Some(Replay::Failed(why)) => return Err(AgentError::new(why).into()),
            Some(Replay::Input(question)) => self.take_question(question)?,
            None => {}
        }
        self.hear_to_the_end(span).await
    }

    async fn hear_to_the_end(&mut self, span: &Span) -> Result<Reply, Unheard> {
        let request = self.request();
        let mut stream = self.with.model.generate(request).await?;
        let mut reply = Reply::default();
        while let Some(chunk) = stream.next().await {
            match chunk? {
                ModelChunk::Text(words) => {
                    if self.agent.output.is_none() {
                        self.answer.say(&words).await?;
                    }
                    reply.text.push_str(&words);
                }
                ModelChunk::Reasoning(_) => {}
                ModelChunk::Thought(thought) => reply.thoughts.push(thought),
                ModelChunk::ToolCall(call) => reply.calls.push(call),
                ModelChunk::Done { model, usage, stop } => {
                    span.set("gen_ai.response.model", model);
                    if usage.total() > 0 {
                        span.set("gen_ai.usage.input_tokens", usage.input_tokens);
                        span.set("gen_ai.usage.output_tokens", usage.output_tokens);
                    }
                    self.count(usage);
                    reply.stop = Some(stop);
                }
            }
        }
        match reply.stop {
            None => Err(ModelError::Cut("it has no end".to_owned()).into()),
            Some(StopReason::Filtered) => {
                Err(ModelError::Refused("its filter has cut it off".to_owned()).into())
            }
            Some(_) => Ok(reply),
        }
    }

    fn request(&self) -> ModelRequest {
        ModelRequest {
            system: (!self.system.is_empty()).then(|| self.system.clone()),
            turns: turns(self.entries(), self.input),
            tools: self.tools.iter().map(|tool| tool.spec().clone()).collect(),
            output_schema: self
                .agent
                .output
                .as_ref()
                .map(|output| output.schema.clone()),
            params: self.with.params.clone(),
        }
    }

    /// Everything said so far, oldest first.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.past.entries().chain(&self.left.conversation.0)
    }

    /// Writes what was said in this task into the session. It stays in the checkpoint until the next
    /// message, for a run that a crash cuts off now.
    async fn remember(&mut self) -> Result<(), AgentError> {
        self.save()?;
        if !self.written {
            let entries = &self.left.conversation.0;
            self.past.add(&self.left.run, entries).await?;
        }
        self.left.remembered = true;
        self.save()
    }

    /// Notes what an answer of the model took.
    pub(super) fn count(&mut self, usage: Usage) {
        self.used.tokens += usage.total();
        self.left.usage += usage;
    }

    /// Ends the run with what the model said; `None` if it must say it again.
    async fn finish(
        &mut self,
        text: &str,
        stop: Option<&StopReason>,
    ) -> Result<Option<Outcome>, AgentError> {
        let Some(output) = &self.agent.output else {
            if text.is_empty() && self.answer.is_empty() {
                return Err(AgentError::new("the model gave an empty answer"));
            }
            let mut metadata = self.usage();
            if stop == Some(&StopReason::MaxTokens) {
                metadata.insert("truncated".to_owned(), true.into());
            }
            self.remember().await?;
            self.answer.end(metadata).await?;
            return Ok(Some(Outcome::Done));
        };
        match output.read(text) {
            Ok(value) => {
                let metadata = self.usage();
                self.remember().await?;
                self.answer
                    .give_whole(structured::parts(&value), metadata)
                    .await?;
                Ok(Some(Outcome::Done))
            }
            Err(why) if self.repaired => {
                let why = format!("the model's answer does not fit the schema: {why}");
                Err(AgentError::new(why))
            }
            Err(why) => {
                self.repaired = true;
                let text = format!(
                    "Your answer does not fit the schema: {why}. Answer again, with nothing but JSON that fits."
                );
                self.left.conversation.push(Entry::Note { text });
                Ok(None)
            }
        }
    }

    /// Ends the run with what the skill gave that the caller asked for.
    async fn end_direct(&mut self) -> Result<Outcome, AgentError> {
        let pending = self.left.pending.take().unwrap_or_default();
        let result = pending.calls.into_iter().find_map(|call| call.result);
        let Some(result) = result else {
            return Err(AgentError::ended_without_result());
        };
        self.left
            .conversation
            .push(Entry::said(result.content.as_str()));
        if result.is_error {
            return Err(AgentError::new(result.content));
        }
        if let Some(outcome) = self.hand_over().await? {
            return Ok(outcome);
        }
        let mut parts = std::mem::take(&mut self.direct);
        if parts.is_empty() {
            parts.push(Part::text(result.content));
        }
        self.remember().await?;
        self.answer.give_whole(parts, Default::default()).await?;
        Ok(Outcome::Done)
    }

    /// Moves the results of calls that are all done into the conversation.
    fn push_results(&mut self) {
        let Some(pending) = self.left.pending.take() else {
            return;
        };
        let (mut results, mut files) = (Vec::new(), Vec::new());
        for call in pending.calls {
            results.extend(call.result);
            files.extend(call.files);
        }
        self.left
            .conversation
            .push(Entry::Results { results, files });
    }

    fn usage(&self) -> Metadata {
        shown(&self.left.usage, self.agent.prices.as_ref())
    }

    /// Leaves everything for a later run.
    pub(super) fn save(&mut self) -> Result<(), AgentError> {
        self.left.version = 1;
        self.left.answering = Some(self.answer.so_far().clone());
        let left = serde_json::to_value(&self.left).map_err(AgentError::internal)?;
        Ok(self.cx.checkpoint(&left)?)
    }

    pub(super) fn tool(&self, name: &str) -> Option<&ReadyTool> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    pub(super) fn pending(&self) -> &Pending {
        const NONE: &Pending = &Pending {
            calls: Vec::new(),
            direct: false,
            asked: None,
            answered: None,
        };
        self.left.pending.as_ref().unwrap_or(NONE)
    }

    pub(super) fn pending_mut(&mut self) -> &mut Pending {
        self.left.pending.get_or_insert_default()
    }
}

/// What an earlier run has left, or what the task's history says.
fn left_by(cx: &RunCx, input: &Input) -> Result<Left, AgentError> {
    let Some(checkpoint) = &input.checkpoint else {
        // Within another agent's work the message is all there is.
        let conversation = match cx.place() {
            "" => Conversation::before(&input.message, &input.task.history),
            _ => Conversation::default(),
        };
        return Ok(Left {
            conversation,
            ..Left::default()
        });
    };
    let left: Left = serde_json::from_value(checkpoint.clone()).map_err(AgentError::internal)?;
    if left.version != 1 {
        let why = format!("a newer version ({}) has left this task", left.version);
        return Err(AgentError::internal(why));
    }
    Ok(left)
}

/// What instructions may say that is another one in every run.
struct Moment {
    task: String,
    now: String,
}

/// Stands for what is not known.
const HOLE: char = '\0';

impl Moment {
    fn of(agent: &ModelAgent, cx: &RunCx) -> Self {
        Self {
            task: cx.task().to_string(),
            now: agent.clock.now().to_string(),
        }
    }

    fn any() -> Self {
        Self {
            task: HOLE.to_string(),
            now: HOLE.to_string(),
        }
    }
}

/// Whether a text is this one, with anything for its holes.
fn fits(with_holes: &str, text: &str) -> bool {
    let mut pieces = with_holes.split(HOLE);
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The instructions with their values: what is known of the run, then the session's state.
async fn system(
    agent: &ModelAgent,
    cx: &RunCx,
    past: &Past,
    Moment { task, now }: Moment,
) -> Result<String, AgentError> {
    let known = [
        ("agent", cx.agent().as_str()),
        ("agent.name", agent.info.name.as_str()),
        ("caller", cx.caller().id.as_str()),
        ("workspace", cx.caller().workspace.as_str()),
        ("context", cx.context().as_str()),
        ("task", task.as_str()),
        ("date", now.split('T').next().unwrap_or_default()),
        ("time", now.as_str()),
    ];
    let mut values = BTreeMap::new();
    let is_known = |name: &str| known.iter().any(|(known, _)| *known == name);
    if !agent.instructions.names().all(is_known) {
        for (name, value) in past.session().state().await? {
            let text = value.as_str().map(str::to_owned);
            values.insert(name, text.unwrap_or_else(|| value.to_string()));
        }
    }
    let known = known.map(|(name, value)| (name.to_owned(), value.to_owned()));
    values.extend(known);
    agent.instructions.fill(&values).map_err(|name| {
        AgentError::new(format!(
            "the agent's instructions want {{{name}}}, which has no value"
        ))
    })
}

/// The agent's own tools, then those of its sources; of two with one name the first counts.
async fn tools(agent: &ModelAgent, cx: &RunCx) -> Vec<ReadyTool> {
    let mut tools = agent.tools.clone();
    for source in &agent.sources {
        let found = match source.tools(cx).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(source = source.name(), %error, "tools cannot be had");
                continue;
            }
        };
        for tool in found {
            let name = &tool.spec().name;
            if tools.iter().any(|known| known.spec().name == *name) {
                tracing::warn!(source = source.name(), tool = %name, "there is a tool of this name already");
            } else {
                tools.push(tool);
            }
        }
    }
    tools
}

/// Why the model was not heard to the end.
pub(super) enum Unheard {
    Model(ModelError),
    Agent(AgentError),
}

impl From<ModelError> for Unheard {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<AgentError> for Unheard {
    fn from(error: AgentError) -> Self {
        Self::Agent(error)
    }
}

impl From<nuncio_engine::EmitError> for Unheard {
    fn from(error: nuncio_engine::EmitError) -> Self {
        Self::Agent(error.into())
    }
}

/// The caller is told the sort of failure; what the provider said is for our log.
impl From<Unheard> for AgentError {
    fn from(unheard: Unheard) -> Self {
        let error = match unheard {
            Unheard::Agent(error) => return error,
            Unheard::Model(ModelError::Stopped(why)) => return Self::new(why),
            Unheard::Model(error) => error,
        };
        let told = match &error {
            ModelError::Unavailable { .. } => "the model is not available, try again later",
            ModelError::RateLimited { .. } => "the model is asked too often, try again later",
            ModelError::Invalid(_) => "the model's provider does not take the request",
            ModelError::Auth(_) => "the model's provider does not take the agent's credential",
            ModelError::ContextTooLong => "the conversation is too long for the model",
            ModelError::Cut(_) => "the model's answer was cut off",
            ModelError::Refused(_) | ModelError::Stopped(_) => {
                "the model's provider withheld the answer"
            }
        };
        AgentError::caused(told, error)
    }
}
