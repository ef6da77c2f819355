//! Layers around a tool.

use std::sync::Arc;

use nuncio_engine::RunCx;
use serde_json::Value;

use super::teller::Teller;
use super::{LayerError, Layers};
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
            let call = ToolCall {
                id: cx.call_id().to_owned(),
                name: self.spec().name.clone(),
                arguments: args,
                signatures: Vec::new(),
            };
            let teller = Teller::of_tool(&self.layers, &run, call.clone());
            let (call, result) = self.make(&run, cx, call).await;
            match result {
                Ok(ToolOutput::Later(later)) => {
                    let layers = Arc::clone(&self.layers);
                    Ok(ToolOutput::Later(later.then(move |result| async move {
                        ended(teller, &layers, &run, &call, result).await
                    })))
                }
                result => ended(teller, &self.layers, &run, &call, result).await,
            }
        })
    }
}

impl LayeredTool {
    /// Makes a call as the layers let it pass.
    async fn make(
        &self,
        run: &RunCx,
        cx: ToolCx,
        mut call: ToolCall,
    ) -> (ToolCall, Result<ToolOutput, ToolError>) {
        for layer in self.layers.iter() {
            call = match layer.tool_call(run, call.clone()).await {
                Ok(call) => call,
                Err(error) => return (call, Err(told(error))),
            };
        }
        if let Err(error) = self.tool.check(&call.arguments) {
            return (call, Err(error));
        }
        let result = self.tool.tool().call(cx, call.arguments.clone()).await;
        (call, result)
    }
}

/// What came of a call, when all layers have let it pass.
async fn ended(
    teller: Teller,
    layers: &Layers,
    run: &RunCx,
    call: &ToolCall,
    result: Result<ToolOutput, ToolError>,
) -> Result<ToolOutput, ToolError> {
    let result = match result {
        Ok(output) => given(layers, run, call, output).await,
        Err(error) => Err(failure(layers, run, call, error).await),
    };
    teller.tool_ended(&result);
    result
}

async fn given(
    layers: &Layers,
    run: &RunCx,
    call: &ToolCall,
    mut output: ToolOutput,
) -> Result<ToolOutput, ToolError> {
    for layer in layers.iter().rev() {
        output = layer.tool_output(run, call, output).await.map_err(told)?;
    }
    Ok(output)
}

async fn failure(layers: &Layers, run: &RunCx, call: &ToolCall, error: ToolError) -> ToolError {
    let mut words = error.message().to_owned();
    for layer in layers.iter().rev() {
        words = match layer.tool_failure(run, call, words).await {
            Ok(words) => words,
            Err(refused) => return told(refused),
        };
    }
    match words == error.message() {
        true => error,
        false => ToolError::caused(words, error),
    }
}

fn told(error: LayerError) -> ToolError {
    match error {
        LayerError::Refused(why) | LayerError::NotNow(why) => ToolError::new(why),
        LayerError::Failed(error) => ToolError::internal(error),
    }
}
