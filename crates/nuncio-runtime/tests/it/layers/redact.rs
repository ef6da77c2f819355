//! What is taken out, and where.

use std::sync::Arc;

use nuncio_engine::{Agent, AgentError, AgentInfo, Input, Outcome, Pause, RunCx, agent_fn};
use nuncio_protocol::{Artifact, Message, Part, StreamResponse, TaskState};
use nuncio_runtime::ModelAgent;
use nuncio_runtime::layer::{At, Layer, LayeredAgent, Redact};
use nuncio_runtime::model::{FakeModel, Turn};
use nuncio_runtime::tool::{FnTool, Later, ToolCx, ToolError, ToolOutput};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{Hosted, fake, said, texts};

const NUMBER: &str = "123-45-6789";

fn redact() -> Redact {
    Redact::new(["[0-9]{3}-[0-9]{2}-[0-9]{4}"]).unwrap()
}

fn around(agent: impl Agent + 'static, layer: impl Layer + 'static) -> Hosted {
    let layers: [Arc<dyn Layer>; 1] = [Arc::new(layer)];
    Hosted::new(Arc::new(LayeredAgent::new(agent, layers)))
}

#[derive(Deserialize, JsonSchema)]
struct Args {
    word: String,
}

/// Calls `look` with what the user says, and tells what it gave.
fn looks() -> FakeModel {
    fake(
        "fake",
        r#"
        [[rules]]
        when = { after_tool = "look" }
        reply = [{ text = "{result} or 987-65-4321" }]
        [[rules]]
        otherwise = true
        reply = [{ tool = { name = "look", arguments = { word = "{text}, 111-11-1111" } } }]
        "#,
    )
}

/// An agent with the tool `look`, which notes its words and gives this.
fn looking(
    model: &FakeModel,
    layer: Redact,
    seen: &Arc<Mutex<Vec<String>>>,
    gives: fn() -> Result<ToolOutput, ToolError>,
) -> Hosted {
    let seen = Arc::clone(seen);
    let tool = FnTool::new("look", "Looks.", move |_: ToolCx, args: Args| {
        seen.lock().push(args.word);
        async move { gives() }
    });
    let agent = ModelAgent::builder("agent").model(model.clone());
    Hosted::new(Arc::new(agent.tool(tool).layer(layer).build().unwrap()))
}

fn gives_data() -> Result<ToolOutput, ToolError> {
    let deep = json!({"of": [{"number": format!("no. {NUMBER}"), "n": 1}]});
    Ok(ToolOutput::Value(deep))
}

/// Agent, tool, model and caller see none of it; the task keeps what the caller sent.
#[tokio::test]
async fn what_matches_is_taken_out_everywhere() {
    let (model, seen) = (looks(), Arc::default());
    let hosted = looking(&model, redact(), &seen, gives_data);
    let task = hosted.task(&format!("I am {NUMBER}")).await;
    assert_eq!(
        model.requests()[0].turns,
        [Turn::user("I am [removed]")],
        "the model"
    );
    assert_eq!(*seen.lock(), ["I am [removed], [removed]"], "the tool");
    let last = format!("{:?}", model.requests()[1].turns);
    assert!(
        last.contains("no. [removed]") && !last.contains("6789"),
        "{last}"
    );
    let answer = texts(&task).concat();
    assert!(answer.ends_with("or [removed]"), "{answer}");
    assert_eq!(
        task.history[0].text(),
        format!("I am {NUMBER}"),
        "as it was sent"
    );
}

/// Only where it is to be looked for.
#[tokio::test]
async fn places_can_be_chosen() {
    let shown = async |at: At| {
        let (model, seen) = (looks(), Arc::default());
        let hosted = looking(&model, redact().with("$0").at([at]), &seen, gives_data);
        let task = hosted.task(NUMBER).await;
        let asked = format!("{:?}", model.requests()[0].turns);
        let told = format!("{:?}", model.requests()[1].turns.last());
        let called = seen.lock().concat();
        [asked, called, told, texts(&task).concat()].map(|text| text.contains("$0"))
    };
    assert_eq!(shown(At::Input).await, [true, true, false, false]);
    assert_eq!(
        shown(At::Model).await,
        [true, true, true, true],
        "the rest follows"
    );
    assert_eq!(shown(At::Tool).await, [false, true, true, true]);
    assert_eq!(shown(At::Output).await, [false, false, false, true]);
}

/// Why a tool failed, and what it gives later, reach the model without it too.
#[tokio::test]
async fn failures_and_late_results_of_tools_are_seen() {
    fn fails() -> Result<ToolOutput, ToolError> {
        Err(ToolError::new(format!("{NUMBER} is unknown")))
    }
    fn later() -> Result<ToolOutput, ToolError> {
        let (later, completer) = Later::new();
        completer.complete(Ok(ToolOutput::Value(NUMBER.into())));
        Ok(ToolOutput::Later(later))
    }
    for (gives, told) in [
        (fails as fn() -> _, "[removed] is unknown"),
        (later, "[removed]"),
    ] {
        let (model, seen) = (looks(), Arc::default());
        let hosted = looking(&model, redact().at([At::Tool]), &seen, gives);
        let task = hosted.task("x").await;
        assert_eq!(texts(&task), [format!("{told} or 987-65-4321")]);
    }
}

