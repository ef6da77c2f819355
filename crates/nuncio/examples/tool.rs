//! A model that calls a Rust function. The model is a scripted one here, so that the example needs no
//! key; `GenaiModel` speaks to real ones.

use nuncio::runtime::ModelAgent;
use nuncio::runtime::model::FakeModel;
use nuncio::runtime::tool::{FnTool, ToolCx, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// Such as ORD-1042.
    id: String,
}

async fn look_up(_: ToolCx, order: Order) -> Result<String, ToolError> {
    match order.id.as_str() {
        "ORD-1042" => Ok("on its way, arrives tomorrow".to_owned()),
        id => Err(ToolError::new(format!("there is no order {id}"))),
    }
}

const SCRIPT: &str = r#"[
    { "when": { "after_tool": "look_up" }, "reply": [{ "text": "Your order is {result}." }] },
    { "otherwise": true, "reply": [{ "tool": { "name": "look_up", "arguments": { "id": "{text}" } } }] }
]"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = FakeModel::new("scripted", serde_json::from_str(SCRIPT)?);
    let model = model.map_err(|faults| format!("{faults:?}"))?;
    let agent = ModelAgent::builder("orders")
        .model(model)
        .instructions("You answer questions about orders. Today is {date}.")
        .tool(FnTool::new(
            "look_up",
            "Tells how an order stands.",
            look_up,
        ))
        .build()?;
    Ok(nuncio::serve(agent)?)
}
