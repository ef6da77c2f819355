//! Which of a card's interfaces are used, in which order (CARD-03).

use nuncio_protocol::{AgentCard, AgentInterface, Binding, Version};
use url::Url;

use crate::address;

/// An interface that this client can talk to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) interface: AgentInterface,
    pub(crate) url: Url,
    pub(crate) binding: Binding,
    pub(crate) version: Version,
}

/// What the caller wants of an interface; the default takes any.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes {
    pub(crate) binding: Option<Binding>,
    /// The acceptable versions.
    pub(crate) versions: Option<Vec<Version>>,
    /// Whether gRPC without a scheme goes without TLS.
    pub(crate) grpc_plaintext: Option<bool>,
}

impl Wishes {
    fn accept(&self, binding: Binding, version: Version) -> bool {
        let versions = self.versions.as_ref();
        self.binding.is_none_or(|pinned| pinned == binding)
            && versions.is_none_or(|pinned| pinned.contains(&version))
    }
}

/// The usable interfaces: newest version first, then as the card lists them.
///
/// `base` is where the card came from, for addresses that are given relative to it.
pub(crate) fn choose(card: &AgentCard, wishes: &Wishes, base: Option<&Url>) -> Vec<Choice> {
    let interfaces = card.supported_interfaces.iter();
    let mut usable: Vec<Choice> = interfaces
        .filter_map(|interface| usable(interface, wishes, base))
        .collect();
    // The sort is stable: equal versions keep the card's order.
    usable.sort_by_key(|choice| std::cmp::Reverse(choice.version));
    usable
}

fn usable(interface: &AgentInterface, wishes: &Wishes, base: Option<&Url>) -> Option<Choice> {
    let version = Version::parse(&interface.protocol_version).ok()?;
    let binding = interface.binding()?;
    if !wishes.accept(binding, version) {
        return None;
    }
    Some(Choice {
        url: address::of_interface(interface, binding, base, wishes.grpc_plaintext)?,
        interface: interface.clone(),
        binding,
        version,
    })
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

    /// CARD-03, CARD-06, CARD-07, CARD-09, VER-09.
    #[test]
    fn the_newest_version_comes_first_then_the_cards_order() {
        let card = card(&[
            ("https://a/old", "JSONRPC", "0.3.0"),
            ("grpc.example:443", "GRPC", "1.0"),
            ("https://a/x", "https://example.com/custom", "1.0"),
            ("https://a/rest", "http+json", "1.0.1"),
            ("https://a/rpc", "JSONRPC", "1.0"),
            ("https://a/next", "JSONRPC", "2.0"),
            ("ftp://a/", "JSONRPC", "1.0"),
            ("/relative", "JSONRPC", "1.0"),
        ]);
        let of = |wishes: &Wishes| urls(&choose(&card, wishes, None)).join(" ");
        let every = "https://grpc.example/ https://a/rest https://a/rpc https://a/old";
        assert_eq!(of(&Wishes::default()), every);
        let json_rpc = Wishes {
            binding: Some(Binding::JsonRpc),
            ..Wishes::default()
        };
        assert_eq!(of(&json_rpc), "https://a/rpc https://a/old");
        let older = |binding| Wishes {
            binding,
            versions: Some(vec![Version::V0_3]),
            ..Wishes::default()
        };
        assert_eq!(of(&older(None)), "https://a/old");
        assert_eq!(of(&older(Some(Binding::Grpc))), "");
        let base = Url::parse("https://h/p/card.json").unwrap();
        assert_eq!(
            urls(&choose(&card, &json_rpc, Some(&base))),
            ["https://a/rpc", "https://h/relative", "https://a/old"]
        );
    }
}
