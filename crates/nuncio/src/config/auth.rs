//! `[auth]`: who may call.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who may call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuthConfig {
    /// Whether calls without a credential are taken; yes if there is none at all and nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) anonymous: Option<bool>,
    /// The keys; `nuncio keys create` makes one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) keys: Vec<KeyConfig>,
    /// Where keys may be besides `Authorization: Bearer`; the header `X-API-Key` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_key: Option<Vec<KeyPlaceConfig>>,
    /// Whether keys are taken as passwords of HTTP Basic, with the caller as user.
    pub(crate) basic: bool,
    /// Tokens of an OAuth 2 or OpenID Connect server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<TokensConfig>,
    /// Client certificates; needs `server.tls.client_authorities`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) certificates: Vec<KeyConfig>,
}

/// A place where keys may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyPlaceConfig {
    /// What kind of place.
    #[serde(rename = "in")]
    pub(crate) location: KeyLocation,
    /// The name of the header, query parameter or cookie.
    pub(crate) name: String,
}

/// A kind of place where keys may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyLocation {
    /// A header.
    Header,
    /// The query; it may end up in logs on the way.
    Query,
    /// A cookie.
    Cookie,
}

/// Which tokens of somebody else are taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokensConfig {
    /// Their `iss`.
    pub(crate) issuer: String,
    /// What their `aud` must name.
    pub(crate) audience: String,
    /// A file with the issuer's public keys (JWKS), read at start.
    pub(crate) jwks: PathBuf,
    /// Scopes that a token must have, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) scopes: Vec<String>,
    /// The claim that names the caller.
    #[serde(default = "subject")]
    pub(crate) caller_claim: String,
    /// The workspace of all callers.
    #[serde(default = "default_workspace")]
    pub(crate) workspace: String,
    /// The claim that names the workspace, instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workspace_claim: Option<String>,
    /// The provider's discovery document; makes the card say OpenID Connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) open_id_connect_url: Option<String>,
    /// How to get a token; makes the card say OAuth 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) oauth2: Option<OAuth2Config>,
}

/// How to get a token from an OAuth 2 server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OAuth2Config {
    /// By which flow.
    pub(crate) flow: OAuthFlowName,
    /// Where tokens are issued.
    pub(crate) token_url: String,
    /// Where the user consents; for `authorization_code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) authorization_url: Option<String>,
    /// Where a device code is had; for `device_code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) device_authorization_url: Option<String>,
    /// Where tokens are refreshed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_url: Option<String>,
    /// The server's metadata (RFC 8414).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata_url: Option<String>,
    /// Whether PKCE must be used; for `authorization_code`.
    #[serde(default)]
    pub(crate) pkce_required: bool,
    /// What each scope opens, for people.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) scopes: BTreeMap<String, String>,
}

/// A flow of OAuth 2 that is not deprecated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OAuthFlowName {
    /// For programs.
    ClientCredentials,
    /// For people with a browser.
    AuthorizationCode,
    /// For people with a browser elsewhere.
    DeviceCode,
}

/// One key: its hash, and what it stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyConfig {
    /// SHA-256 of the key, or of the certificate in DER form, in hexadecimal.
    pub(crate) sha256: String,
    /// Whose tasks it sees.
    pub(crate) caller: String,
    /// Where.
    #[serde(default = "default_workspace")]
    pub(crate) workspace: String,
    /// Whether it may change which agents there are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) admin: bool,
}

fn subject() -> String {
    "sub".to_owned()
}

fn default_workspace() -> String {
    "default".to_owned()
}

impl AuthConfig {
    /// Whether calls without a key are taken.
    pub(crate) fn takes_anonymous(&self) -> bool {
        self.anonymous.unwrap_or(!self.knows_anybody())
    }

    /// Whether there is any credential that would let somebody in.
    pub(crate) fn knows_anybody(&self) -> bool {
        !self.keys.is_empty() || !self.certificates.is_empty() || self.tokens.is_some()
    }
}

impl KeyConfig {
    /// The hash as bytes; `None` if it is not 64 hexadecimal digits.
    pub(crate) fn hash(&self) -> Option<[u8; 32]> {
        let digits = self.sha256.as_bytes();
        let mut hash = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = [pair[0], pair[1]].map(|digit| (digit as char).to_digit(16));
            *byte = u8::try_from(high? * 16 + low?).ok()?;
        }
        Some(hash)
    }
}
