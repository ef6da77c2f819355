//! What the card here says of an agent elsewhere.

use nuncio_protocol::{AgentCapabilities, AgentCard};

use super::PassThrough;

impl PassThrough {
    /// A card of the agent here with what the agent there offers too, as far as its card is known:
    /// the capabilities that both have, and the extensions of both. Where both declare one, the words
    /// here count.
    pub fn offered(&self, mut card: AgentCard) -> AgentCard {
        if let Some(there) = self.connection.card() {
            narrow(&mut card.capabilities, there.capabilities);
        }
        card
    }
}

fn narrow(here: &mut AgentCapabilities, there: AgentCapabilities) {
    let both = |here: Option<bool>, there| Some(here == Some(true) && there == Some(true));
    here.streaming = both(here.streaming, there.streaming);
    here.push_notifications = both(here.push_notifications, there.push_notifications);
    for extension in there.extensions {
        if here
            .extensions
            .iter()
            .all(|known| known.uri != extension.uri)
        {
            here.extensions.push(extension);
        }
    }
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{AgentCapabilities, AgentExtension};

    use super::narrow;

    fn offering(streaming: Option<bool>, push: Option<bool>) -> AgentCapabilities {
        let mut offers = AgentCapabilities::default();
        (offers.streaming, offers.push_notifications) = (streaming, push);
        offers
    }

    fn extension(uri: &str, description: &str) -> AgentExtension {
        let mut extension = AgentExtension::default();
        extension.uri = uri.to_owned();
        extension.description = Some(description.to_owned());
        extension
    }

    #[test]
    fn only_what_both_offer_is_offered() {
        for (here, there, offered) in [
            (Some(true), Some(true), true),
            (Some(true), Some(false), false),
            (Some(true), None, false),
            (Some(false), Some(true), false),
        ] {
            let mut card = offering(here, here);
            narrow(&mut card, offering(there, there));
            let offers = (card.streaming, card.push_notifications);
            assert_eq!(offers, (Some(offered), Some(offered)), "{here:?} {there:?}");
        }
    }

    #[test]
    fn extensions_of_both_are_declared_once() {
        let (mut here, mut there) = (AgentCapabilities::default(), AgentCapabilities::default());
        here.extensions = vec![extension("urn:a", "ours"), extension("urn:b", "ours")];
        there.extensions = vec![extension("urn:b", "theirs"), extension("urn:c", "theirs")];
        narrow(&mut here, there);
        let declared = [("urn:a", "ours"), ("urn:b", "ours"), ("urn:c", "theirs")];
        assert_eq!(
            here.extensions,
            declared.map(|(uri, who)| extension(uri, who))
        );
    }
}
