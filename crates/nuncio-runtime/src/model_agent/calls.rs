//! Calling the tools that the model has asked for.

use futures_util::{StreamExt as _, stream};
use nuncio_engine::{AgentError, Pause, Replay, Span, SpanKind};
use nuncio_protocol::{Message, Part};
use serde_json::Value;

use super::approval;
use super::exchange::Exchange;
use super::file::{FileRef, Said};
use super::pending::{Asked, HandingOver, PendingCall};
use super::structured;
use crate::model::ToolCall;
use crate::tool::{ReadyTool, ToolCx, ToolError, ToolOutput};

/// How one call ended.
enum CallEnd {
    /// With something for the model, and the same as content.
    Given {
        text: String,
        files: Vec<FileRef>,
        parts: Vec<Part>,
    },
    Failed(String),
    Paused(Box<Pause>),
    HandedOver(Box<HandingOver>),
}

/// Calls that are made at the same time.
const AT_ONCE: usize = 8;
/// Characters of one result that the model is shown.
const MAX_RESULT: usize = 200_000;

impl Exchange<'_> {
    /// Makes all calls that are open, or as many as can be made before somebody is asked.
    pub(super) async fn settle(&mut self) -> Result<Option<Pause>, AgentError> {
        self.refuse_misfits();
        if let Some(pause) = self.ask_for_approval() {
            return Ok(Some(pause));
        }
        let open = self.pending().open();
        self.count_calls(open.len())?;
        let parallel = open.iter().all(|at| {
            let name = &self.pending().calls[*at].call.name;
            self.tool(name).is_some_and(|tool| tool.spec().parallel)
        });
        let groups: Vec<Vec<usize>> = match parallel {
            true => vec![open],
            false => open.into_iter().map(|at| vec![at]).collect(),
        };
        for group in groups {
            if let Some(pause) = self.make(&group).await? {
                return Ok(Some(pause));
            }
        }
        Ok(None)
    }

    /// Answers calls that cannot be made: no such tool, wrong arguments, cut off by a crash.
    fn refuse_misfits(&mut self) {
        for at in self.pending().open() {
            let call = &self.pending().calls[at];
            if let Some(why) = self.misfit(call) {
                self.pending_mut().calls[at].end(why, true);
            }
        }
    }

    fn misfit(&self, pending: &PendingCall) -> Option<String> {
        let call = &pending.call;
        let Some(tool) = self.tool(&call.name) else {
            let known: Vec<_> = self.tools.iter().map(|t| t.spec().name.as_str()).collect();
            let known = known.join(", ");
            return Some(format!(
                "there is no tool {}; there are: {known}",
                call.name
            ));
        };
        let again = tool.spec().read_only || tool.spec().resumable;
        if pending.begun && !again {
            return Some("the call was cut off; whether it has happened is not known".to_owned());
        }
        tool.check(&call.arguments)
            .err()
            .map(|error| error.message().to_owned())
    }

    /// The question for the first call that nobody has approved yet.
    fn ask_for_approval(&mut self) -> Option<Pause> {
        if self.cx.repeats() {
            // Results are given. A call that is made after all fails if it is not approved.
            return None;
        }
        let needs = |at: &usize| {
            let pending = &self.pending().calls[*at];
            let tool = self.tool(&pending.call.name);
            !pending.approved && tool.is_some_and(|tool| tool.spec().needs_approval)
        };
        let at = self.pending().open().into_iter().find(needs)?;
        Some(self.ask_about(at, false))
    }

    /// The question whether this call may be made.
    pub(super) fn ask_about(&mut self, at: usize, again: bool) -> Pause {
        let call = &self.pending().calls[at].call;
        let pause = approval::question(self.cx, call, again);
        let args_hash = approval::args_hash(&call.arguments);
        let asked = Asked::Approval {
            call: at,
            args_hash,
        };
        self.pending_mut().asked = Some(asked);
        pause
    }

    fn count_calls(&mut self, count: usize) -> Result<(), AgentError> {
        let limit = self.agent.budgets.max_tool_calls;
        self.used.tool_calls = self
            .used
            .tool_calls
            .saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        if self.used.tool_calls > limit {
            let why = format!("the model asked for more than {limit} calls of tools");
            return Err(AgentError::new(why));
        }
        Ok(())
    }

    /// Makes some calls at once. Those that have ended are not made again after a pause.
    async fn make(&mut self, group: &[usize]) -> Result<Option<Pause>, AgentError> {
        for at in group {
            self.pending_mut().calls[*at].begun = true;
        }
        self.save()?;
        let calls: Vec<_> = group.iter().map(|at| self.call(*at)).collect();
        let ends: Vec<_> = stream::iter(calls).buffered(AT_ONCE).collect().await;
        let mut asks = None;
        for (at, end) in group.iter().zip(ends) {
            if let Some(pause) = self.note(*at, end)
                && asks.is_none()
            {
                self.pending_mut().asked = Some(Asked::Tool { call: *at });
                asks = Some(pause);
            }
        }
        Ok(asks)
    }

    /// Notes how a call ended; a pause is for the caller.
    fn note(&mut self, at: usize, end: CallEnd) -> Option<Pause> {
        if self.pending().answered == Some(at) {
            self.pending_mut().answered = None;
        }
        match end {
            CallEnd::Given { text, files, parts } => {
                if self.pending().direct {
                    self.direct = parts;
                }
                let call = &mut self.pending_mut().calls[at];
                call.end(text, false);
                call.files = files;
                None
            }
            CallEnd::Failed(why) => {
                self.pending_mut().calls[at].end(why, true);
                None
            }
            CallEnd::Paused(pause) => {
                self.pending_mut().calls[at].begun = false;
                Some(*pause)
            }
            CallEnd::HandedOver(to) => {
                self.note_hand_over(at, *to);
                None
            }
        }
    }

    /// Notes who is to have the task; only the first counts.
    fn note_hand_over(&mut self, at: usize, to: HandingOver) {
        let first = self.left.handing_over.as_ref();
        let (told, late) = match first.map(|first| &first.agent) {
            None => (format!("agent {} has the task now", to.agent), false),
            Some(first) => (format!("too late: agent {first} has the task now"), true),
        };
        self.pending_mut().calls[at].end(told, late);
        self.left.handing_over.get_or_insert(to);
    }

    async fn call(&self, at: usize) -> CallEnd {
        let PendingCall { call, approved, .. } = &self.pending().calls[at];
        let Some(tool) = self.tool(&call.name) else {
            return CallEnd::Failed(format!("there is no tool {}", call.name));
        };
        let answer = (self.pending().answered == Some(at)).then(|| self.input.message.clone());
        let span = self.tool_span(call);
        let args = match span.replay() {
            Ok(None) => Ok(call.arguments.clone()),
            Ok(Some(Replay::Input(args))) => tool.check(&args).map(|()| args),
            Ok(Some(Replay::Output(output))) => {
                span.output(&output);
                return given(ToolOutput::Value(output), None);
            }
            Ok(Some(Replay::Failed(why))) => Err(ToolError::new(why)),
            Err(astray) => Err(ToolError::new(astray.message())),
        };
        let args = args.and_then(|args| match tool.spec().needs_approval && !approved {
            true => Err(ToolError::new("nobody has approved this call")),
            false => Ok(args),
        });
        let cx = ToolCx::new(self.cx.within(&span), &call.id, answer.clone());
        let cx = cx.answering(self.input);
        let made = async { invoke(tool, cx, args?).await };
        match made.await {
            Ok(output) => {
                let value = match &output {
                    ToolOutput::Value(value) => Some(value.clone()),
                    _ => None,
                };
                let end = given(output, answer.as_ref());
                match &end {
                    CallEnd::Given { text, files, .. } => match value {
                        Some(value) => span.output(&value),
                        None if files.is_empty() => span.output(&text.as_str().into()),
                        None => span.output_in_part(&text.as_str().into()),
                    },
                    // A run that repeats this one hands over again.
                    CallEnd::HandedOver(to) => span.output_in_part(&to.agent.as_str().into()),
                    CallEnd::Failed(_) | CallEnd::Paused(_) => {}
                }
                end
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(task.id = %self.cx.task(), tool = %call.name, %error, cause, "a tool failed");
                span.set("error.type", "tool_error");
                span.fail(error.message());
                CallEnd::Failed(error.message().to_owned())
            }
        }
    }

    fn tool_span(&self, call: &ToolCall) -> Span {
        let name = format!("execute_tool {}", call.name);
        let span = self.cx.span(SpanKind::Tool, name);
        span.set("gen_ai.operation.name", "execute_tool");
        span.set("gen_ai.tool.name", call.name.as_str());
        span.set("gen_ai.tool.call.id", call.id.as_str());
        span.input(&call.arguments);
        span
    }
}

