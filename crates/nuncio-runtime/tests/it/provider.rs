//! Models of providers, against a server that we did not write (`scripts/mock-llm`).

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use nuncio_egress::{Egress, EgressPolicy};
use nuncio_runtime::model::{
    GenaiModel, Model as _, ModelChain, ModelChunk, ModelError, ModelParams, ModelRequest,
    RetryPolicy, StopReason, ToolCall, ToolResult, Turn, UserPart,
};
use nuncio_runtime::tool::ToolSpec;
use serde_json::{Value, json};
use url::Url;

const PROVIDERS: [(&str, &str); 3] = [
    ("openai", "/v1"),
    ("anthropic", "/anthropic/v1"),
    ("gemini", "/gemini/v1beta"),
];

/// The server, and what it is told and asked over its own interface.
struct Mock {
    base: String,
    http: reqwest::Client,
}

impl Mock {
    #[expect(
        clippy::disallowed_methods,
        reason = "scripts/mock-llm says by the environment where its server is"
    )]
    fn find() -> Option<Self> {
        let base = std::env::var("NUNCIO_TEST_LLM").ok();
        let skipped = std::env::var("SKIP_LLM").is_ok_and(|skip| skip == "1");
        assert!(
            base.is_some() || skipped,
            "NUNCIO_TEST_LLM is not set: run it with scripts/mock-llm, or set SKIP_LLM=1 to do without"
        );
        let base = base?;
        let egress = Egress::new(EgressPolicy::open()).unwrap();
        let http = egress.client_for(&Url::parse(&base).unwrap()).unwrap();
        Some(Self { base, http })
    }

    fn model(&self, provider: &str, name: &str) -> GenaiModel {
        let (_, path) = PROVIDERS.iter().find(|(p, _)| *p == provider).unwrap();
        GenaiModel::builder(provider, name, self.http.clone())
            .base_url(format!("{}{path}", self.base))
            .key("sk-secret-key")
            .build()
            .unwrap()
    }

    /// What the server is to do when this model is asked; each test has a model of its own.
    async fn plan(&self, model: &str, behaviours: Value) {
        let mut behaviours = behaviours;
        for behaviour in behaviours.as_array_mut().unwrap() {
            behaviour["match"] = json!({"model": model});
        }
        let url = format!("{}/_llmock/scenario", self.base);
        let body = json!({"behaviors": behaviours}).to_string();
        let answer = self.http.post(url).body(body).send().await.unwrap();
        assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap());
    }

    /// The requests for this model that the server has seen.
    async fn requests(&self, model: &str) -> Vec<Value> {
        let url = format!("{}/_llmock/requests", self.base);
        let text = self.http.get(url).send().await.unwrap().text().await;
        let all: Value = serde_json::from_str(&text.unwrap()).unwrap();
        let ours = |request: &&Value| request["model"] == model;
        let requests = all["requests"].as_array().unwrap();
        requests.iter().filter(ours).cloned().collect()
    }
}

async fn chunks(model: &GenaiModel, request: ModelRequest) -> Result<Vec<ModelChunk>, ModelError> {
    model.generate(request).await?.try_collect().await
}

fn words(chunks: &[ModelChunk]) -> Vec<&str> {
    fn word(chunk: &ModelChunk) -> Option<&str> {
        match chunk {
            ModelChunk::Text(word) => Some(word),
            _ => None,
        }
    }
    chunks.iter().filter_map(word).collect()
}

