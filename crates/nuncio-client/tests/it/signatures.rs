//! Which cards are believed (SIGN-08, SIGN-09, BR-108).

use nuncio_client::{CardCache, ConnectError, SignaturePolicy, discover};
use nuncio_protocol::signing::{Algorithm, Form, KeySet, SigningKey, Verdict, VerifyingKey};
use nuncio_protocol::{AgentCard, Timestamp, json};
use serde_json::{Value, json};

use crate::support::{Answer, Fake, Request, builder, egress};

fn card() -> Value {
    json!({"name": "n", "description": "d", "version": "1", "capabilities": {},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": ["t"]}],
        "supportedInterfaces": [{"url": "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]})
}

fn key() -> (SigningKey, KeySet) {
    let (key, _) = SigningKey::generate(Algorithm::Es256).unwrap();
    let set = KeySet::from(VerifyingKey::of(&key).unwrap());
    (key, set)
}

fn signed(mut card: Value, key: &SigningKey) -> Value {
    let signed = key.sign(&card.to_string()).unwrap();
    card["signatures"] = json!(signed.signatures);
    card
}

async fn serving(card: Value) -> Fake {
    Fake::start(move |_: &Request| Answer::json(200, &card)).await
}

/// Why a card is refused under each policy; `None` if it is not.
async fn refusals(card: Value, keys: &KeySet) -> [Option<String>; 3] {
    let fake = serving(card).await;
    let mut refusals = [None, None, None];
    let policies = [
        SignaturePolicy::Off,
        SignaturePolicy::Prefer,
        SignaturePolicy::Require,
    ];
    for (policy, refusal) in policies.into_iter().zip(&mut refusals) {
        let builder = builder().card_signatures(policy, keys.clone());
        *refusal = match builder.connect(&fake.base).await {
            Ok(_) => None,
            Err(error @ ConnectError::Signature(_)) => Some(error.to_string()),
            Err(error) => panic!("{error}"),
        };
    }
    refusals
}

#[tokio::test]
async fn the_policy_decides_about_each_verdict() {
    let (key, keys) = key();
    assert_eq!(
        refusals(signed(card(), &key), &keys).await,
        [None, None, None]
    );

    let [off, prefer, require] = refusals(card(), &keys).await;
    assert_eq!((off, prefer), (None, None));
    assert!(require.unwrap().ends_with("it is unsigned"));

    let mut moved = signed(card(), &key);
    moved["supportedInterfaces"][0]["url"] = "https://evil.example/".into();
    let (_, strangers) = self::key();
    for (card, keys, why) in [
        (moved, &keys, "does not fit this card and key"),
        (
            signed(card(), &key),
            &strangers,
            "no trusted key has this name",
        ),
        (
            signed(card(), &key),
            &KeySet::new(),
            "no trusted key has this name",
        ),
    ] {
        let [off, prefer, require] = refusals(card, keys).await;
        assert_eq!((off, prefer.is_some()), (None, true));
        assert_eq!(prefer, require);
        assert!(prefer.as_ref().unwrap().contains(why), "{prefer:?}");
    }
}

/// A card may say what it likes about where its keys are.
#[tokio::test]
async fn nobody_is_asked_for_keys() {
    let (_, keys) = key();
    let fake = Fake::start(move |request: &Request| {
        let header = json!({"alg": "ES256", "kid": "k", "jku": "http://127.0.0.1/keys"});
        let mut card = card();
        let protected = base64(&header.to_string());
        card["signatures"] = json!([{"protected": protected, "signature": "AA", "header": header}]);
        assert!(!request.target.contains("keys"));
        Answer::json(200, &card)
    })
    .await;
    let policy = SignaturePolicy::Require;
    let connected = builder().card_signatures(policy, keys).connect(&fake.base);
    assert!(matches!(connected.await, Err(ConnectError::Signature(_))));
    assert_eq!(fake.requests().len(), 1);
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
}

/// A cached card is judged again: its key may have expired since.
#[tokio::test]
async fn a_card_from_the_cache_is_judged_too() {
    let (key, keys) = key();
    let fake = serving(signed(card(), &key)).await;
    let cache = CardCache::new();
    let connect = |keys: &KeySet| {
        let builder = builder().cache(cache.clone());
        let builder = builder.card_signatures(SignaturePolicy::Require, keys.clone());
        builder.connect(&fake.base)
    };
    connect(&keys).await.unwrap();
    let last = Timestamp::from_unix_ms(0);
    let expired = KeySet::from(keys.keys()[0].clone().with_not_after(last));
    let error = connect(&expired).await.unwrap_err();
    assert!(error.to_string().contains("the key has expired"), "{error}");
    assert_eq!(fake.requests().len(), 1);
}

/// SIGN-10: the text as it came is what counts, members that we do not know included.
#[tokio::test]
async fn the_verdict_is_about_the_text_as_it_came() {
    let (key, keys) = key();
    let mut card = signed(card(), &key);
    card["x-new"] = json!({"a": 1});
    let fake = serving(card).await;
    let mut found = discover(&egress(), &fake.base).await.unwrap();
    assert_eq!(found.signature, None);
    let Verdict::Valid {
        form, uncovered, ..
    } = found.verify(&keys).clone()
    else {
        panic!("{:?}", found.signature);
    };
    assert_eq!((form, uncovered), (Form::Strict, vec!["x-new".to_owned()]));
    assert!(found.signature.is_some());
}

/// A signature of 1.0 says nothing about the addresses of 0.3, so they are not used.
#[tokio::test]
async fn what_is_not_covered_is_not_used() {
    let (key, keys) = key();
    let mut card = signed(card(), &key);
    card["url"] = "https://evil.example/".into();
    card["preferredTransport"] = "JSONRPC".into();
    let fake = serving(card).await;
    let interfaces = |policy| {
        let connected = builder().card_signatures(policy, keys.clone());
        let connected = connected.connect(&fake.base);
        async { connected.await.unwrap().card().supported_interfaces.len() }
    };
    assert_eq!(interfaces(SignaturePolicy::Off).await, 2);
    assert_eq!(interfaces(SignaturePolicy::Prefer).await, 1);
    assert_eq!(interfaces(SignaturePolicy::Require).await, 1);

    // Not even if there is nothing else that makes it a card.
    let bare = json!({"name": "n", "capabilities": {}});
    let mut bare = signed(bare, &key);
    bare["url"] = "https://evil.example/".into();
    let fake = serving(bare).await;
    let builder = builder().card_signatures(SignaturePolicy::Require, keys.clone());
    let error = builder.connect(&fake.base).await.unwrap_err();
    assert!(matches!(error, ConnectError::NoInterface { offered } if offered.is_empty()));
}

#[tokio::test]
async fn a_card_at_hand_is_judged_as_it_is_written() {
    let (key, keys) = key();
    let mut card: AgentCard = json::decode(card().to_string().as_bytes()).unwrap();
    let build = |card: &AgentCard| {
        let builder = builder().card_signatures(SignaturePolicy::Require, keys.clone());
        builder.build(card.clone())
    };
    assert!(matches!(build(&card), Err(ConnectError::Signature(_))));
    key.sign_card(&mut card).unwrap();
    card.supported_interfaces[0].url = "http://127.0.0.1:1/".to_owned();
    assert!(matches!(build(&card), Err(ConnectError::Signature(_))));
    key.sign_card(&mut card).unwrap();
    build(&card).unwrap();
}