/// Calls a tool, within its time; a result that comes later has the time of the run.
async fn invoke(tool: &ReadyTool, cx: ToolCx, args: Value) -> Result<ToolOutput, ToolError> {
    let _canceled_when_over = cx.cancellation().clone().drop_guard();
    let limit = tool.spec().timeout;
    let called = tool.tool().call(cx, args);
    let output = tokio::time::timeout(limit, called).await.map_err(|_| {
        let seconds = limit.as_secs_f64();
        ToolError::new(format!("the tool did not finish within {seconds} seconds"))
    })??;
    match output {
        ToolOutput::Later(later) => later.wait().await,
        output => Ok(output),
    }
}

/// What the model and the caller see of an output.
fn given(output: ToolOutput, answer: Option<&Message>) -> CallEnd {
    let (said, parts) = match output {
        ToolOutput::Paused(pause) => return CallEnd::Paused(pause),
        ToolOutput::HandOff { agent, message } => {
            let message = *message;
            return CallEnd::HandedOver(Box::new(HandingOver { agent, message }));
        }
        ToolOutput::Later(_) => {
            return CallEnd::Failed("the tool put its result off twice".to_owned());
        }
        ToolOutput::Value(Value::String(text)) => {
            let parts = vec![Part::text(text.as_str())];
            (Said::of(&parts), parts)
        }
        ToolOutput::Value(value) => {
            let parts = structured::parts(&value);
            (Said::of(&parts[1..]), parts)
        }
        ToolOutput::Parts(parts) => match answer {
            // The files of an answer stay where they are, in the task's history.
            Some(answer) if answer.parts == parts => (Said::by(answer), parts),
            _ => (Said::of(&parts), parts),
        },
    };
    let Said { mut text, files } = said;
    if text.is_empty() {
        text = files.iter().map(FileRef::mention).collect();
    }
    if let Some((end, _)) = text.char_indices().nth(MAX_RESULT) {
        text.truncate(end);
        text.push_str("\n[the rest is left out]");
    }
    CallEnd::Given { text, files, parts }
}
