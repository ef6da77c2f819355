use nuncio_protocol::ErrorKind;
use serde_json::json;

use std::collections::BTreeSet;

use super::*;

const PLACE: &str = "metadata.memorylake";

fn read(value: Value) -> Result<RequestOverrides, A2aError> {
    let metadata = Metadata::from_iter([(MEMORYLAKE.to_owned(), value)]);
    RequestOverrides::read(Some(&metadata))
}

fn whole() -> Value {
    json!({
        "actorId": "ada", "readWriteProjectId": "p1", "readOnlyProjectIds": ["p2"],
        "subagentMapping": {"researcher": "agent-7"}, "skipMemory": true,
        "overrides": {
            "model": "fast", "systemPromptOverride": "Be brief.",
            "modelParams": {"temperature": 0.5, "maxTokens": 10, "topP": 1, "stop": ["x"], "seed": 7},
            "reasoning": {"type": "enabled", "budgetTokens": 99},
            "capabilitiesOverride": {"web_search": {"open_datasets": ["drug/database"]}},
            "maxTurns": 3
        }
    })
}

/// Both keys, both spellings of what has two, both shapes of capabilities.
#[test]
fn all_that_may_be_said_is_read() {
    let said = read(whole()).unwrap();
    assert_eq!(said.actor_id.as_deref(), Some("ada"));
    assert_eq!(said.subagent_mapping["researcher"], "agent-7");
    assert_eq!(
        (said.model.as_deref(), said.max_turns),
        (Some("fast"), Some(3))
    );
    assert_eq!(said.reasoning, Some(Reasoning { budget_tokens: 99 }));
    assert_eq!(said.model_params.seed, Some(7));
    assert!(said.skip_memory);
    let mut other = whole();
    other["subAgents"] = other
        .as_object_mut()
        .unwrap()
        .remove("subagentMapping")
        .unwrap();
    let inner = other["overrides"].as_object_mut().unwrap();
    inner["modelParams"] =
        json!({"temperature": 0.5, "max_tokens": 10, "top_p": 1, "stop": ["x"], "seed": 7});
    let prompt = inner.remove("systemPromptOverride").unwrap();
    inner.insert("systemPrompt".to_owned(), prompt);
    assert_eq!(read(other).unwrap(), said);
    let ours = Metadata::from_iter([(OVERRIDES.to_owned(), whole())]);
    assert_eq!(RequestOverrides::read(Some(&ours)).unwrap(), said);
    assert_eq!(
        RequestOverrides::place(Some(&ours)),
        format!("metadata.{OVERRIDES}")
    );
    let listed = read(json!({"overrides": {"capabilitiesOverride": ["web_search"]}})).unwrap();
    assert_eq!(
        listed.capabilities.unwrap().keys().collect::<Vec<_>>(),
        ["web_search"]
    );
    let off = read(json!({"overrides": {"reasoning": {"type": "disabled"}}})).unwrap();
    assert_eq!(off.reasoning, Some(Reasoning { budget_tokens: 0 }));
    assert_eq!(
        RequestOverrides::read(None).unwrap(),
        RequestOverrides::default()
    );
}

