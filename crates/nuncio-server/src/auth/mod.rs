//! Who is calling: API keys, tokens, client certificates, or nobody in particular where that is
//! allowed (AUTH-*).

mod presented;
mod schemes;
mod tokens;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

use http::header::WWW_AUTHENTICATE;
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use nuncio_protocol::{A2aError, Caller, CallerId, ErrorKind, Timestamp, WorkspaceId};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::admission::{Usage, exhausted};
use crate::failure::{CHALLENGE, Failure};
use crate::throttle::{Throttle, network};

use presented::Presented;
pub use schemes::TokenSource;
use tokens::Refused;
pub use tokens::{InvalidKeySet, TokenRules};

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Callers of tokens, and addresses of anonymous callers, whose usage is kept at once.
const MAX_USAGES: usize = 10_000;

/// A key that callers present; only its SHA-256 is known here.
#[derive(Clone)]
pub struct ApiKey {
    digest: [u8; 32],
    caller: Caller,
    expires: Option<Timestamp>,
    admin: bool,
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
            admin: false,
        })
    }

    /// The same key, which may also change which agents there are.
    #[must_use]
    pub fn with_admin(mut self, admin: bool) -> Self {
        self.admin = admin;
        self
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

/// Where keys may be, besides `Authorization: Bearer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// In a header.
    Header(HeaderName),
    /// In the query; it may end up in logs on the way.
    Query(String),
    /// In a cookie.
    Cookie(String),
}

/// A client certificate by the SHA-256 of its DER form, as the TLS layer has verified it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientCertificate(pub(crate) [u8; 32]);

