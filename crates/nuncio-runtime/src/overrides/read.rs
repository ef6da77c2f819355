//! Reading overrides, with the path of what is wrong.

use nuncio_protocol::A2aError;
use serde_json::Value;

use super::{ReasoningType, RequestOverrides, Written, WrittenParams, WrittenReasoning};
use crate::model::{ModelParams, Reasoning};

/// Characters of a name that callers give.
const MAX_NAME: usize = 256;
/// Projects of one request.
const MAX_PROJECTS: usize = 100;
/// Characters of other instructions.
const MAX_PROMPT: usize = 100_000;
/// Tokens that a model thinks where only "enabled" is said.
const THINKS: u32 = 4_096;

pub(super) fn read(path: &str, value: &Value) -> Result<RequestOverrides, A2aError> {
    let written: Written = serde_path_to_error::deserialize(value).map_err(|error| {
        let below = error.path().to_string();
        let mut field = match below.as_str() {
            "." => path.to_owned(),
            below => format!("{path}.{below}"),
        };
        let why = error.inner().to_string();
        // The path ends at the object that has the member.
        if let Some(name) = unknown_member(&why)
            && !field.ends_with(&format!(".{name}"))
        {
            field = format!("{field}.{name}");
        }
        A2aError::invalid_field(field, why)
    })?;
    let wrong =
        |field: &str, why: &str| Err(A2aError::invalid_field(format!("{path}.{field}"), why));
    let names = [
        ("actorId", &written.actor_id),
        ("readWriteProjectId", &written.read_write_project_id),
        ("overrides.model", &written.overrides.model),
    ];
    for (field, name) in names {
        if name.as_deref().is_some_and(|name| !is_name(name)) {
            return wrong(field, "is no name: 1 to 256 printable characters");
        }
    }
    let projects = &written.read_only_project_ids;
    if projects.len() > MAX_PROJECTS {
        return wrong("readOnlyProjectIds", "names more than 100 projects");
    }
    if let Some(at) = projects.iter().position(|name| !is_name(name)) {
        let field = format!("readOnlyProjectIds[{at}]");
        return wrong(&field, "is no name: 1 to 256 printable characters");
    }
    let mapped = |(from, to): (&String, &String)| is_name(from) && is_name(to);
    if !written.subagent_mapping.iter().all(mapped) {
        return wrong(
            "subagentMapping",
            "has a name that is none: 1 to 256 printable characters",
        );
    }
    let said = &written.overrides;
    if let Some(prompt) = &said.system_prompt_override
        && prompt.chars().count() > MAX_PROMPT
    {
        return wrong(
            "overrides.systemPromptOverride",
            "is longer than 100,000 characters",
        );
    }
    if said.max_turns == Some(0) {
        return wrong("overrides.maxTurns", "is 0: the model could not be asked");
    }
    let params = &said.model_params;
    for (field, value, most) in [
        ("temperature", params.temperature, 2.0),
        ("topP", params.top_p, 1.0),
    ] {
        if value.is_some_and(|value| !(0.0..=most).contains(&value)) {
            let field = format!("overrides.modelParams.{field}");
            return wrong(&field, &format!("is not between 0 and {most}"));
        }
    }
    if params.max_tokens == Some(0) {
        return wrong(
            "overrides.modelParams.maxTokens",
            "is 0: nothing could be said",
        );
    }
    Ok(overrides(written))
}

fn overrides(written: Written) -> RequestOverrides {
    let said = written.overrides;
    RequestOverrides {
        actor_id: written.actor_id,
        read_write_project_id: written.read_write_project_id,
        read_only_project_ids: written.read_only_project_ids,
        subagent_mapping: written.subagent_mapping,
        model: said.model,
        system_prompt: said.system_prompt_override,
        model_params: params(said.model_params),
        reasoning: said.reasoning.map(reasoning),
        capabilities: said
            .capabilities_override
            .map(|capabilities| capabilities.0),
        max_turns: said.max_turns,
        skip_memory: written.skip_memory,
    }
}

fn params(written: WrittenParams) -> ModelParams {
    ModelParams {
        temperature: written.temperature,
        max_tokens: written.max_tokens,
        top_p: written.top_p,
        stop: written.stop,
        seed: written.seed,
        reasoning: None,
    }
}

fn reasoning(written: WrittenReasoning) -> Reasoning {
    Reasoning {
        budget_tokens: match written.kind {
            ReasoningType::Disabled => 0,
            ReasoningType::Enabled => written.budget_tokens.unwrap_or(THINKS),
        },
    }
}

fn unknown_member(why: &str) -> Option<&str> {
    why.strip_prefix("unknown field `")?.split('`').next()
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control)
}
