//! Layers around a model.

use std::sync::Arc;

use futures_util::StreamExt as _;
use nuncio_engine::RunCx;

use super::teller::Teller;
use super::{LayerError, Layers};
use crate::model::{Model, ModelChunk, ModelError, ModelFuture, ModelRequest, ModelStream};

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
            let passed = layer.model_request(&self.cx, request).await;
            request = passed.map_err(stopped)?;
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
            let teller = Teller::of_model(&self.layers, &self.cx, self.name());
            let stream = match self.ask(request).await {
                Ok(stream) => stream,
                Err(error) => {
                    teller.model_ended(Err(&error));
                    return Err(error);
                }
            };
            let (layers, cx, mut teller) =
                (Arc::clone(&self.layers), self.cx.clone(), Some(teller));
            let stream: ModelStream = Box::pin(stream.then(move |chunk| {
                let is_last = matches!(chunk, Ok(ModelChunk::Done { .. }) | Err(_));
                let ends = is_last.then(|| teller.take()).flatten();
                let ends = ends.map(|teller| (teller, Arc::clone(&layers), cx.clone()));
                async move {
                    match ends {
                        Some((teller, layers, cx)) => ended(teller, &layers, &cx, chunk).await,
                        None => chunk,
                    }
                }
            }));
            Ok(stream)
        })
    }
}

/// The last piece of an answer, when all layers know of it.
async fn ended(
    teller: Teller,
    layers: &Layers,
    cx: &RunCx,
    mut chunk: Result<ModelChunk, ModelError>,
) -> Result<ModelChunk, ModelError> {
    if let Ok(ModelChunk::Done { usage, .. }) = &chunk {
        for layer in layers.iter().rev() {
            if let Err(error) = layer.used(cx, usage).await {
                chunk = Err(stopped(error));
                break;
            }
        }
    }
    match &chunk {
        Ok(ModelChunk::Done { usage, .. }) => teller.model_ended(Ok(usage)),
        Err(error) => teller.model_ended(Err(error)),
        Ok(_) => {}
    }
    chunk
}

fn stopped(error: LayerError) -> ModelError {
    ModelError::Stopped(match error {
        LayerError::Refused(why) | LayerError::NotNow(why) => why,
        LayerError::Failed(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "a layer failed");
            error.message().to_owned()
        }
    })
}