/// Tells who calls from what a request holds.
///
/// With any key, token rule or certificate everything but cards and health wants one. Keys are taken
/// in `X-API-Key` and as bearer tokens unless set otherwise. Ten wrong credentials within a minute
/// close the door to their address for the rest of it.
#[derive(Debug)]
pub struct Authenticator {
    /// By the first bytes of the digest; the rest is compared in constant time.
    keys: HashMap<[u8; 8], Vec<Known>>,
    certificates: HashMap<[u8; 32], Known>,
    places: Vec<KeyPlace>,
    basic: bool,
    tokens: Option<(TokenRules, TokenSource)>,
    token_usage: Usages<Caller>,
    /// By the address they come from.
    anonymous_usage: Usages<IpAddr>,
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
    /// May change which agents there are.
    pub(crate) admin: bool,
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
            certificates: HashMap::new(),
            places: vec![KeyPlace::Header(X_API_KEY)],
            basic: false,
            tokens: None,
            token_usage: Usages::default(),
            anonymous_usage: Usages::default(),
            anonymous: None,
            failures: Throttle::default(),
        }
    }

    /// Lets in callers without any credential besides; a wrong one is still refused.
    #[must_use]
    pub fn allow_anonymous(mut self) -> Self {
        let caller = Caller {
            id: "anonymous".into(),
            workspace: "default".into(),
        };
        let key = ApiKey {
            digest: [0; 32],
            caller,
            expires: None,
            admin: false,
        };
        self.anonymous = Some(Known {
            key,
            usage: Arc::default(),
        });
        self
    }

    /// Sets where keys may be, instead of `X-API-Key`.
    #[must_use]
    pub fn with_key_places(mut self, places: impl IntoIterator<Item = KeyPlace>) -> Self {
        self.places = places.into_iter().collect();
        self
    }

    /// Takes keys as passwords of HTTP Basic too; the user is the caller's name.
    #[must_use]
    pub fn with_basic(mut self, basic: bool) -> Self {
        self.basic = basic;
        self
    }

    /// Takes tokens of somebody else too, and says in cards where to get them.
    #[must_use]
    pub fn with_tokens(mut self, rules: TokenRules, source: TokenSource) -> Self {
        self.tokens = Some((rules, source));
        self
    }

    /// Lets in who shows one of these client certificates, named like keys by their SHA-256.
    #[must_use]
    pub fn with_certificates(mut self, certificates: impl IntoIterator<Item = ApiKey>) -> Self {
        let known = certificates.into_iter().map(|key| {
            let usage = Arc::default();
            (key.digest, Known { key, usage })
        });
        self.certificates = known.collect();
        self
    }

    /// Whether callers without a credential are let in.
    pub fn allows_anonymous(&self) -> bool {
        self.anonymous.is_some()
    }

    /// Whether some caller belongs to a workspace.
    pub(crate) fn knows_workspace(&self, workspace: &str) -> bool {
        let keys = self.keys.values().flatten();
        let known = keys
            .chain(self.certificates.values())
            .chain(&self.anonymous);
        let mut workspaces = known.map(|known| &known.key.caller.workspace);
        let rules = self.tokens.as_ref().map(|(rules, _)| rules);
        workspaces.any(|known| known.as_str() == workspace)
            || rules.is_some_and(|rules| rules.workspace().is_none_or(|known| known == workspace))
    }

    /// Judges the credentials of a request that comes from `client`.
    pub(crate) fn authenticate(
        &self,
        parts: &Parts,
        client: Option<IpAddr>,
        now: impl Fn() -> Timestamp,
    ) -> Result<Admitted, Failure> {
        let presented = match Presented::of(parts, &self.places, self.basic) {
            Presented::Nothing => return self.without_secret(parts, client, &now),
            other => other,
        };
        if let Some(client) = client
            && let Some(wait) = self.failures.closed_for(client)
        {
            let message = "too many wrong credentials from this address".to_owned();
            return Err(Failure::from(exhausted(message, wait)).seen_from(Some(client)));
        }
        match self.admit(presented, &now) {
            Ok(admitted) => Ok(admitted),
            Err(Refused::Scope(scope)) => Err(Refused::forbidden(&scope).into()),
            Err(Refused::Invalid) => {
                if let Some(client) = client {
                    self.failures.note(client);
                }
                let hint = ", error=\"invalid_token\"";
                let failure = self.unauthenticated("the credential is not valid", hint);
                Err(failure.seen_from(client))
            }
        }
    }

    /// Who comes with a certificate, or with nothing.
    fn without_secret(
        &self,
        parts: &Parts,
        client: Option<IpAddr>,
        now: &impl Fn() -> Timestamp,
    ) -> Result<Admitted, Failure> {
        let shown = parts.extensions.get::<ClientCertificate>();
        let known = shown.and_then(|certificate| self.certificates.get(&certificate.0));
        if let Some(known) = known.filter(|known| known.is_valid(now)) {
            return Ok(known.admitted(false));
        }
        let mut anonymous = self.anonymous.as_ref().map(|known| known.admitted(true));
        if let (Some(admitted), Some(client)) = (&mut anonymous, client) {
            admitted.usage = self.anonymous_usage.of(&network(client));
        }
        anonymous.ok_or_else(|| self.unauthenticated("no credential was sent", ""))
    }

    fn admit(
        &self,
        presented: Presented<'_>,
        now: &impl Fn() -> Timestamp,
    ) -> Result<Admitted, Refused> {
        let (name, secret) = match presented {
            Presented::Secret(secret) => (None, secret),
            Presented::Named(name, secret) => (Some(name), Cow::Owned(secret)),
            Presented::Nothing | Presented::Unusable => return Err(Refused::Invalid),
        };
        let known = self.find(&secret).filter(|known| known.is_valid(now));
        if let Some(known) = known {
            let named = name.is_none_or(|name| name == known.key.caller.id.as_str());
            return named.then(|| known.admitted(false)).ok_or(Refused::Invalid);
        }
        let (rules, _) = self
            .tokens
            .as_ref()
            .filter(|_| name.is_none())
            .ok_or(Refused::Invalid)?;
        let accepted = rules.accept(&secret, now())?;
        Ok(Admitted {
            usage: self.token_usage.of(&accepted.caller),
            caller: accepted.caller,
            anonymous: false,
            admin: false,
            expires: Some(accepted.expires),
        })
    }

    fn find(&self, key: &[u8]) -> Option<&Known> {
        let digest: [u8; 32] = Sha256::digest(key).into();
        let candidates = self.keys.get(&index_of(&digest))?;
        candidates
            .iter()
            .find(|known| known.key.digest.ct_eq(&digest).into())
    }

    /// One challenge per scheme that has one (AUTH-04).
    fn unauthenticated(&self, message: &str, hint: &str) -> Failure {
        let mut failure: Failure = A2aError::new(ErrorKind::Unauthenticated, message).into();
        let bearer = format!("{CHALLENGE}{hint}");
        let basic = self.basic.then(|| "Basic realm=\"nuncio\"".to_owned());
        for challenge in [Some(bearer), basic].into_iter().flatten() {
            let challenge = HeaderValue::try_from(challenge).expect("made of ASCII");
            failure = failure.with_header(WWW_AUTHENTICATE, challenge);
        }
        failure
    }
}

/// What callers have going on that are known when they come.
#[derive(Debug)]
struct Usages<K>(Mutex<HashMap<K, Arc<Usage>>>);

impl<K> Default for Usages<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> Usages<K> {
    /// What one of them has going on; with very many of them the idle ones are forgotten.
    fn of(&self, caller: &K) -> Arc<Usage> {
        let mut usages = self.0.lock();
        if usages.len() >= MAX_USAGES && !usages.contains_key(caller) {
            usages.retain(|_, usage| Arc::strong_count(usage) > 1);
        }
        Arc::clone(usages.entry(caller.clone()).or_default())
    }
}

impl Known {
    fn is_valid(&self, now: &impl Fn() -> Timestamp) -> bool {
        self.key.expires.is_none_or(|at| now() < at)
    }

    fn admitted(&self, anonymous: bool) -> Admitted {
        Admitted {
            caller: self.key.caller.clone(),
            usage: Arc::clone(&self.usage),
            anonymous,
            admin: self.key.admin,
            expires: self.key.expires,
        }
    }
}

fn index_of(digest: &[u8; 32]) -> [u8; 8] {
    let mut index = [0; 8];
    index.copy_from_slice(&digest[..8]);
    index
}
