//! Playing a script.

use std::time::Duration;

use nuncio_engine::{Agent, AgentError, AgentInfo, Input, Outcome, RunCx, RunFuture};
use nuncio_protocol::{Message, Part, PartContent};
use serde_json::{Value, json};

use super::check::decode_base64;
use super::{Artifact, Content, Fault, Pause, PauseReason, Rule, Step, check, turns};
use crate::echo;

/// An agent that does what its rules say, and the same every time.
#[derive(Debug)]
pub struct ScriptAgent {
    info: AgentInfo,
    rules: Vec<Rule>,
}

impl ScriptAgent {
    /// An agent of these rules.
    ///
    /// Whether it [answers directly](AgentInfo::answers_directly) follows from the rules.
    ///
    /// # Errors
    /// Every [`Fault`] of the rules.
    pub fn new(mut info: AgentInfo, rules: Vec<Rule>) -> Result<Self, Vec<Fault>> {
        let faults = check(&rules);
        if !faults.is_empty() {
            return Err(faults);
        }
        let answers = |rule: &Rule| {
            rule.steps
                .iter()
                .any(|step| matches!(step, Step::Message(_)))
        };
        info.answers_directly = rules.iter().any(answers);
        Ok(Self { info, rules })
    }

    async fn play(&self, cx: &RunCx, input: &Input) -> Result<Outcome, Stop> {
        let turns = turns(input);
        match self.steps(&turns) {
            Some(steps) => {
                let turn = Turn {
                    cx,
                    text: input.message.text(),
                    number: turns.len(),
                    input,
                };
                turn.play(steps).await
            }
            None => {
                let why = "no rule of the script matches this message";
                Ok(Outcome::Rejected(why.to_owned()))
            }
        }
    }

    /// The steps for the last of these messages: those that follow the question it answers, if the
    /// messages before it lead to one, else those of its rule.
    pub(crate) fn steps(&self, turns: &[&Message]) -> Option<&[Step]> {
        let mut steps: &[Step] = &[];
        for (index, message) in turns.iter().enumerate() {
            let follow_up = steps.iter().find_map(Step::on_answer).unwrap_or_default();
            steps = if follow_up.is_empty() {
                &self
                    .rules
                    .iter()
                    .find(|rule| rule.matches(message, index + 1))?
                    .steps
            } else {
                follow_up
            };
        }
        Some(steps)
    }
}

impl Agent for ScriptAgent {
    fn info(&self) -> &AgentInfo {
        &self.info
    }

    fn run<'a>(&'a self, cx: &'a RunCx, input: Input) -> RunFuture<'a> {
        Box::pin(async move {
            match self.play(cx, &input).await {
                // The engine knows that the task is canceled, whatever a run says.
                Err(Stop::Canceled) => Ok(Outcome::Done),
                Err(Stop::Failed(error)) => Err(error),
                Ok(outcome) => Ok(outcome),
            }
        })
    }
}

/// Why a turn ends before its steps do.
enum Stop {
    Canceled,
    Failed(AgentError),
}

impl<E: Into<AgentError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// What the agent was given besides the text.
fn received(input: &Input) -> Value {
    json!({
        "contextId": input.task.context_id,
        "taskId": input.task.id,
        "predecessor": input.predecessor(),
        "metadata": input.metadata,
        "messageMetadata": input.message.metadata,
        "extensions": input.extensions,
        "acceptedOutputModes": input.accepted_output_modes,
    })
}

/// One message being answered.
struct Turn<'a> {
    cx: &'a RunCx,
    text: String,
    number: usize,
    input: &'a Input,
}

