//! Who may come in, and what the listener proves itself with.

use std::fs;
use std::path::Path;

use http::HeaderName;
use nuncio_protocol::{
    AuthorizationCodeOAuthFlow, ClientCredentialsOAuthFlow, DeviceCodeOAuthFlow, OAuthFlows,
};
use nuncio_server::{ApiKey, Authenticator, KeyPlace, Tls, TokenRules, TokenSource};

use super::failed;
use crate::config::{
    Config, KeyConfig, KeyLocation, OAuth2Config, OAuthFlowName, TlsConfig, TokensConfig,
};
use crate::outcome::{Failure, Outcome};

/// What is asked of callers.
///
/// # Errors
/// If a file cannot be read or is not what it should be.
pub(crate) fn authenticator(config: &Config) -> Outcome<Authenticator> {
    let auth = &config.auth;
    let mut authenticator = Authenticator::with_keys(keys(&auth.keys)?)
        .with_basic(auth.basic)
        .with_certificates(keys(&auth.certificates)?);
    if let Some(places) = &auth.api_key {
        let places = places.iter().filter_map(|place| {
            Some(match place.location {
                KeyLocation::Header => {
                    KeyPlace::Header(HeaderName::from_bytes(place.name.as_bytes()).ok()?)
                }
                KeyLocation::Query => KeyPlace::Query(place.name.clone()),
                KeyLocation::Cookie => KeyPlace::Cookie(place.name.clone()),
            })
        });
        authenticator = authenticator.with_key_places(places);
    }
    if let Some(tokens) = &auth.tokens {
        authenticator = authenticator.with_tokens(rules(tokens)?, source(tokens));
    }
    Ok(if auth.takes_anonymous() {
        authenticator.allow_anonymous()
    } else {
        authenticator
    })
}

fn keys(keys: &[KeyConfig]) -> Outcome<Vec<ApiKey>> {
    let read = keys.iter().map(|key| {
        let made = ApiKey::from_sha256(&key.sha256, key.caller.as_str(), key.workspace.as_str());
        made.map(|made| made.with_admin(key.admin))
            .map_err(|error| {
                Failure::usage(format!("failed to read a key of {}: {error}", key.caller))
            })
    });
    read.collect()
}

fn rules(tokens: &TokensConfig) -> Outcome<TokenRules> {
    let shown = tokens.jwks.display();
    let jwks = read(&tokens.jwks)?;
    let rules = TokenRules::new(
        &String::from_utf8_lossy(&jwks),
        tokens.issuer.as_str(),
        tokens.audience.as_str(),
    );
    let rules = rules
        .map_err(|error| Failure::usage(format!("failed to read {shown}: {error}")))?
        .with_scopes(tokens.scopes.iter().map(String::as_str))
        .with_caller_claim(tokens.caller_claim.as_str());
    Ok(match &tokens.workspace_claim {
        Some(claim) => rules.with_workspace_claim(claim.as_str()),
        None => rules.with_workspace(tokens.workspace.as_str()),
    })
}

fn source(tokens: &TokensConfig) -> TokenSource {
    match (&tokens.oauth2, &tokens.open_id_connect_url) {
        (Some(oauth2), _) => TokenSource::OAuth2 {
            flow: Box::new(flow(oauth2)),
            metadata_url: oauth2.metadata_url.clone(),
        },
        (None, Some(url)) => TokenSource::OpenIdConnect(url.clone()),
        (None, None) => TokenSource::Unspecified,
    }
}

fn flow(said: &OAuth2Config) -> OAuthFlows {
    match said.flow {
        OAuthFlowName::ClientCredentials => {
            let mut flow = ClientCredentialsOAuthFlow::default();
            flow.token_url.clone_from(&said.token_url);
            flow.refresh_url.clone_from(&said.refresh_url);
            flow.scopes.clone_from(&said.scopes);
            OAuthFlows::ClientCredentials(flow)
        }
        OAuthFlowName::AuthorizationCode => {
            let mut flow = AuthorizationCodeOAuthFlow::default();
            flow.authorization_url = said.authorization_url.clone().unwrap_or_default();
            flow.token_url.clone_from(&said.token_url);
            flow.refresh_url.clone_from(&said.refresh_url);
            flow.scopes.clone_from(&said.scopes);
            flow.pkce_required = said.pkce_required;
            OAuthFlows::AuthorizationCode(flow)
        }
        OAuthFlowName::DeviceCode => {
            let mut flow = DeviceCodeOAuthFlow::default();
            flow.device_authorization_url =
                said.device_authorization_url.clone().unwrap_or_default();
            flow.token_url.clone_from(&said.token_url);
            flow.refresh_url.clone_from(&said.refresh_url);
            flow.scopes.clone_from(&said.scopes);
            OAuthFlows::DeviceCode(flow)
        }
    }
}

/// Reads certificate, key and authorities.
///
/// # Errors
/// If a file cannot be read or is not what it should be.
pub(crate) fn tls(config: &TlsConfig) -> Outcome<Tls> {
    let authorities = config.client_authorities.as_deref().map(read).transpose()?;
    let made = Tls::from_pem(
        &read(&config.certificate)?,
        &read(&config.key)?,
        authorities.as_deref(),
    );
    made.map_err(|error| Failure::usage(format!("failed to set up TLS: {error}")))
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).map_err(|error| failed(&format!("read {}", path.display()), &error))
}
