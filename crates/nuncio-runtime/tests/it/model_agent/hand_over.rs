//! Models that hand their task over to another agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nuncio_engine::{Agent, AgentInfo, Engine, Input, RERUN, agent_fn};
use nuncio_protocol::{SendMessageRequest, TaskState};
use nuncio_runtime::model::{FakeModel, Turn, UserPart};
use nuncio_runtime::tool::{FnTool, HandOver, ToolCx, ToolError};
use nuncio_runtime::{FlowAgent, ModelAgent, Plan, Sequence};
use nuncio_store::MemoryStore;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::shown;
use crate::support::{Hosted, fake, said, texts};

/// Hands over to `billing`, with a word to the user.
fn hands_over() -> FakeModel {
    fake(
        "fake",
        r#"
        [[rules]]
        otherwise = true
        reply = [
            { text = "One moment." },
            { tool = { name = "hand_over", arguments = { agent = "billing", message = "about: {text}" } } },
        ]
        "#,
    )
}

/// Asks which invoice, then says so.
fn asks() -> FakeModel {
    fake(
        "fake",
        r#"
        [[rules]]
        when = { after_tool = "ask_user" }
        reply = [{ text = "Paid: {result}." }]
        [[rules]]
        otherwise = true
        reply = [{ tool = { name = "ask_user", arguments = { question = "Which invoice?" } } }]
        "#,
    )
}

fn support(model: &FakeModel, engine: &Engine, to: &[&str]) -> nuncio_runtime::ModelAgentBuilder {
    let to = to.iter().map(|id| (*id).into()).collect();
    let agent = ModelAgent::builder("support").model(model.clone());
    agent.hand_over(engine.directory(), to)
}

fn billing(model: &FakeModel) -> Arc<dyn Agent> {
    let agent = ModelAgent::builder("billing").model(model.clone());
    Arc::new(agent.ask_user().build().unwrap())
}

fn desk(store: &Arc<MemoryStore>, first: &FakeModel, second: &FakeModel) -> Hosted {
    Hosted::made(Arc::clone(store), |engine| {
        engine.host(billing(second));
        Arc::new(support(first, engine, &["billing"]).build().unwrap())
    })
}

