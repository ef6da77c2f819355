//! The fuzz targets over bounded input: random bytes, random JSON and damaged golden files.

use nuncio_protocol::Version;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::sample::{Index, select};

use crate::strategies;
use crate::support::goldens_of;
use crate::targets::TARGETS;

fn run_all(input: &[u8]) {
    for (_, target) in TARGETS {
        target(input);
    }
}

/// What the goldens hold, also as the REST target reads it: a request line and a body.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let all = Version::ALL
        .iter()
        .flat_map(|version| ["json_rpc", "rest"].map(|binding| goldens_of(*version, binding)));
    for golden in all.flatten() {
        let file = golden.value();
        if let (Some(method), Some(target)) = (file["method"].as_str(), file["target"].as_str()) {
            seeds.push(format!("{method} {target}\n{}", file["body"]).into_bytes());
        }
        for member in ["params", "result"] {
            if file[member].is_object() || file[member].is_array() {
                seeds.push(file[member].to_string().into_bytes());
            }
        }
        seeds.push(file.to_string().into_bytes());
    }
    seeds.extend(
        [
            "2025-10-28T10:30:00.123456789+02:00",
            r#"{"text":"x","\u0074ext":"y"}"#,
            r#"{"a":{"a":[{"a":1}]}}"#,
            r#"{"title":"t","detail":"d","status":404}"#,
        ]
        .map(|text| text.as_bytes().to_vec()),
    );
    seeds
}

/// One damage to a text.
#[derive(Clone, Debug)]
enum Damage {
    Set(Index, u8),
    Remove(Index, u8),
    Repeat(Index, u8),
    Insert(Index, &'static str),
    Splice(Index, Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let words = select(vec![
        "null",
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ",",
        "\\",
        "\\u0061",
        "\\ud800",
        "1e999",
        "-0",
        "18446744073709551616",
        "\u{feff}",
        "{}",
        "[[[[[[[[",
        "%2F",
        "%",
        ":cancel",
        "?",
        "&",
        "=",
        "\n",
        "true",
        "\"\":",
        "\"task\":{},",
        "\"id\":\"x\",",
    ]);
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, n)| Damage::Remove(at, n)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, n)| Damage::Repeat(at, n)),
        (any::<Index>(), words).prop_map(|(at, word)| Damage::Insert(at, word)),
        (any::<Index>(), any::<Index>()).prop_map(|(at, from)| Damage::Splice(at, from)),
    ]
}

fn damaged(mut text: Vec<u8>, damages: &[Damage], seeds: &[Vec<u8>]) -> Vec<u8> {
    for damage in damages {
        let place = |at: &Index| at.index(text.len() + 1);
        match damage {
            Damage::Set(at, byte) => {
                let at = place(at);
                if let Some(old) = text.get_mut(at) {
                    *old = *byte;
                }
            }
            Damage::Remove(at, n) => {
                let at = place(at);
                let end = (at + usize::from(*n)).min(text.len());
                text.drain(at..end);
            }
            Damage::Repeat(at, n) => {
                let at = place(at);
                let end = (at + usize::from(*n)).min(text.len());
                let piece = text[at..end].to_vec();
                text.splice(at..at, piece);
            }
            Damage::Insert(at, word) => {
                let at = place(at);
                text.splice(at..at, word.bytes());
            }
            Damage::Splice(at, from) => {
                let at = place(at);
                let other = from.get(seeds);
                text.truncate(at);
                text.extend_from_slice(&other[from.index(other.len())..]);
            }
        }
    }
    text
}

#[test]
fn every_golden_passes_every_target() {
    for seed in seeds() {
        run_all(&seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_bytes_harm_no_decoder(bytes in vec(any::<u8>(), 0..200)) {
        run_all(&bytes);
    }

    #[test]
    fn random_json_harms_no_decoder(value in strategies::json()) {
        run_all(value.to_string().as_bytes());
    }

    /// Braces, quotes and colons in any order: the checker's own ground.
    #[test]
    fn token_soup_harms_no_decoder(tokens in vec(select(vec![
        "{", "}", "[", "]", "\"", ":", ",", "\\", "\\\"", "\"a\"", "\"\\u0061\"", "\"a\":", "\"a\":1",
        "1", "null", " ", "\n", "\u{e9}", "\"\\\\\"",
    ]), 0..60)) {
        run_all(tokens.concat().as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn damaged_goldens_harm_no_decoder(which in any::<Index>(), damages in vec(damage(), 1..5)) {
        let seeds = seeds_once();
        let text = damaged(which.get(seeds).clone(), &damages, seeds);
        run_all(&text);
    }
}

fn seeds_once() -> &'static [Vec<u8>] {
    static SEEDS: std::sync::OnceLock<Vec<Vec<u8>>> = std::sync::OnceLock::new();
    SEEDS.get_or_init(seeds)
}
