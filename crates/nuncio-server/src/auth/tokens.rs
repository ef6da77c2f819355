//! Bearer tokens that somebody else has issued: JWTs checked with keys at hand (AUTH-07).

use std::fmt;

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet};
use jsonwebtoken::{DecodingKey, Validation, decode, decode_header};
use nuncio_protocol::{A2aError, Caller, ErrorKind, Timestamp};
use serde_json::{Map, Value};

/// How far clocks may be apart.
const LEEWAY_MS: i64 = 30_000;

/// Which tokens are taken, and whom they stand for.
#[derive(Clone)]
pub struct TokenRules {
    keys: Vec<(Option<String>, DecodingKey)>,
    issuer: String,
    audience: String,
    scopes: Vec<String>,
    caller_claim: String,
    workspace: Workspace,
}

#[derive(Clone, Debug)]
enum Workspace {
    Fixed(String),
    Claim(String),
}

/// Why a set of keys is of no use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a set of public keys (JWKS): {0}")]
pub struct InvalidKeySet(String);

/// Why a token is not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is none, or wrong, or of somebody else, or over.
    Invalid,
    /// It is good but lacks this scope.
    Scope(String),
}

/// A token that is taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Accepted {
    pub(super) caller: Caller,
    pub(super) expires: Timestamp,
}

impl fmt::Debug for TokenRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRules")
            .field("issuer", &self.issuer)
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}

impl TokenRules {
    /// Takes tokens of this issuer for this audience, signed with one of the keys of a JWKS.
    ///
    /// Whom a token stands for is its `sub`, in workspace `default`.
    ///
    /// # Errors
    /// [`InvalidKeySet`] for what is no JWKS and for one without a key that verifies signatures.
    pub fn new(
        jwks: &str,
        issuer: impl Into<String>,
        audience: impl Into<String>,
    ) -> Result<Self, InvalidKeySet> {
        let set: JwkSet =
            serde_json::from_str(jwks).map_err(|error| InvalidKeySet(error.to_string()))?;
        let public = set.keys.iter().filter(|jwk| is_public(jwk));
        let keys: Vec<_> = public
            .filter_map(|jwk| {
                let key = DecodingKey::from_jwk(jwk).ok()?;
                Some((jwk.common.key_id.clone(), key))
            })
            .collect();
        if keys.is_empty() {
            return Err(InvalidKeySet("it has no key that can be used".to_owned()));
        }
        Ok(Self {
            keys,
            issuer: issuer.into(),
            audience: audience.into(),
            scopes: Vec::new(),
            caller_claim: "sub".to_owned(),
            workspace: Workspace::Fixed("default".to_owned()),
        })
    }

    /// Asks for these scopes, all of them.
    #[must_use]
    pub fn with_scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Takes the caller from this claim instead of `sub`.
    #[must_use]
    pub fn with_caller_claim(mut self, claim: impl Into<String>) -> Self {
        self.caller_claim = claim.into();
        self
    }

    /// Puts all callers into this workspace.
    #[must_use]
    pub fn with_workspace(mut self, workspace: impl Into<String>) -> Self {
        self.workspace = Workspace::Fixed(workspace.into());
        self
    }

    /// Takes the workspace from this claim; tokens without it are refused.
    #[must_use]
    pub fn with_workspace_claim(mut self, claim: impl Into<String>) -> Self {
        self.workspace = Workspace::Claim(claim.into());
        self
    }

    pub(super) fn scopes(&self) -> &[String] {
        &self.scopes
    }

    pub(super) fn workspace(&self) -> Option<&str> {
        match &self.workspace {
            Workspace::Fixed(workspace) => Some(workspace),
            Workspace::Claim(_) => None,
        }
    }

    /// Judges a token: signature, algorithm, issuer, audience, times, scopes.
    pub(super) fn accept(&self, token: &[u8], now: Timestamp) -> Result<Accepted, Refused> {
        let claims = self.verified(token).ok_or(Refused::Invalid)?;
        let time = |name: &str| {
            let seconds = claims.get(name)?.as_f64()?;
            Some((seconds * 1_000.0) as i64)
        };
        let now = now.unix_ms();
        let expires = time("exp").ok_or(Refused::Invalid)?;
        if now >= expires.saturating_add(LEEWAY_MS) {
            return Err(Refused::Invalid);
        }
        if time("nbf").is_some_and(|begins| now < begins.saturating_sub(LEEWAY_MS)) {
            return Err(Refused::Invalid);
        }
        let text = |name: &str| claims.get(name)?.as_str().filter(|text| !text.is_empty());
        let id = text(&self.caller_claim).ok_or(Refused::Invalid)?;
        let workspace = match &self.workspace {
            Workspace::Fixed(workspace) => workspace.as_str(),
            Workspace::Claim(claim) => text(claim).ok_or(Refused::Invalid)?,
        };
        let granted = scopes(&claims);
        if let Some(missing) = self.scopes.iter().find(|scope| !granted.contains(scope)) {
            return Err(Refused::Scope(missing.clone()));
        }
        Ok(Accepted {
            caller: Caller {
                id: id.into(),
                workspace: workspace.into(),
            },
            expires: Timestamp::from_unix_ms(expires),
        })
    }

    fn verified(&self, token: &[u8]) -> Option<Map<String, Value>> {
        let header = decode_header(token).ok()?;
        let named = |(kid, _): &&(Option<String>, DecodingKey)| match (&header.kid, kid) {
            (Some(asked), Some(kid)) => asked == kid,
            _ => true,
        };
        self.keys.iter().filter(named).find_map(|(_, key)| {
            let mut rules = Validation::new_for_family(key.family());
            rules.set_issuer(&[&self.issuer]);
            rules.set_audience(&[&self.audience]);
            rules.set_required_spec_claims(&["exp", "iss", "aud"]);
            // Times are judged by the server's own clock.
            rules.validate_exp = false;
            rules.validate_nbf = false;
            Some(decode(token, key, &rules).ok()?.claims)
        })
    }
}

/// `scope` as OAuth 2 has it, or `scp` as some issuers do.
fn scopes(claims: &Map<String, Value>) -> Vec<String> {
    let words = |value: &Value| match value {
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        Value::Array(list) => list
            .iter()
            .filter_map(|entry| entry.as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    };
    ["scope", "scp"]
        .iter()
        .filter_map(|name| claims.get(*name))
        .flat_map(words)
        .collect()
}

/// A shared secret would let every verifier sign.
fn is_public(jwk: &Jwk) -> bool {
    !matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_))
}

impl Refused {
    /// Of a good token without a scope the scope is told, not what it opens (AUTH-04).
    pub(super) fn forbidden(scope: &str) -> A2aError {
        let message = format!("the token lacks the scope \"{scope}\"");
        A2aError::new(ErrorKind::PermissionDenied, message)
    }
}
