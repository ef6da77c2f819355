//! What the kit asks of an agent, as protobuf.

use nuncio_protocol::{Message, Part, PartContent};
use prost::Message as _;

/// The media type of an instruction in a part.
pub(super) const MEDIA_TYPE: &str = "application/x-protobuf";
const FILENAME: &str = "instruction.bin";

/// Something to do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Instruction {
    /// What; required.
    #[prost(oneof = "Step", tags = "1, 2, 3")]
    pub step: Option<Step>,
}

/// The things that can be done.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Step {
    /// Ask another agent.
    #[prost(message, tag = "1")]
    CallAgent(CallAgent),
    /// Say something.
    #[prost(message, tag = "2")]
    ReturnResponse(ReturnResponse),
    /// Several things, one after the other.
    #[prost(message, tag = "3")]
    Steps(SeriesOfSteps),
}

/// Asks another agent and says what it answers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CallAgent {
    /// Over which binding: `jsonrpc`, `grpc` or `http_json`.
    #[prost(string, tag = "1")]
    pub transport: String,
    /// Below which address its card is.
    #[prost(string, tag = "2")]
    pub agent_card_uri: String,
    /// What to ask of it; required.
    #[prost(message, optional, boxed, tag = "3")]
    pub instruction: Option<Box<Instruction>>,
    /// Whether its answer is streamed.
    #[prost(bool, tag = "4")]
    pub streaming: bool,
    /// How to ask; a plain send if absent.
    #[prost(oneof = "Behavior", tags = "5, 6, 7")]
    pub behavior: Option<Behavior>,
}

/// The ways to ask.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Behavior {
    /// Send and read the answer.
    #[prost(message, tag = "5")]
    SendMessage(SendMessage),
    /// The same, with a webhook on the task.
    #[prost(message, tag = "6")]
    PushNotification(PushNotification),
    /// Send, hang up, subscribe to the task, and cancel it in the end.
    #[prost(message, tag = "7")]
    Resubscribe(Resubscribe),
}

/// Nothing more to know.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SendMessage {}

/// Where notifications go.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PushNotification {
    /// The server that takes them, below `/notifications`.
    #[prost(string, tag = "1")]
    pub url: String,
}

/// Nothing more to know.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Resubscribe {}

/// Says something.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReturnResponse {
    /// What.
    #[prost(string, tag = "1")]
    pub response: String,
    /// Whether the task then stays open for a while.
    #[prost(bool, tag = "2")]
    pub hold_task: bool,
}

/// Several things, one after the other.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SeriesOfSteps {
    /// The things.
    #[prost(message, repeated, tag = "1")]
    pub instructions: Vec<Instruction>,
    /// How their answers are joined: 0 and 1 both mean by line.
    #[prost(int32, tag = "2")]
    pub response_generator: i32,
}

impl Instruction {
    /// The instruction of one step.
    pub fn new(step: Step) -> Self {
        Self { step: Some(step) }
    }

    /// Finds the instruction in a message.
    pub fn of(message: &Message) -> Option<Self> {
        message.parts.iter().find_map(|part| match &part.content {
            PartContent::Raw(bytes) => Self::decode(&bytes[..]).ok(),
            _ => None,
        })
    }

    /// The part of a message that carries it.
    pub fn to_part(&self) -> Part {
        Part::raw(self.encode_to_vec())
            .with_media_type(MEDIA_TYPE)
            .with_filename(FILENAME)
    }

    /// Whether the task is to stay open once all is said. What other agents do does not matter.
    pub(super) fn holds_task(&self) -> bool {
        match &self.step {
            Some(Step::ReturnResponse(said)) => said.hold_task,
            Some(Step::Steps(series)) => series.instructions.iter().any(Self::holds_task),
            Some(Step::CallAgent(_)) | None => false,
        }
    }
}
