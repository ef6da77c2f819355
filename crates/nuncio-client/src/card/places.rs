//! Where a card may be, given an address that people pass around.

use url::Url;

use crate::address::is_local;

const WELL_KNOWN: &str = "/.well-known/agent-card.json";
const LEGACY: &str = "/.well-known/agent.json";

/// Reads an address as people write it.
pub(crate) fn parse(asked: &str) -> Option<Url> {
    let asked = asked.trim();
    let url = if asked.contains("://") {
        Url::parse(asked).ok()?
    } else {
        let plain = Url::parse(&format!("http://{asked}")).ok()?;
        if is_local(&plain) {
            plain
        } else {
            Url::parse(&format!("https://{asked}")).ok()?
        }
    };
    matches!(url.scheme(), "http" | "https").then_some(url)
}

/// The addresses to ask, in order.
pub(super) fn places(url: &Url) -> Vec<Url> {
    if url.path().ends_with(".json") {
        return vec![url.clone()];
    }
    let path = url.path().trim_end_matches('/');
    let mut places: Vec<Url> = Vec::new();
    for name in [WELL_KNOWN, LEGACY] {
        for folder in [path, ""] {
            let mut place = url.clone();
            place.set_path(&format!("{folder}{name}"));
            place.set_query(None);
            place.set_fragment(None);
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(url: &str) -> Vec<String> {
        let places = places(&parse(url).unwrap());
        places.iter().map(|place| place.path().to_owned()).collect()
    }

    /// BR-101.
    #[test]
    fn the_places_come_in_order_and_once() {
        assert_eq!(
            paths("https://h/a/b"),
            [
                "/a/b/.well-known/agent-card.json",
                "/.well-known/agent-card.json",
                "/a/b/.well-known/agent.json",
                "/.well-known/agent.json"
            ]
        );
        assert_eq!(
            paths("https://h/"),
            ["/.well-known/agent-card.json", "/.well-known/agent.json"]
        );
        assert_eq!(paths("https://h/x/card.json"), ["/x/card.json"]);
    }

    #[test]
    fn a_missing_scheme_is_supplied() {
        let of = |text: &str| parse(text).map(|url| url.to_string());
        assert_eq!(
            of("localhost:8080/a"),
            Some("http://localhost:8080/a".into())
        );
        assert_eq!(of("127.0.0.1:1"), Some("http://127.0.0.1:1/".into()));
        assert_eq!(
            of("agents.example/x"),
            Some("https://agents.example/x".into())
        );
        assert_eq!(of("ftp://h/"), None);
        assert_eq!(of(""), None);
    }
}
