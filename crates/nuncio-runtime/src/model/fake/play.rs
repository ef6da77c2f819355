//! Playing an answer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use super::rule::News;
use super::{FakeError, FakeReply};
use crate::model::{
    ModelChunk, ModelError, ModelRequest, ModelStream, StopReason, ToolCall, Turn, Usage, UserPart,
};

/// One thing that comes of a step.
enum Beat {
    Chunk(ModelChunk),
    Wait(Duration),
    Fail(ModelError),
}

/// The answer of these steps, as a stream.
pub(super) fn play(name: &Arc<str>, steps: Vec<FakeReply>, request: &ModelRequest) -> ModelStream {
    let beats = beats(name, steps, request);
    let stream = stream::iter(beats).filter_map(|beat| async move {
        match beat {
            Beat::Chunk(chunk) => Some(Ok(chunk)),
            Beat::Fail(error) => Some(Err(error)),
            Beat::Wait(time) => {
                tokio::time::sleep(time).await;
                None
            }
        }
    });
    Box::pin(stream)
}

fn beats(name: &Arc<str>, steps: Vec<FakeReply>, request: &ModelRequest) -> Vec<Beat> {
    let news = News::of(request);
    let spoken = |turn: &&Turn| matches!(turn, Turn::Assistant { .. });
    let round = request.turns.iter().filter(spoken).count() + 1;
    let mut beats = Vec::new();
    let (mut calls, mut written) = (0, 0);
    for step in steps {
        match step {
            FakeReply::Text(text) => {
                let text = fill(&text, &news);
                written += tokens(&text);
                let words = text.split_inclusive(' ').map(str::to_owned);
                beats.extend(words.map(|word| Beat::Chunk(ModelChunk::Text(word))));
            }
            FakeReply::Reasoning(text) => {
                let text = fill(&text, &news);
                written += tokens(&text);
                beats.push(Beat::Chunk(ModelChunk::Reasoning(text)));
            }
            FakeReply::Tool { name, arguments } => {
                calls += 1;
                let arguments = fill_value(arguments, &news);
                written += tokens(&arguments.to_string());
                let call = ToolCall {
                    id: format!("call-{round}-{calls}"),
                    name,
                    arguments,
                    signatures: Vec::new(),
                };
                beats.push(Beat::Chunk(ModelChunk::ToolCall(call)));
            }
            FakeReply::WaitMs(ms) => beats.push(Beat::Wait(Duration::from_millis(ms))),
            FakeReply::Error(error) => {
                beats.push(Beat::Fail(error_of(error)));
                return beats;
            }
            FakeReply::Cut => {
                let why = "the script says so".to_owned();
                beats.push(Beat::Fail(ModelError::Cut(why)));
                return beats;
            }
        }
    }
    let usage = Usage {
        input_tokens: read(request),
        output_tokens: written,
        ..Usage::default()
    };
    let stop = match calls {
        0 => StopReason::Completed,
        _ => StopReason::ToolCalls,
    };
    let model = name.to_string();
    beats.push(Beat::Chunk(ModelChunk::Done { model, usage, stop }));
    beats
}

fn error_of(error: FakeError) -> ModelError {
    let why = || "the script says so".to_owned();
    match error {
        FakeError::Unavailable => ModelError::unavailable(why()),
        FakeError::RateLimited => ModelError::RateLimited { retry_after: None },
        FakeError::Invalid => ModelError::Invalid(why()),
        FakeError::Auth => ModelError::Auth(401),
        FakeError::ContextTooLong => ModelError::ContextTooLong,
        FakeError::Refused => ModelError::Refused(why()),
    }
}

/// Four letters are a token here, whatever they are.
fn tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

fn read(request: &ModelRequest) -> u64 {
    let turn = |turn: &Turn| match turn {
        Turn::User(parts) => parts.iter().map(part).sum(),
        Turn::Assistant { text, .. } => tokens(text),
        Turn::Tools(results) => results.iter().map(|result| tokens(&result.content)).sum(),
    };
    let part = tokens(request.system.as_deref().unwrap_or_default());
    part + request.turns.iter().map(turn).sum::<u64>()
}

fn part(part: &UserPart) -> u64 {
    match part {
        UserPart::Text(text) => tokens(text),
        UserPart::File { .. } | UserPart::Url { .. } => 100,
    }
}

/// Puts in what has just come, once: what stands in it is not filled in again.
fn fill(template: &str, news: &News<'_>) -> String {
    let result = news.results.last().map_or("", |result| &result.content);
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('{') {
        filled.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(after) = rest.strip_prefix("{text}") {
            filled.push_str(&news.text);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{result}") {
            filled.push_str(result);
            rest = after;
        } else {
            filled.push('{');
            rest = &rest[1..];
        }
    }
    filled + rest
}

fn fill_value(value: Value, news: &News<'_>) -> Value {
    match value {
        Value::String(text) => Value::String(fill(&text, news)),
        Value::Array(items) => items.into_iter().map(|v| fill_value(v, news)).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| (name, fill_value(value, news)))
            .collect(),
        other => other,
    }
}
