//! Tools without a run; `tests/it/model_agent` calls them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{FnTool, Json, Later, ReadyTool, Tool, ToolCx, ToolError, ToolOutput, ToolSpec};

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The number on the invoice.
    number: String,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    count: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn order_tool() -> impl Tool + 'static {
    FnTool::new(
        "find_order",
        "Finds an order.",
        async |_cx: ToolCx, order: Order| {
            let count: u32 = order.items.iter().map(|item| item.count).sum();
            Ok::<_, ToolError>(Json((order.number, count)))
        },
    )
}

#[test]
fn the_schema_comes_from_the_type_without_references() {
    let tool = order_tool();
    let schema = &tool.spec().input_schema;
    assert_eq!(schema["type"], "object");
    assert_eq!(
        schema["properties"]["number"]["description"],
        "The number on the invoice."
    );
    assert_eq!(
        schema["properties"]["items"]["items"]["properties"]["count"]["type"],
        "integer"
    );
    assert_eq!(schema["required"], json!(["number"]));
    assert!(!schema.to_string().contains("$"), "{schema}");

    let nothing = FnTool::new("now", "Now.", async |_cx: ToolCx, _args: Nothing| {
        Ok::<_, ToolError>("now")
    });
    let schema = &nothing.spec().input_schema;
    assert_eq!(
        (&schema["type"], &schema["properties"]),
        (&json!("object"), &json!({}))
    );
}

#[test]
fn arguments_that_do_not_fit_are_named() {
    let tool = ReadyTool::new(Arc::new(order_tool())).unwrap();
    assert!(
        tool.check(&json!({"number": "A", "items": [{"count": 1}]}))
            .is_ok()
    );
    let error = tool
        .check(&json!({"number": 1, "items": [{"count": -1}]}))
        .unwrap_err();
    let text = error.message();
    assert!(
        text.contains("find_order") && text.contains("at /number:"),
        "{text}"
    );
    assert!(text.contains("at /items/0/count:"), "{text}");
    // What a model writes that is no JSON comes as a text.
    assert!(tool.check(&json!("{\"number\": ")).is_err());
}

#[test]
fn bad_names_and_schemas_are_refused() {
    struct Bad(ToolSpec);
    impl Tool for Bad {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }
        fn call(&self, _: ToolCx, _: serde_json::Value) -> super::ToolFuture<'_> {
            Box::pin(async { Ok(ToolOutput::Value(json!(null))) })
        }
    }
    let long = "a".repeat(65);
    for (name, schema) in [
        ("", json!({})),
        ("a b", json!({})),
        (&long, json!({})),
        ("ok", json!({"type": 5})),
    ] {
        let bad = Bad(ToolSpec::new(name, "", schema));
        let error = ReadyTool::new(Arc::new(bad)).unwrap_err();
        assert!(error.message().contains(name), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_result_is_waited_for() {
    let (later, completer) = Later::new();
    assert!(completer.complete(Ok(ToolOutput::Value(json!(1)))));
    assert!(matches!(later.wait().await, Ok(ToolOutput::Value(value)) if value == json!(1)));

    let (later, completer) = Later::new();
    drop(completer);
    let error = later.wait().await.unwrap_err();
    assert!(error.message().contains("gave up"), "{error}");

    let (later, completer) = Later::new();
    let error = later
        .within(std::time::Duration::from_secs(5))
        .wait()
        .await
        .unwrap_err();
    assert!(error.message().contains("in time"), "{error}");
    assert!(
        !completer.complete(Err(ToolError::new("too late"))),
        "nobody waits any more"
    );
}
