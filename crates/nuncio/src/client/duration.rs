//! Durations as people write them: `500ms`, `2s`, `1.5m`, `1h`, or seconds without a unit.

use std::time::Duration;

/// Reads a duration; the error says what is wrong.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return Err(wrong(text)),
    };
    let number: f64 = digits.trim().parse().map_err(|_| wrong(text))?;
    Duration::try_from_secs_f64(number * factor).map_err(|_| wrong(text))
}

fn wrong(text: &str) -> String {
    format!("\"{text}\" is not a duration; write 500ms, 30s, 5m or 1h")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood_and_nonsense_is_not() {
        for (text, ms) in [
            ("500ms", 500),
            ("2s", 2_000),
            ("2", 2_000),
            ("1.5m", 90_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "-1s", "1d", "1 2s", "inf", "1e400"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
