//! Layers around a tool.

use std::sync::Arc;

use nuncio_engine::RunCx;
use serde_json::Value;

use super::{Ended, LayerError, Layers, tell};
use crate::model::ToolCall;
use crate::tool::{ReadyTool, Tool, ToolCx, ToolError, ToolFuture, ToolOutput, ToolSpec};

struct LayeredTool {
    tool: ReadyTool,
    layers: Layers,
}

/// The tools within layers.
pub(crate) fn layered(tools: Vec<ReadyTool>, layers: &Layers) -> Vec<ReadyTool> {
    if layers.is_empty() {
        return tools;
    }
    let within = |tool: ReadyTool| {
        let layered = LayeredTool {
            tool: tool.clone(),
            layers: Arc::clone(layers),
        };
        tool.within(Arc::new(layered))
    };
    tools.into_iter().map(within).collect()
}

impl Tool for LayeredTool {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn call(&self, cx: ToolCx, args: Value) -> ToolFuture<'_> {
        Box::pin(async move {
            let run = cx.run().clone();
            let called = self.make(&run, cx, args).await;
            let ended = Ended::Tool {
                name: &self.spec().name,
                result: called.as_ref().map(drop),
            };
            tell(&self.layers, &run, &ended);
            called
        })
    }
}

impl LayeredTool {
    async fn make(&self, run: &RunCx, cx: ToolCx, args: Value) -> Result<ToolOutput, ToolError> {
        let mut call = ToolCall {
            id: cx.call_id().to_owned(),
            name: self.spec().name.clone(),
            arguments: args,
            signatures: Vec::new(),
        };
        for layer in self.layers.iter() {
            call = layer.tool_call(run, call).await.map_err(told)?;
        }
        self.tool.check(&call.arguments)?;
        let mut output = self.tool.tool().call(cx, call.arguments.clone()).await?;
        for layer in self.layers.iter().rev() {
            output = layer.tool_output(run, &call, output).await.map_err(told)?;
        }
        Ok(output)
    }
}

fn told(error: LayerError) -> ToolError {
    match error {
        LayerError::Refused(why) => ToolError::new(why),
        LayerError::Failed(error) => ToolError::internal(error),
    }
}
