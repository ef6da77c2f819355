//! Layers: what they see, change and refuse, and in which order.

mod audit;
mod quota;
mod redact;
mod refuse;

use std::sync::Arc;

use nuncio_engine::{Agent, AgentError, AgentInfo, Input, Outcome, Pause, RunCx, agent_fn};
use nuncio_protocol::{Artifact, Part, PartContent, TaskState};
use nuncio_runtime::ModelAgent;
use nuncio_runtime::layer::{Ended, Layer, LayerError, LayerFuture, LayeredAgent};
use nuncio_runtime::model::{ModelRequest, ToolCall};
use nuncio_runtime::tool::{FnTool, ToolCx, ToolError, ToolOutput};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Notify;

use crate::support::{Hosted, fake, said, texts};

type Log = Arc<Mutex<Vec<String>>>;

/// Writes down all that it sees, under its name.
struct Audit(&'static str, Log);

impl Audit {
    fn note(&self, what: &str) {
        self.1.lock().push(format!("{} {what}", self.0));
    }
}

impl Layer for Audit {
    fn input<'a>(&'a self, _: &'a RunCx, input: Input) -> LayerFuture<'a, Input> {
        self.note(&format!("input {}", input.message.text()));
        Box::pin(async { Ok(input) })
    }

    fn model_request<'a>(
        &'a self,
        _: &'a RunCx,
        request: ModelRequest,
    ) -> LayerFuture<'a, ModelRequest> {
        self.note("model");
        Box::pin(async { Ok(request) })
    }

    fn tool_call<'a>(&'a self, _: &'a RunCx, call: ToolCall) -> LayerFuture<'a, ToolCall> {
        self.note(&format!("tool {}", call.arguments));
        Box::pin(async { Ok(call) })
    }

    fn tool_output<'a>(
        &'a self,
        _: &'a RunCx,
        _: &'a ToolCall,
        output: ToolOutput,
    ) -> LayerFuture<'a, ToolOutput> {
        self.note("tool output");
        Box::pin(async { Ok(output) })
    }

    fn ended(&self, _: &RunCx, ended: &Ended<'_>) {
        self.note(&match ended {
            Ended::Run { result, .. } => match result {
                Some(Ok(_)) => "run ended".to_owned(),
                Some(Err(error)) => format!("run failed: {error}"),
                None => "run given up".to_owned(),
            },
            Ended::Model { result, .. } => match result {
                Some(Ok(usage)) => format!("model ended {}", usage.output_tokens > 0),
                Some(Err(error)) => format!("model failed: {error}"),
                None => "model given up".to_owned(),
            },
            Ended::Tool { result, .. } => match result {
                Some(Ok(_)) => "tool ended".to_owned(),
                Some(Err(error)) => format!("tool failed: {error}"),
                None => "tool given up".to_owned(),
            },
            _ => "something else".to_owned(),
        });
    }
}

/// Keeps a word from callers, wherever a piece of it ends.
struct Redact;

impl Layer for Redact {
    fn sees_output(&self) -> bool {
        true
    }

    fn output<'a>(&'a self, _: &'a RunCx, mut artifact: Artifact) -> LayerFuture<'a, Artifact> {
        Box::pin(async move {
            let text = artifact.text().replace("secret", "******");
            artifact.parts = vec![Part::new(PartContent::Text(text))];
            Ok(artifact)
        })
    }
}

