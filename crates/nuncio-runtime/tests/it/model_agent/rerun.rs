//! Running a task again from one of its steps.

use std::sync::Arc;

use nuncio_engine::{Agent, AgentInfo, Node, Pause, RERUN, SpanKind};
use nuncio_protocol::{
    A2aError, Call, Caller, ErrorKind, Message, Part, SendMessageRequest, SendMessageResponse,
    Task, TaskState,
};
use nuncio_runtime::ModelAgentBuilder;
use nuncio_runtime::model::FakeModel;
use nuncio_runtime::tool::{AgentTool, FnTool, Tool, ToolCx, ToolError, ToolOutput};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::agent;
use crate::support::{Hosted, fake, said, texts};

#[derive(Deserialize, JsonSchema)]
struct Args {
    order: u32,
}

/// A model that looks up order 7, and says what it was told.
fn model() -> FakeModel {
    fake(
        "fake",
        "[[rules]]\nwhen = { after_tool = 'lookup' }\nreply = [{ text = 'It is {result}.' }]\n\
         [[rules]]\notherwise = true\nreply = [{ text = 'Let me see.' }, { tool = { name = 'lookup', arguments = { order = 7 } } }]",
    )
}

/// Knows of each order where it is, and which were asked for.
#[derive(Clone, Default)]
struct Orders(Arc<Mutex<Vec<u32>>>);

impl Orders {
    fn tool(&self) -> Arc<dyn Tool> {
        self.guarded(false)
    }

    /// The tool, which may need an approval.
    fn guarded(&self, needs_approval: bool) -> Arc<dyn Tool> {
        let asked = self.0.clone();
        let tool = FnTool::new("lookup", "Looks up.", move |_cx: ToolCx, args: Args| {
            asked.lock().push(args.order);
            async move { Ok::<_, ToolError>(json!({"order": args.order, "at": "sea"})) }
        });
        match needs_approval {
            true => Arc::new(tool.needs_approval()),
            false => Arc::new(tool),
        }
    }

    fn asked(&self) -> Vec<u32> {
        self.0.lock().drain(..).collect()
    }
}

/// An agent whose callers may run tasks again.
fn hosted(agent: ModelAgentBuilder) -> Hosted {
    Hosted::new(built(agent))
}

fn built(agent: ModelAgentBuilder) -> Arc<dyn Agent> {
    let mut info = AgentInfo::new("helper", "Helper", "helps");
    info.id = agent.info_so_far().id.clone();
    info.reruns = true;
    Arc::new(agent.info(info).build().unwrap())
}

/// A wish to run a task again with a step changed.
fn again(hosted: &Hosted, task: &Task, node: &str, change: (&str, Value)) -> SendMessageRequest {
    let mut message: Message = hosted.message(&task.history[0].text());
    message.reference_task_ids = vec![task.id.clone()];
    let mut request = SendMessageRequest::new(message);
    let mut wish = json!({"task": task.id, "node": node});
    wish[change.0] = change.1;
    request
        .metadata
        .get_or_insert_default()
        .insert(RERUN.to_owned(), wish);
    request
}

async fn rerun(hosted: &Hosted, task: &Task, node: &str, change: (&str, Value)) -> Task {
    let request = again(hosted, task, node, change);
    match hosted.send(Call::client(), request).await.unwrap() {
        SendMessageResponse::Task(task) => task,
        other => panic!("no task: {other:?}"),
    }
}

/// The steps of one kind, once the run is kept.
async fn steps(hosted: &Hosted, task: &Task, kind: SpanKind) -> Vec<Node> {
    let mut tree = hosted.tree(task).await;
    tree.retain(|node| node.kind == kind);
    tree
}

fn helper(model: &FakeModel, orders: &Orders) -> ModelAgentBuilder {
    agent(model).tool(orders.tool())
}

/// Instructions that name the task and the time are those of the run that is repeated.
#[tokio::test]
async fn the_instructions_are_as_they_were() {
    let (model, orders) = (model(), Orders::default());
    let instructed = helper(&model, &orders).instructions("Task {task} of {date} at {time}.");
    let hosted = hosted(instructed);
    let first = hosted.task("where is it?").await;
    let tool = &steps(&hosted, &first, SpanKind::Tool).await[0];
    let second = rerun(&hosted, &first, &tool.id, ("output", json!("lost"))).await;
    assert_eq!(second.status.state, TaskState::Completed);
    let systems: Vec<_> = model
        .requests()
        .into_iter()
        .map(|r| r.system.unwrap())
        .collect();
    assert_eq!(systems.len(), 3);
    assert!(systems[0].contains(first.id.as_str()), "{systems:?}");
    assert_eq!(systems[2], systems[0]);
}