impl Turn<'_> {
    async fn play(&self, steps: &[Step]) -> Result<Outcome, Stop> {
        for step in steps {
            match step {
                Step::Message(text) => return Ok(Outcome::Reply(self.say(text))),
                Step::Pause(pause) => return Ok(Outcome::Paused(self.ask(pause))),
                Step::Done(text) => return Ok(Outcome::Said(self.say(text))),
                Step::Fail(text) => return Err(AgentError::new(self.fill(text)).into()),
                Step::Reject(text) => return Ok(Outcome::Rejected(self.fill(text))),
                Step::Panic => panic!("the script says so"),
                Step::Silent => return Err(AgentError::ended_without_result().into()),
                Step::Repeat(repeat) => {
                    for _ in 0..repeat.times {
                        for step in &repeat.steps {
                            self.act(step).await?;
                        }
                    }
                }
                step => self.act(step).await?,
            }
        }
        Ok(Outcome::Done)
    }

    /// Plays a step that neither ends the turn nor contains others.
    async fn act(&self, step: &Step) -> Result<(), Stop> {
        match step {
            Step::Status(text) => self.cx.status(self.fill(text)).await?,
            Step::Text(text) => self.cx.text(self.fill(text)).await?,
            Step::Artifact(artifact) => self.give(artifact).await?,
            Step::Received(name) => {
                let parts = vec![Part::data(received(self.input))];
                let mut artifact = nuncio_protocol::Artifact::new(self.cx.next_id(), parts);
                artifact.name = Some(self.fill(name));
                self.cx.chunk(artifact, false, true).await?;
            }
            Step::WaitMs(ms) => self.wait(*ms).await?,
            // `check` lets no other step get here.
            _ => {}
        }
        Ok(())
    }

    async fn wait(&self, ms: u64) -> Result<(), Stop> {
        let lives = echo::pause(self.cx, Duration::from_millis(ms)).await;
        if lives { Ok(()) } else { Err(Stop::Canceled) }
    }

    async fn give(&self, artifact: &Artifact) -> Result<(), Stop> {
        let id = artifact.id.clone().unwrap_or_else(|| self.cx.next_id());
        let last = artifact.last.unwrap_or(true);
        let whole = |parts| {
            let mut whole = nuncio_protocol::Artifact::new(id.as_str(), parts);
            whole.name = artifact.name.as_deref().map(|name| self.fill(name));
            whole.description = artifact.description.as_deref().map(|text| self.fill(text));
            whole
        };
        if artifact.chunks.is_empty() {
            let parts = artifact
                .contents()
                .iter()
                .map(|content| self.part(content))
                .collect();
            return Ok(self.cx.chunk(whole(parts), artifact.append, last).await?);
        }
        let newest = artifact.chunks.len() - 1;
        for (index, text) in artifact.chunks.iter().enumerate() {
            if index > 0 && artifact.interval_ms > 0 {
                self.wait(artifact.interval_ms).await?;
            }
            let piece = whole(vec![Part::text(self.fill(text))]);
            let append = artifact.append || index > 0;
            self.cx
                .chunk(piece, append, last && index == newest)
                .await?;
        }
        Ok(())
    }

    /// `check` has found exactly one content, and it readable.
    fn part(&self, content: &Content) -> Part {
        let value = if let Some(text) = &content.text {
            PartContent::Text(self.fill(text))
        } else if let Some(raw) = &content.raw {
            PartContent::Raw(decode_base64(raw).unwrap_or_default().into())
        } else if let Some(url) = &content.url {
            PartContent::Url(self.fill(url))
        } else if let Some(json) = &content.json {
            PartContent::Data(serde_json::from_str(json).unwrap_or_default())
        } else {
            PartContent::Data(content.data.clone().unwrap_or_default())
        };
        let mut part = Part::new(value);
        part.filename = content.filename.as_deref().map(|name| self.fill(name));
        part.media_type.clone_from(&content.media_type);
        part
    }

    fn ask(&self, pause: &Pause) -> nuncio_engine::Pause {
        let prompt = self.say(&pause.prompt);
        match pause.reason {
            PauseReason::Input => nuncio_engine::Pause::input(prompt),
            PauseReason::Auth => {
                let scheme = pause.scheme.clone().unwrap_or_else(|| "Bearer".to_owned());
                nuncio_engine::Pause::auth(prompt, scheme, pause.url.clone())
            }
        }
    }

    fn say(&self, text: &str) -> Message {
        self.cx.message(vec![Part::text(self.fill(text))])
    }

    /// Puts the message's text and number into a text, both at once.
    fn fill(&self, template: &str) -> String {
        let mut filled = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            let (before, from) = rest.split_at(open);
            filled.push_str(before);
            if let Some(after) = from.strip_prefix("{text}") {
                filled.push_str(&self.text);
                rest = after;
            } else if let Some(after) = from.strip_prefix("{turn}") {
                filled.push_str(&self.number.to_string());
                rest = after;
            } else {
                filled.push('{');
                rest = &from[1..];
            }
        }
        filled + rest
    }
}
