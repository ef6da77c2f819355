//! Cards: from a file, and what is done to one before it is used.

use std::path::Path;

use nuncio_protocol::{AgentCard, AgentInterface, Binding, Version};
use url::Url;

use crate::outcome::{Code, Failure, Outcome};

/// A card as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) card: AgentCard,
    /// The text as it came.
    pub(crate) raw: String,
    /// Where it was found; `None` for a file.
    pub(crate) url: Option<Url>,
    pub(crate) warnings: Vec<String>,
}

/// The file that a reference means, if it means one.
pub(crate) fn local(reference: &str) -> Option<&Path> {
    if let Some(path) = reference.strip_prefix("file://") {
        return Some(Path::new(path.strip_prefix("localhost").unwrap_or(path)));
    }
    let path = Path::new(reference);
    let looks_local = ["/", "./", "../"]
        .iter()
        .any(|start| reference.starts_with(start));
    (!reference.contains("://") && (looks_local || path.is_file())).then_some(path)
}

pub(crate) fn read_file(path: &Path) -> Outcome<Found> {
    let shown = path.display();
    let raw = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(
            Code::CardNotFound,
            format!("failed to read {shown}: {error}"),
        )
    })?;
    let (card, warnings) = nuncio_client::card::read(&raw).map_err(|why| {
        Failure::new(
            Code::CardInvalid,
            format!("failed to read {shown} as an agent card: {why}"),
        )
    })?;
    Ok(Found {
        card,
        raw,
        url: None,
        warnings,
    })
}

/// Puts the interfaces of the first preferred binding that the card offers in this version in front.
pub(crate) fn prefer(card: &mut AgentCard, preferred: &[Binding], version: Version) {
    let speaks =
        |i: &AgentInterface| Version::parse(&i.protocol_version).is_ok_and(|v| v == version);
    for wanted in preferred {
        if card
            .supported_interfaces
            .iter()
            .any(|i| i.binding() == Some(*wanted) && speaks(i))
        {
            card.supported_interfaces
                .sort_by_key(|i| i.binding() != Some(*wanted));
            return;
        }
    }
}

/// Completes the addresses that are given relative to the card's.
pub(crate) fn make_absolute(card: &mut AgentCard, base: &Url) {
    for interface in &mut card.supported_interfaces {
        // gRPC is at a host and a port, which is no relative address.
        if interface.binding() != Some(Binding::Grpc)
            && Url::parse(&interface.url).is_err()
            && let Ok(whole) = base.join(&interface.url)
        {
            interface.url = whole.into();
        }
    }
}

/// Where credentials may go: to the card's own origin, or, if the user has given us the card, to
/// the addresses in it.
pub(crate) fn origins(found: &Found) -> Vec<String> {
    match &found.url {
        Some(url) => vec![url.to_string()],
        None => found
            .card
            .supported_interfaces
            .iter()
            .map(|i| i.url.clone())
            .collect(),
    }
}
