//! Making foreign text harmless to a terminal.

use std::fmt::Write as _;

/// Whether a character could steer a terminal or hide text: control characters and the marks that
/// turn the direction of writing.
fn is_harmful(c: char) -> bool {
    let turns =
        matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The text with harmful characters spelt out as `\u{1b}`; line feeds and tabs stay.
pub(crate) fn escape(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        if is_harmful(c) && c != '\n' && c != '\t' {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The same JSON with the control characters that JSON allows unescaped spelt as `\u009b`.
pub(crate) fn escape_json(json: &str) -> String {
    if !json.chars().any(is_harmful) {
        return json.to_owned();
    }
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        // Outside of texts there is no such character in what we write, so it is inside of one.
        if is_harmful(c) && c != '\n' {
            let _ = write!(shown, "\\u{:04x}", u32::from(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_sequence_gets_through() {
        assert_eq!(
            escape("a\u{1b}[2Jb\r\nc\td\u{9b}1m\u{7f}\r"),
            "a\\u{1b}[2Jb\nc\td\\u{9b}1m\\u{7f}\\u{d}"
        );
        assert_eq!(escape("\u{202e}txt.exe"), "\\u{202e}txt.exe");
        assert_eq!(escape("plain äöü 🦀"), "plain äöü 🦀");
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({"a": "x\u{9b}\u{7f}\u{1b}\u{202e}y\n"});
        let text = escape_json(&value.to_string());
        assert!(text.chars().all(|c| !is_harmful(c)), "{text}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }
}
