//! Calls of tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use nuncio_protocol::{Part, TaskState};
use nuncio_runtime::model::{FakeModel, ToolResult, Turn};
use nuncio_runtime::tool::{FnTool, Later, Tool, ToolCx, ToolError, ToolOutput};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{Barrier, Notify};
use tokio::time::Instant;

use super::{agent, hosted, shown};
use crate::support::{fake, said, texts};

#[derive(Deserialize, JsonSchema)]
struct Args {
    n: u32,
}

/// A model that makes these calls, and then says what the last of them gave.
fn calling(calls: &[(&str, &str)]) -> FakeModel {
    let calls: Vec<_> = calls
        .iter()
        .map(|(name, args)| format!("{{ tool = {{ name = '{name}', arguments = {args} }} }}"))
        .collect();
    let calls = calls.join(", ");
    fake(
        "fake",
        &format!(
            "[[rules]]\nwhen = {{ turn = 1 }}\nreply = [{calls}]\n\
         [[rules]]\notherwise = true\nreply = [{{ text = 'got {{result}}' }}]"
        ),
    )
}

fn results(model: &FakeModel) -> Vec<ToolResult> {
    let find = |turn| match turn {
        Turn::Tools(results) => Some(results),
        _ => None,
    };
    shown(model).into_iter().find_map(find).unwrap()
}

fn double() -> impl Tool + 'static {
    FnTool::new("double", "Doubles.", async |_cx: ToolCx, args: Args| {
        Ok::<_, ToolError>(json!({"is": args.n * 2}))
    })
}

#[tokio::test]
async fn the_model_gets_what_a_tool_gives() {
    let model = calling(&[("double", "{ n = 21 }")]);
    let task = hosted(agent(&model).tool(double())).task("x").await;
    assert_eq!(texts(&task), [r#"got {"is":42}"#]);
    assert_eq!(model.requests()[0].tools[0].name, "double");
}

/// No such tool, arguments that do not fit, arguments that are no JSON, a failure: all go to the
/// model, which goes on.
#[tokio::test]
async fn failures_of_tools_go_to_the_model() {
    let broken = FnTool::new("broken", "Breaks.", async |_cx: ToolCx, _args: Args| {
        Err::<ToolOutput, _>(ToolError::internal("the password is hunter2"))
    });
    for (call, args, wanted) in [
        (
            "nobody",
            "{}",
            "there is no tool nobody; there are: double, broken",
        ),
        (
            "double",
            "{ n = -1 }",
            "the arguments of double do not fit its schema: at /n:",
        ),
        (
            "double",
            "'{ \"n\": '",
            "the arguments of double do not fit its schema",
        ),
        ("broken", "{ n = 1 }", "the tool failed"),
    ] {
        let model = calling(&[(call, args)]);
        let broken = FnTool::new("broken", "Breaks.", async |_cx: ToolCx, _args: Args| {
            Err::<ToolOutput, _>(ToolError::internal("the password is hunter2"))
        });
        let task = hosted(agent(&model).tool(double()).tool(broken))
            .task("x")
            .await;
        assert_eq!(task.status.state, TaskState::Completed);
        let result = &results(&model)[0];
        assert!(
            result.is_error && result.content.starts_with(wanted),
            "{}",
            result.content
        );
        assert!(!result.content.contains("hunter2"));
    }
    drop(broken);
}

#[tokio::test(start_paused = true)]
async fn a_tool_has_a_time_limit() {
    let slow = FnTool::new("slow", "Waits.", async |_cx: ToolCx, _args: Args| {
        std::future::pending::<Result<ToolOutput, ToolError>>().await
    })
    .timeout(Duration::from_secs(7));
    let model = calling(&[("slow", "{ n = 1 }")]);
    let began = Instant::now();
    hosted(agent(&model).tool(slow)).task("x").await;
    assert_eq!(began.elapsed().as_secs(), 7);
    assert_eq!(
        results(&model)[0].content,
        "the tool did not finish within 7 seconds"
    );
}

/// Calls of tools that allow it run at the same time: each waits for the other.
#[tokio::test]
async fn parallel_tools_run_beside_each_other() {
    let barrier = Arc::new(Barrier::new(2));
    let meet = FnTool::new("meet", "Meets.", move |_cx: ToolCx, args: Args| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Ok::<_, ToolError>(json!(args.n))
        }
    })
    .parallel();
    let model = calling(&[("meet", "{ n = 1 }"), ("meet", "{ n = 2 }")]);
    hosted(agent(&model).tool(meet)).task("x").await;
    let contents: Vec<_> = results(&model).into_iter().map(|r| r.content).collect();
    assert_eq!(contents, ["1", "2"], "in the order of the calls");
}

/// If one of them does not allow it, they run one after the other.
#[tokio::test]
async fn other_tools_run_in_order() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let order = Arc::new(Mutex::new(Vec::new()));
    let count = {
        let (most, order) = (Arc::clone(&most), Arc::clone(&order));
        move |_cx: ToolCx, args: Args| {
            let (running, most, order) =
                (Arc::clone(&running), Arc::clone(&most), Arc::clone(&order));
            async move {
                most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                tokio::task::yield_now().await;
                order.lock().push(args.n);
                running.fetch_sub(1, SeqCst);
                Ok::<_, ToolError>(json!(args.n))
            }
        }
    };
    let alone = FnTool::new("alone", "Alone.", count.clone());
    let beside = FnTool::new("beside", "Beside.", count).parallel();
    let model = calling(&[
        ("beside", "{ n = 1 }"),
        ("alone", "{ n = 2 }"),
        ("beside", "{ n = 3 }"),
    ]);
    hosted(agent(&model).tool(alone).tool(beside))
        .task("x")
        .await;
    assert_eq!(
        (most.load(SeqCst), order.lock().clone()),
        (1, vec![1, 2, 3])
    );
}

