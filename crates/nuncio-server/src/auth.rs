//! Who is calling: API keys, or nobody in particular where that is allowed (AUTH-*).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue};
use nuncio_protocol::{
    A2aError, AgentCard, ApiKeySecurityScheme, Caller, CallerId, ErrorKind, HttpAuthSecurityScheme,
    SecurityRequirement, SecurityScheme, SecuritySchemes, StringList, Timestamp, WorkspaceId,
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::admission::{Usage, exhausted};
use crate::failure::{CHALLENGE, Failure};
use crate::throttle::Throttle;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// A key that callers present; only its SHA-256 is known here.
#[derive(Clone)]
pub struct ApiKey {
    digest: [u8; 32],
    caller: Caller,
    expires: Option<Timestamp>,
}

/// A text that is not the SHA-256 of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected the SHA-256 of the key as 64 hexadecimal digits")]
pub struct InvalidDigest;

impl ApiKey {
    /// A key by its SHA-256 in hexadecimal digits, and who presents it.
    ///
    /// # Errors
    /// [`InvalidDigest`] for anything but 64 hexadecimal digits.
    pub fn from_sha256(
        hex: &str,
        caller: impl Into<CallerId>,
        workspace: impl Into<WorkspaceId>,
    ) -> Result<Self, InvalidDigest> {
        let mut digest = [0; 32];
        if hex.len() != 64 || !hex.is_ascii() {
            return Err(InvalidDigest);
        }
        for (byte, at) in digest.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&hex[at..at + 2], 16).map_err(|_| InvalidDigest)?;
        }
        Ok(Self {
            digest,
            caller: Caller {
                id: caller.into(),
                workspace: workspace.into(),
            },
            expires: None,
        })
    }

    /// The same key, refused from then on.
    #[must_use]
    pub fn with_expiry(mut self, at: Timestamp) -> Self {
        self.expires = Some(at);
        self
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({:?})", self.caller)
    }
}

/// Tells who calls from the headers of a request.
///
/// With keys, everything but cards and health wants one: in `X-API-Key` or as a bearer token.
/// Ten wrong keys within a minute close the door to their address for the rest of it.
#[derive(Debug)]
pub struct Authenticator {
    /// By the first bytes of the digest; the rest is compared in constant time.
    keys: HashMap<[u8; 8], Vec<Known>>,
    anonymous: Option<Known>,
    failures: Throttle,
}

#[derive(Clone, Debug)]
struct Known {
    key: ApiKey,
    usage: Arc<Usage>,
}

/// A caller who may come in; only [`Authenticator`] makes one.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    pub(crate) caller: Caller,
    pub(crate) usage: Arc<Usage>,
    pub(crate) anonymous: bool,
    pub(crate) expires: Option<Timestamp>,
}

impl Authenticator {
    /// Lets everybody in, as caller `anonymous` of workspace `default`.
    ///
    /// For trying out on a loopback address; the program decides where it dares to.
    pub fn anonymous() -> Self {
        Self::with_keys([]).allow_anonymous()
    }

    /// Lets in who presents one of the keys. Without any key nobody is let in.
    pub fn with_keys(keys: impl IntoIterator<Item = ApiKey>) -> Self {
        let mut usages: HashMap<Caller, Arc<Usage>> = HashMap::new();
        let mut known: HashMap<[u8; 8], Vec<Known>> = HashMap::new();
        for key in keys {
            let usage = Arc::clone(usages.entry(key.caller.clone()).or_default());
            let index = index_of(&key.digest);
            known.entry(index).or_default().push(Known { key, usage });
        }
        Self {
            keys: known,
            anonymous: None,
            failures: Throttle::default(),
        }
    }

    /// Lets in callers without any credential besides; a wrong one is still refused.
    #[must_use]
    pub fn allow_anonymous(mut self) -> Self {
        self.anonymous = Some(Known {
            key: ApiKey {
                digest: [0; 32],
                caller: Caller {
                    id: "anonymous".into(),
                    workspace: "default".into(),
                },
                expires: None,
            },
            usage: Arc::default(),
        });
        self
    }

    /// Whether callers without a credential are let in.
    pub fn allows_anonymous(&self) -> bool {
        self.anonymous.is_some()
    }

    /// Whether some caller belongs to a workspace.
    pub(crate) fn knows_workspace(&self, workspace: &str) -> bool {
        let keys = self.keys.values().flatten().chain(&self.anonymous);
        let mut workspaces = keys.map(|known| &known.key.caller.workspace);
        workspaces.any(|known| known.as_str() == workspace)
    }

