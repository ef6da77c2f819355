//! The scripted model.

use futures_util::{StreamExt as _, TryStreamExt as _};
use serde::Deserialize;

use super::{FakeModel, FakeRule};
use crate::model::{
    Model as _, ModelChunk, ModelError, ModelRequest, StopReason, ToolResult, Turn,
};

#[derive(Deserialize)]
struct Script {
    rules: Vec<FakeRule>,
}

fn model(rules: &str) -> FakeModel {
    let script: Script = toml::from_str(rules).unwrap();
    FakeModel::new("fake", script.rules).unwrap()
}

async fn chunks(model: &FakeModel, request: ModelRequest) -> Result<Vec<ModelChunk>, ModelError> {
    model.generate(request).await?.try_collect().await
}

const SUPPORT: &str = r#"
    [[rules]]
    when = { text_contains = "order" }
    reply = [{ text = "Let me look." }, { tool = { name = "find", arguments = { query = ["{text}"] } } }]
    [[rules]]
    when = { after_tool = "find", result_contains = "NOBODY" }
    reply = [{ text = "Nothing." }]
    [[rules]]
    when = { after_tool = "find" }
    reply = [{ text = "Found {result} {nothing}" }]
"#;

#[tokio::test]
async fn a_rule_speaks_and_calls_a_tool() {
    let answer = chunks(&model(SUPPORT), ModelRequest::text("My Order A-17")).await;
    let answer = answer.unwrap();
    let words: String = answer
        .iter()
        .filter_map(|chunk| match chunk {
            ModelChunk::Text(word) => Some(word.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(words, "Let me look.");
    assert_eq!(answer.len(), 5, "three words, a call and the end");
    let ModelChunk::ToolCall(call) = &answer[3] else {
        panic!("{answer:?}")
    };
    assert_eq!((call.id.as_str(), call.name.as_str()), ("call-1-1", "find"));
    assert_eq!(
        call.arguments,
        serde_json::json!({"query": ["My Order A-17"]})
    );
    let ModelChunk::Done { stop, usage, .. } = &answer[4] else {
        panic!("{answer:?}")
    };
    assert_eq!(stop, &StopReason::ToolCalls);
    assert!(usage.input_tokens > 0 && usage.output_tokens > 0);
}

/// Results of tools choose among the rules that wait for results, and no others.
#[tokio::test]
async fn results_choose_the_next_rule() {
    for (content, said) in [("A-17", "Found A-17 {nothing}"), ("nobody", "Nothing.")] {
        let model = model(SUPPORT);
        let mut request = ModelRequest::text("my order");
        request.turns.push(Turn::assistant("Let me look."));
        request.turns.push(Turn::Tools(vec![ToolResult {
            id: "1".to_owned(),
            name: "find".to_owned(),
            content: content.to_owned(),
            is_error: false,
        }]));
        let answer = chunks(&model, request).await.unwrap();
        let words: String = answer
            .iter()
            .filter_map(|chunk| match chunk {
                ModelChunk::Text(word) => Some(word.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(words, said);
        assert_eq!(model.requests()[0].turns.len(), 3);
    }
}

#[tokio::test]
async fn it_fails_a_number_of_times_and_is_cut_off() {
    let model = model(
        "[[rules]]\ntimes = 2\notherwise = true\nreply = [{ error = 'rate_limited' }]\n\
         [[rules]]\notherwise = true\nreply = [{ text = 'half an' }, 'cut']",
    );
    for _ in 0..2 {
        let answer = chunks(&model, ModelRequest::text("x")).await;
        assert_eq!(answer, Err(ModelError::RateLimited { retry_after: None }));
    }
    let pieces: Vec<_> = model
        .generate(ModelRequest::text("x"))
        .await
        .unwrap()
        .collect()
        .await;
    assert_eq!(pieces.len(), 3);
    assert!(matches!(pieces[2], Err(ModelError::Cut(_))), "{pieces:?}");
}

#[test]
fn faults_of_rules_name_their_place() {
    let script: Script = toml::from_str(
        "[[rules]]\nreply = []\n\
         [[rules]]\nwhen = {}\nreply = []\n\
         [[rules]]\notherwise = true\ntimes = 0\nreply = ['cut', { text = 'x' }]\n",
    )
    .unwrap();
    let faults = FakeModel::new("fake", script.rules).unwrap_err();
    let paths: Vec<_> = faults.iter().map(|fault| fault.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "rules[0]",
            "rules[1].when",
            "rules[2].times",
            "rules[2].reply[1]"
        ]
    );
}
