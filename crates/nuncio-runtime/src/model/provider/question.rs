//! Our request in genai's words.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use genai::chat::{
    Binary, ChatMessage, ChatOptions, ChatRequest, ContentPart, JsonSpec, MessageContent,
    ReasoningEffort, Tool, ToolCall as GenaiCall, ToolResponse,
};

use crate::model::{ModelRequest, Thought, ToolCall, ToolResult, Turn, UserPart};

/// The conversation and the tools.
pub(super) fn question(request: ModelRequest) -> ChatRequest {
    let messages = request.turns.into_iter().flat_map(messages).collect();
    let mut question = ChatRequest::new(messages);
    question.system = request.system;
    if !request.tools.is_empty() {
        let tools = request.tools.into_iter().map(|spec| {
            Tool::new(spec.name)
                .with_description(spec.description)
                .with_schema(spec.input_schema)
        });
        question = question.with_tools(tools.collect::<Vec<_>>());
    }
    question
}

/// How it is to be answered.
pub(super) fn options(request: &ModelRequest) -> ChatOptions {
    let params = &request.params;
    let mut options = ChatOptions::default()
        .with_capture_usage(true)
        .with_capture_tool_calls(true)
        .with_capture_reasoning_content(true)
        .with_stop_sequences(params.stop.clone());
    options.temperature = params.temperature;
    options.max_tokens = params.max_tokens;
    options.top_p = params.top_p;
    options.seed = params.seed;
    options.reasoning_effort = params.reasoning.as_ref().map(|r| match r.budget_tokens {
        0 => ReasoningEffort::Zero,
        budget => ReasoningEffort::Budget(budget),
    });
    options.response_format = request
        .output_schema
        .clone()
        .map(|schema| JsonSpec::new("answer", schema).into());
    options
}

fn messages(turn: Turn) -> Vec<ChatMessage> {
    match turn {
        Turn::User(parts) => {
            let parts: Vec<_> = parts.into_iter().map(user_part).collect();
            vec![ChatMessage::user(MessageContent::from_parts(parts))]
        }
        Turn::Assistant {
            text,
            thoughts,
            tool_calls,
        } => vec![assistant(text, thoughts, tool_calls)],
        Turn::Tools(results) => results.into_iter().map(result).collect(),
    }
}

fn user_part(part: UserPart) -> ContentPart {
    match part {
        UserPart::Text(text) => ContentPart::from_text(text),
        UserPart::File {
            media_type,
            name,
            bytes,
        } => {
            let content = STANDARD.encode(bytes);
            ContentPart::Binary(Binary::from_base64(media_type, content, name))
        }
        UserPart::Url {
            media_type,
            name,
            url,
        } => ContentPart::Binary(Binary::from_url(media_type, url, name)),
    }
}

fn assistant(text: String, thoughts: Vec<Thought>, calls: Vec<ToolCall>) -> ChatMessage {
    let mut parts = Vec::new();
    for thought in thoughts {
        parts.push(ContentPart::ThoughtSignature(thought.signature));
        parts.extend(thought.text.map(ContentPart::ReasoningContent));
    }
    if !text.is_empty() {
        parts.push(ContentPart::from_text(text));
    }
    parts.extend(calls.into_iter().map(|call| {
        ContentPart::ToolCall(GenaiCall {
            call_id: call.id,
            fn_name: call.name,
            fn_arguments: call.arguments,
            thought_signatures: (!call.signatures.is_empty()).then_some(call.signatures),
        })
    }));
    ChatMessage::assistant(MessageContent::from_parts(parts))
}

fn result(result: ToolResult) -> ChatMessage {
    let response = ToolResponse::new(result.id, result.content).with_fn_name(result.name);
    ChatMessage::tool(MessageContent::from_parts(vec![ContentPart::ToolResponse(
        response,
    )]))
}