/// The other agent goes on at once, asks, and gets the answer, with a restart in between; a new task
/// of the conversation begins with the first agent, which knows what it did.
#[tokio::test]
async fn a_model_hands_its_task_over_for_good() {
    let store = Arc::<MemoryStore>::default();
    let (first, second) = (hands_over(), asks());
    let before = desk(&store, &first, &second);
    let asking = before.task("a bill").await;
    assert_eq!(
        (asking.status.state, said(&asking).as_str()),
        (TaskState::InputRequired, "Which invoice?")
    );
    assert_eq!(
        shown(&second),
        [Turn::User(vec![
            UserPart::Text("a bill".to_owned()),
            UserPart::Text("about: a bill".to_owned()),
        ])]
    );
    before.engine.stop_runs(Duration::ZERO).await.unwrap();
    drop(before);

    let after = desk(&store, &first, &second);
    let done = after.answer(&asking.id, "the last").await;
    assert_eq!(done.status.state, TaskState::Completed, "{}", said(&done));
    assert_eq!(texts(&done), ["One moment.", "Paid: the last."]);
    let has_usage = |artifact: &nuncio_protocol::Artifact| {
        let metadata = artifact.metadata.as_ref();
        metadata.is_some_and(|metadata| metadata["usage"]["outputTokens"].as_u64() > Some(0))
    };
    assert!(done.artifacts.iter().all(has_usage), "each says its own");
    assert_eq!((first.requests().len(), second.requests().len()), (1, 2));

    let next = after
        .in_context(done.context_id.as_ref().unwrap(), "more")
        .await;
    assert_eq!(said(&next), "Which invoice?");
    let turns = shown(&first);
    let Turn::Tools(results) = &turns[2] else {
        panic!("{turns:?}");
    };
    assert_eq!(results[0].content, "agent billing has the task now");
    assert_eq!(turns[3..], [Turn::user("more")]);
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// The other calls of the same answer are finished first; of two hand-overs the first counts.
#[tokio::test]
async fn other_calls_are_finished_before_the_task_is_handed_over() {
    let model = fake(
        "fake",
        r#"
        [[rules]]
        otherwise = true
        reply = [
            { tool = { name = "hand_over", arguments = { agent = "one", message = "first" } } },
            { tool = { name = "hand_over", arguments = { agent = "two", message = "second" } } },
            { tool = { name = "note", arguments = {} } },
        ]
        "#,
    );
    let noted = Arc::<AtomicUsize>::default();
    let note = {
        let noted = Arc::clone(&noted);
        FnTool::new("note", "Notes.", move |_: ToolCx, _: Nothing| {
            noted.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, ToolError>("noted") }
        })
    };
    let echo = |id: &str| {
        let info = AgentInfo::new(id, id, "Says its name.");
        let id = id.to_owned();
        agent_fn(info, move |_, input: Input| {
            let said = format!("{id}: {}", input.message.text());
            async move { Ok::<_, nuncio_engine::AgentError>(said) }
        })
    };
    let hosted = Hosted::made(Arc::default(), |engine| {
        engine.host(Arc::new(echo("one")));
        engine.host(Arc::new(echo("two")));
        let agent = support(&model, engine, &["one", "two"]);
        Arc::new(agent.tool(note).build().unwrap())
    });
    let task = hosted.task("go").await;
    assert_eq!(texts(&task), ["one: first"]);
    assert_eq!(noted.load(Ordering::SeqCst), 1);
    hosted
        .in_context(task.context_id.as_ref().unwrap(), "again")
        .await;
    let turns = shown(&model);
    let Turn::Tools(results) = &turns[2] else {
        panic!("{turns:?}");
    };
    let told: Vec<_> = results
        .iter()
        .map(|r| (r.content.as_str(), r.is_error))
        .collect();
    assert_eq!(
        told,
        [
            ("agent one has the task now", false),
            ("too late: agent one has the task now", true),
            ("noted", false),
        ]
    );
}

/// Offered are those that are there, with what they are for; without any there is no such tool.
#[tokio::test]
async fn who_is_gone_is_not_offered() {
    let offered = async |to: &[&str]| {
        let model = super::saying("hi");
        let hosted = Hosted::made(Arc::default(), |engine| {
            engine.host(billing(&asks()));
            Arc::new(support(&model, engine, to).build().unwrap())
        });
        hosted.task("x").await;
        let tools = model.requests()[0].tools.clone();
        tools.into_iter().find(|tool| tool.name == HandOver::NAME)
    };
    let tool = offered(&["ghost", "billing", "support"]).await.unwrap();
    let agent = &tool.input_schema["properties"]["agent"];
    assert_eq!(agent["enum"], json!(["billing"]), "and not itself");
    assert!(
        agent["description"]
            .to_string()
            .contains("billing: billing. An agent that"),
        "{agent}"
    );
    assert_eq!(offered(&["ghost"]).await, None);
}

/// What the model makes up is told to it, and the task stays where it is.
#[tokio::test]
async fn nobody_else_gets_the_task() {
    let model = fake(
        "fake",
        r#"
        [[rules]]
        when = { after_tool = "hand_over" }
        reply = [{ text = "No: {result}" }]
        [[rules]]
        otherwise = true
        reply = [{ tool = { name = "hand_over", arguments = { agent = "admin", message = "x" } } }]
        "#,
    );
    let hosted = Hosted::made(Arc::default(), |engine| {
        engine.host(billing(&asks()));
        engine.host(Arc::new(
            ModelAgent::builder("admin").model(asks()).build().unwrap(),
        ));
        Arc::new(support(&model, engine, &["billing"]).build().unwrap())
    });
    let task = hosted.task("go").await;
    assert_eq!(task.status.state, TaskState::Completed);
    let said = texts(&task).concat();
    assert!(said.contains("do not fit its schema: at /agent"), "{said}");
}

