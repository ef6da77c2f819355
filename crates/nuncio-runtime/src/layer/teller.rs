//! Telling layers how something ended, also when it is given up.

use nuncio_engine::{AgentError, Outcome, RunCx};
use nuncio_protocol::Message;
use tokio::time::Instant;

use super::{Ended, Layers, tell};
use crate::model::{ModelError, ToolCall, Usage};
use crate::tool::{ToolError, ToolOutput};

/// Something that goes on. If it is dropped without an end, layers are told that it was given up.
pub(super) struct Teller {
    layers: Layers,
    cx: RunCx,
    what: What,
    began: Instant,
    told: bool,
}

enum What {
    Run(Box<Message>),
    Model(String),
    Tool(ToolCall),
}

impl Teller {
    pub(super) fn of_run(layers: &Layers, cx: &RunCx, message: Message) -> Self {
        Self::new(layers, cx, What::Run(Box::new(message)))
    }

    pub(super) fn of_model(layers: &Layers, cx: &RunCx, name: &str) -> Self {
        Self::new(layers, cx, What::Model(name.to_owned()))
    }

    pub(super) fn of_tool(layers: &Layers, cx: &RunCx, call: ToolCall) -> Self {
        Self::new(layers, cx, What::Tool(call))
    }

    fn new(layers: &Layers, cx: &RunCx, what: What) -> Self {
        Self {
            layers: Layers::clone(layers),
            cx: cx.clone(),
            what,
            began: Instant::now(),
            told: false,
        }
    }

    pub(super) fn run_ended(mut self, result: &Result<Outcome, AgentError>) {
        self.tell(Some(result), None, None);
    }

    pub(super) fn model_ended(mut self, result: Result<&Usage, &ModelError>) {
        self.tell(None, Some(result), None);
    }

    pub(super) fn tool_ended(mut self, result: &Result<ToolOutput, ToolError>) {
        self.tell(None, None, Some(result.as_ref()));
    }

    fn tell(
        &mut self,
        of_run: Option<&Result<Outcome, AgentError>>,
        of_model: Option<Result<&Usage, &ModelError>>,
        of_tool: Option<Result<&ToolOutput, &ToolError>>,
    ) {
        self.told = true;
        let took = self.began.elapsed();
        let ended = match &self.what {
            What::Run(message) => Ended::Run {
                message,
                result: of_run,
                took,
            },
            What::Model(name) => Ended::Model {
                name,
                result: of_model,
                took,
            },
            What::Tool(call) => Ended::Tool {
                call,
                result: of_tool,
                took,
            },
        };
        tell(&self.layers, &self.cx, &ended);
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if !self.told {
            self.tell(None, None, None);
        }
    }
}
