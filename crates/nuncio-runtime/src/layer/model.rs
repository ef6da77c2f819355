//! Layers around a model.

use std::sync::Arc;

use futures_util::StreamExt as _;
use nuncio_engine::RunCx;

use super::{Ended, LayerError, Layers, tell};
use crate::model::{Model, ModelChunk, ModelError, ModelFuture, ModelRequest, ModelStream, Usage};

/// A model within the layers of one run.
pub(crate) struct LayeredModel {
    model: Arc<dyn Model>,
    layers: Layers,
    cx: RunCx,
}

impl LayeredModel {
    pub(crate) fn around(model: Arc<dyn Model>, layers: &Layers, cx: &RunCx) -> Arc<dyn Model> {
        if layers.is_empty() {
            return model;
        }
        Arc::new(Self {
            model,
            layers: Arc::clone(layers),
            cx: cx.clone(),
        })
    }

    async fn ask(&self, mut request: ModelRequest) -> Result<ModelStream, ModelError> {
        for layer in self.layers.iter() {
            request = match layer.model_request(&self.cx, request).await {
                Ok(request) => request,
                Err(LayerError::Refused(why)) => return Err(ModelError::Refused(why)),
                Err(LayerError::Failed(error)) => {
                    return Err(ModelError::Refused(error.message().to_owned()));
                }
            };
        }
        self.model.generate(request).await
    }
}

impl Model for LayeredModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn generate(&self, request: ModelRequest) -> ModelFuture<'_, ModelStream> {
        Box::pin(async move {
            let asked = self.ask(request).await;
            let (layers, cx) = (Arc::clone(&self.layers), self.cx.clone());
            let name = self.name().to_owned();
            let told = move |result: Result<&Usage, &ModelError>| {
                let ended = Ended::Model {
                    name: &name,
                    result,
                };
                tell(&layers, &cx, &ended);
            };
            let stream = asked.inspect_err(|error| told(Err(error)))?;
            let stream: ModelStream = Box::pin(stream.inspect(move |chunk| match chunk {
                Ok(ModelChunk::Done { usage, .. }) => told(Ok(usage)),
                Ok(_) => {}
                Err(error) => told(Err(error)),
            }));
            Ok(stream)
        })
    }
}