    /// Judges the credentials of a request that comes from `client`.
    pub(crate) fn authenticate(
        &self,
        headers: &HeaderMap,
        client: Option<IpAddr>,
        now: impl FnOnce() -> Timestamp,
    ) -> Result<Admitted, Failure> {
        let presented = match Presented::of(headers) {
            Presented::Nothing => {
                let anonymous = self.anonymous.as_ref().map(|known| known.admitted(true));
                return anonymous.ok_or_else(|| unauthenticated("no credential was sent", ""));
            }
            other => other,
        };
        if let Some(client) = client
            && let Some(wait) = self.failures.closed_for(client)
        {
            let message = "too many wrong credentials from this address".to_owned();
            return Err(Failure::from(exhausted(message, wait)).seen_from(Some(client)));
        }
        let known = match presented {
            Presented::Key(key) => self.find(key),
            _ => None,
        };
        match known {
            Some(known) if known.key.expires.is_none_or(|at| now() < at) => {
                Ok(known.admitted(false))
            }
            _ => {
                if let Some(client) = client {
                    self.failures.note(client);
                }
                let hint = ", error=\"invalid_token\"";
                Err(unauthenticated("the credential is not valid", hint).seen_from(client))
            }
        }
    }

    fn find(&self, key: &[u8]) -> Option<&Known> {
        let digest: [u8; 32] = Sha256::digest(key).into();
        let candidates = self.keys.get(&index_of(&digest))?;
        candidates
            .iter()
            .find(|known| known.key.digest.ct_eq(&digest).into())
    }

    /// Writes into a card what is really asked of callers (AUTH-02).
    pub(crate) fn declare(&self, card: &mut AgentCard) {
        card.security_schemes = SecuritySchemes::default();
        card.security_requirements.clear();
        if self.keys.is_empty() {
            return;
        }
        for (name, scheme) in schemes() {
            let mut requirement = SecurityRequirement::default();
            let no_scopes = StringList::default();
            requirement.schemes.insert(name.to_owned(), no_scopes);
            card.security_requirements.push(requirement);
            card.security_schemes.0.insert(name.to_owned(), scheme);
        }
        if self.allows_anonymous() {
            let nothing = SecurityRequirement::default();
            card.security_requirements.push(nothing);
        }
    }
}

impl Known {
    fn admitted(&self, anonymous: bool) -> Admitted {
        Admitted {
            caller: self.key.caller.clone(),
            usage: Arc::clone(&self.usage),
            anonymous,
            expires: self.key.expires,
        }
    }
}

/// What the headers hold; two credentials at once are as good as a wrong one.
enum Presented<'a> {
    Nothing,
    Key(&'a [u8]),
    Unusable,
}

impl<'a> Presented<'a> {
    fn of(headers: &'a HeaderMap) -> Self {
        let mut keys = headers.get_all(X_API_KEY).iter();
        let mut tokens = headers.get_all(AUTHORIZATION).iter();
        match (keys.next(), keys.next(), tokens.next(), tokens.next()) {
            (None, _, None, _) => Self::Nothing,
            (Some(key), None, None, _) => Self::Key(key.as_bytes()),
            (None, _, Some(token), None) => {
                bearer(token.as_bytes()).map_or(Self::Unusable, Self::Key)
            }
            (Some(key), None, Some(token), None)
                if bearer(token.as_bytes()) == Some(key.as_bytes()) =>
            {
                Self::Key(key.as_bytes())
            }
            _ => Self::Unusable,
        }
    }
}

fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

fn index_of(digest: &[u8; 32]) -> [u8; 8] {
    let mut index = [0; 8];
    index.copy_from_slice(&digest[..8]);
    index
}

fn schemes() -> BTreeMap<&'static str, SecurityScheme> {
    let mut in_header = ApiKeySecurityScheme::default();
    in_header.location = "header".to_owned();
    in_header.name = "X-API-Key".to_owned();
    let mut bearer = HttpAuthSecurityScheme::default();
    bearer.scheme = "Bearer".to_owned();
    BTreeMap::from([
        ("apiKey", SecurityScheme::ApiKey(in_header)),
        ("bearer", SecurityScheme::HttpAuth(bearer)),
    ])
}

fn unauthenticated(message: &str, hint: &str) -> Failure {
    let challenge = format!("{CHALLENGE}{hint}");
    let challenge = HeaderValue::try_from(challenge).expect("made of ASCII");
    let failure: Failure = A2aError::new(ErrorKind::Unauthenticated, message).into();
    failure.with_header(WWW_AUTHENTICATE, challenge)
}
