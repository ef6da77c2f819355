//! `nuncio webhook verify`: whether a call that came is by whom it should be.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use nuncio_engine::SystemClock;
use nuncio_protocol::webhook::{
    ID_HEADER, SIGNATURE_HEADER, SignedWebhook, TIMESTAMP_HEADER, WebhookSecret, WebhookVerifier,
};
use nuncio_protocol::{Clock as _, Timestamp};
use serde_json::json;

use crate::arguments::{TrustOptions, WebhookVerifyArguments};
use crate::client::{OutputFormat, Printer, Text, parse_duration, read_keys};
use crate::outcome::{Failure, Outcome};

/// Verifies a call: a signature that is not good is exit code 1.
pub(crate) fn verify(arguments: &WebhookVerifyArguments) -> Outcome {
    let tolerance = parse_duration(&arguments.tolerance)
        .map_err(|why| Failure::usage(format!("failed to read --tolerance: {why}")))?;
    let verifier = verifier(&arguments.trust)?.with_tolerance(tolerance);
    if verifier.is_empty() {
        return Err(Failure::usage("failed to verify: nobody is to be believed")
            .hint("give --secret-file or --keys"));
    }
    let now = match &arguments.at {
        None => SystemClock.now(),
        Some(at) => Timestamp::parse(at).map_err(|_| {
            Failure::usage(format!("failed to read --at: \"{at}\" is no time"))
                .hint("for example --at 2026-01-31T12:00:00Z")
        })?,
    };
    let mut head = read(&arguments.headers)?;
    let body = match &arguments.body {
        Some(file) => read(file)?,
        None => split_off_body(&mut head),
    };
    let head = String::from_utf8_lossy(&head);
    let header = |name: &str| {
        let found = header(&head, name);
        found.ok_or_else(|| {
            Failure::usage(format!("failed to verify: there is no header {name}"))
                .hint("headers are lines `Name: value`")
        })
    };
    let call = SignedWebhook {
        id: header(ID_HEADER)?,
        timestamp: header(TIMESTAMP_HEADER)?,
        signature: header(SIGNATURE_HEADER)?,
    };
    let judged = verifier.verify(call, &body, now);
    report(
        arguments.output,
        call.id,
        judged.err().map(|why| why.to_string()),
    )
}

fn report(format: OutputFormat, id: &str, refused: Option<String>) -> Outcome {
    let printer = Printer::new(format, false, false);
    let word = if refused.is_none() {
        "valid"
    } else {
        "invalid"
    };
    if printer.is_json() {
        printer.json(&json!({"signature": word, "webhookId": id, "reason": refused}))?;
    } else {
        let mut text = Text::new(false);
        text.field("Signature", word);
        text.field("Webhook ID", id);
        text.optional("Reason", refused.as_deref());
        printer.text(text)?;
    }
    match refused {
        None => Ok(()),
        Some(_) => Err(Failure::Shown),
    }
}

/// Who believes the secrets and keys in these files.
///
/// # Errors
/// A file that cannot be read, or holds none.
pub(crate) fn verifier(trust: &TrustOptions) -> Outcome<WebhookVerifier> {
    let mut verifier = WebhookVerifier::new().with_keys(read_keys(&trust.keys)?);
    if let Some(file) = &trust.secret_file {
        let shown = file.display();
        let failed = |why: String| Failure::usage(format!("failed to read {shown}: {why}"));
        let text = fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
        let secrets = WebhookSecret::parse_all(&text);
        let secrets = secrets.map_err(|wrong| failed(wrong.to_string()))?;
        if secrets.is_empty() {
            return Err(failed("there is no secret in it".to_owned()));
        }
        verifier = secrets
            .into_iter()
            .fold(verifier, WebhookVerifier::with_secret);
    }
    Ok(verifier)
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    let read = if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    read.map_err(|error| Failure::usage(format!("failed to read {}: {error}", path.display())))
}

/// Takes what stands after the first empty line.
fn split_off_body(head: &mut Vec<u8>) -> Vec<u8> {
    let ends = |pattern: &[u8]| {
        let at = head.windows(pattern.len()).position(|at| at == pattern)?;
        Some(at + pattern.len())
    };
    let end = [ends(b"\r\n\r\n"), ends(b"\n\n")]
        .into_iter()
        .flatten()
        .min();
    end.map_or_else(Vec::new, |end| head.split_off(end))
}

/// A header's value, whatever the case of its name.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found
            .trim()
            .eq_ignore_ascii_case(name)
            .then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_apart() {
        for (text, body) in [
            ("POST / HTTP/1.1\r\nA: b\r\n\r\n{}\n\n", "{}\n\n"),
            ("A: b\n\n{}", "{}"),
            ("A: b\n", ""),
        ] {
            let mut head = text.as_bytes().to_vec();
            assert_eq!(split_off_body(&mut head), body.as_bytes(), "{text:?}");
            let head = String::from_utf8(head).unwrap();
            assert_eq!(header(&head, "a"), Some("b"));
            assert_eq!(header(&head, "b"), None);
        }
    }
}
