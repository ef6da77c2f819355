//! Keys that sign.

use std::fmt;

use aws_lc_rs::digest;
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use serde_json::{Map, Value, json};

use super::canonical::Form;
use super::encoding::{base64url, from_base64url, pem, pem_blocks};
use super::error::SigningError;
use crate::json;

/// How a signature is made, as the protected header's `alg` names it (SIGN-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA with P-256 and SHA-256.
    Es256,
    /// RSASSA-PKCS1-v1_5 with SHA-256, keys of at least 2048 bits; for verifying only.
    Rs256,
    /// RSASSA-PSS with SHA-256, keys of at least 2048 bits; for verifying only.
    Ps256,
    /// Ed25519, `EdDSA` or `Ed25519` in headers.
    EdDsa,
}

impl Algorithm {
    /// Its name in a protected header.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Rs256 => "RS256",
            Self::Ps256 => "PS256",
            Self::EdDsa => "EdDSA",
        }
    }

    /// The algorithm of that name. `none`, HMAC and everything else are no algorithm here.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "ES256" => Some(Self::Es256),
            "RS256" => Some(Self::Rs256),
            "PS256" => Some(Self::Ps256),
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A private key for cards, with the name that signatures give it.
///
/// The name (`kid`) is the key's RFC 7638 thumbprint unless another is set.
pub struct SigningKey {
    pair: Pair,
    kid: String,
    for_sdks: bool,
}

enum Pair {
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Shows nothing that is secret.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("kid", &self.kid)
            .field("algorithm", &self.algorithm())
            .finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Makes a key, and gives it with its PEM form (PKCS#8, unencrypted).
    ///
    /// # Errors
    /// [`SigningError::Key`] for an algorithm that only verifies here; [`SigningError::Crypto`] if
    /// the crypto library fails.
    pub fn generate(algorithm: Algorithm) -> Result<(Self, String), SigningError> {
        let random = SystemRandom::new();
        let document = match algorithm {
            Algorithm::Es256 => {
                EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            }
            // The first version of PKCS#8, which other programs read too.
            Algorithm::EdDsa => Ed25519KeyPair::generate_pkcs8v1(&random),
            Algorithm::Rs256 | Algorithm::Ps256 => {
                return Err(SigningError::key(format!(
                    "{algorithm} keys only verify here; ES256 and EdDSA sign"
                )));
            }
        };
        let document = document.map_err(|_| SigningError::Crypto("key"))?;
        let key = Self::from_pkcs8(document.as_ref())?;
        Ok((key, pem("PRIVATE KEY", document.as_ref())))
    }

    /// Reads a private key from text: PEM (PKCS#8) or a JWK, P-256 or Ed25519. A JWK's `kid` becomes the key's name.
    ///
    /// # Errors
    /// [`SigningError::Key`] says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, SigningError> {
        if text.trim_start().starts_with('{') {
            return Self::from_jwk(text);
        }
        let blocks = pem_blocks(text)?;
        if let Some(block) = blocks.iter().find(|block| block.label == "PRIVATE KEY") {
            return Self::from_pkcs8(&block.der);
        }
        Err(match blocks.first().map(|block| block.label) {
            Some("PUBLIC KEY") => {
                SigningError::key("this is a public key; signing needs the private one")
            }
            Some(label) => SigningError::key(format!(
                "the key is a PEM block {label}; read is only PKCS#8 without a password \
                 (PRIVATE KEY), as `openssl pkcs8 -topk8 -nocrypt` writes it"
            )),
            None => SigningError::key("the key is neither PEM nor a JWK"),
        })
    }

