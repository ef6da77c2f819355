//! Operations of an OpenAPI document, at a server that we did not write (`scripts/mock-llm`).

use std::sync::Arc;

use nuncio_egress::{Egress, EgressPolicy};
use nuncio_runtime::ModelAgent;
use nuncio_runtime::model::{FakeModel, ToolResult, Turn};
use nuncio_runtime::openapi::{OpenApi, OpenApiSettings};
use serde_json::Value;
use url::Url;

use crate::support::{Hosted, fake};

#[expect(
    clippy::disallowed_methods,
    reason = "scripts/mock-llm says by the environment where its server is"
)]
fn place() -> Option<Url> {
    let base = std::env::var("NUNCIO_TEST_LLM").ok();
    let skipped = std::env::var("SKIP_LLM").is_ok_and(|skip| skip == "1");
    assert!(
        base.is_some() || skipped,
        "NUNCIO_TEST_LLM is not set: run it with scripts/mock-llm, or set SKIP_LLM=1 to do without"
    );
    Some(Url::parse(&base?).unwrap())
}

async fn document(base: &Url, egress: &Egress) -> Value {
    let url = base.join("openapi.json").unwrap();
    let http = egress.client_for(&url).unwrap();
    let text = http.get(url).send().await.unwrap().text().await.unwrap();
    serde_json::from_str(&text).unwrap()
}

fn calling(tool: &str, args: &str) -> FakeModel {
    fake(
        "fake",
        &format!(
            "[[rules]]\nwhen = {{ turn = 1 }}\nreply = [{{ tool = {{ name = '{tool}', arguments = {args} }} }}]\n\
             [[rules]]\notherwise = true\nreply = [{{ text = 'ok' }}]"
        ),
    )
}

/// Lets a model make one call, and gives what came of it.
async fn call(api: OpenApi, tool: &str, args: &str) -> ToolResult {
    let model = calling(tool, args);
    let agent = ModelAgent::builder("a")
        .model(model.clone())
        .source(Arc::new(api));
    Hosted::new(Arc::new(agent.build().unwrap()))
        .task("x")
        .await;
    let turns = model.requests().pop().unwrap().turns;
    let results = turns.into_iter().find_map(|turn| match turn {
        Turn::Tools(mut results) => results.pop(),
        _ => None,
    });
    results.unwrap()
}

#[tokio::test]
async fn operations_of_a_real_document_are_called() {
    let Some(base) = place() else { return };
    let egress = Egress::new(EgressPolicy::open()).unwrap();
    let document = document(&base, &egress).await;
    let api = OpenApi::new(&document, OpenApiSettings::new("mock", base, egress)).unwrap();
    assert!(api.tools().len() > 50, "{}", api.tools().len());

    let health = call(api.clone(), "health_health_get", "{}").await;
    assert!(
        !health.is_error && health.content.contains("ok"),
        "{health:?}"
    );

    let verdict = call(
        api.clone(),
        "verdict__llmock_verdict_get",
        "{ format = 'text' }",
    )
    .await;
    assert!(
        !verdict.is_error && !verdict.content.starts_with('{'),
        "{verdict:?}"
    );

    // A body of a schema with references, and a refusal of the service.
    let chat = api
        .tools()
        .iter()
        .find(|tool| tool.spec().input_schema.to_string().contains("messages"));
    let name = chat.unwrap().spec().name.clone();
    let answer = call(
        api.clone(),
        &name,
        "{ body = { model = 'openapi', messages = [{ role = 'user', content = 'hi' }] } }",
    )
    .await;
    assert!(
        !answer.is_error && answer.content.contains("choices"),
        "{answer:?}"
    );
    let wrong = call(api, &name, "{ body = { model = 7 } }").await;
    assert!(
        wrong.is_error && wrong.content.contains("/body"),
        "{wrong:?}"
    );
}

/// What an operation says when it fails goes to the model, and where the service is does not.
#[tokio::test]
async fn a_service_that_is_not_there_is_told_without_its_address() {
    let base = Url::parse("http://127.0.0.1:9/?token=t0ken").unwrap();
    let document =
        serde_json::json!({"openapi": "3.1.0", "paths": {"/a": {"get": {"operationId": "a"}}}});
    let egress = Egress::new(EgressPolicy::open()).unwrap();
    let api = OpenApi::new(
        &document,
        OpenApiSettings::new("shop", base.clone(), egress),
    )
    .unwrap();
    let result = call(api, "a", "{}").await;
    assert_eq!(
        (result.is_error, result.content.as_str()),
        (true, "shop cannot be reached")
    );

    let guarded = Egress::new(EgressPolicy::default()).unwrap();
    let api = OpenApi::new(&document, OpenApiSettings::new("shop", base, guarded)).unwrap();
    assert!(call(api, "a", "{}").await.is_error);
}