/// A crash in the answer of the agent that has the task: it goes on, and is told once.
#[tokio::test(start_paused = true)]
async fn who_has_the_task_goes_on_after_a_crash() {
    let store = Arc::<MemoryStore>::default();
    let slow = |text: &str, wait: u64| {
        let reply = format!("{{ text = '{text} ' }}, {{ wait_ms = {wait} }}, {{ text = 'done' }}");
        fake(
            "fake",
            &format!("[[rules]]\notherwise = true\nreply = [{reply}]"),
        )
    };
    let first = hands_over();
    let before = desk(&store, &first, &slow("half", 1_000_000));
    let task = before.begin("a bill").await;
    before.until_text(&task.id, "One moment.half ").await;
    before.engine.stop_runs(Duration::ZERO).await.unwrap();
    drop(before);
    let second = slow("all", 0);
    let after = desk(&store, &first, &second);
    after.engine.recover().await.unwrap();
    let done = after.rests(&task.id).await;
    assert_eq!(done.status.state, TaskState::Completed, "{}", said(&done));
    assert_eq!(texts(&done), ["One moment.", "all done"]);
    assert_eq!(first.requests().len(), 1);
    let Turn::User(parts) = &shown(&second)[0] else {
        panic!("{:?}", shown(&second));
    };
    assert_eq!(
        parts.len(),
        2,
        "the user's words and what it was told: {parts:?}"
    );
}

/// A task that comes back: the agent sees what happened meanwhile, and what it said itself once.
#[tokio::test]
async fn a_task_may_come_back() {
    let first = fake(
        "fake",
        r#"
        [[rules]]
        when = { text_contains = "back" }
        reply = [{ text = "Here I am." }]
        [[rules]]
        otherwise = true
        reply = [{ tool = { name = "hand_over", arguments = { agent = "billing", message = "yours" } } }]
        "#,
    );
    let second = fake(
        "fake",
        r#"
        [[rules]]
        when = { after_tool = "ask_user" }
        reply = [{ tool = { name = "hand_over", arguments = { agent = "support", message = "back to you" } } }]
        [[rules]]
        otherwise = true
        reply = [{ tool = { name = "ask_user", arguments = { question = "Which?" } } }]
        "#,
    );
    let hosted = Hosted::made(Arc::default(), |engine| {
        let agent = ModelAgent::builder("billing").model(second).ask_user();
        let to = vec!["support".into()];
        engine.host(Arc::new(
            agent.hand_over(engine.directory(), to).build().unwrap(),
        ));
        Arc::new(support(&first, engine, &["billing"]).build().unwrap())
    });
    let asking = hosted.task("go").await;
    let done = hosted.answer(&asking.id, "none").await;
    assert_eq!(texts(&done), ["Here I am."], "{}", said(&done));
    let shown = format!("{:?}", shown(&first));
    let order = [
        "\"go\"",
        "hand_over",
        "has the task now",
        "\"Which?\"",
        "\"none\"",
        "back to you",
    ];
    let places: Vec<_> = order
        .iter()
        .map(|piece| shown.find(piece).unwrap())
        .collect();
    assert!(places.is_sorted(), "{shown}");
    assert_eq!(shown.matches("\"go\"").count(), 1, "{shown}");
}