    fn from_pkcs8(der: &[u8]) -> Result<Self, SigningError> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der)
            .map(Pair::P256)
            .or_else(|_| Ed25519KeyPair::from_pkcs8(der).map(Pair::Ed25519));
        pair.map(Self::named).map_err(|_| {
            SigningError::key("the private key is neither of P-256 (ES256) nor Ed25519 (EdDSA)")
        })
    }

    fn from_jwk(text: &str) -> Result<Self, SigningError> {
        let jwk: Map<String, Value> = json::decode(text.as_bytes())
            .map_err(|error| SigningError::key(format!("the JWK cannot be read: {error}")))?;
        let member = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| {
            let bytes = member(name).and_then(from_base64url);
            bytes.ok_or_else(|| SigningError::key(format!("the private JWK has no good `{name}`")))
        };
        let wrong = |_| SigningError::key("the members of the private JWK do not fit together");
        let pair = match (member("kty"), member("crv")) {
            (Some("EC"), Some("P-256")) => {
                let public = [vec![4], bytes("x")?, bytes("y")?].concat();
                let alg = &ECDSA_P256_SHA256_FIXED_SIGNING;
                EcdsaKeyPair::from_private_key_and_public_key(alg, &bytes("d")?, &public)
                    .map(Pair::P256)
                    .map_err(wrong)?
            }
            (Some("OKP"), Some("Ed25519")) => {
                Ed25519KeyPair::from_seed_and_public_key(&bytes("d")?, &bytes("x")?)
                    .map(Pair::Ed25519)
                    .map_err(wrong)?
            }
            _ => {
                return Err(SigningError::key(
                    "the JWK is neither of EC with P-256 (ES256) nor OKP with Ed25519 (EdDSA)",
                ));
            }
        };
        let key = Self::named(pair);
        if member("alg").is_some_and(|alg| Algorithm::from_name(alg) != Some(key.algorithm())) {
            return Err(SigningError::key("the JWK's `alg` does not fit its kind"));
        }
        Ok(match member("kid") {
            Some(kid) => key.with_kid(kid),
            None => key,
        })
    }

    fn named(pair: Pair) -> Self {
        let mut key = Self {
            pair,
            kid: String::new(),
            for_sdks: false,
        };
        let members = serde_json_canonicalizer::to_vec(&key.public_members());
        let members = members.expect("texts have a canonical form");
        key.kid = base64url(digest::digest(&digest::SHA256, &members));
        key
    }

    /// The same key under another name.
    #[must_use]
    pub fn with_kid(mut self, kid: impl Into<String>) -> Self {
        self.kid = kid.into();
        self
    }

    /// The same key, which also signs the form that the official SDKs verify where that is another
    /// one: a card that asks for an API key has no form that both know (TRAP-22).
    #[must_use]
    pub fn for_sdks_too(mut self) -> Self {
        self.for_sdks = true;
        self
    }

    /// The forms that it signs.
    pub(super) fn forms(&self) -> &'static [Form] {
        if self.for_sdks {
            &[Form::Strict, Form::Sdk]
        } else {
            &[Form::Strict]
        }
    }

    /// The name that signatures give it.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// How it signs.
    pub fn algorithm(&self) -> Algorithm {
        match self.pair {
            Pair::P256(_) => Algorithm::Es256,
            Pair::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    /// The public key as a JWK with `kid`, `alg` and `use`; in `{"keys": […]}` it is a JWKS.
    pub fn public_jwk(&self) -> Value {
        let mut jwk = self.public_members();
        jwk["kid"] = self.kid.clone().into();
        jwk["alg"] = self.algorithm().as_str().into();
        jwk["use"] = "sig".into();
        jwk
    }

    /// The public key as PEM (`SubjectPublicKeyInfo`); it does not carry the name.
    ///
    /// # Errors
    /// [`SigningError::Crypto`] if the crypto library fails.
    pub fn public_pem(&self) -> Result<String, SigningError> {
        let der = match &self.pair {
            Pair::P256(pair) => pair.public_key().as_der(),
            Pair::Ed25519(pair) => pair.public_key().as_der(),
        };
        let der = der.map_err(|_| SigningError::Crypto("public key"))?;
        Ok(pem("PUBLIC KEY", der.as_ref()))
    }

    /// What makes the key: the members of its thumbprint.
    fn public_members(&self) -> Value {
        match &self.pair {
            Pair::P256(pair) => {
                // Uncompressed: 0x04, then both coordinates.
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256",
                    "x": base64url(&point[1..33]), "y": base64url(&point[33..65])})
            }
            Pair::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "x": base64url(pair.public_key())})
            }
        }
    }

    pub(crate) fn sign_bytes(&self, bytes: &[u8]) -> Result<Vec<u8>, SigningError> {
        let signature = match &self.pair {
            Pair::P256(pair) => pair.sign(&SystemRandom::new(), bytes),
            Pair::Ed25519(pair) => pair.try_sign(bytes),
        };
        let signature = signature.map_err(|_| SigningError::Crypto("signature"))?;
        Ok(signature.as_ref().to_vec())
    }
}
