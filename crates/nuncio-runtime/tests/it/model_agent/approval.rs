//! Calls that somebody must approve.

use std::sync::Arc;

use nuncio_protocol::{Message, Part, PartContent, Task, TaskState};
use nuncio_runtime::model::{FakeModel, Turn};
use nuncio_runtime::tool::{FnTool, Tool, ToolCx, ToolError};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{agent, shown};
use crate::support::{Hosted, fake, said, texts};

#[derive(Deserialize, JsonSchema)]
struct Payment {
    amount: u32,
}

type Paid = Arc<Mutex<Vec<u32>>>;

fn pay(paid: &Paid) -> impl Tool + 'static {
    let paid = Arc::clone(paid);
    FnTool::new("pay", "Pays.", move |_cx: ToolCx, payment: Payment| {
        paid.lock().push(payment.amount);
        async { Ok::<_, ToolError>("paid") }
    })
    .needs_approval()
}

fn model(calls: &str) -> FakeModel {
    fake(
        "fake",
        &format!(
            "[[rules]]\nwhen = {{ turn = 1 }}\nreply = [{calls}]\n\
         [[rules]]\notherwise = true\nreply = [{{ text = '{{result}}' }}]"
        ),
    )
}

const ONE: &str = "{ tool = { name = 'pay', arguments = { amount = 5 } } }";

/// A hosted agent that wants to pay, what it has paid, and its model.
fn paying(calls: &str) -> (Hosted, Paid, FakeModel) {
    let (paid, model) = (Paid::default(), model(calls));
    let agent = agent(&model).tool(pay(&paid)).build().unwrap();
    (Hosted::new(Arc::new(agent)), paid, model)
}

fn asked(task: &Task) -> Value {
    let message = task.status.message.as_ref().unwrap();
    let data = |part: &Part| match &part.content {
        PartContent::Data(data) => Some(data["approval"].clone()),
        _ => None,
    };
    message.parts.iter().find_map(data).unwrap()
}

fn decision(hosted: &Hosted, task: &Task, data: Value) -> Message {
    let mut message = hosted.message("");
    message.parts = vec![Part::data(data)];
    message.task_id = Some(task.id.clone());
    message
}

#[tokio::test]
async fn a_call_waits_until_it_is_approved() {
    let (hosted, paid, _) = paying(ONE);
    let waiting = hosted.task("x").await;
    assert_eq!(waiting.status.state, TaskState::InputRequired);
    let asked = asked(&waiting);
    assert_eq!(
        (&asked["tool"], &asked["arguments"]),
        (&json!("pay"), &json!({"amount": 5}))
    );
    assert_eq!(asked["argsHash"].as_str().map(str::len), Some(64));
    assert!(paid.lock().is_empty());
    let yes = json!({"approved": true, "argsHash": asked["argsHash"]});
    let done = hosted.task_of(decision(&hosted, &waiting, yes)).await;
    assert_eq!(
        (done.status.state, &texts(&done)[..]),
        (TaskState::Completed, &["paid".to_owned()][..])
    );
    assert_eq!(*paid.lock(), [5]);
}

#[tokio::test]
async fn a_denial_reaches_the_model() {
    let (hosted, paid, model) = paying(ONE);
    let waiting = hosted.task("x").await;
    let no = json!({"approved": false, "reason": "too much"});
    let done = hosted.task_of(decision(&hosted, &waiting, no)).await;
    assert_eq!(
        texts(&done),
        ["the user does not allow this call: too much"]
    );
    assert!(paid.lock().is_empty());
    let turns = shown(&model);
    assert!(
        matches!(&turns[2], Turn::Tools(results) if results[0].is_error),
        "{turns:?}"
    );
}

/// Neither a word that is no decision nor one about another call lets anything happen.
#[tokio::test]
async fn what_is_no_decision_is_asked_again() {
    let (hosted, paid, model) = paying(ONE);
    let waiting = hosted.task("x").await;
    let again = hosted.answer(&waiting.id, "how much?").await;
    assert_eq!(again.status.state, TaskState::InputRequired);
    assert!(
        said(&again).starts_with("Please answer yes or no."),
        "{}",
        said(&again)
    );
    let other = json!({"approved": true, "argsHash": "0".repeat(64)});
    let again = hosted.task_of(decision(&hosted, &waiting, other)).await;
    assert_eq!(again.status.state, TaskState::InputRequired);
    assert!(paid.lock().is_empty());
    assert_eq!(model.requests().len(), 1);
    assert_eq!(texts(&hosted.answer(&waiting.id, "Yes.").await), ["paid"]);
    assert_eq!(*paid.lock(), [5]);
}

/// Each call is approved for itself, and nothing is called before all are decided.
#[tokio::test]
async fn two_calls_are_two_questions() {
    let two = format!("{ONE}, {}", ONE.replace('5', "7"));
    let (hosted, paid, _) = paying(&two);
    let first = hosted.task("x").await;
    let second = hosted.answer(&first.id, "yes").await;
    assert_eq!(
        (second.status.state, &asked(&second)["arguments"]),
        (TaskState::InputRequired, &json!({"amount": 7}))
    );
    assert_ne!(asked(&first)["argsHash"], asked(&second)["argsHash"]);
    assert!(paid.lock().is_empty());
    hosted.answer(&first.id, "no").await;
    assert_eq!(*paid.lock(), [5]);
}

/// A restart between question and answer loses nothing and calls nothing.
#[tokio::test]
async fn a_restart_keeps_the_question() {
    let (paid, model) = (Paid::default(), model(ONE));
    let make = || Arc::new(agent(&model).tool(pay(&paid)).build().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let hosted = Hosted::at(&folder, make());
    let waiting = hosted.task("x").await;
    hosted.stop().await;
    let again = Hosted::at(&folder, make());
    assert!(paid.lock().is_empty());
    assert_eq!(texts(&again.answer(&waiting.id, "ok").await), ["paid"]);
    assert_eq!((paid.lock().clone(), model.requests().len()), (vec![5], 2));
}

/// Arguments that do not fit are the model's to mend; nobody is asked about them.
#[tokio::test]
async fn nobody_is_asked_about_a_call_that_cannot_be_made() {
    let (hosted, paid, _) = paying(&ONE.replace('5', "'much'"));
    let done = hosted.task("x").await;
    assert_eq!(done.status.state, TaskState::Completed);
    assert!(
        texts(&done)[0].contains("at /amount:"),
        "{:?}",
        texts(&done)
    );
    assert!(paid.lock().is_empty());
}
