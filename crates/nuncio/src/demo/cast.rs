//! Who plays: two agents with a model, and what they can do.

use std::collections::BTreeMap;
use std::sync::Arc;

use nuncio_client::ClientBuilder;
use nuncio_egress::{Egress, EgressPolicy};
use nuncio_engine::{Agent, AgentInfo};
use nuncio_runtime::model::{FakeModel, ModelChain};
use nuncio_runtime::tool::{AgentTool, FnTool, Json, ToolCx, ToolError};
use nuncio_runtime::{ModelAgent, RemoteAgent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::DemoArguments;
use crate::config::{ModelConfig, chain};
use crate::outcome::{Failure, Outcome};
use crate::surroundings::Surroundings;

/// What the agents are made of.
pub(super) struct Cast {
    /// The model that was named, if one was.
    model: Option<Arc<ModelChain>>,
}

const SUPPORT: &str = "You are the support of a shop. A customer writes about an order. Ask the agent \
    fulfilment about it, and pass on in your own words what it decides. Never promise anything that \
    fulfilment has not confirmed.";

const FULFILMENT: &str = "You are the fulfilment of a shop. You are asked about an order. Look it up \
    first. For a damaged order ask with ask_user for a photo of the damage; when you have it, use \
    order_replacement and say what you have done. If you are asked for an inspection, use \
    inspect_warehouse.";

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// Such as ORD-1042.
    order: String,
}

#[derive(Serialize)]
struct Found {
    order: String,
    item: &'static str,
    shipped: &'static str,
}

#[derive(Serialize)]
struct Replacement {
    order: String,
    replacement: &'static str,
    cost: u32,
    arrives_in_days: u32,
}

async fn look_up_order(_: ToolCx, Order { order }: Order) -> Result<Json<Found>, ToolError> {
    match order.as_str() {
        "ORD-1042" => Ok(Json(Found {
            order,
            item: "a tea pot",
            shipped: "three days ago",
        })),
        _ => Err(ToolError::new(format!("there is no order {order}"))),
    }
}

async fn order_replacement(
    _: ToolCx,
    Order { order }: Order,
) -> Result<Json<Replacement>, ToolError> {
    Ok(Json(Replacement {
        order,
        replacement: "ORD-1043",
        cost: 0,
        arrives_in_days: 2,
    }))
}

/// Takes until somebody says stop.
async fn inspect_warehouse(cx: ToolCx, _: Order) -> Result<String, ToolError> {
    cx.status("walking through the warehouse")
        .await
        .map_err(ToolError::internal)?;
    cx.cancellation().cancelled().await;
    Err(ToolError::new("the inspection was called off"))
}

impl Cast {
    /// # Errors
    /// If there is no such model.
    pub(super) fn of(arguments: &DemoArguments, around: &Surroundings) -> Outcome<Self> {
        let Some(provider) = &arguments.provider else {
            return Ok(Self { model: None });
        };
        let key = format!("{}_API_KEY", provider.to_uppercase());
        let key = around.variable(&key).map(|_| key.as_str());
        let (model, place) = (arguments.model.as_deref(), arguments.base_url.as_deref());
        let config = ModelConfig::of(provider, model, place, key);
        let models = BTreeMap::from([("demo".to_owned(), config)]);
        let model = chain(&models, "demo", &around.environment, &egress()?);
        let model =
            model.map_err(|why| Failure::usage(format!("failed to reach a model: {why}")))?;
        Ok(Self {
            model: Some(Arc::new(model)),
        })
    }

    /// Whether the words are those of a script.
    pub(super) fn is_scripted(&self) -> bool {
        self.model.is_none()
    }

    fn speaking(
        &self,
        agent: nuncio_runtime::ModelAgentBuilder,
        script: &str,
    ) -> Outcome<Arc<dyn Agent>> {
        let agent = match &self.model {
            Some(model) => agent.model(Arc::clone(model)),
            None => {
                let rules = serde_json::from_str(script).map_err(unplayable)?;
                let model = FakeModel::new("scripted", rules);
                agent.model(model.map_err(|faults| unplayable(format!("{faults:?}")))?)
            }
        };
        Ok(Arc::new(agent.build().map_err(unplayable)?))
    }

    /// The agent that knows the orders.
    pub(super) fn fulfilment(&self) -> Outcome<Arc<dyn Agent>> {
        let agent = ModelAgent::builder("fulfilment")
            .info(info(
                "fulfilment",
                "Fulfilment",
                "Knows orders, and replaces what has arrived damaged.",
            ))
            .instructions(FULFILMENT)
            .tool(
                FnTool::new("look_up_order", "Tells what an order is.", look_up_order).read_only(),
            )
            .tool(FnTool::new(
                "order_replacement",
                "Sends a replacement for an order.",
                order_replacement,
            ))
            .tool(
                FnTool::new(
                    "inspect_warehouse",
                    "Inspects the warehouse for an order.",
                    inspect_warehouse,
                )
                .timeout(std::time::Duration::from_secs(600)),
            )
            .ask_user();
        self.speaking(agent, include_str!("fulfilment.json"))
    }

    /// The agent that speaks with customers, and with the other one at `url`.
    pub(super) fn support(&self, url: &str) -> Outcome<Arc<dyn Agent>> {
        let other = info(
            "fulfilment",
            "Fulfilment",
            "Knows orders, and replaces what has arrived damaged.",
        );
        let remote = RemoteAgent::new(other, ClientBuilder::new(egress()?), url);
        let agent = ModelAgent::builder("support")
            .info(info("support", "Support", "Helps with orders."))
            .instructions(SUPPORT)
            .tool(AgentTool::new(Arc::new(remote)));
        self.speaking(agent, include_str!("support.json"))
    }
}

fn info(id: &str, name: &str, description: &str) -> AgentInfo {
    let mut info = AgentInfo::new(id, name, description);
    info.input_modes = ["text/plain", "image/png"].map(str::to_owned).to_vec();
    info.resumable = true;
    info
}

/// Both services are on this machine.
pub(super) fn egress() -> Outcome<Egress> {
    Egress::new(EgressPolicy::open()).map_err(unplayable)
}

fn unplayable(error: impl std::fmt::Display) -> Failure {
    Failure::internal(format!("failed to prepare the demo: {error}"))
}
