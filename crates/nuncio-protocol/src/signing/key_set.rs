//! Keys that verify: the ones that somebody has decided to trust.

use std::collections::BTreeSet;
use std::fmt;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA256, VerificationAlgorithm,
};
use serde_json::{Map, Value};

use super::encoding::{from_base64url, pem_blocks, public_key_info, rsa_bits, rsa_public_key};
use super::error::SigningError;
use super::key::{Algorithm, SigningKey};
use crate::{Timestamp, json};

/// The keys whose signatures are believed (SIGN-08).
#[derive(Clone, Debug, Default)]
pub struct KeySet {
    keys: Vec<VerifyingKey>,
    revoked: BTreeSet<String>,
}

impl KeySet {
    /// A set without keys: nothing verifies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads public keys from text: PEM (`PUBLIC KEY`, one or several), a JWK, or a JWKS.
    ///
    /// A PEM key has no name: it is tried on every signature. Keys of a JWKS that are of another
    /// kind, for another use or not public are left out.
    ///
    /// # Errors
    /// [`SigningError::Key`] for malformed text and single keys that cannot be used, private and
    /// symmetric ones above all, and for a JWKS of which no key is left.
    pub fn parse(text: &str) -> Result<Self, SigningError> {
        let keys = if text.trim_start().starts_with('{') {
            of_json(text)?
        } else {
            of_pem(text)?
        };
        Ok(Self {
            keys,
            revoked: BTreeSet::new(),
        })
    }

    /// Adds a key.
    pub fn add(&mut self, key: VerifyingKey) {
        self.keys.push(key);
    }

    /// Adds all keys and revocations of another set.
    pub fn extend(&mut self, other: Self) {
        self.keys.extend(other.keys);
        self.revoked.extend(other.revoked);
    }

