//! The call tree of a run, and the trace it belongs to.

use std::sync::Arc;
use std::time::Duration;

use nuncio_engine::{AgentInfo, Input, Outcome, Pause, RunCx, SpanKind, agent_fn};
use nuncio_protocol::{
    AgentService as _, Part, SendMessageConfiguration, SpanRecord, SpanRole, TaskState,
    TraceContext,
};
use nuncio_testkit::{Bed, RecordedSpans, call, send, sent_task, text_message};
use serde_json::json;

const CALLERS: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const LATER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn asking() -> impl nuncio_engine::Agent + 'static {
    agent_fn(
        AgentInfo::new("planner", "Planner", "Plans."),
        async |cx: RunCx, input: Input| {
            let model = cx.span(SpanKind::Model, "chat fake");
            model.set("gen_ai.request.model", "fake");
            model.input(&json!({"secret": "what the user said"}));
            let tool = cx
                .within(&model)
                .span(SpanKind::Tool, "execute_tool lookup");
            tool.fail("not found");
            drop((tool, model));
            if input.turn() == 1 {
                let question = cx.message(vec![Part::text("which?")]);
                return Ok(Outcome::Paused(Pause::input(question)));
            }
            Ok(Outcome::Done)
        },
    )
}

async fn until(spans: &RecordedSpans, count: usize) -> Vec<SpanRecord> {
    while spans.all().len() < count {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    spans.all()
}

fn named<'s>(spans: &'s [SpanRecord], name: &str) -> Vec<&'s SpanRecord> {
    spans.iter().filter(|span| span.name == name).collect()
}

/// BR-180: agent, model and tool are of the caller's trace, also when nobody waits; the task and
/// its conversation are told of each.
#[tokio::test]
async fn br_180_steps_of_a_run_are_of_the_callers_trace() {
    let (bed, recorded) = Bed::of(asking());
    let mut called = call("alice");
    called.trace = CALLERS.parse().ok();
    let mut request = send(text_message("m1", "go"));
    let mut configuration = SendMessageConfiguration::default();
    configuration.return_immediately = true;
    request.configuration = Some(configuration);
    let task = sent_task(bed.agent.send_message(called, request).await.unwrap());
    let spans = until(&recorded, 3).await;
    let callers: TraceContext = CALLERS.parse().unwrap();
    for span in &spans {
        assert_eq!(span.context.trace_id, callers.trace_id);
        assert_eq!(span.attributes["a2a.task.id"], task.id.as_str());
        let context = task.context_id.as_ref().unwrap();
        assert_eq!(span.attributes["gen_ai.conversation.id"], context.as_str());
        assert!(
            !format!("{span:?}").contains("what the user said"),
            "content stays here"
        );
    }
    let (agent, model, tool) = (
        named(&spans, "invoke_agent planner")[0],
        named(&spans, "chat fake")[0],
        named(&spans, "execute_tool lookup")[0],
    );
    assert_eq!(agent.parent, Some(callers.span_id));
    assert_eq!(model.parent, Some(agent.context.span_id));
    assert_eq!(tool.parent, Some(model.context.span_id));
    assert_eq!(
        (model.role, tool.role),
        (SpanRole::Client, SpanRole::Internal)
    );
    assert_eq!(model.attributes["gen_ai.operation.name"], "chat");
    assert_eq!(model.attributes["gen_ai.request.model"], "fake");
    assert_eq!(tool.error.as_deref(), Some("not found"));
    assert_eq!(
        agent.attributes["a2a.task.state"],
        "TASK_STATE_INPUT_REQUIRED"
    );
}

/// One trace through a pause: the answer's own trace is linked; without any, the task has one.
#[tokio::test]
async fn br_180_a_resumed_task_goes_on_with_its_trace() {
    for (first, second) in [
        (Some(CALLERS), Some(LATER)),
        (Some(CALLERS), None),
        (None, Some(LATER)),
        (None, None),
    ] {
        let (bed, recorded) = Bed::of(asking());
        let mut called = call("alice");
        called.trace = first.and_then(|text| text.parse().ok());
        let task = sent_task(
            bed.agent
                .send_message(called, send(text_message("m1", "go")))
                .await
                .unwrap(),
        );
        let mut answer = text_message("m2", "that one");
        answer.task_id = Some(task.id.clone());
        let mut called = call("alice");
        called.trace = second.and_then(|text| text.parse().ok());
        let task = sent_task(bed.agent.send_message(called, send(answer)).await.unwrap());
        assert_eq!(task.status.state, TaskState::Completed);
        let spans = until(&recorded, 6).await;
        let callers = first.map_or_else(
            || TraceContext::of_task(&task.id),
            |text| text.parse().unwrap(),
        );
        assert!(
            spans
                .iter()
                .all(|span| span.context.trace_id == callers.trace_id)
        );
        let runs = named(&spans, "invoke_agent planner");
        assert_eq!(runs[1].link, second.and_then(|text| text.parse().ok()));
        assert_eq!(runs[1].parent, first.map(|_| callers.span_id));
    }
}

/// The call tree is kept with the task, with what went in, and is its caller's alone; a run without
/// steps has none.
#[tokio::test]
async fn the_call_tree_is_kept_with_its_task() {
    let (bed, recorded) = Bed::of(asking());
    let task = bed.ask("m1", "go").await;
    bed.answer("m2", &task, "that one").await;
    until(&recorded, 6).await;
    let alice = call("alice");
    let mut tree = Vec::new();
    while tree.len() < 6 {
        tree = bed.agent.call_tree(&alice, &task.id).await.unwrap();
    }
    let names: Vec<_> = tree
        .iter()
        .map(|node| (node.name.as_str(), node.ended.is_some()))
        .collect();
    let turn = [
        ("invoke_agent planner", true),
        ("chat fake", true),
        ("execute_tool lookup", true),
    ];
    assert_eq!(names, [turn, turn].concat());
    assert_eq!(tree[1].parent.as_ref(), Some(&tree[0].id));
    assert_eq!(tree[2].parent.as_ref(), Some(&tree[1].id));
    assert_eq!(tree[1].input, Some(json!({"secret": "what the user said"})));
    assert_eq!(tree[2].error.as_deref(), Some("not found"));
    let foreign = bed
        .agent
        .call_tree(&call("bob"), &task.id)
        .await
        .unwrap_err();
    assert_eq!(foreign.kind, nuncio_protocol::ErrorKind::TaskNotFound);

    let (plain, recorded) = Bed::of(agent_fn(AgentInfo::new("a", "A", "a"), async |_, _| {
        Ok("done")
    }));
    let task = plain.ask("m1", "go").await;
    until(&recorded, 1).await;
    assert_eq!(plain.agent.call_tree(&alice, &task.id).await.unwrap(), []);
}

/// What the caller does not keep is not told to anybody.
#[tokio::test]
async fn a_trace_that_is_not_sampled_is_not_told() {
    let (bed, recorded) = Bed::of(asking());
    let mut called = call("alice");
    called.trace = CALLERS.replace("-01", "-00").parse().ok();
    bed.agent
        .send_message(called, send(text_message("m1", "go")))
        .await
        .unwrap();
    bed.ask("m2", "go").await;
    let spans = until(&recorded, 3).await;
    assert_eq!(spans.len(), 3, "{:?}", Arc::clone(&recorded));
    assert!(spans.iter().all(|span| span.context.sampled));
}
