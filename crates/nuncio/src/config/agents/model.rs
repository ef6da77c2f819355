//! Agents of kind `model`.

use std::sync::Arc;

use nuncio_engine::Agent;
use nuncio_runtime::model::ModelChain;
use nuncio_runtime::tool::AgentTools;
use nuncio_runtime::{ModelAgent, Prices};

use super::{AgentConfig, Workshop};
use crate::config::check::Found;
use crate::config::{mcp, models, openapi};

impl AgentConfig {
    pub(super) fn build_model(&self, workshop: &Workshop) -> Result<Arc<dyn Agent>, String> {
        let name = self.model.as_deref().unwrap_or_default();
        let model = models::chain(
            &workshop.models,
            name,
            &workshop.environment,
            &workshop.egress,
        )?;
        let prices = workshop.models.get(name).and_then(|model| model.prices);
        self.speaking(model, prices, workshop)
    }

    /// The agent that a model speaks for.
    pub(super) fn speaking(
        &self,
        model: ModelChain,
        prices: Option<Prices>,
        workshop: &Workshop,
    ) -> Result<Arc<dyn Agent>, String> {
        let mut builder = ModelAgent::builder(self.id.as_str());
        let mut plain = builder.info_so_far().clone();
        plain.name = self.name.clone().unwrap_or_else(|| self.id.clone());
        let mut info = self.info(plain);
        // A repeated run goes on where its checkpoint says.
        info.resumable = true;
        builder = builder
            .info(info)
            .model(model)
            .params(self.params.clone().unwrap_or_default())
            .budgets(self.budgets.unwrap_or_default());
        builder = builder.layers(self.named_layers(&workshop.layers)?);
        if let Some(text) = &self.instructions {
            builder = builder.instructions(text);
        }
        if self.ask_user {
            builder = builder.ask_user();
        }
        if let Some(schema) = &self.output_schema {
            builder = builder.output_schema(schema.clone());
        }
        if let Some(prices) = prices {
            builder = builder.prices(prices);
        }
        if let Some(policy) = &self.overrides {
            for other in &policy.models {
                let model = models::chain(
                    &workshop.models,
                    other,
                    &workshop.environment,
                    &workshop.egress,
                )?;
                builder = builder.other_model(other, model);
            }
            builder = builder
                .overrides(policy.clone())
                .other_agents(workshop.agents.clone());
        }
        if !self.members.is_empty() {
            let members = self.members.iter().map(|id| id.as_str().into()).collect();
            let tools = AgentTools::new(workshop.agents.clone(), members);
            builder = builder.source(Arc::new(tools));
        }
        if !self.hand_over.is_empty() {
            let agents = self.hand_over.iter().map(|id| id.as_str().into()).collect();
            builder = builder.hand_over(workshop.agents.clone(), agents);
        }
        for name in &self.openapi {
            let (services, environment) = (&workshop.openapi, &workshop.environment);
            let service = openapi::service(services, name, environment, &workshop.egress)?;
            builder = builder.source(Arc::new(service));
        }
        for name in &self.mcp {
            let server = mcp::server(&workshop.mcp, name, &workshop.environment, &workshop.egress)?;
            builder = builder.source(Arc::new(server));
        }
        let agent = builder.build().map_err(|error| error.to_string())?;
        Ok(Arc::new(agent))
    }

    pub(super) fn check_model(&self, path: &str, found: &mut Found) {
        if self.model.is_none() {
            let hint = "for example `model = \"main\"`, with a table `[models.main]`";
            found.add(format!("{path}.model"), "the agent has no model", hint);
        }
        self.check_speaking(path, found);
        self.check_headers(path, found);
    }

    /// Finds what is wrong with how a model is to answer.
    pub(super) fn check_speaking(&self, path: &str, found: &mut Found) {
        let params = self.params.iter();
        let numbers =
            params.flat_map(|p| [("temperature", p.temperature, 2.0), ("top_p", p.top_p, 1.0)]);
        for (key, number, most) in numbers {
            if number.is_some_and(|number| !(0.0..=most).contains(&number)) {
                let message = "out of range";
                let hint = format!("0 to {most}");
                found.add(format!("{path}.params.{key}"), message, hint);
            }
        }
        if self
            .params
            .as_ref()
            .is_some_and(|p| p.max_tokens == Some(0))
        {
            let path = format!("{path}.params.max_tokens");
            found.add(path, "nothing could be said", "at least 1");
        }
        let budgets = self.budgets.unwrap_or_default();
        let limits = [
            ("max_turns", u64::from(budgets.max_turns), 1..=10_000),
            (
                "max_tool_calls",
                u64::from(budgets.max_tool_calls),
                0..=100_000,
            ),
            ("max_tokens", budgets.max_tokens, 1..=u64::MAX),
            (
                "compact_above_tokens",
                budgets.compact_above_tokens,
                100..=u64::MAX,
            ),
        ];
        for (key, value, allowed) in limits {
            found.range(&format!("{path}.budgets.{key}"), value, allowed);
        }
        if let Some(schema) = &self.output_schema
            && let Err(why) = ModelAgent::check_schema(schema)
        {
            let hint = "for example { type = \"object\", properties = { … } }";
            found.add(format!("{path}.output_schema"), why, hint);
        }
    }
}
