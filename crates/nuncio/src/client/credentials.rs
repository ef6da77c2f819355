//! What a client proves itself with, and what agents ask for.

use nuncio_client::Credentials;
use nuncio_protocol::{AgentCard, ApiKeySecurityScheme, SecurityScheme};

use super::settings::Settings;
use crate::outcome::{Failure, Outcome};

/// What to prove ourselves with, in the way that the card declares.
pub(crate) fn credentials(settings: &Settings, card: &AgentCard) -> Outcome<Option<Credentials>> {
    let mut headers = Vec::new();
    if let Some(token) = settings.text("bearer") {
        headers.push(Credentials::Bearer(token));
    }
    if let Some(key) = settings.text("api-key") {
        headers.push(Credentials::ApiKey {
            header: key_header(card)?,
            key,
        });
    }
    let parameters = parameters(settings)?.into_iter();
    headers.extend(parameters.map(|(header, key)| Credentials::ApiKey { header, key }));
    if headers.len() > 1 {
        return Err(Failure::usage(
            "only one of --bearer, --api-key and --svc-param can be sent at a time",
        ));
    }
    Ok(headers.pop())
}

/// The service parameters: names and values.
pub(crate) fn parameters(settings: &Settings) -> Outcome<Vec<(String, String)>> {
    let pair = |entry: String| match entry.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(Failure::usage(format!(
            "failed to read --svc-param: \"{entry}\" has no colon"
        ))
        .hint("for example --svc-param x-trace-id:abc123")),
    };
    settings.list("svc-param").into_iter().map(pair).collect()
}

fn key_schemes(card: &AgentCard) -> impl Iterator<Item = &ApiKeySecurityScheme> {
    card.security_schemes
        .0
        .values()
        .filter_map(|scheme| match scheme {
            SecurityScheme::ApiKey(scheme) => Some(scheme),
            _ => None,
        })
}

fn key_header(card: &AgentCard) -> Outcome<String> {
    let in_header = |scheme: &&ApiKeySecurityScheme| scheme.location.eq_ignore_ascii_case("header");
    if let Some(scheme) = key_schemes(card).find(in_header) {
        return Ok(scheme.name.clone());
    }
    match key_schemes(card).next() {
        None => Ok("X-API-Key".to_owned()),
        Some(scheme) => Err(Failure::usage(format!(
            "failed to send the API key: the agent wants it in the {} \"{}\", and only headers are supported",
            scheme.location, scheme.name
        ))),
    }
}

/// The credentials that the card asks for, and how to give them here.
pub(crate) fn accepted(card: &AgentCard) -> Vec<String> {
    let schemes = card
        .security_schemes
        .0
        .values()
        .filter_map(|scheme| match scheme {
            SecurityScheme::ApiKey(scheme) => Some(format!(
                "an API key in the {} {} (--api-key or A2ACLI_API_KEY)",
                scheme.location, scheme.name
            )),
            SecurityScheme::HttpAuth(scheme) if scheme.scheme.eq_ignore_ascii_case("bearer") => {
                Some("a bearer token (--bearer or A2ACLI_BEARER)".to_owned())
            }
            SecurityScheme::OAuth2(_) | SecurityScheme::OpenIdConnect(_) => {
                Some("an OAuth access token (--bearer or A2ACLI_BEARER)".to_owned())
            }
            _ => None,
        });
    schemes.collect()
}