/// An agent in a step of a flow hands its step over; one that is asked as a tool cannot.
#[tokio::test]
async fn within_other_agents_the_place_decides() {
    let flow = Hosted::made(Arc::default(), |engine| {
        engine.host(billing(&asks()));
        let member = support(&hands_over(), engine, &["billing"]);
        engine.host(Arc::new(member.build().unwrap()));
        let plan = Plan::Sequence(Sequence {
            members: vec!["support".into()],
            emit: nuncio_runtime::Emit::Last,
        });
        let info = AgentInfo::new("flow", "flow", "A flow.");
        Arc::new(FlowAgent::new(info, plan, Arc::new(engine.directory())))
    });
    let asking = flow.task("a bill").await;
    assert_eq!(said(&asking), "Which invoice?");
    let done = flow.answer(&asking.id, "the last").await;
    assert_eq!(
        texts(&done).last().unwrap(),
        "Paid: the last.",
        "{}",
        said(&done)
    );

    let parent = fake(
        "fake",
        r#"
        [[rules]]
        when = { after_tool = "support" }
        reply = [{ text = "It says: {result}" }]
        [[rules]]
        otherwise = true
        reply = [{ tool = { name = "support", arguments = { message = "help" } } }]
        "#,
    );
    let asked = Hosted::made(Arc::default(), |engine| {
        engine.host(billing(&asks()));
        let member = support(&hands_over(), engine, &["billing"])
            .build()
            .unwrap();
        let tool = nuncio_runtime::tool::AgentTool::new(Arc::new(member));
        let agent = ModelAgent::builder("parent").model(parent).tool(tool);
        Arc::new(agent.build().unwrap())
    });
    assert_eq!(
        texts(&asked.task("go").await),
        ["It says: agent support wants to hand over to billing, which cannot be done here"]
    );
}

/// What the caller wanted otherwise of the first agent does not count for one that does not allow it.
#[tokio::test]
async fn overrides_count_only_where_they_are_allowed() {
    let (first, second) = (hands_over(), super::saying("hi"));
    let hosted = Hosted::made(Arc::default(), |engine| {
        let agent = ModelAgent::builder("billing").model(second.clone());
        engine.host(Arc::new(agent.instructions("Own.").build().unwrap()));
        let policy = nuncio_runtime::overrides::OverridePolicy {
            system_prompt: true,
            ..Default::default()
        };
        let agent = support(&first, engine, &["billing"]).overrides(policy);
        Arc::new(agent.build().unwrap())
    });
    let mut request = SendMessageRequest::new(hosted.message("go"));
    let over = json!({"overrides": {"systemPrompt": "Other."}});
    request.metadata = Some([("memorylake".to_owned(), over)].into_iter().collect());
    let task = hosted.request(request).await.unwrap();
    assert_eq!(texts(&task).last().unwrap(), "hi");
    assert_eq!(first.requests()[0].system.as_deref(), Some("Other."));
    assert_eq!(second.requests()[0].system.as_deref(), Some("Own."));
}

/// A task that was handed over runs again from a step of the other agent: the first one hands over as
/// before, without its model.
#[tokio::test]
async fn a_task_that_was_handed_over_may_run_again() {
    let (first, second) = (hands_over(), super::saying("no"));
    let hosted = Hosted::made(Arc::default(), |engine| {
        let agent = ModelAgent::builder("billing").model(second.clone());
        engine.host(Arc::new(agent.build().unwrap()));
        let agent = support(&first, engine, &["billing"]);
        let mut info = agent.info_so_far().clone();
        info.reruns = true;
        Arc::new(agent.info(info).build().unwrap())
    });
    let task = hosted.task("a bill").await;
    assert_eq!(texts(&task), ["One moment.", "no"]);
    let tree = hosted.tree(&task).await;
    let below = |name: &str| tree.iter().find(|node| node.name == name).unwrap();
    let at_billing = below("invoke_agent billing");
    let step = tree
        .iter()
        .find(|node| node.parent.as_ref() == Some(&at_billing.id));
    let mut request = SendMessageRequest::new(hosted.message("a bill"));
    let wish = json!({"task": task.id, "node": step.unwrap().id, "output": "yes"});
    request.metadata = Some([(RERUN.to_owned(), wish)].into_iter().collect());
    let again = hosted.request(request).await.unwrap();
    assert_eq!(texts(&again), ["One moment.", "yes"], "{}", said(&again));
    assert_eq!((first.requests().len(), second.requests().len()), (1, 1));
}
