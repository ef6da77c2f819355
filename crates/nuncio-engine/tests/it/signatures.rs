//! Signatures and tokens of calls, by which a receiver can tell that they are ours.

use std::sync::Arc;

use nuncio_engine::DeliverySettings;
use nuncio_protocol::signing::{Algorithm, KeySet, SigningKey, VerifyingKey};
use nuncio_protocol::webhook::{SignedWebhook, WebhookSecret, WebhookSigner, WebhookVerifier};
use nuncio_protocol::{AgentService as _, AuthenticationInfo, Clock as _, Timestamp};
use nuncio_testkit::{Answer, Bed, Behaviour, Notified, Receiver, call};

use crate::delivery::{Delivering, has_ended, quick};
use crate::push::{config, with_webhook};

fn secret(byte: u8) -> WebhookSecret {
    WebhookSecret::parse(&WebhookSecret::text_of(&[byte; 32])).unwrap()
}

fn signing(signer: WebhookSigner, issuer: Option<&str>) -> DeliverySettings {
    let mut settings = quick();
    settings.signing.signer = signer;
    settings.signing.token_issuer = issuer.map(str::to_owned);
    settings
}

fn judge(verifier: &WebhookVerifier, call: &Notified, now: Timestamp) -> bool {
    let signed = SignedWebhook {
        id: call.header("webhook-id"),
        timestamp: call.header("webhook-timestamp"),
        signature: call.header("webhook-signature"),
    };
    verifier.verify(signed, &call.raw, now).is_ok()
}

/// S07, P6: each attempt has a fresh time and fresh signatures over the same id and body.
#[tokio::test]
async fn s07_every_attempt_is_signed_anew() {
    let key = Arc::new(SigningKey::generate(Algorithm::EdDsa).unwrap().0);
    let signer = WebhookSigner::new()
        .with_secret(secret(1))
        .with_secret(secret(2))
        .with_key(Arc::clone(&key))
        .unwrap();
    let bed = Bed::new(Behaviour::Echo);
    let (now, clock) = (bed.clock.now(), Arc::clone(&bed.clock));
    let receiver = Receiver::answering(move |n, _| {
        clock.advance(2_000);
        Answer::Status(if n % 2 == 0 { 500 } else { 200 })
    })
    .await;
    let on = Delivering::with(bed, signing(signer, None));
    on.send_with("m1", "w", &receiver.url("/")).await;
    let calls = receiver.until(has_ended).await;
    let verifiers = [
        WebhookVerifier::new().with_secret(secret(1)),
        WebhookVerifier::new().with_secret(secret(2)),
        WebhookVerifier::new().with_keys(KeySet::from(VerifyingKey::of(&key).unwrap())),
    ];
    for call in &calls {
        assert!(verifiers.iter().all(|verifier| judge(verifier, call, now)));
        let mut altered = call.clone();
        altered.raw[3] ^= 1;
        assert!(
            !verifiers
                .iter()
                .any(|verifier| judge(verifier, &altered, now))
        );
    }
    let [first, second] = [&calls[0], &calls[1]];
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    assert_eq!(first.raw, second.raw);
    let time = |call: &Notified| call.header("webhook-timestamp").parse::<i64>().unwrap();
    assert_eq!(time(second) - time(first), 2);
    assert_ne!(
        first.header("webhook-signature"),
        second.header("webhook-signature")
    );
    on.stop().await;
}

#[tokio::test]
async fn without_keys_there_is_no_signature() {
    let receiver = Receiver::start().await;
    let on = Delivering::new(Behaviour::Echo, quick());
    on.send_with("m1", "w", &receiver.url("/")).await;
    for call in receiver.until(has_ended).await {
        assert_eq!(call.header("webhook-signature"), "");
        assert_ne!(call.header("webhook-timestamp"), "");
    }
}

/// PUSH-14, PUSH-03: a token goes where `Bearer` was asked for without credentials, and nowhere else.
#[tokio::test]
async fn a_token_goes_to_those_who_ask_for_one() {
    let key = Arc::new(SigningKey::generate(Algorithm::EdDsa).unwrap().0);
    let signer = WebhookSigner::new().with_key(Arc::clone(&key)).unwrap();
    let issuer = "https://agents.example.com";
    for (scheme, credentials, expected) in [
        ("bearer", None, "Bearer ey"),
        ("Bearer", Some("mine"), "Bearer mine"),
        ("Basic", None, "Basic"),
        ("", None, ""),
    ] {
        let receiver = Receiver::start().await;
        let on = Delivering::new(Behaviour::Echo, signing(signer.clone(), Some(issuer)));
        let mut webhook = config(None, "w", &receiver.url("/hook?x=1"));
        if !scheme.is_empty() {
            let mut authentication = AuthenticationInfo::default();
            authentication.scheme = scheme.to_owned();
            authentication.credentials = credentials.map(str::to_owned);
            webhook.authentication = Some(authentication);
        }
        let request = with_webhook("m1", webhook);
        on.bed
            .agent
            .send_message(call("alice"), request)
            .await
            .unwrap();
        let calls = receiver.until(has_ended).await;
        let (call, now) = (&calls[0], on.bed.clock.now().unix_ms() / 1_000);
        let value = call.header("authorization");
        assert!(value.starts_with(expected), "{scheme}: {value}");
        if let Some(token) = value.strip_prefix("Bearer ey") {
            let claims = claims(&format!("ey{token}"), &key);
            assert_eq!(claims["iss"], issuer);
            assert_eq!(claims["aud"], receiver.url(""));
            assert_eq!(claims["iat"], now);
            assert_eq!(claims["exp"], now + 300);
            assert_eq!(claims["jti"], call.header("webhook-id"));
            assert_eq!(claims["taskId"], call.body["task"]["id"]);
        }
        on.stop().await;
    }
}

/// The claims of a token whose signature is good.
fn claims(token: &str, key: &SigningKey) -> serde_json::Value {
    use jsonwebtoken::jwk::Jwk;
    use jsonwebtoken::{DecodingKey, Validation, decode};
    let jwk: Jwk = serde_json::from_value(key.public_jwk()).unwrap();
    let mut validation = Validation::new(jsonwebtoken::Algorithm::EdDSA);
    validation.validate_aud = false;
    validation.validate_exp = false;
    let header = jsonwebtoken::decode_header(token).unwrap();
    assert_eq!(header.kid.as_deref(), Some(key.kid()));
    let key = DecodingKey::from_jwk(&jwk).unwrap();
    decode(token, &key, &validation).unwrap().claims
}
