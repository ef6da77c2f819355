//! What callers want otherwise for one request.

use std::sync::Arc;

use nuncio_engine::{Agent, AgentInfo, Input, agent_fn};
use nuncio_protocol::{AgentId, ErrorKind, SendMessageRequest, Task, TaskState};
use nuncio_runtime::model::{FakeModel, Reasoning};
use nuncio_runtime::overrides::OverridePolicy;
use nuncio_runtime::tool::AgentTool;
use nuncio_runtime::{Emit, FindAgent, FlowAgent, ModelAgent, Plan, Sequence};
use serde_json::{Value, json};

use super::{agent, hosted, saying};
use crate::support::{Hosted, fake, said, texts};

fn policy() -> OverridePolicy {
    OverridePolicy {
        models: vec!["other".to_owned()],
        system_prompt: true,
        params: true,
        reasoning_tokens: Some(1_000),
        capabilities: true,
        subagents: vec!["b".to_owned()],
        max_turns: Some(2),
        callers: None,
    }
}

async fn ask(hosted: &Hosted, said: Value) -> nuncio_protocol::Result<Task> {
    let mut request = SendMessageRequest::new(hosted.message("hello"));
    let metadata = [("memorylake".to_owned(), said)];
    request.metadata = Some(metadata.into_iter().collect());
    hosted.request(request).await
}

/// Model, instructions, parameters and thinking of one request; the next one is as usual.
#[tokio::test]
async fn a_request_has_its_own_model_instructions_and_parameters() {
    let (usual, other) = (saying("usual"), saying("other"));
    let made = agent(&usual)
        .instructions("Be {agent}.")
        .overrides(policy());
    let hosted = hosted(made.other_model("other", other.clone()));
    let over = json!({"overrides": {"model": "other", "systemPrompt": "Be {brief}.",
        "modelParams": {"temperature": 0.5}, "reasoning": {"type": "enabled", "budgetTokens": 9}}});
    assert_eq!(texts(&ask(&hosted, over).await.unwrap()), ["other"]);
    let asked = &other.requests()[0];
    assert_eq!(
        asked.system.as_deref(),
        Some("Be {brief}."),
        "as it was said"
    );
    assert_eq!(asked.params.temperature, Some(0.5));
    assert_eq!(asked.params.reasoning, Some(Reasoning { budget_tokens: 9 }));
    assert_eq!(texts(&hosted.task("again").await), ["usual"]);
    assert_eq!(usual.requests()[0].params.temperature, None);
}

/// A member of a flow, to which the caller does not talk itself, keeps what it does not let callers
/// change.
#[tokio::test]
async fn a_flow_is_no_way_around_what_its_members_allow() {
    for (allowed, instructions) in [(true, "Be brief."), (false, "Be yourself.")] {
        let model = saying("hi");
        let hosted = Hosted::made(Arc::default(), |engine| {
            let mut member = agent(&model).instructions("Be yourself.");
            if allowed {
                member = member.overrides(policy());
            }
            engine.host(Arc::new(member.build().unwrap()));
            let plan = Plan::Sequence(Sequence {
                members: vec!["helper".into()],
                emit: Emit::Last,
            });
            let info = AgentInfo::new("flow", "flow", "A flow.");
            Arc::new(FlowAgent::new(info, plan, Arc::new(engine.directory())))
        });
        let over = json!({"overrides": {"systemPrompt": "Be brief."}});
        assert_eq!(texts(&ask(&hosted, over).await.unwrap()), ["hi"]);
        assert_eq!(model.requests()[0].system.as_deref(), Some(instructions));
    }
}

/// What is wrong or not allowed is refused before there is a task.
#[tokio::test]
async fn what_may_not_be_said_is_refused_and_nothing_is_stored() {
    let model = saying("hi");
    let hosted = hosted(agent(&model));
    for (over, field) in [
        (
            json!({"overrides": {"modle": "x"}}),
            "metadata.memorylake.overrides.modle",
        ),
        (
            json!({"overrides": {"model": "other"}}),
            "metadata.memorylake.overrides.model",
        ),
        (
            json!({"overrides": {"maxTurns": 3}}),
            "metadata.memorylake.overrides.maxTurns",
        ),
    ] {
        let error = ask(&hosted, over).await.unwrap_err();
        assert_eq!(
            (error.kind, error.violations()[0].field.as_str()),
            (ErrorKind::InvalidParams, field)
        );
    }
    assert!(hosted.tasks().await.is_empty());
    assert!(model.requests().is_empty());
    let memory = json!({"actorId": "ada", "readWriteProjectId": "p1", "skipMemory": true});
    assert_eq!(
        ask(&hosted, memory).await.unwrap().status.state,
        TaskState::Completed
    );
}

/// Fewer turns and fewer tools than usual.
#[tokio::test]
async fn a_request_has_its_own_limits_and_tools() {
    let rules = r#"
        [[rules]]
        otherwise = true
        reply = [{ tool = { name = "ask_user", arguments = {} } }]
    "#;
    let model = fake("fake", rules);
    let hosted = hosted(agent(&model).ask_user().overrides(policy()));
    let task = ask(
        &hosted,
        json!({"overrides": {"capabilitiesOverride": [], "maxTurns": 1}}),
    )
    .await
    .unwrap();
    assert_eq!(task.status.state, TaskState::Failed);
    assert!(said(&task).contains("within 1 turns"), "{}", said(&task));
    assert!(model.requests()[0].tools.is_empty());
    let unknown = json!({"overrides": {"capabilitiesOverride": {"fly": {}}}});
    let task = ask(&hosted, unknown).await.unwrap();
    assert!(said(&task).contains("no capability fly"), "{}", said(&task));
}

/// Another agent in the place of a sub-agent, for this request.
#[tokio::test]
async fn a_request_has_its_own_sub_agents() {
    #[derive(Debug)]
    struct Only;
    impl FindAgent for Only {
        fn find(&self, id: &AgentId) -> Option<Arc<dyn Agent>> {
            (id.as_str() == "b").then(|| Arc::new(named("b")) as Arc<dyn Agent>)
        }
    }
    fn named(id: &'static str) -> impl Agent + 'static {
        let info = AgentInfo::new(id, id, "Says who it is.");
        agent_fn(
            info,
            move |_, _: Input| async move { Ok(format!("I am {id}")) },
        )
    }
    let rules = r#"
        [[rules]]
        when = { after_tool = "a" }
        reply = [{ text = "{result}" }]
        [[rules]]
        otherwise = true
        reply = [{ tool = { name = "a", arguments = { message = "who?" } } }]
    "#;
    let model: FakeModel = fake("fake", rules);
    let made = ModelAgent::builder("helper")
        .model(model)
        .overrides(policy())
        .other_agents(Only);
    let hosted = hosted(made.tool(AgentTool::new(Arc::new(named("a")))));
    assert_eq!(texts(&hosted.task("go").await), ["I am a"]);
    let mapped = json!({"subagentMapping": {"a": "b"}});
    assert_eq!(texts(&ask(&hosted, mapped).await.unwrap()), ["I am b"]);
    let error = ask(&hosted, json!({"subagentMapping": {"a": "c"}}))
        .await
        .unwrap_err();
    assert_eq!(
        error.violations()[0].field,
        "metadata.memorylake.subagentMapping"
    );
}