    /// Believes no signature by the key of this name any more, whether or not the key is here.
    pub fn revoke(&mut self, kid: impl Into<String>) {
        self.revoked.insert(kid.into());
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys, in the order in which they are tried.
    pub fn keys(&self) -> &[VerifyingKey] {
        &self.keys
    }

    pub(super) fn is_revoked(&self, kid: &str) -> bool {
        self.revoked.contains(kid)
    }
}

impl From<VerifyingKey> for KeySet {
    fn from(key: VerifyingKey) -> Self {
        Self {
            keys: vec![key],
            revoked: BTreeSet::new(),
        }
    }
}

/// One public key.
#[derive(Clone)]
pub struct VerifyingKey {
    kid: Option<String>,
    not_after: Option<Timestamp>,
    /// What it verifies; an RSA key does two algorithms.
    parsed: Vec<(Algorithm, ParsedPublicKey)>,
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingKey")
            .field("kid", &self.kid)
            .field("not_after", &self.not_after)
            .field("algorithms", &self.algorithms().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl VerifyingKey {
    /// The public half of a signing key, under its name.
    ///
    /// # Errors
    /// [`SigningError::Key`] if the crypto library does not take its own key.
    pub fn of(key: &SigningKey) -> Result<Self, SigningError> {
        match key.public_jwk() {
            Value::Object(jwk) => of_jwk(&jwk),
            _ => Err(SigningError::key("the key has no JWK")),
        }
    }

    /// The same key, for signatures that name it so only.
    #[must_use]
    pub fn with_kid(mut self, kid: impl Into<String>) -> Self {
        self.kid = Some(kid.into());
        self
    }

    /// The same key, not believed after this time.
    #[must_use]
    pub fn with_not_after(mut self, time: Timestamp) -> Self {
        self.not_after = Some(time);
        self
    }

    /// Its name; `None` if it is tried on every signature.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// What it verifies.
    pub fn algorithms(&self) -> impl Iterator<Item = Algorithm> + '_ {
        self.parsed.iter().map(|(algorithm, _)| *algorithm)
    }

    pub(super) fn answers_to(&self, kid: &str) -> bool {
        self.kid.as_deref().is_none_or(|own| own == kid)
    }

    pub(super) fn has_expired(&self, now: Timestamp) -> bool {
        self.not_after.is_some_and(|last| now > last)
    }

    pub(crate) fn with_algorithm(&self, algorithm: Algorithm) -> Option<&ParsedPublicKey> {
        let mut parsed = self.parsed.iter();
        parsed.find_map(|(own, key)| (*own == algorithm).then_some(key))
    }

    fn new(algorithms: &[Algorithm], bytes: &[u8]) -> Result<Self, SigningError> {
        if algorithms == RSA && rsa_bits(bytes).is_none_or(|bits| bits < MIN_RSA_BITS) {
            return Err(SigningError::key(format!(
                "the RSA key has fewer than {MIN_RSA_BITS} bits"
            )));
        }
        let parsed = algorithms.iter().map(|algorithm| {
            let key = ParsedPublicKey::new(verification(*algorithm), bytes)
                .map_err(|why| SigningError::key(format!("the public key is not good: {why}")))?;
            Ok((*algorithm, key))
        });
        Ok(Self {
            kid: None,
            not_after: None,
            parsed: parsed.collect::<Result<_, SigningError>>()?,
        })
    }
}

const MIN_RSA_BITS: usize = 2048;
const RSA: &[Algorithm] = &[Algorithm::Rs256, Algorithm::Ps256];

fn verification(algorithm: Algorithm) -> &'static dyn VerificationAlgorithm {
    match algorithm {
        Algorithm::Es256 => &ECDSA_P256_SHA256_FIXED,
        Algorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::Ps256 => &RSA_PSS_2048_8192_SHA256,
        Algorithm::EdDsa => &ED25519,
    }
}

fn of_pem(text: &str) -> Result<Vec<VerifyingKey>, SigningError> {
    let blocks = pem_blocks(text)?;
    if blocks.iter().any(|block| block.label.contains("PRIVATE")) {
        return Err(private());
    }
    let public = blocks.iter().filter(|block| block.label == "PUBLIC KEY");
    let keys: Vec<VerifyingKey> = public
        .map(|block| of_spki(&block.der))
        .collect::<Result<_, _>>()?;
    if keys.is_empty() {
        let found = blocks.first().map(|block| block.label);
        return Err(SigningError::key(match found {
            Some(label) => format!("a PEM block {label} is no public key; wanted is PUBLIC KEY"),
            None => "the keys are neither PEM nor JSON".to_owned(),
        }));
    }
    Ok(keys)
}

/// `id-ecPublicKey` with `prime256v1`.
const P256: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
/// `rsaEncryption`, which has a NULL as parameter.
const RSA_ENCRYPTION: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
/// `id-Ed25519`.
const ID_ED25519: &[u8] = b"\x06\x03\x2b\x65\x70";

fn of_spki(der: &[u8]) -> Result<VerifyingKey, SigningError> {
    let info = public_key_info(der);
    let info =
        info.ok_or_else(|| SigningError::key("the public key is no SubjectPublicKeyInfo"))?;
    let algorithms = match info.algorithm {
        P256 => &[Algorithm::Es256][..],
        RSA_ENCRYPTION => RSA,
        ID_ED25519 => &[Algorithm::EdDsa],
        _ => {
            return Err(SigningError::key(
                "the public key is of another kind than P-256, RSA and Ed25519",
            ));
        }
    };
    VerifyingKey::new(algorithms, info.key)
}

fn of_json(text: &str) -> Result<Vec<VerifyingKey>, SigningError> {
    let object: Map<String, Value> = json::decode(text.as_bytes())
        .map_err(|error| SigningError::key(format!("the keys cannot be read: {error}")))?;
    let Some(entries) = object.get("keys") else {
        return Ok(vec![of_jwk(&object)?]);
    };
    let entries = entries
        .as_array()
        .ok_or_else(|| SigningError::key("`keys` of the JWKS is not a list"))?;
    let mut keys = Vec::new();
    let mut left_out = None;
    for entry in entries {
        let jwk = entry.as_object();
        let read = jwk.ok_or_else(|| SigningError::key("a key of the JWKS is not an object"));
        match read.and_then(of_jwk) {
            Ok(key) => keys.push(key),
            Err(why) => left_out = left_out.or(Some(why)),
        }
    }
    match (keys.is_empty(), left_out) {
        (true, Some(why)) => Err(why),
        (true, None) => Err(SigningError::key("the JWKS holds no key")),
        (false, _) => Ok(keys),
    }
}

fn of_jwk(jwk: &Map<String, Value>) -> Result<VerifyingKey, SigningError> {
    let member = |name: &str| jwk.get(name).and_then(Value::as_str);
    let bytes = |name: &str| {
        let bytes = member(name).and_then(from_base64url);
        bytes.ok_or_else(|| SigningError::key(format!("the JWK has no good `{name}`")))
    };
    if member("kty") == Some("oct") {
        return Err(SigningError::key(
            "a symmetric key is no key for cards: whoever can check with it can also sign",
        ));
    }
    if jwk.contains_key("d") {
        return Err(private());
    }
    let mut key = match (member("kty"), member("crv")) {
        (Some("EC"), Some("P-256")) => {
            let point = [vec![4], bytes("x")?, bytes("y")?].concat();
            VerifyingKey::new(&[Algorithm::Es256], &point)?
        }
        (Some("OKP"), Some("Ed25519")) => VerifyingKey::new(&[Algorithm::EdDsa], &bytes("x")?)?,
        (Some("RSA"), _) => VerifyingKey::new(RSA, &rsa_public_key(&bytes("n")?, &bytes("e")?))?,
        _ => {
            return Err(SigningError::key(
                "the JWK is of another kind than EC with P-256, RSA, and OKP with Ed25519",
            ));
        }
    };
    restrict(&mut key, jwk)?;
    key.kid = member("kid").map(str::to_owned);
    Ok(key)
}

/// Keeps a key to what its JWK says it is for.
fn restrict(key: &mut VerifyingKey, jwk: &Map<String, Value>) -> Result<(), SigningError> {
    if let Some(alg) = jwk.get("alg") {
        let only = alg.as_str().and_then(Algorithm::from_name);
        key.parsed.retain(|(algorithm, _)| Some(*algorithm) == only);
        if key.parsed.is_empty() {
            return Err(SigningError::key(format!(
                "the JWK's `alg` {alg} does not fit its kind"
            )));
        }
    }
    let verifies = jwk
        .get("key_ops")
        .and_then(Value::as_array)
        .is_none_or(|ops| ops.iter().any(|op| op == "verify"));
    if jwk.get("use").is_some_and(|usage| usage != "sig") || !verifies {
        return Err(SigningError::key("the JWK is not for signatures"));
    }
    Ok(())
}

fn private() -> SigningError {
    SigningError::key("this is a private key; verifying needs the public one, and only that")
}