fn find_tool() -> ToolSpec {
    let schema =
        json!({"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]});
    ToolSpec::new("find", "Finds something.", schema)
}

#[tokio::test]
async fn answers_come_word_by_word_with_their_usage() {
    let Some(mock) = Mock::find() else { return };
    for (provider, _) in PROVIDERS {
        let name = format!("words-{provider}");
        mock.plan(
            &name,
            json!([{"type": "reply", "text": "one two three four"}]),
        )
        .await;
        let model = mock.model(provider, &name);
        let mut request = ModelRequest::text("hello");
        request.system = Some("Be short.".to_owned());
        let answer = chunks(&model, request).await.unwrap();
        let words = words(&answer);
        assert_eq!(words.concat(), "one two three four", "{provider}");
        assert!(words.len() > 1, "{provider}: {words:?}");
        let Some(ModelChunk::Done { model, usage, stop }) = answer.last() else {
            panic!("{provider}: {answer:?}");
        };
        assert_eq!((model, stop), (&name, &StopReason::Completed), "{provider}");
        assert!(
            usage.input_tokens > 0 && usage.output_tokens > 0,
            "{provider}: {usage:?}"
        );
        let body = mock.requests(&name).await[0]["body"].to_string();
        assert!(body.contains("Be short."), "{provider}: {body}");
    }
}

#[tokio::test]
async fn calls_of_tools_come_whole_and_results_go_back() {
    let Some(mock) = Mock::find() else { return };
    for (provider, _) in PROVIDERS {
        let name = format!("tools-{provider}");
        let arguments = json!({"q": "a \"quoted\" word"});
        mock.plan(
            &name,
            json!([
                {"type": "reply", "text": "Let me look.", "tool_calls": [
                    {"name": "find", "arguments": arguments},
                    {"name": "find", "arguments": {"q": "b"}},
                ]},
                {"type": "reply", "text": "Found."},
            ]),
        )
        .await;
        let model = mock.model(provider, &name);
        let mut request = ModelRequest::text("find a");
        request.tools = vec![find_tool()];
        let answer = chunks(&model, request.clone()).await.unwrap();
        let calls: Vec<&ToolCall> = answer
            .iter()
            .filter_map(|chunk| match chunk {
                ModelChunk::ToolCall(call) => Some(call),
                _ => None,
            })
            .collect();
        assert_eq!(calls.len(), 2, "{provider}: {answer:?}");
        assert_eq!(
            (&calls[0].name[..], &calls[0].arguments),
            ("find", &arguments),
            "{provider}"
        );
        assert_ne!(calls[0].id, calls[1].id, "{provider}");

        request.turns.push(Turn::Assistant {
            text: "Let me look.".to_owned(),
            thoughts: Vec::new(),
            tool_calls: calls.iter().map(|call| (*call).clone()).collect(),
        });
        request.turns.push(Turn::Tools(
            calls
                .iter()
                .map(|call| ToolResult {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    content: "it is under the bed".to_owned(),
                    is_error: false,
                })
                .collect(),
        ));
        let answer = chunks(&model, request).await.unwrap();
        assert_eq!(words(&answer).concat(), "Found.", "{provider}");
        let body = mock.requests(&name).await[1]["body"].to_string();
        assert!(
            body.contains("under the bed") && body.contains("quoted"),
            "{provider}: {body}"
        );
    }
}

#[tokio::test]
async fn images_schemas_and_parameters_are_sent() {
    let Some(mock) = Mock::find() else { return };
    let model = mock.model("openai", "parameters");
    let mut request = ModelRequest {
        turns: vec![Turn::User(vec![
            UserPart::Text("What is this?".to_owned()),
            UserPart::File {
                media_type: "image/png".to_owned(),
                name: Some("it.png".to_owned()),
                bytes: vec![1, 2, 3].into(),
            },
        ])],
        output_schema: Some(json!({"type": "object", "properties": {"what": {"type": "string"}}})),
        ..ModelRequest::default()
    };
    request.params = ModelParams {
        temperature: Some(0.25),
        max_tokens: Some(77),
        top_p: Some(0.5),
        stop: vec!["END".to_owned()],
        seed: Some(5),
        reasoning: None,
    };
    chunks(&model, request).await.unwrap();
    let body = &mock.requests("parameters").await[0]["body"];
    assert_eq!(body["temperature"], 0.25, "{body}");
    assert_eq!(body["top_p"], 0.5, "{body}");
    assert_eq!(body["seed"], 5, "{body}");
    assert_eq!(body["stop"], json!(["END"]), "{body}");
    assert!(body.to_string().contains("77"), "{body}");
    assert_eq!(body["response_format"]["type"], "json_schema", "{body}");
    let image = &body["messages"][0]["content"][1]["image_url"]["url"];
    assert_eq!(image, "data:image/png;base64,AQID", "{body}");
}

#[tokio::test]
async fn errors_are_sorted() {
    let Some(mock) = Mock::find() else { return };
    for provider in ["openai", "anthropic"] {
        let name = format!("errors-{provider}");
        let model = mock.model(provider, &name);
        for (behaviour, wanted) in [
            (json!({"status": 401}), ModelError::Auth(401)),
            (json!({"status": 403}), ModelError::Auth(403)),
            (
                json!({"status": 429, "retry_after": 2}),
                ModelError::RateLimited {
                    retry_after: Some(Duration::from_secs(2)),
                },
            ),
            (json!({"status": 413}), ModelError::ContextTooLong),
        ] {
            let mut behaviour = behaviour;
            behaviour["type"] = "fail".into();
            mock.plan(&name, json!([behaviour])).await;
            let answer = chunks(&model, ModelRequest::text("x")).await;
            assert_eq!(answer, Err(wanted), "{provider}");
        }
        for (status, transient) in [
            (500, true),
            (503, true),
            (529, true),
            (408, true),
            (400, false),
            (404, false),
        ] {
            let fail =
                json!([{"type": "fail", "status": status, "message": "no sk-secret-key here"}]);
            mock.plan(&name, fail).await;
            let error = chunks(&model, ModelRequest::text("x")).await.unwrap_err();
            assert_eq!(
                error.is_transient(),
                transient,
                "{provider} {status}: {error}"
            );
            let shown = format!("{error} {error:?}");
            assert!(
                !shown.contains("sk-secret-key") && shown.contains("***"),
                "{shown}"
            );
        }
    }
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_told_apart() {
    let Some(mock) = Mock::find() else { return };
    let body = "This model's maximum context length is 8 tokens";
    let fail = json!([{"type": "fail", "status": 400, "code": "context_length_exceeded", "message": body}]);
    mock.plan("too-long", fail).await;
    let answer = chunks(&mock.model("openai", "too-long"), ModelRequest::text("x")).await;
    assert_eq!(answer, Err(ModelError::ContextTooLong));
}

/// An answer that breaks off is never taken for a whole one, however it breaks off.
#[tokio::test]
async fn answers_that_break_off_are_cut() {
    let Some(mock) = Mock::find() else { return };
    for (provider, _) in PROVIDERS {
        for kind in ["truncate", "disconnect", "malformed"] {
            let name = format!("cut-{provider}-{kind}");
            mock.plan(
                &name,
                json!([
                    {"type": "reply", "text": "one two three four five six"},
                    {"type": "stream_fault", "kind": kind, "after_chunks": 4},
                ]),
            )
            .await;
            let model = mock.model(provider, &name);
            let stream = model.generate(ModelRequest::text("x")).await.unwrap();
            let pieces: Vec<_> = stream.collect().await;
            let (last, before) = pieces.split_last().unwrap();
            assert!(
                matches!(last, Err(ModelError::Cut(_))),
                "{name}: {pieces:?}"
            );
            assert!(
                !before.is_empty() && before.iter().all(Result::is_ok),
                "{name}: {pieces:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_stream_that_stalls_is_given_up() {
    let Some(mock) = Mock::find() else { return };
    mock.plan(
        "stall",
        json!([
            {"type": "reply", "text": "one two three"},
            {"type": "stream_fault", "kind": "stall", "after_chunks": 2, "stall_seconds": 30},
        ]),
    )
    .await;
    let model = GenaiModel::builder("openai", "stall", mock.http.clone())
        .base_url(format!("{}/v1", mock.base))
        .idle_timeout(Duration::from_millis(200))
        .build()
        .unwrap();
    let answer = chunks(&model, ModelRequest::text("x")).await;
    assert_eq!(
        answer,
        Err(ModelError::Cut("it paused for too long".to_owned()))
    );
}

#[tokio::test]
async fn a_chain_waits_as_long_as_the_provider_asks() {
    let Some(mock) = Mock::find() else { return };
    let fail = json!([{"type": "fail", "status": 429, "retry_after": 1, "times": 2}]);
    mock.plan("chain", fail).await;
    let policy = RetryPolicy {
        base_wait: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    let chain =
        ModelChain::new(std::sync::Arc::new(mock.model("openai", "chain"))).with_policy(policy);
    let answer: Vec<_> = chain
        .generate(ModelRequest::text("x"))
        .await
        .unwrap()
        .collect()
        .await;
    assert!(
        matches!(answer.last(), Some(Ok(ModelChunk::Done { .. }))),
        "{answer:?}"
    );
    let requests = mock.requests("chain").await;
    let began: Vec<_> = requests
        .iter()
        .map(|r| r["started_at"].as_f64().unwrap())
        .collect();
    assert_eq!(began.len(), 3);
    // Not before it was allowed; how long after depends on the machine.
    assert!(
        began[1] - began[0] >= 1.0 && began[2] - began[1] >= 1.0,
        "{began:?}"
    );
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_unavailable() {
    let http = Egress::new(EgressPolicy::open()).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let base = Url::parse(&format!("http://127.0.0.1:{port}/v1?token=t0ken")).unwrap();
    let model = GenaiModel::builder("openai", "m", http.client_for(&base).unwrap())
        .base_url(base.as_str())
        .build()
        .unwrap();
    let error = chunks(&model, ModelRequest::text("x")).await.unwrap_err();
    assert!(matches!(error, ModelError::Unavailable { .. }), "{error:?}");
    assert!(!error.to_string().contains("t0ken"), "{error}");
}

#[tokio::test]
async fn a_provider_that_nobody_knows_is_refused() {
    let error = GenaiModel::builder("nobody", "m", reqwest::Client::new())
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("\"nobody\""), "{error}");
    assert!(GenaiModel::is_provider("ollama") && !GenaiModel::is_provider("nobody"));
}
