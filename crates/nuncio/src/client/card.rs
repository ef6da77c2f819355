//! `nuncio card get`.

use nuncio_protocol::{AgentCard, Call, SecurityScheme};
use serde_json::Value;

use super::found::Found;
use super::options::Layer;
use super::session::Prepared;
use super::text::{Text, yes_or_no};
use super::validate::violations;
use crate::arguments::CardGetArguments;
use crate::outcome::{Code, Failure, Outcome, warn};
use crate::surroundings::Surroundings;

/// Fetches a card and shows it.
pub(crate) fn card_get(arguments: CardGetArguments, around: &Surroundings) -> Outcome {
    let prepared = Prepared::new(&arguments.client, Layer::new(), around)?;
    super::block_on(async {
        let printer = prepared.printer;
        let mut found = prepared.card().await?;
        if arguments.extended {
            found = extended(prepared, found).await?;
        }
        let value: Value = serde_json::from_str(&found.raw)
            .map_err(|error| Failure::internal(format!("failed to read the card: {error}")))?;
        let broken = if arguments.validate {
            violations(&value)
        } else {
            Vec::new()
        };
        if !broken.is_empty() {
            return Err(Failure::new(
                Code::CardInvalid,
                format!(
                    "the card breaks the protocol's rules: {}",
                    broken.join("; ")
                ),
            ));
        }
        if arguments.validate {
            warn("the card keeps the protocol's rules\n")?;
        }
        if printer.is_json() {
            return printer.json(&value);
        }
        let mut text = Text::new(printer.verbose);
        describe(&mut text, &found);
        printer.text(text)
    })
}

/// The card for authenticated callers, if the public one says that there is one.
async fn extended(prepared: Prepared, found: Found) -> Outcome<Found> {
    if found.card.capabilities.extended_agent_card != Some(true) {
        return Err(Failure::new(
            Code::Protocol("UnsupportedOperationError"),
            "failed to get the extended card: the agent has none",
        ));
    }
    let url = found.url.clone();
    let session = prepared.connect_to(found)?;
    let card = session.client.extended_card(Call::client()).await;
    let card = card.map_err(|error| session.failed("get the extended card", &error))?;
    let raw = nuncio_protocol::json::encode(&card);
    Ok(Found {
        card,
        raw,
        url,
        warnings: Vec::new(),
    })
}

fn describe(text: &mut Text, found: &Found) {
    let card = &found.card;
    text.field("Name", &card.name);
    text.field("Description", &card.description);
    text.field("Version", &card.version);
    if let Some(provider) = &card.provider {
        text.field(
            "Provider",
            &format!("{} ({})", provider.organization, provider.url),
        );
    }
    text.optional("Documentation", card.documentation_url.as_deref());
    text.optional("Card URL", found.url.as_ref().map(url::Url::as_str));
    let capabilities = &card.capabilities;
    for (label, has) in [
        ("Streaming", capabilities.streaming),
        ("Push Notifications", capabilities.push_notifications),
        ("Extended Card", capabilities.extended_agent_card),
    ] {
        text.field(label, yes_or_no(has == Some(true)));
    }
    for extension in &capabilities.extensions {
        let required = if extension.required {
            " (required)"
        } else {
            ""
        };
        text.field("Extension", &format!("{}{required}", extension.uri));
    }
    for interface in &card.supported_interfaces {
        let tenant = interface
            .tenant
            .as_ref()
            .map(|tenant| format!(" tenant {tenant}"));
        text.field(
            "Interface",
            &format!(
                "{} {} {}{}",
                interface.protocol_binding,
                interface.protocol_version,
                interface.url,
                tenant.unwrap_or_default()
            ),
        );
    }
    text.field("Input Modes", &card.default_input_modes.join(", "));
    text.field("Output Modes", &card.default_output_modes.join(", "));
    security(text, card);
    for skill in &card.skills {
        text.field("Skill", &skill.id);
        text.field("Skill Name", &skill.name);
        text.field("Skill Description", &skill.description);
        text.field("Skill Tags", &skill.tags.join(", "));
        for example in &skill.examples {
            text.field("Skill Example", example);
        }
    }
    let signed = if card.signatures.is_empty() {
        "absent"
    } else {
        "present, not verified"
    };
    text.field("Signature", signed);
}

fn security(text: &mut Text, card: &AgentCard) {
    for (name, scheme) in &card.security_schemes.0 {
        let kind = match scheme {
            SecurityScheme::ApiKey(key) => format!("API key in {} {}", key.location, key.name),
            SecurityScheme::HttpAuth(auth) => format!("HTTP {}", auth.scheme),
            SecurityScheme::OAuth2(_) => "OAuth 2".to_owned(),
            SecurityScheme::OpenIdConnect(oidc) => {
                format!("OpenID Connect {}", oidc.open_id_connect_url)
            }
            SecurityScheme::MutualTls(_) => "client certificate".to_owned(),
            _ => "of another kind".to_owned(),
        };
        text.field("Security Scheme", &format!("{name}: {kind}"));
    }
    for requirement in &card.security_requirements {
        let names: Vec<&str> = requirement.schemes.keys().map(String::as_str).collect();
        let shown = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(" and ")
        };
        text.field("Security Requirement", &shown);
    }
}