/// Lets no message pass that has this word, and no call with it.
struct Guard(&'static str);

impl Guard {
    fn judge<T>(&self, text: &str, passes: T) -> Result<T, LayerError> {
        match text.contains(self.0) {
            true => Err(LayerError::Refused(format!("nobody says {}", self.0))),
            false => Ok(passes),
        }
    }
}

impl Layer for Guard {
    fn input<'a>(&'a self, _: &'a RunCx, input: Input) -> LayerFuture<'a, Input> {
        Box::pin(async move { self.judge(&input.message.text(), input) })
    }

    fn tool_call<'a>(&'a self, _: &'a RunCx, call: ToolCall) -> LayerFuture<'a, ToolCall> {
        Box::pin(async move { self.judge(&call.arguments.to_string(), call) })
    }
}

#[derive(Deserialize, JsonSchema)]
struct Args {
    word: String,
}

async fn repeat(_: ToolCx, args: Args) -> Result<String, ToolError> {
    match args.word.as_str() {
        "fail" => Err(ToolError::new("cannot")),
        word => Ok(word.to_owned()),
    }
}

const RULES: &str = r#"
    [[rules]]
    when = { after_tool = "repeat" }
    reply = [{ text = "It gave {result}" }]
    [[rules]]
    when = { text_contains = "model fails" }
    reply = [{ error = "invalid" }]
    [[rules]]
    otherwise = true
    reply = [{ tool = { name = "repeat", arguments = { word = "{text}" } } }]
"#;

fn builder() -> nuncio_runtime::ModelAgentBuilder {
    let agent = ModelAgent::builder("agent").model(fake("fake", RULES));
    agent.tool(FnTool::new("repeat", "Repeats.", repeat))
}

/// In: first to last; out: last to first; failures of tool, model and run are seen too.
#[tokio::test]
async fn layers_are_in_order_and_see_failures() {
    let log = Log::default();
    let agent = builder()
        .layer(Audit("a", Arc::clone(&log)))
        .layer(Audit("b", Arc::clone(&log)));
    let hosted = Hosted::new(Arc::new(agent.build().unwrap()));
    let seen = async |text: &str| {
        hosted.task(text).await;
        std::mem::take(&mut *log.lock())
    };
    let word = r#"{"word":"hi"}"#;
    let whole = [
        "a input hi",
        "b input hi",
        "a model",
        "b model",
        "b model ended true",
        "a model ended true",
        &format!("a tool {word}"),
        &format!("b tool {word}"),
        "b tool output",
        "a tool output",
        "b tool ended",
        "a tool ended",
        "a model",
        "b model",
        "b model ended true",
        "a model ended true",
        "b run ended",
        "a run ended",
    ];
    assert_eq!(seen("hi").await, whole);
    let failed = seen("fail").await;
    assert!(
        failed.contains(&"a tool failed: cannot".to_owned()),
        "{failed:?}"
    );
    assert!(!failed.contains(&"a tool output".to_owned()), "{failed:?}");
    let failed = seen("the model fails").await;
    assert!(
        failed.iter().any(|line| line.starts_with("a model failed")),
        "{failed:?}"
    );
    assert!(
        failed.last().unwrap().starts_with("a run failed"),
        "{failed:?}"
    );
}

/// A refused message is REJECTED before any model is asked; a refused call is told to the model.
#[tokio::test]
async fn what_a_guard_refuses_does_not_pass() {
    let log = Log::default();
    let agent = builder()
        .layer(Guard("poison"))
        .layer(Audit("b", Arc::clone(&log)));
    let hosted = Hosted::new(Arc::new(agent.build().unwrap()));
    let refused = hosted.task("poison").await;
    assert_eq!(
        (refused.status.state, said(&refused).as_str()),
        (TaskState::Rejected, "nobody says poison")
    );
    assert_eq!(*log.lock(), ["b run ended"], "nothing came in");
    let rules = r#"
        [[rules]]
        when = { after_tool = "repeat" }
        reply = [{ text = "It gave {result}" }]
        [[rules]]
        otherwise = true
        reply = [{ tool = { name = "repeat", arguments = { word = "poison" } } }]
    "#;
    let agent = ModelAgent::builder("agent")
        .model(fake("fake", rules))
        .layer(Guard("poison"));
    let agent = agent.tool(FnTool::new("repeat", "Repeats.", repeat));
    let hosted = Hosted::new(Arc::new(agent.build().unwrap()));
    assert_eq!(
        texts(&hosted.task("hi").await),
        ["It gave nobody says poison"]
    );
}

/// What goes out passes whole, so that a word in two pieces is found; around any agent.
#[tokio::test]
async fn what_goes_out_can_be_changed() {
    let inner = agent_fn(
        AgentInfo::new("leaky", "Leaky", "Leaks."),
        async |cx: RunCx, _: Input| {
            for piece in ["the sec", "ret is", " out"] {
                cx.text(piece).await?;
            }
            Ok::<_, AgentError>(())
        },
    );
    let layers: [Arc<dyn Layer>; 1] = [Arc::new(Redact)];
    let hosted = Hosted::new(Arc::new(LayeredAgent::new(
        Arc::new(inner) as Arc<dyn Agent>,
        layers,
    )));
    assert_eq!(texts(&hosted.task("go").await), ["the ****** is out"]);
    let hosted = Hosted::new(Arc::new(builder().layer(Redact).build().unwrap()));
    assert_eq!(texts(&hosted.task("secret").await), ["It gave ******"]);
}

/// An artifact that goes on after a question, or with the next message, does so within layers too.
#[tokio::test]
async fn an_artifact_may_go_on_after_a_pause() {
    let inner = agent_fn(
        AgentInfo::new("leaky", "Leaky", "Leaks."),
        async |cx: RunCx, input: Input| {
            let first = input.turn() == 1;
            for (at, piece) in ["a sec", "ret, "].into_iter().enumerate() {
                let piece = Artifact::new("doc", vec![Part::text(piece)]);
                cx.chunk(piece, at > 0 || !first, false).await?;
            }
            Ok::<_, AgentError>(match first {
                true => Outcome::Paused(Pause::input(cx.message(vec![Part::text("more?")]))),
                false => Outcome::Done,
            })
        },
    );
    let layers: [Arc<dyn Layer>; 2] = [Arc::new(Redact), Arc::new(Redact)];
    let hosted = Hosted::new(Arc::new(LayeredAgent::new(inner, layers)));
    let asking = hosted.task("go").await;
    assert_eq!(texts(&asking), ["a ******, "]);
    let done = hosted.answer(&asking.id, "yes").await;
    assert_eq!(texts(&done), ["a ******, a ******, "], "{}", said(&done));
}

/// A message that comes while the agent works passes the layers as well.
#[tokio::test]
async fn messages_that_come_meanwhile_pass_the_layers() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let inner = {
        let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
        agent_fn(
            AgentInfo::new("busy", "Busy", "Takes what comes."),
            move |cx: RunCx, _: Input| {
                let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
                async move {
                    begun.notify_one();
                    go_on.notified().await;
                    let taken = cx.take_message().map(|message| message.text());
                    Ok::<_, AgentError>(taken.unwrap_or_else(|| "nothing".to_owned()))
                }
            },
        )
    };
    let layers: [Arc<dyn Layer>; 1] = [Arc::new(Guard("poison"))];
    let hosted = Hosted::new(Arc::new(LayeredAgent::new(inner, layers)));
    let task = hosted.begin("one").await;
    begun.notified().await;
    hosted.queue(&task.id, "poison").await;
    go_on.notify_one();
    let rested = hosted.rests(&task.id).await;
    assert_eq!(
        (rested.status.state, said(&rested).as_str()),
        (TaskState::Rejected, "nobody says poison")
    );
    assert_eq!(texts(&rested), ["nothing"]);
}