/// From the tool with another input: it is called once, with that, and the first call of the model is
/// not made; the new task's own tree tells so, and can be run again itself.
#[tokio::test]
async fn a_tool_is_called_with_another_input() {
    let (model, orders) = (model(), Orders::default());
    let hosted = hosted(helper(&model, &orders));
    let first = hosted.task("where is it?").await;
    assert_eq!(orders.asked(), [7]);
    assert_eq!(model.requests().len(), 2);
    let tool = &steps(&hosted, &first, SpanKind::Tool).await[0];

    let second = rerun(&hosted, &first, &tool.id, ("input", json!({"order": 8}))).await;
    assert_eq!(orders.asked(), [8]);
    assert_eq!(model.requests().len(), 3, "only the call after the tool");
    assert_eq!(second.status.state, TaskState::Completed);
    assert_ne!(second.id, first.id);
    assert_eq!(second.context_id, first.context_id);
    let answer = texts(&second).concat();
    assert!(
        answer.contains("Let me see.") && answer.contains(r#""order":8"#),
        "{answer}"
    );
    let tree = hosted.tree(&second).await;
    let replayed: Vec<_> = tree[1..]
        .iter()
        .map(|node| node.attributes.get("nuncio.replayed"))
        .collect();
    assert_eq!(
        replayed,
        [
            Some(&json!("yes")),
            Some(&json!("with another input")),
            None
        ]
    );

    let tool = &steps(&hosted, &second, SpanKind::Tool).await[0];
    assert_eq!(tool.input, Some(json!({"order": 8})));
    let third = rerun(&hosted, &second, &tool.id, ("output", json!("lost"))).await;
    assert_eq!((orders.asked(), model.requests().len()), (vec![], 4));
    assert!(
        texts(&third).concat().ends_with("It is lost."),
        "{:?}",
        texts(&third)
    );
}

/// With another output neither the tool nor the first call of the model happens, also if the tool
/// needs an approval: nothing is called. If it is called after all, it does.
#[tokio::test]
async fn another_output_is_given_without_a_call() {
    let (model, orders) = (model(), Orders::default());
    let hosted = hosted(agent(&model).tool(orders.guarded(true)));
    let asking = hosted.task("where is it?").await;
    assert_eq!(asking.status.state, TaskState::InputRequired);
    let first = hosted.answer(&asking.id, "yes").await;
    assert_eq!((orders.asked(), model.requests().len()), (vec![7], 2));
    let tool = &steps(&hosted, &first, SpanKind::Tool).await[0];

    let second = rerun(&hosted, &first, &tool.id, ("output", json!({"at": "home"}))).await;
    assert_eq!((orders.asked(), model.requests().len()), (vec![], 3));
    assert!(
        texts(&second).concat().ends_with(r#"It is {"at":"home"}."#),
        "{:?}",
        texts(&second)
    );

    let third = rerun(&hosted, &first, &tool.id, ("input", json!({"order": 9}))).await;
    assert!(orders.asked().is_empty());
    assert!(
        texts(&third).concat().contains("nobody has approved"),
        "{:?}",
        texts(&third)
    );
}

/// From a call of the model: with other words, and with another question.
#[tokio::test]
async fn a_model_says_something_else() {
    let (model, orders) = (model(), Orders::default());
    let hosted = hosted(helper(&model, &orders));
    let first = hosted.task("where is it?").await;
    let asked = steps(&hosted, &first, SpanKind::Model).await;
    orders.asked();

    let second = rerun(
        &hosted,
        &first,
        &asked[0].id,
        ("output", json!("I do not know.")),
    )
    .await;
    assert_eq!(texts(&second), ["I do not know."]);
    assert_eq!((orders.asked(), model.requests().len()), (vec![], 2));

    let mut question = asked[1].input.clone().unwrap();
    question["conversation"][2]["results"][0]["content"] = json!("sunk");
    let third = rerun(&hosted, &first, &asked[1].id, ("input", question)).await;
    assert!(
        texts(&third).concat().ends_with("It is sunk."),
        "{:?}",
        texts(&third)
    );
    assert_eq!((orders.asked(), model.requests().len()), (vec![], 3));

    let wrong = rerun(
        &hosted,
        &first,
        &asked[1].id,
        ("input", json!({"conversation": 7})),
    )
    .await;
    assert_eq!(wrong.status.state, TaskState::Failed);
    assert!(
        said(&wrong).contains("nothing that a model could be asked"),
        "{}",
        said(&wrong)
    );
}

/// The conversation before the earlier task is known, what was said in it and after it is not.
#[tokio::test]
async fn the_conversation_is_as_it_was() {
    let (model, orders) = (model(), Orders::default());
    let hosted = hosted(helper(&model, &orders));
    let before = hosted.task("hello").await;
    let context = before.context_id.clone().unwrap();
    let first = hosted.in_context(&context, "and the other?").await;
    hosted.in_context(&context, "and the last?").await;
    let (asked, made) = (model.requests(), orders.asked());
    assert_eq!(made, [7, 7, 7]);
    let tool = &steps(&hosted, &first, SpanKind::Tool).await[0];
    rerun(
        &hosted,
        &first,
        &tool.id,
        ("output", json!({"order": 7, "at": "sea"})),
    )
    .await;
    assert_eq!(
        (orders.asked(), model.requests().len()),
        (vec![], asked.len() + 1)
    );
    assert_eq!(model.requests()[asked.len()].turns, asked[3].turns);
}

/// Steps of an agent that is asked as a tool: what is around the changed step is made.
#[tokio::test]
async fn a_step_within_another_is_changed() {
    let (inner, orders) = (model(), Orders::default());
    let outer = fake(
        "outer",
        "[[rules]]\nwhen = { after_tool = 'helper' }\nreply = [{ text = '{result}' }]\n\
         [[rules]]\notherwise = true\nreply = [{ tool = { name = 'helper', arguments = { message = 'well?' } } }]",
    );
    let helper = Arc::new(helper(&inner, &orders).build().unwrap());
    let desk = nuncio_runtime::ModelAgent::builder("desk").model(outer.clone());
    let hosted = hosted(desk.tool(AgentTool::new(helper)));
    let first = hosted.task("x").await;
    let tools = steps(&hosted, &first, SpanKind::Tool).await;
    let lookup = tools
        .iter()
        .find(|node| node.name == "execute_tool lookup")
        .unwrap();
    let second = rerun(&hosted, &first, &lookup.id, ("input", json!({"order": 3}))).await;
    assert!(
        texts(&second).concat().contains(r#""order":3"#),
        "{:?}",
        texts(&second)
    );
    assert_eq!(orders.asked(), [7, 3]);
    assert_eq!((inner.requests().len(), outer.requests().len()), (3, 3));
}

/// If the agent is another one by now, nothing is made in the place of what was not repeated.
#[tokio::test]
async fn a_run_that_goes_astray_fails() {
    let (model, orders) = (model(), Orders::default());
    let store = Arc::new(nuncio_store::MemoryStore::default());
    let built = |instructions: &str| built(helper(&model, &orders).instructions(instructions));
    let before = Hosted::made(Arc::clone(&store), |_| built("Be kind."));
    let first = before.task("where is it?").await;
    let tool = steps(&before, &first, SpanKind::Tool).await.remove(0);
    let now = Hosted::made(store, |_| built("Be short."));
    let second = rerun(&now, &first, &tool.id, ("input", json!({"order": 8}))).await;
    assert_eq!(second.status.state, TaskState::Failed);
    assert!(
        said(&second).contains("the input of chat fake is another one"),
        "{}",
        said(&second)
    );
    assert_eq!((orders.asked(), model.requests().len()), (vec![7], 2));
}

/// Wishes that are none, and tasks and steps that the caller does not have, are refused: no task.
#[tokio::test]
async fn what_cannot_run_again_is_refused() {
    let (model, orders) = (model(), Orders::default());
    let hosted = hosted(helper(&model, &orders));
    let first = hosted.task("where is it?").await;
    let tree = hosted.tree(&first).await;
    let tool = tree
        .iter()
        .find(|node| node.kind == SpanKind::Tool)
        .unwrap();
    let bob = || {
        Call::new(Caller {
            id: "bob".into(),
            workspace: Call::client().caller.workspace,
        })
    };
    let input = || ("input", json!({"order": 8}));
    let refused =
        async |call: Call, request| -> A2aError { hosted.send(call, request).await.unwrap_err() };

    let foreign = refused(bob(), again(&hosted, &first, &tool.id, input())).await;
    assert_eq!(foreign.kind, ErrorKind::TaskNotFound);
    for (node, change, why) in [
        ("nope", input(), "is no step of that task"),
        (tree[0].id.as_str(), input(), "is no step of that task"),
        (&tool.id, ("more", json!(1)), "unknown field"),
        (
            &tool.id,
            ("task", json!(first.id)),
            "needs one of input and output",
        ),
    ] {
        let error = refused(Call::client(), again(&hosted, &first, node, change)).await;
        assert_eq!(error.kind, ErrorKind::InvalidParams);
        assert!(format!("{error:?}").contains(why), "{error:?}");
        assert!(format!("{error:?}").contains("rerun/v1"), "{error:?}");
    }
    let mut named = again(&hosted, &first, &tool.id, input());
    named.message.as_mut().unwrap().task_id = Some(first.id.clone());
    assert_eq!(
        refused(Call::client(), named).await.kind,
        ErrorKind::InvalidParams
    );
    let mut elsewhere = again(&hosted, &first, &tool.id, input());
    elsewhere.message.as_mut().unwrap().context_id = Some("elsewhere".into());
    assert_eq!(
        refused(Call::client(), elsewhere).await.kind,
        ErrorKind::InvalidParams
    );
    assert_eq!((orders.asked(), model.requests().len()), (vec![7], 2));
    assert_eq!(hosted.tasks().await.len(), 1);
}

/// Callers may do so only where the agent says it.
#[tokio::test]
async fn callers_run_again_only_what_they_may() {
    let (model, orders) = (model(), Orders::default());
    let hosted = super::hosted(helper(&model, &orders));
    let first = hosted.task("where is it?").await;
    let tool = steps(&hosted, &first, SpanKind::Tool).await.remove(0);
    let request = again(&hosted, &first, &tool.id, ("output", json!(1)));
    let refused = hosted.send(Call::client(), request).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::UnsupportedOperation);
    assert_eq!(hosted.tasks().await.len(), 1);
}

/// A run that asks the user before it comes to the step does not go on without the change.
#[tokio::test]
async fn a_run_that_pauses_before_the_step_fails() {
    let (model, orders) = (
        fake(
            "fake",
            "[[rules]]\nwhen = { after_tool = 'ask' }\nreply = [{ text = '{result}' }]\n\
             [[rules]]\notherwise = true\nreply = [{ tool = { name = 'ask', arguments = { order = 7 } } }]",
        ),
        Orders::default(),
    );
    let large = FnTool::new("ask", "Asks.", |cx: ToolCx, _args: Args| async move {
        if let Some(answer) = cx.answer() {
            return Ok::<_, ToolError>(ToolOutput::Value(answer.text().repeat(70_000).into()));
        }
        let question = cx.run().message(vec![Part::text("well?")]);
        Ok(ToolOutput::Paused(Box::new(Pause::input(question))))
    });
    let hosted = hosted(helper(&model, &orders).tool(large));
    let asking = hosted.task("x").await;
    let first = hosted.answer(&asking.id, "y").await;
    assert_eq!(first.status.state, TaskState::Completed);
    let last = steps(&hosted, &first, SpanKind::Model).await.pop().unwrap();
    let second = rerun(&hosted, &first, &last.id, ("output", json!("z"))).await;
    assert_eq!(second.status.state, TaskState::Failed);
    assert!(
        said(&second).contains("before the step"),
        "{}",
        said(&second)
    );
}

/// What was too large to be kept is made again, and the step says so.
#[tokio::test]
async fn what_was_not_recorded_is_made_again() {
    let (model, orders) = (model(), Orders::default());
    let large = orders.0.clone();
    let tool = FnTool::new("lookup", "Looks up.", move |_cx: ToolCx, args: Args| {
        large.lock().push(args.order);
        async move { Ok::<_, ToolError>(ToolOutput::Value(json!("x".repeat(70_000)))) }
    });
    let hosted = hosted(agent(&model).tool(tool));
    let first = hosted.task("where is it?").await;
    orders.asked();
    let last = steps(&hosted, &first, SpanKind::Model).await.pop().unwrap();
    let second = rerun(&hosted, &first, &last.id, ("output", json!("Never mind."))).await;
    assert!(
        texts(&second).concat().ends_with("Never mind."),
        "{:?}",
        texts(&second)
    );
    assert_eq!((orders.asked(), model.requests().len()), (vec![7], 2));
    let made = &steps(&hosted, &second, SpanKind::Tool).await[0];
    assert_eq!(
        made.attributes["nuncio.replayed"],
        "no: it was not recorded what came out"
    );
}
