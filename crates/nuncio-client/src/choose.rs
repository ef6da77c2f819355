//! Which of a card's interfaces are used, in which order (CARD-03).

use nuncio_protocol::{AgentCard, AgentInterface, Binding, Version};
use url::Url;

/// An interface that this client can talk to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) interface: AgentInterface,
    pub(crate) url: Url,
    pub(crate) binding: Binding,
}

/// The usable interfaces: newest version first, then as the card lists them.
///
/// `base` is where the card came from, for addresses that are given relative to it.
pub(crate) fn choose(card: &AgentCard, pinned: Option<Binding>, base: Option<&Url>) -> Vec<Choice> {
    let mut usable: Vec<(Version, Choice)> = card
        .supported_interfaces
        .iter()
        .filter_map(|interface| usable(interface, pinned, base))
        .collect();
    // The sort is stable: equal versions keep the card's order.
    usable.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    usable.into_iter().map(|(_, choice)| choice).collect()
}

fn usable(
    interface: &AgentInterface,
    pinned: Option<Binding>,
    base: Option<&Url>,
) -> Option<(Version, Choice)> {
    let version = Version::parse(&interface.protocol_version).ok()?;
    let binding = interface.binding()?;
    let spoken = matches!(binding, Binding::JsonRpc | Binding::HttpJson);
    if !spoken || pinned.is_some_and(|pinned| pinned != binding) {
        return None;
    }
    let url = Url::parse(&interface.url)
        .ok()
        .or_else(|| base?.join(&interface.url).ok())
        .filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let interface = interface.clone();
    Some((
        version,
        Choice {
            interface,
            url,
            binding,
        },
    ))
}

/// What a card offers, for the error that says that none of it can be used.
pub(crate) fn offered(card: &AgentCard) -> Vec<String> {
    card.supported_interfaces
        .iter()
        .map(|i| format!("{} {} at {}", i.protocol_binding, i.protocol_version, i.url))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(interfaces: &[(&str, &str, &str)]) -> AgentCard {
        let mut card = AgentCard::default();
        for (url, binding, version) in interfaces {
            let mut interface = AgentInterface::new(*url, Binding::JsonRpc);
            (*binding).clone_into(&mut interface.protocol_binding);
            (*version).clone_into(&mut interface.protocol_version);
            card.supported_interfaces.push(interface);
        }
        card
    }

    fn urls(choices: &[Choice]) -> Vec<&str> {
        choices.iter().map(|c| c.url.as_str()).collect()
    }

    /// CARD-03, CARD-06, CARD-09.
    #[test]
    fn known_bindings_and_versions_come_in_the_cards_order() {
        let card = card(&[
            ("grpc.example:443", "GRPC", "1.0"),
            ("https://a/old", "JSONRPC", "0.3"),
            ("https://a/x", "https://example.com/custom", "1.0"),
            ("https://a/rest", "http+json", "1.0.1"),
            ("https://a/rpc", "JSONRPC", "1.0"),
            ("ftp://a/", "JSONRPC", "1.0"),
            ("/relative", "JSONRPC", "1.0"),
        ]);
        assert_eq!(
            urls(&choose(&card, None, None)),
            ["https://a/rest", "https://a/rpc"]
        );
        assert_eq!(
            urls(&choose(&card, Some(Binding::JsonRpc), None)),
            ["https://a/rpc"]
        );
        let base = Url::parse("https://h/p/card.json").unwrap();
        assert_eq!(
            urls(&choose(&card, Some(Binding::JsonRpc), Some(&base))),
            ["https://a/rpc", "https://h/relative"]
        );
    }
}