/// Says it in every way there is.
fn leaky() -> impl Agent + 'static {
    agent_fn(
        AgentInfo::new("leaky", "Leaky", "Leaks."),
        async |cx: RunCx, input: Input| {
            let words = |cx: &RunCx| cx.message(vec![Part::text(format!("it is {NUMBER}"))]);
            match input.message.text().as_str() {
                "status" => {
                    cx.status(format!("reading {NUMBER}")).await?;
                    let child = cx.child(&"below".into(), "below")?;
                    child.status(format!("below {NUMBER}")).await?;
                    Ok(Outcome::Done)
                }
                "ask" => Ok(Outcome::Paused(Pause::input(words(&cx)))),
                "reject" => Ok(Outcome::Rejected(format!("it is {NUMBER}"))),
                "fail" => {
                    cx.text(format!("half of {NUMBER}")).await?;
                    Err(AgentError::new(format!("it is {NUMBER}")))
                }
                "reply" => Ok(Outcome::Reply(words(&cx))),
                "hand over" => Ok(Outcome::HandOff {
                    agent: "other".into(),
                    message: words(&cx),
                }),
                "data" => {
                    let data = json!({"a": [NUMBER, {"b": NUMBER}], NUMBER: 1});
                    cx.artifact(Artifact::new("d", vec![Part::data(data)]))
                        .await?;
                    Ok(Outcome::Done)
                }
                _ => Ok(Outcome::Said(words(&cx))),
            }
        },
    )
}

/// A guard that forgot the question or the last words would be a hole.
#[tokio::test]
async fn all_words_on_their_way_out_are_seen() {
    let hosted = around(leaky(), redact().at([At::Output]));
    let other = agent_fn(
        AgentInfo::new("other", "Other", "Repeats."),
        async |_, input: Input| Ok::<_, AgentError>(input.message.text()),
    );
    hosted.engine.host(Arc::new(other));
    for (how, state) in [
        ("say", TaskState::Completed),
        ("ask", TaskState::InputRequired),
        ("reject", TaskState::Rejected),
        ("fail", TaskState::Failed),
    ] {
        let task = hosted.task(how).await;
        assert_eq!(
            (task.status.state, said(&task).as_str()),
            (state, "it is [removed]"),
            "{how}"
        );
        if how == "fail" {
            assert_eq!(texts(&task), ["half of [removed]"]);
        }
    }
    for how in ["reply", "hand over"] {
        assert_eq!(texts(&hosted.task(how).await), ["it is [removed]"], "{how}");
    }
    let events = hosted.events("status").await;
    let words = |event: &StreamResponse| match event {
        StreamResponse::StatusUpdate(update) => update.status.message.as_ref().map(Message::text),
        _ => None,
    };
    let words: Vec<_> = events.iter().filter_map(words).collect();
    assert_eq!(words, ["reading [removed]", "below [removed]"]);
    let task = hosted.task("data").await;
    let expected = json!({"a": ["[removed]", {"b": "[removed]"}], NUMBER: 1});
    assert_eq!(
        task.artifacts[0].parts,
        [Part::data(expected)],
        "values, not names"
    );
}

/// A direct answer makes no task, and passes the layers all the same.
#[tokio::test]
async fn a_direct_answer_is_seen() {
    let mut info = AgentInfo::new("direct", "Direct", "Answers.");
    info.answers_directly = true;
    let agent = agent_fn(info, async |cx: RunCx, _| {
        Ok::<_, AgentError>(Outcome::Reply(cx.message(vec![Part::text(NUMBER)])))
    });
    let hosted = around(agent, redact());
    let answer = hosted.ask(hosted.message("go")).await.unwrap();
    let nuncio_protocol::SendMessageResponse::Message(message) = answer else {
        panic!("a task: {answer:?}");
    };
    assert_eq!(message.text(), "[removed]");
}

/// What was said before in the task is what the agent sees of it, so it is changed too.
#[tokio::test]
async fn what_was_said_before_is_changed_for_the_agent() {
    let seen = Arc::new(Mutex::new(Value::Null));
    let agent = {
        let seen = Arc::clone(&seen);
        agent_fn(
            AgentInfo::new("asks", "Asks", "Asks."),
            move |cx: RunCx, input: Input| {
                let history = input.task.history.iter().map(Message::text);
                *seen.lock() = json!(history.collect::<Vec<_>>());
                async move {
                    if input.turn() == 1 {
                        let prompt = cx.message(vec![Part::text("and?")]);
                        return Ok::<_, AgentError>(Outcome::Paused(Pause::input(prompt)));
                    }
                    Ok(Outcome::Done)
                }
            },
        )
    };
    let hosted = around(agent, redact().at([At::Input]));
    let asking = hosted.task(NUMBER).await;
    hosted.answer(&asking.id, "more").await;
    assert_eq!(*seen.lock(), json!(["[removed]", "and?", "more"]));
}
