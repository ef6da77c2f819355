//! Whether somebody approves a call.

use nuncio_engine::{Pause, PauseReason, RunCx};
use nuncio_protocol::{Message, Part, PartContent};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::model::ToolCall;

/// What an answer decides.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Approved,
    /// With the words of who denied, if there are any.
    Denied(Option<String>),
    /// It is no decision about this call.
    Unclear,
}

/// SHA-256 of a call's arguments in canonical JSON (RFC 8785), in hexadecimal.
pub(super) fn args_hash(arguments: &Value) -> String {
    // Only numbers beyond 2^53 have no canonical form; their own spelling is as exact.
    let bytes = serde_json_canonicalizer::to_vec(arguments)
        .unwrap_or_else(|_| arguments.to_string().into_bytes());
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The question whether a call may be made.
pub(super) fn question(cx: &RunCx, call: &ToolCall, again: bool) -> Pause {
    let args_hash = args_hash(&call.arguments);
    let hint = if again {
        "Please answer yes or no. "
    } else {
        ""
    };
    let words = format!("{hint}May I call {} with {}?", call.name, call.arguments);
    let data = json!({"approval": {
        "tool": call.name,
        "arguments": call.arguments,
        "argsHash": args_hash,
    }});
    Pause {
        reason: PauseReason::Approval {
            tool: call.name.clone(),
            args_hash,
        },
        prompt: cx.message(vec![Part::text(words), Part::data(data)]),
        schema: Some(json!({
            "type": "object",
            "properties": {
                "approved": {"type": "boolean"},
                "reason": {"type": "string"},
                "argsHash": {"type": "string"},
            },
            "required": ["approved"],
        })),
    }
}

/// What a message decides about a call with arguments of this hash.
///
/// Data `{"approved": true}`, or a text that is yes or no. Data that names another hash is meant for
/// another call.
pub(super) fn decision(message: &Message, args_hash: &str) -> Decision {
    let data = message.parts.iter().find_map(|part| match &part.content {
        PartContent::Data(data) if data["approved"].is_boolean() => Some(data),
        _ => None,
    });
    let Some(data) = data else {
        return of_words(&message.text());
    };
    if data["argsHash"]
        .as_str()
        .is_some_and(|hash| hash != args_hash)
    {
        return Decision::Unclear;
    }
    match data["approved"].as_bool() {
        Some(true) => Decision::Approved,
        _ => Decision::Denied(data["reason"].as_str().map(str::to_owned)),
    }
}

fn of_words(text: &str) -> Decision {
    let word = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    match word.as_str() {
        "yes" | "y" | "ok" | "okay" | "approve" | "approved" | "allow" => Decision::Approved,
        "no" | "n" | "deny" | "denied" | "reject" | "rejected" => Decision::Denied(None),
        _ => Decision::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_does_not_depend_on_spelling() {
        let first: Value = serde_json::from_str(r#"{"b": 1.0, "a": [true]}"#).unwrap();
        let second: Value = serde_json::from_str(r#"{"a":[true],"b":1}"#).unwrap();
        assert_eq!(args_hash(&first), args_hash(&second));
        assert_ne!(args_hash(&first), args_hash(&json!({"a": [true], "b": 2})));
        assert_eq!(args_hash(&first).len(), 64);
    }

    #[test]
    fn decisions_are_read_from_data_and_from_words() {
        let of = |part: Part| decision(&Message::user("m", vec![part]), "h");
        for (text, wanted) in [
            (" Yes. ", Decision::Approved),
            ("no", Decision::Denied(None)),
            ("yes, but smaller", Decision::Unclear),
            ("", Decision::Unclear),
        ] {
            assert_eq!(of(Part::text(text)), wanted, "{text}");
        }
        let approved = |hash: &str| of(Part::data(json!({"approved": true, "argsHash": hash})));
        assert_eq!(approved("h"), Decision::Approved);
        assert_eq!(approved("other"), Decision::Unclear);
        let denied = of(Part::data(json!({"approved": false, "reason": "too much"})));
        assert_eq!(denied, Decision::Denied(Some("too much".to_owned())));
        assert_eq!(
            of(Part::data(json!({"approved": "true"}))),
            Decision::Unclear
        );
    }
}
