//! What a client proves itself with, what it sends besides, and what agents ask for.

use nuncio_client::{ApiKeyPlace, ClientBuilder, Credentials, check_header};
use nuncio_protocol::{AgentCard, ApiKeySecurityScheme, SecurityScheme};

use super::settings::Settings;
use crate::outcome::{Failure, Outcome};

/// A service parameter: a name and a value.
pub(crate) type Parameter = (String, String);

/// What every request to the agent carries besides its message.
#[derive(Debug)]
pub(crate) struct Attachments {
    credentials: Vec<Credentials>,
    parameters: Vec<Parameter>,
}

impl Attachments {
    /// Everything that was given, credentials in the way that the card declares.
    ///
    /// # Errors
    /// A key for a place that nobody knows.
    pub(crate) fn new(settings: &Settings, card: &AgentCard) -> Outcome<Self> {
        let mut credentials = Vec::new();
        if let Some(token) = settings.text("bearer") {
            credentials.push(Credentials::Bearer(token));
        }
        if let Some(key) = settings.text("api-key") {
            credentials.push(api_key(card, key)?);
        }
        Ok(Self {
            credentials,
            parameters: parameters(settings)?,
        })
    }

    /// Whether any of it may prove who is calling.
    pub(crate) fn prove_something(&self) -> bool {
        !self.credentials.is_empty() || !self.parameters.is_empty()
    }

    /// A builder that sends all of it to the origins of these addresses.
    pub(crate) fn attach(&self, mut builder: ClientBuilder, places: &[String]) -> ClientBuilder {
        for place in places {
            for credentials in &self.credentials {
                builder = builder.credentials_for(place, credentials.clone());
            }
            for (name, value) in self
                .parameters
                .iter()
                .filter(|(name, _)| !is_extensions(name))
            {
                builder = builder.header_for(place, name, value);
            }
        }
        let named = self
            .parameters
            .iter()
            .filter(|(name, _)| is_extensions(name));
        let uris = named.flat_map(|(_, value)| value.split(',').map(str::trim));
        builder.extensions(uris)
    }
}

/// The protocol's own parameter for extensions, which the client must know of.
pub(crate) fn is_extensions(name: &str) -> bool {
    name.eq_ignore_ascii_case("A2A-Extensions")
}

/// The service parameters of `--svc-param`.
///
/// # Errors
/// One without a colon, or one that cannot be sent as a header.
pub(crate) fn parameters(settings: &Settings) -> Outcome<Vec<Parameter>> {
    let entries = settings.list("svc-param");
    entries.iter().map(|entry| parameter(entry)).collect()
}

fn parameter(entry: &str) -> Outcome<Parameter> {
    let wrong = |why: &str| Failure::usage(format!("failed to read --svc-param: {why}"));
    let Some((name, value)) = entry.split_once(':') else {
        // It is not repeated: it may be a secret.
        let failure = wrong("it has no colon between name and value");
        return Err(failure.hint("for example --svc-param x-trace-id:abc123"));
    };
    let (name, value) = (name.trim(), value.trim());
    if name.eq_ignore_ascii_case("A2A-Version") {
        return Err(wrong("the version is said with --a2a-version"));
    }
    if !is_extensions(name) {
        check_header(name, value).map_err(|error| wrong(&error.to_string()))?;
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// The key in the place that the card names; in the header `X-API-Key` if it names none.
fn api_key(card: &AgentCard, key: String) -> Outcome<Credentials> {
    let Some(scheme) = key_scheme(card) else {
        return Ok(Credentials::ApiKey {
            place: ApiKeyPlace::Header,
            name: "X-API-Key".to_owned(),
            key,
        });
    };
    let place = ApiKeyPlace::parse(&scheme.location).ok_or_else(|| {
        Failure::usage(format!(
            "failed to send the API key: the agent wants it in the {} \"{}\", which is no header, query or cookie",
            scheme.location, scheme.name
        ))
    })?;
    let name = scheme.name.clone();
    Ok(Credentials::ApiKey { place, name, key })
}

/// The scheme for keys that the agent requires, or else the first one that it knows.
fn key_scheme(card: &AgentCard) -> Option<&ApiKeySecurityScheme> {
    let schemes = &card.security_schemes.0;
    let requirements = card.security_requirements.iter();
    let required = requirements.flat_map(|requirement| requirement.schemes.keys());
    let required = required.filter_map(|name| schemes.get(name));
    required
        .chain(schemes.values())
        .find_map(|scheme| match scheme {
            SecurityScheme::ApiKey(scheme) => Some(scheme),
            _ => None,
        })
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
