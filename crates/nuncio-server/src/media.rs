//! Media types: what an agent takes and gives, with wildcards (OP-SEND-17, OP-SEND-18).

use nuncio_protocol::{
    A2aError, AgentCard, ErrorKind, Result, SendMessageConfiguration, SendMessageRequest,
};

/// The media types of an agent's card, its skills' included.
#[derive(Debug, Default)]
pub(crate) struct MediaRules {
    takes: Vec<String>,
    gives: Vec<String>,
}

impl MediaRules {
    pub(crate) fn of(card: &AgentCard) -> Self {
        let skills = |pick: fn(&nuncio_protocol::AgentSkill) -> &Vec<String>| {
            card.skills.iter().flat_map(pick)
        };
        let all = |modes: &[String], more: Vec<&String>| {
            let mut all: Vec<String> = modes.iter().chain(more).map(|m| essence(m)).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        Self {
            takes: all(
                &card.default_input_modes,
                skills(|skill| &skill.input_modes).collect(),
            ),
            gives: all(
                &card.default_output_modes,
                skills(|skill| &skill.output_modes).collect(),
            ),
        }
    }

    /// Refuses parts that no skill takes, and wishes that no skill can meet.
    pub(crate) fn check(&self, request: &SendMessageRequest) -> Result<()> {
        let parts = request.message.iter().flat_map(|message| &message.parts);
        for (index, part) in parts.enumerate() {
            if let Some(kind) = part.effective_media_type()
                && !accepts(&self.takes, kind)
            {
                return Err(unsupported(
                    format!("message.parts[{index}]: this agent does not take {kind:?}"),
                    "inputModes",
                    &self.takes,
                ));
            }
        }
        request
            .configuration
            .as_ref()
            .map_or(Ok(()), |configuration| self.check_output(configuration))
    }

    fn check_output(&self, configuration: &SendMessageConfiguration) -> Result<()> {
        let wanted = &configuration.accepted_output_modes;
        if wanted.is_empty() || wanted.iter().any(|kind| accepts(&self.gives, kind)) {
            return Ok(());
        }
        Err(unsupported(
            "configuration.acceptedOutputModes: this agent gives none of these".to_owned(),
            "outputModes",
            &self.gives,
        ))
    }
}

fn unsupported(message: String, key: &str, modes: &[String]) -> A2aError {
    A2aError::new(ErrorKind::ContentTypeNotSupported, message).with(key, modes.join(", "))
}

/// Whether one of `modes` covers `kind`; either side may hold wildcards. No modes: everything.
fn accepts(modes: &[String], kind: &str) -> bool {
    let common = |mode: &String| mode.eq_ignore_ascii_case(kind);
    modes.is_empty() || modes.iter().any(common) || {
        let kind = essence(kind);
        modes.iter().any(|mode| overlap(mode, &kind))
    }
}

fn overlap(one: &str, other: &str) -> bool {
    let (one_type, one_sub) = halves(one);
    let (other_type, other_sub) = halves(other);
    let same = |a: &str, b: &str| a == b || a == "*" || b == "*";
    same(one_type, other_type) && same(one_sub, other_sub)
}

/// A mode without a slash, as older cards write it (`text`), covers all of its kind.
fn halves(kind: &str) -> (&str, &str) {
    kind.split_once('/').unwrap_or((kind, "*"))
}

/// The type without parameters, in lower case.
fn essence(kind: &str) -> String {
    let end = kind.find(';').unwrap_or(kind.len());
    kind[..end].trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::accepts;

    /// OP-SEND-17.
    #[test]
    fn wildcards_parameters_and_case_are_understood() {
        let modes = |list: &[&str]| list.iter().map(|m| (*m).to_owned()).collect::<Vec<_>>();
        for (list, kind, expected) in [
            (&["text/plain"][..], "text/plain", true),
            (&["text/plain"], "Text/Plain; charset=utf-8", true),
            (&["text/plain"], "text/html", false),
            (&["text/*"], "text/html", true),
            (&["text"], "text/html", true),
            (&["*/*"], "application/x-none", true),
            (&["image/png"], "image/*", true),
            (&["image/png"], "*/*", true),
            (&["image/png"], "text/*", false),
            (&[], "anything/at-all", true),
        ] {
            assert_eq!(accepts(&modes(list), kind), expected, "{list:?} {kind}");
        }
    }
}