/// What is wrong is named by its path, whatever it is.
#[test]
fn what_is_wrong_is_named_by_its_path() {
    for (value, path) in [
        (json!({"actor": 1}), "metadata.memorylake.actor"),
        (
            json!({"overrides": {"modle": "x"}}),
            "metadata.memorylake.overrides.modle",
        ),
        (
            json!({"overrides": {"modelParams": {"heat": 1}}}),
            "metadata.memorylake.overrides.modelParams.heat",
        ),
        (
            json!({"overrides": {"modelParams": {"temperature": 3}}}),
            "metadata.memorylake.overrides.modelParams.temperature",
        ),
        (
            json!({"overrides": {"modelParams": {"maxTokens": 0}}}),
            "metadata.memorylake.overrides.modelParams.maxTokens",
        ),
        (
            json!({"overrides": {"reasoning": {"type": "perhaps"}}}),
            "metadata.memorylake.overrides.reasoning.type",
        ),
        (
            json!({"overrides": {"reasoning": {}}}),
            "metadata.memorylake.overrides.reasoning",
        ),
        (
            json!({"overrides": {"capabilitiesOverride": 7}}),
            "metadata.memorylake.overrides.capabilitiesOverride",
        ),
        (
            json!({"overrides": {"capabilitiesOverride": [7]}}),
            "metadata.memorylake.overrides.capabilitiesOverride",
        ),
        (
            json!({"overrides": {"maxTurns": 0}}),
            "metadata.memorylake.overrides.maxTurns",
        ),
        (
            json!({"overrides": {"maxTurns": -1}}),
            "metadata.memorylake.overrides.maxTurns",
        ),
        (json!({"actorId": ""}), "metadata.memorylake.actorId"),
        (json!({"actorId": 7}), "metadata.memorylake.actorId"),
        (
            json!({"readOnlyProjectIds": ["a", "\u{7}"]}),
            "metadata.memorylake.readOnlyProjectIds[1]",
        ),
        (
            json!({"subagentMapping": {"a": 1}}),
            "metadata.memorylake.subagentMapping.a",
        ),
        (
            json!({"subagentMapping": {"a": ""}}),
            "metadata.memorylake.subagentMapping",
        ),
        (json!("all"), "metadata.memorylake"),
    ] {
        let error = read(value.clone()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidParams);
        assert_eq!(error.violations()[0].field, path, "{value}: {error}");
    }
    let both = Metadata::from_iter([
        (MEMORYLAKE.to_owned(), json!({})),
        (OVERRIDES.to_owned(), json!({})),
    ]);
    assert!(RequestOverrides::read(Some(&both)).is_err());
}

/// Nothing may be changed unless it is said, but what concerns memory; each permission is its own.
#[test]
fn callers_may_change_what_the_policy_says() {
    let nothing = OverridePolicy::default();
    let memory =
        read(json!({"actorId": "a", "readWriteProjectId": "p", "skipMemory": true})).unwrap();
    nothing.check("ada", &memory, PLACE).unwrap();
    let all = OverridePolicy {
        models: vec!["fast".to_owned()],
        system_prompt: true,
        params: true,
        reasoning_tokens: Some(100),
        capabilities: true,
        subagents: vec!["agent-7".to_owned()],
        max_turns: Some(5),
        callers: Some(BTreeSet::from(["ada".to_owned()])),
    };
    let said = read(whole()).unwrap();
    all.check("ada", &said, PLACE).unwrap();
    assert!(
        all.check("bob", &said, PLACE).is_err(),
        "of others nothing is taken"
    );
    let without = |change: fn(&mut OverridePolicy)| {
        let mut policy = all.clone();
        change(&mut policy);
        policy.check("ada", &said, PLACE).unwrap_err().violations()[0]
            .field
            .clone()
    };
    for (change, field) in [
        (
            (|p| p.models.clear()) as fn(&mut OverridePolicy),
            "overrides.model",
        ),
        (
            |p| p.system_prompt = false,
            "overrides.systemPromptOverride",
        ),
        (|p| p.params = false, "overrides.modelParams"),
        (|p| p.reasoning_tokens = None, "overrides.reasoning"),
        (
            |p| p.reasoning_tokens = Some(98),
            "overrides.reasoning.budgetTokens",
        ),
        (|p| p.capabilities = false, "overrides.capabilitiesOverride"),
        (|p| p.subagents.clear(), "subagentMapping"),
        (|p| p.max_turns = None, "overrides.maxTurns"),
        (|p| p.max_turns = Some(2), "overrides.maxTurns"),
    ] {
        assert_eq!(without(change), format!("metadata.memorylake.{field}"));
    }
}
