//! Answers that are JSON of a schema.

use nuncio_protocol::{PartContent, TaskState};
use nuncio_runtime::Prices;
use nuncio_runtime::model::{FakeModel, Turn, UserPart};
use serde_json::{Value, json};

use super::{agent, hosted, shown};
use crate::support::{fake, said};

fn schema() -> Value {
    json!({"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]})
}

fn answering(first: &str, second: &str) -> FakeModel {
    fake(
        "fake",
        &format!(
            "[[rules]]\ntimes = 1\notherwise = true\nreply = [{{ text = '''{first}''' }}]\n\
         [[rules]]\notherwise = true\nreply = [{{ text = '''{second}''' }}]"
        ),
    )
}

/// BR-177: data of type `application/json`, and the same as text.
#[tokio::test]
async fn br_177_a_structured_answer_is_data_and_text() {
    let model = answering("{\"count\": 3}", "");
    let prices = Prices {
        input: 1.0,
        output: 1_000_000.0,
    };
    let task = hosted(agent(&model).output_schema(schema()).prices(prices))
        .task("x")
        .await;
    assert_eq!(
        (task.status.state, task.artifacts.len()),
        (TaskState::Completed, 1),
        "{}",
        said(&task)
    );
    let parts = &task.artifacts[0].parts;
    assert_eq!(parts[0].content, PartContent::Data(json!({"count": 3})));
    assert_eq!(parts[0].media_type.as_deref(), Some("application/json"));
    assert_eq!(parts[1].as_text(), Some("{\"count\":3}"));
    assert_eq!(model.requests()[0].output_schema, Some(schema()));
    let usage = &task.artifacts[0].metadata.as_ref().unwrap()["usage"];
    let output = usage["outputTokens"].as_f64().unwrap();
    assert!(usage["cost"].as_f64().unwrap() >= output, "{usage}");
}

/// BR-177: the model may mend its answer once.
#[tokio::test]
async fn br_177_an_answer_that_does_not_fit_is_mended() {
    let model = answering("{\"count\": \"three\"}", "```json\n{\"count\": 3}\n```");
    let task = hosted(agent(&model).output_schema(schema()))
        .task("x")
        .await;
    assert_eq!(
        task.artifacts[0].parts[0].content,
        PartContent::Data(json!({"count": 3}))
    );
    let turns = shown(&model);
    let Some(Turn::User(parts)) = turns.last() else {
        panic!("{turns:?}")
    };
    assert!(
        matches!(&parts[0], UserPart::Text(text) if text.contains("at /count:")),
        "{parts:?}"
    );
}

/// BR-177: and fails with what is wrong if it cannot.
#[tokio::test]
async fn br_177_an_answer_that_never_fits_fails_the_task() {
    let model = answering("no JSON", "{}");
    let task = hosted(agent(&model).output_schema(schema()))
        .task("x")
        .await;
    assert_eq!(
        (task.status.state, task.artifacts.len()),
        (TaskState::Failed, 0)
    );
    let words = said(&task);
    assert!(
        words.starts_with("the model's answer does not fit the schema:"),
        "{words}"
    );
    assert!(words.contains("\"count\""), "{words}");
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test]
async fn a_schema_that_is_none_is_refused() {
    let error = agent(&answering("", ""))
        .output_schema(json!({"type": 7}))
        .build()
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the output schema is no JSON Schema"),
        "{error}"
    );
}
