//! What is signed is believed, and nothing that is a byte off.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{
    BadSecret, SignedWebhook, WebhookRefusal, WebhookSecret, WebhookSigner, WebhookVerifier,
};
use crate::Timestamp;
use crate::signing::{Algorithm, KeySet, SigningKey, VerifyingKey};

const BODY: &[u8] = br#"{"task":{"id":"t"}}"#;

fn secret(byte: u8) -> WebhookSecret {
    WebhookSecret::parse(&WebhookSecret::text_of(&[byte; 32])).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_unix_ms(seconds * 1_000 + 999)
}

fn key() -> Arc<SigningKey> {
    Arc::new(SigningKey::generate(Algorithm::EdDsa).unwrap().0)
}

fn call<'a>(id: &'a str, timestamp: &'a str, signature: &'a str) -> SignedWebhook<'a> {
    SignedWebhook {
        id,
        timestamp,
        signature,
    }
}

/// The example of the Standard Webhooks specification's reference libraries.
#[test]
fn the_known_signature_is_made() {
    let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signer = WebhookSigner::new().with_secret(secret);
    let made = signer.sign(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        at(1_614_265_330),
        br#"{"test": 2432232314}"#,
    );
    assert_eq!(
        made.unwrap(),
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    );
}

/// S07: each byte of id, time, body and signature counts, with either kind of key.
#[test]
fn an_altered_byte_is_refused() {
    let key = key();
    let keys = KeySet::from(VerifyingKey::of(&key).unwrap());
    let settings = [
        (
            WebhookSigner::new().with_secret(secret(1)),
            WebhookVerifier::new().with_secret(secret(1)),
        ),
        (
            WebhookSigner::new().with_key(key).unwrap(),
            WebhookVerifier::new().with_keys(keys),
        ),
    ];
    for (signer, verifier) in settings {
        let (id, time) = ("t.12", "1700000000");
        let now = at(1_700_000_000);
        let signature = signer.sign(id, now, BODY).unwrap();
        let judge = |id: &[u8], time: &[u8], body: &[u8], signature: &[u8]| {
            let texts = [id, time, signature].map(|t| std::str::from_utf8(t).ok());
            let [Some(id), Some(time), Some(signature)] = texts else {
                return Err(WebhookRefusal::NoMatch);
            };
            verifier.verify(call(id, time, signature), body, now)
        };
        let parts = [id.as_bytes(), time.as_bytes(), BODY, signature.as_bytes()];
        assert_eq!(judge(parts[0], parts[1], parts[2], parts[3]), Ok(()));
        for (which, part) in parts.iter().enumerate() {
            for place in 0..part.len() {
                let mut altered = parts.map(<[u8]>::to_vec);
                // Another digit where there is one, so that the time stays a time.
                altered[which][place] ^= 1;
                let judged = judge(&altered[0], &altered[1], &altered[2], &altered[3]);
                assert!(judged.is_err(), "byte {place} of part {which}: {judged:?}");
            }
        }
    }
}

/// S07: a replay after five minutes is refused, and so is a call from the future.
#[test]
fn the_time_is_judged() {
    let signer = WebhookSigner::new().with_secret(secret(1));
    let verifier = WebhookVerifier::new().with_secret(secret(1));
    let signature = signer.sign("m", at(1_000), BODY).unwrap();
    let judge =
        |verifier: &WebhookVerifier, now| verifier.verify(call("m", "1000", &signature), BODY, now);
    for now in [700, 1_000, 1_300] {
        assert_eq!(judge(&verifier, at(now)), Ok(()), "{now}");
    }
    assert_eq!(judge(&verifier, at(1_301)), Err(WebhookRefusal::TooOld));
    assert_eq!(judge(&verifier, at(699)), Err(WebhookRefusal::TooNew));
    let strict = verifier.clone().with_tolerance(Duration::from_secs(1));
    assert_eq!(judge(&strict, at(1_002)), Err(WebhookRefusal::TooOld));
    for time in ["", "soon", "1000.5", "0x3e8", "99999999999999999999"] {
        let judged = verifier.verify(call("m", time, &signature), BODY, at(1_000));
        assert_eq!(judged, Err(WebhookRefusal::Timestamp), "{time}");
    }
}

/// S07: while a secret or a key is changed, receivers of the old one and of the new one believe.
#[test]
fn keys_are_changed_without_a_gap() {
    let (old, new) = (key(), key());
    let keys = |key: &SigningKey| KeySet::from(VerifyingKey::of(key).unwrap());
    let both = WebhookSigner::new()
        .with_secret(secret(1))
        .with_secret(secret(2));
    let both = both.with_key(Arc::clone(&old)).unwrap();
    let both = both.with_key(Arc::clone(&new)).unwrap();
    let signature = both.sign("m", at(5), BODY).unwrap();
    assert_eq!(signature.split(' ').count(), 4);
    for verifier in [
        WebhookVerifier::new().with_secret(secret(1)),
        WebhookVerifier::new().with_secret(secret(2)),
        WebhookVerifier::new().with_keys(keys(&old)),
        WebhookVerifier::new().with_keys(keys(&new)),
    ] {
        assert_eq!(
            verifier.verify(call("m", "5", &signature), BODY, at(5)),
            Ok(())
        );
    }
    for stranger in [
        WebhookVerifier::new(),
        WebhookVerifier::new().with_secret(secret(3)),
        WebhookVerifier::new().with_keys(keys(&key())),
    ] {
        let judged = stranger.verify(call("m", "5", &signature), BODY, at(5));
        assert_eq!(judged, Err(WebhookRefusal::NoMatch));
    }
}

#[test]
fn secrets_and_keys_of_other_forms_are_refused() {
    let short = format!("whsec_{}", STANDARD.encode([1; 23]));
    let long = format!("whsec_{}", STANDARD.encode([1; 65]));
    for text in [
        "",
        "whsec_",
        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        &short,
        &long,
        "whsec_%",
    ] {
        assert_eq!(WebhookSecret::parse(text).unwrap_err(), BadSecret, "{text}");
    }
    let unpadded = WebhookSecret::text_of(&[1; 32]);
    assert!(WebhookSecret::parse(unpadded.trim_end_matches('=')).is_ok());
    let two = format!(
        "{}\n {}\n",
        WebhookSecret::text_of(&[1; 32]),
        WebhookSecret::text_of(&[2; 32])
    );
    assert_eq!(WebhookSecret::parse_all(&two).unwrap().len(), 2);
    let p256 = SigningKey::generate(Algorithm::Es256).unwrap().0;
    assert!(WebhookSigner::new().with_key(Arc::new(p256)).is_err());
    assert_eq!(format!("{:?}", secret(1)), "WebhookSecret");
}
