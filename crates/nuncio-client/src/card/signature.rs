//! What a client makes of the signatures of cards. Spec: §8.4.3

use nuncio_protocol::Timestamp;
use nuncio_protocol::signing::{Form, KeySet, Verdict, canonical, verify};

use super::Discovered;

/// Which cards a client believes (SIGN-09).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SignaturePolicy {
    /// All of them; signatures are not looked at.
    #[default]
    Off,
    /// Those with a valid signature, and, with a warning, those without any.
    Prefer,
    /// Those with a valid signature.
    Require,
}

/// A card is not believed for want of a valid signature.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the signature of the agent card is not accepted: it is {verdict}")]
#[non_exhaustive]
pub struct SignatureError {
    /// What the signatures are worth.
    pub verdict: Verdict,
}

impl Discovered {
    /// Judges the card's signatures, as they came, by these keys, and keeps the verdict.
    pub fn verify(&mut self, keys: &KeySet) -> &Verdict {
        self.signature.insert(verify(&self.raw, keys, now()))
    }
}

/// What a client checks of each card.
#[derive(Debug, Clone, Default)]
pub(crate) struct SignatureCheck {
    pub(crate) policy: SignaturePolicy,
    pub(crate) keys: KeySet,
}

impl SignatureCheck {
    /// Checks a card that has been found, and keeps the verdict with it.
    ///
    /// If the signature says nothing about some members, the card is read again without them:
    /// anybody could have added, for instance, an address of protocol 0.3.
    pub(crate) fn found(&self, found: &mut Discovered) -> Result<(), SignatureError> {
        if self.policy == SignaturePolicy::Off {
            return Ok(());
        }
        let verdict = found.verify(&self.keys).clone();
        if matches!(&verdict, Verdict::Valid { uncovered, .. } if !uncovered.is_empty()) {
            drop_uncovered(found);
        }
        if let Some(warning) = self.accept(verdict)? {
            tracing::warn!(card.url = %found.url, "{warning}");
            found.warnings.push(warning);
        }
        Ok(())
    }

    /// Checks a card at hand, by the text it is written as here.
    pub(crate) fn at_hand(&self, card_json: &str) -> Result<(), SignatureError> {
        if self.policy == SignaturePolicy::Off {
            return Ok(());
        }
        if let Some(warning) = self.accept(verify(card_json, &self.keys, now()))? {
            tracing::warn!("{warning}");
        }
        Ok(())
    }

    /// Whether a card with this verdict is believed, and with what warning.
    fn accept(&self, verdict: Verdict) -> Result<Option<String>, SignatureError> {
        match (&verdict, self.policy) {
            (Verdict::Valid { uncovered, .. }, _) if uncovered.is_empty() => Ok(None),
            (Verdict::Valid { uncovered, .. }, _) => Ok(Some(format!(
                "the card's signature does not cover {}",
                uncovered.join(", ")
            ))),
            (Verdict::Unsigned, SignaturePolicy::Prefer) => {
                Ok(Some("the card is not signed".to_owned()))
            }
            _ => Err(SignatureError { verdict }),
        }
    }
}

fn drop_uncovered(found: &mut Discovered) {
    let covered = canonical(&found.raw, Form::Strict).ok();
    let covered = covered.and_then(|bytes| String::from_utf8(bytes).ok());
    let Some((mut card, warnings)) = covered.and_then(|text| super::read(&text).ok()) else {
        // What makes it a card is not signed: it leads nowhere.
        found.card.supported_interfaces.clear();
        return;
    };
    card.signatures = std::mem::take(&mut found.card.signatures);
    found.card = card;
    found.warnings = warnings;
}

#[expect(
    clippy::disallowed_methods,
    reason = "whether a key has expired is a question to the machine's clock"
)]
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Timestamp::from_unix_ms(since.map_or(0, |elapsed| elapsed.as_millis() as i64))
}
