//! Callers that name a skill and its input, instead of talking to the model (BR-178).

use nuncio_protocol::{Message, PartContent};
use serde_json::{Map, Value};

use super::ModelAgent;
use crate::model::ToolCall;

/// What a message means as far as skills go.
#[derive(Debug, PartialEq)]
pub(super) enum Wish {
    /// It is for the model.
    Talk,
    /// It calls a skill.
    Call(ToolCall),
    /// It names a skill that is not there, or input that does not fit.
    Refused(String),
}

/// Reads what a message asks for: a data part `{"skill": "name", "input": {…}}`, where older clients
/// say `parameters`.
pub(super) fn wish(agent: &ModelAgent, message: &Message, call_id: String) -> Wish {
    let named = message.parts.iter().find_map(|part| match &part.content {
        PartContent::Data(data) => Some((data["skill"].as_str()?, data)),
        _ => None,
    });
    let Some((skill, data)) = named else {
        return Wish::Talk;
    };
    let tool = agent.tools.iter().find(|tool| tool.spec().name == skill);
    let exposed = agent.skills.iter().any(|name| name == skill);
    let Some(tool) = tool.filter(|_| exposed) else {
        // A skill of the card that is no tool is the model's.
        return match agent.info.skills.iter().any(|known| known.id == skill) {
            true => Wish::Talk,
            false => Wish::Refused(unknown(agent, skill)),
        };
    };
    let given = data.get("input").or_else(|| data.get("parameters"));
    let arguments = given.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    if let Err(error) = tool.check(&arguments) {
        return Wish::Refused(error.message().to_owned());
    }
    Wish::Call(ToolCall {
        id: call_id,
        name: skill.to_owned(),
        arguments,
        signatures: Vec::new(),
    })
}

fn unknown(agent: &ModelAgent, skill: &str) -> String {
    let known: Vec<_> = agent.info.skills.iter().map(|s| s.id.as_str()).collect();
    format!(
        "there is no skill \"{skill}\"; there are: {}",
        known.join(", ")
    )
}