/// BR-175: a result that comes later by a callback lets the task go on.
#[tokio::test(start_paused = true)]
async fn br_175_a_result_that_comes_later_completes_the_task() {
    let job = FnTool::new("job", "Starts a job.", async |_cx: ToolCx, args: Args| {
        let (later, completer) = Later::new();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            completer.complete(Ok(ToolOutput::Value(json!(args.n))))
        });
        Ok::<_, ToolError>(ToolOutput::Later(later))
    })
    .timeout(Duration::from_secs(1));
    let model = calling(&[("job", "{ n = 5 }")]);
    let began = Instant::now();
    let task = hosted(agent(&model).tool(job)).task("x").await;
    assert_eq!(
        (task.status.state, &texts(&task)[..]),
        (TaskState::Completed, &["got 5".to_owned()][..])
    );
    assert_eq!(began.elapsed().as_secs(), 5);
}

/// BR-175: a callback after a cancel changes nothing, and its giver is told.
#[tokio::test(start_paused = true)]
async fn br_175_a_callback_after_a_cancel_is_ignored() {
    let kept = Arc::new(Mutex::new(None));
    let began = Arc::new(Notify::new());
    let job = {
        let (kept, began) = (Arc::clone(&kept), Arc::clone(&began));
        FnTool::new("job", "Starts a job.", move |_cx: ToolCx, _args: Args| {
            let (later, completer) = Later::new();
            *kept.lock() = Some(completer);
            began.notify_one();
            async { Ok::<_, ToolError>(ToolOutput::Later(later)) }
        })
    };
    let model = calling(&[("job", "{ n = 5 }")]);
    let hosted = hosted(agent(&model).tool(job));
    let task = hosted.begin("x").await;
    began.notified().await;
    hosted.cancel(&task.id).await;
    let mut completer = kept.lock().take().unwrap();
    completer.abandoned().await;
    assert!(!completer.complete(Ok(ToolOutput::Value(json!(1)))));
    let task = hosted.get(&task.id).await;
    assert_eq!(
        (task.status.state, texts(&task).len()),
        (TaskState::Canceled, 0)
    );
    assert_eq!(model.requests().len(), 1);
}

/// A cancel fires the token that a tool has handed to work of its own.
#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_tools_at_once() {
    let (began, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let work = {
        let (began, ended) = (Arc::clone(&began), Arc::clone(&ended));
        FnTool::new("work", "Works.", move |cx: ToolCx, _args: Args| {
            let (token, ended) = (cx.cancellation().clone(), Arc::clone(&ended));
            tokio::spawn(async move {
                token.cancelled().await;
                ended.notify_one();
            });
            began.notify_one();
            std::future::pending::<Result<ToolOutput, ToolError>>()
        })
    };
    let model = calling(&[("work", "{ n = 5 }")]);
    let hosted = hosted(agent(&model).tool(work));
    let task = hosted.begin("x").await;
    began.notified().await;
    let canceled = hosted.cancel(&task.id).await;
    assert_eq!(canceled.status.state, TaskState::Canceled);
    ended.notified().await;
}

/// Files that a tool gives are shown to the model.
#[tokio::test]
async fn files_of_tools_reach_the_model() {
    let snap = FnTool::new(
        "snap",
        "Takes a photo.",
        async |_cx: ToolCx, _args: Args| {
            let photo = Part::raw(vec![9])
                .with_media_type("image/png")
                .with_filename("p.png");
            Ok::<_, ToolError>(ToolOutput::Parts(vec![photo]))
        },
    );
    let model = calling(&[("snap", "{ n = 1 }")]);
    hosted(agent(&model).tool(snap)).task("x").await;
    assert_eq!(
        results(&model)[0].content,
        "[a file p.png of type image/png]"
    );
    assert!(matches!(shown(&model).last(), Some(Turn::User(files)) if files.len() == 1));
}

#[tokio::test]
async fn two_tools_of_one_name_are_refused() {
    let error = agent(&calling(&[]))
        .tool(double())
        .tool(double())
        .build()
        .unwrap_err();
    assert_eq!(error.to_string(), "two tools have the name double");
    let error = nuncio_runtime::ModelAgent::builder("x")
        .build()
        .unwrap_err();
    assert_eq!(error.to_string(), "the agent has no model");
}

/// A word of a tool about its work is a status of the task.
#[tokio::test]
async fn tools_can_say_how_it_goes() {
    let work = FnTool::new("work", "Works.", async |cx: ToolCx, _args: Args| {
        cx.status("half way").await.map_err(ToolError::internal)?;
        Ok::<_, ToolError>("ok")
    });
    let model = calling(&[("work", "{ n = 1 }")]);
    let task = hosted(agent(&model).tool(work)).task("x").await;
    assert_eq!(task.status.state, TaskState::Completed, "{}", said(&task));
    assert!(
        task.history
            .iter()
            .any(|message| message.text() == "half way"),
        "{:?}",
        task.history
    );
}
