//! genai's answer in our words.

use futures_core::Stream;
use futures_util::{StreamExt as _, stream};
use genai::chat::{
    ChatStream, ChatStreamEvent, ContentPart, MessageContent, StopReason as GenaiStop, StreamEnd,
    Usage as GenaiUsage,
};

use super::error::Redact;
use crate::model::{ModelChunk, ModelError, StopReason, Thought, ToolCall, Usage};

/// What has been seen of an answer.
struct Reading {
    answer: ChatStream,
    model: String,
    redact: Redact,
    over: bool,
}

type Pieces = Vec<Result<ModelChunk, ModelError>>;

/// The pieces of an answer; an answer without a proper end is [cut off](ModelError::Cut).
pub(super) fn chunks(
    answer: ChatStream,
    model: String,
    redact: Redact,
) -> impl Stream<Item = Result<ModelChunk, ModelError>> + Send {
    let reading = Reading {
        answer,
        model,
        redact,
        over: false,
    };
    stream::unfold(reading, |mut reading| async move {
        if reading.over {
            return None;
        }
        let pieces = reading.next().await;
        Some((stream::iter(pieces), reading))
    })
    .flatten()
}

impl Reading {
    async fn next(&mut self) -> Pieces {
        let event = self.answer.next().await;
        self.over = !matches!(
            event,
            Some(Ok(ref event)) if !matches!(event, ChatStreamEvent::End(_))
        );
        match event {
            Some(Ok(ChatStreamEvent::Chunk(chunk))) => vec![Ok(ModelChunk::Text(chunk.content))],
            Some(Ok(ChatStreamEvent::ReasoningChunk(chunk))) => {
                vec![Ok(ModelChunk::Reasoning(chunk.content))]
            }
            Some(Ok(ChatStreamEvent::End(end))) => self.end(end),
            Some(Ok(_)) => Vec::new(),
            Some(Err(error)) => vec![Err(self.redact.error(&error))],
            None => vec![Err(ModelError::Cut("it has no end".to_owned()))],
        }
    }

    fn end(&self, end: StreamEnd) -> Pieces {
        let stop = match end.captured_stop_reason {
            Some(reason) => stop(reason),
            None => {
                return vec![Err(ModelError::Cut(
                    "it does not say why it ends".to_owned(),
                ))];
            }
        };
        let mut pieces = Vec::new();
        for chunk in end.captured_content.map(content).unwrap_or_default() {
            pieces.push(Ok(chunk));
        }
        pieces.push(Ok(ModelChunk::Done {
            model: self.model.clone(),
            usage: end.captured_usage.as_ref().map(usage).unwrap_or_default(),
            stop,
        }));
        pieces
    }
}

/// Signed reasoning and whole calls of tools; the words have come already.
fn content(content: MessageContent) -> Vec<ModelChunk> {
    let mut chunks = Vec::new();
    for part in content.into_parts() {
        match part {
            ContentPart::ThoughtSignature(signature) => chunks.push(ModelChunk::Thought(Thought {
                text: None,
                signature,
            })),
            ContentPart::ReasoningContent(words) => {
                if let Some(ModelChunk::Thought(thought)) = chunks.last_mut() {
                    thought.text = Some(words);
                }
            }
            ContentPart::ToolCall(call) => chunks.push(ModelChunk::ToolCall(ToolCall {
                id: call.call_id,
                name: call.fn_name,
                arguments: call.fn_arguments,
                signatures: call.thought_signatures.unwrap_or_default(),
            })),
            _ => {}
        }
    }
    chunks
}

fn stop(reason: GenaiStop) -> StopReason {
    match reason {
        GenaiStop::Completed(_) => StopReason::Completed,
        GenaiStop::MaxTokens(_) => StopReason::MaxTokens,
        GenaiStop::ToolCall(_) => StopReason::ToolCalls,
        GenaiStop::ContentFilter(_) => StopReason::Filtered,
        GenaiStop::StopSequence(_) => StopReason::StopSequence,
        GenaiStop::Other(words) => StopReason::Other(words),
    }
}

fn usage(usage: &GenaiUsage) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    let read = usage.prompt_tokens_details.as_ref();
    let written = usage.completion_tokens_details.as_ref();
    Usage {
        input_tokens: count(usage.prompt_tokens),
        output_tokens: count(usage.completion_tokens),
        cached_tokens: count(read.and_then(|details| details.cached_tokens)),
        reasoning_tokens: count(written.and_then(|details| details.reasoning_tokens)),
    }
}
