//! Signed cards: canonical forms against those of the official SDKs, and every way to be invalid.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nuncio_protocol::signing::{
    Algorithm, Form, KeySet, SigningError, SigningKey, Verdict, VerifyingKey, Why, canonical,
    normalized, verify,
};
use nuncio_protocol::{AgentCard, Timestamp, json};
use proptest::prelude::{ProptestConfig, any, proptest};
use serde_json::{Map, Value};

use crate::strategies;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/signing")
}

fn file(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn now() -> Timestamp {
    Timestamp::parse("2026-10-01T00:00:00Z").unwrap()
}

fn keys() -> KeySet {
    KeySet::parse(&file("keys.jwks.json")).unwrap()
}

fn form_of(card: &str, form: Form) -> String {
    String::from_utf8(canonical(card, form).unwrap()).unwrap()
}

/// A fresh key and the set that believes it.
fn key(algorithm: Algorithm) -> (SigningKey, KeySet) {
    let (key, _) = SigningKey::generate(algorithm).unwrap();
    let set = KeySet::from(VerifyingKey::of(&key).unwrap());
    (key, set)
}

/// The card with this signature as its only one.
fn with_signatures(card: &str, signatures: &[Value]) -> String {
    let mut card: Map<String, Value> = serde_json::from_str(card).unwrap();
    card.insert("signatures".into(), signatures.into());
    json::encode(&card)
}

fn signature(card: &str, key: &SigningKey) -> Value {
    serde_json::to_value(&key.sign(card).unwrap().signatures[0]).unwrap()
}

fn signed(card: &str, key: &SigningKey) -> String {
    with_signatures(card, &[signature(card, key)])
}

#[track_caller]
fn why_not(card: &str, keys: &KeySet) -> Vec<Why> {
    match verify(card, keys, now()) {
        Verdict::Invalid { refusals, .. } => refusals.into_iter().map(|r| r.why).collect(),
        verdict => panic!("{verdict:?}"),
    }
}

/// SIGN-13: the vector of §8.4.1.
#[test]
fn sign_13_the_specifications_own_example() {
    let card = r#"{"name":"Example Agent","description":"","capabilities":{"streaming":false,
        "pushNotifications":false,"extensions":[]},"skills":[]}"#;
    assert_eq!(
        form_of(card, Form::Strict),
        r#"{"capabilities":{"pushNotifications":false,"streaming":false},"description":"","name":"Example Agent","skills":[]}"#
    );
}

/// BR-108, SIGN-03, SIGN-04: one rule a line.
#[test]
fn br_108_what_stays_and_what_goes() {
    for (card, strict, sdk) in [
        // REQUIRED members stay.
        (
            r#"{"name":"","version":""}"#,
            r#"{"name":"","version":""}"#,
            "{}",
        ),
        (
            r#"{"skills":[{"id":"","tags":[]}]}"#,
            r#"{"skills":[{"id":"","tags":[]}]}"#,
            "{}",
        ),
        // Optional members stay if they are set, and are absent if not.
        (
            r#"{"iconUrl":"","documentationUrl":null}"#,
            r#"{"iconUrl":""}"#,
            "{}",
        ),
        (
            r#"{"capabilities":{"streaming":false,"extendedAgentCard":null}}"#,
            r#"{"capabilities":{"streaming":false}}"#,
            r#"{"capabilities":{"streaming":false}}"#,
        ),
        // Others go with their defaults, also inside.
        (
            r#"{"securityRequirements":[],"securitySchemes":{},"capabilities":{"extensions":[]}}"#,
            r#"{"capabilities":{}}"#,
            "{}",
        ),
        (
            r#"{"capabilities":{"extensions":[{"uri":"","description":"","required":false}]}}"#,
            r#"{"capabilities":{"extensions":[{}]}}"#,
            "{}",
        ),
        (
            r#"{"supportedInterfaces":[{"url":"u","tenant":""}]}"#,
            r#"{"supportedInterfaces":[{"url":"u"}]}"#,
            r#"{"supportedInterfaces":[{"url":"u"}]}"#,
        ),
        // Single messages and the members of a oneof stay, empty or not; so do map entries.
        (r#"{"provider":{}}"#, r#"{"provider":{}}"#, "{}"),
        (
            r#"{"securitySchemes":{"m":{"mtlsSecurityScheme":{"description":""}}}}"#,
            r#"{"securitySchemes":{"m":{"mtlsSecurityScheme":{}}}}"#,
            "{}",
        ),
        (
            r#"{"securitySchemes":{"o":{"oauth2SecurityScheme":{"flows":{"implicit":{"scopes":{}}}}}}}"#,
            r#"{"securitySchemes":{"o":{"oauth2SecurityScheme":{"flows":{"implicit":{}}}}}}"#,
            "{}",
        ),
        (
            r#"{"securitySchemes":{"o":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"t","scopes":{}}}}}}}"#,
            r#"{"securitySchemes":{"o":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"scopes":{},"tokenUrl":"t"}}}}}}"#,
            r#"{"securitySchemes":{"o":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"t"}}}}}}"#,
        ),
        (
            r#"{"securityRequirements":[{"schemes":{"oauth":{"list":[]}}}]}"#,
            r#"{"securityRequirements":[{"schemes":{"oauth":{}}}]}"#,
            "{}",
        ),
        // A Struct is somebody else's.
        (
            r#"{"capabilities":{"extensions":[{"params":{"signatures":null,"b":1.0,"a":[{},""]}}]}}"#,
            r#"{"capabilities":{"extensions":[{"params":{"a":[{},""],"b":1,"signatures":null}}]}}"#,
            r#"{"capabilities":{"extensions":[{"params":{"b":1}}]}}"#,
        ),
        // Only the top-level `signatures` goes; the proto's spelling is another of the same name.
        (
            r#"{"icon_url":"x","signatures":[{}],"default_input_modes":["a"]}"#,
            r#"{"defaultInputModes":["a"],"iconUrl":"x"}"#,
            r#"{"defaultInputModes":["a"],"iconUrl":"x"}"#,
        ),
        // What the protocol does not know is in the whole form only.
        (
            r#"{"name":"n","x-new":{"a":[]}}"#,
            r#"{"name":"n"}"#,
            r#"{"name":"n"}"#,
        ),
    ] {
        assert_eq!(form_of(card, Form::Strict), strict, "{card}");
        assert_eq!(form_of(card, Form::Sdk), sdk, "{card}");
    }
    assert_eq!(
        form_of(
            r#"{"x-new":{"b":[],"a":1e2},"signatures":[],"name":null}"#,
            Form::Whole
        ),
        r#"{"name":null,"x-new":{"a":100,"b":[]}}"#
    );
}

/// SIGN-05: RFC 8785 itself, by its own examples of numbers and of sorting.
#[test]
fn sign_05_numbers_texts_and_order_are_ecmascripts() {
    let of = |params: &str| {
        let card = format!(r#"{{"capabilities":{{"extensions":[{{"params":{params}}}]}}}}"#);
        let whole = form_of(&card, Form::Strict);
        let start = whole.find("\"params\":").unwrap() + "\"params\":".len();
        whole[start..whole.len() - "}]}}".len()].to_owned()
    };
    assert_eq!(
        of(
            r#"{"n":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001,-0.0,1.0,1e21,1e20,9007199254740993,1e-7]}"#
        ),
        r#"{"n":[333333333.3333333,1e+30,4.5,0.002,1e-27,0,1,1e+21,100000000000000000000,9007199254740992,1e-7]}"#
    );
    assert_eq!(
        of(r#"{"s":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\u007f\u2028"}"#),
        "{\"s\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\u{7f}\u{2028}\"}"
    );
    assert_eq!(
        of(
            r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7,"e\u0301":8,"\u00e9":9}"#
        ),
        "{\"\\r\":2,\"1\":4,\"e\u{301}\":8,\"\u{80}\":6,\"é\":9,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}",
    );
}

/// SIGN-05 and what cannot mean one thing only.
#[test]
fn ambiguous_texts_are_neither_signed_nor_verified() {
    let (key, keys) = key(Algorithm::EdDsa);
    for card in [
        r#"{"name":"a","name":"b"}"#,
        r#"{"name":"a","\u006eame":"b"}"#,
        r#"{"capabilities":{"extensions":[{"params":{"a":1,"a":1}}]}}"#,
        r#"{"name":"\ud83d"}"#,
        r#"{"name":"\ude00\ud83d"}"#,
        r#"{"capabilities":{"extensions":[{"params":{"a":1e400}}]}}"#,
        "[]",
        "null",
        "",
        "{",
    ] {
        for form in Form::ALL {
            let error = canonical(card, form).unwrap_err();
            assert!(
                matches!(error, SigningError::Syntax(_)),
                "{card}: {error:?}"
            );
        }
        assert!(key.sign(card).is_err(), "{card}");
        let why = why_not(card, &keys);
        assert!(matches!(&why[..], [Why::Malformed(_)]), "{card}: {why:?}");
    }
    for (card, path) in [
        (r#"{"name":5}"#, "name"),
        (r#"{"iconUrl":"a","icon_url":"b"}"#, "iconUrl"),
        (r#"{"skills":[{},{"tags":["a",1]}]}"#, "skills[1].tags"),
        (r#"{"capabilities":[]}"#, "capabilities"),
        (
            r#"{"capabilities":{"streaming":"yes"}}"#,
            "capabilities.streaming",
        ),
        (
            r#"{"securitySchemes":{"a":{"mtlsSecurityScheme":{},"apiKeySecurityScheme":{}}}}"#,
            "securitySchemes.a",
        ),
    ] {
        let Err(SigningError::Card(error)) = canonical(card, Form::Strict) else {
            panic!("{card}");
        };
        assert_eq!(error.path, path);
        assert!(canonical(card, Form::Whole).is_ok(), "{card}");
    }
}

const SDKS: [(&str, Form); 3] = [
    ("js-1.3.0", Form::Sdk),
    ("python-1.3.0", Form::Sdk),
    ("python-1.0.3", Form::OldPython),
];

/// BR-108, TRAP-22.
#[test]
fn br_108_the_canonical_bytes_are_those_of_the_sdks() {
    for (sdk, form) in SDKS {
        for card in ["plain", "rich"] {
            let theirs = file(&format!("{sdk}.{card}.canonical"));
            assert_eq!(
                form_of(&file(&format!("{card}.json")), form),
                theirs,
                "{sdk} {card}"
            );
        }
    }
    let plain = Form::ALL.map(|form| form_of(&file("plain.json"), form));
    assert!(plain.iter().all(|other| *other == plain[0]));
    let rich = Form::ALL.map(|form| form_of(&file("rich.json"), form));
    assert!((0..4).all(|a| (0..a).all(|b| rich[a] != rich[b])));
}

/// BR-108, SIGN-10, SIGN-11.
#[test]
fn br_108_what_the_sdks_have_signed_is_valid_in_their_form() {
    for (sdk, form) in SDKS {
        let algorithms = [
            (Algorithm::Es256, "ec-1", "ec.pem"),
            (Algorithm::EdDsa, "ed-1", "ed.pem"),
            (Algorithm::Rs256, "rsa-1", "rsa.pem"),
            (Algorithm::Ps256, "rsa-1", "rsa.pem"),
        ];
        for (algorithm, name, pem) in algorithms {
            let card = file(&format!("{sdk}.rich.{algorithm}.json"));
            for keys in [keys(), KeySet::parse(&file(pem)).unwrap()] {
                match verify(&card, &keys, now()) {
                    Verdict::Valid {
                        kid,
                        algorithm: told,
                        form: fits,
                        uncovered,
                        ..
                    } => {
                        assert_eq!((kid.as_str(), told, fits), (name, algorithm, form));
                        for path in [
                            "provider",
                            "securitySchemes.mtls",
                            "securityRequirements[0]",
                            "securityRequirements[1].schemes.device",
                            "capabilities.extensions[0].params.nothing",
                        ] {
                            assert!(uncovered.iter().any(|u| u == path), "{path}: {uncovered:?}");
                        }
                    }
                    verdict => panic!("{sdk} {algorithm}: {verdict:?}"),
                }
            }
        }
        let card = file(&format!("{sdk}.plain.ES256.json"));
        let verdict = verify(&card, &keys(), now());
        assert!(matches!(
            verdict,
            Verdict::Valid { form: Form::Strict, uncovered, .. } if uncovered.is_empty()
        ));
    }
}

/// Every value inside, with its path.
fn places(value: &Value, path: String, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(inner, format!("{path}/{key}"), out);
            }
        }
        Value::Array(list) => {
            for (index, inner) in list.iter().enumerate() {
                places(inner, format!("{path}/{index}"), out);
            }
        }
        _ => {}
    }
    out.push(path);
}

/// BR-108: no member can be changed or removed, no entry added, by one byte or more.
#[test]
fn br_108_any_change_of_any_member_is_noticed() {
    let mut cards: Vec<(String, KeySet)> = SDKS
        .iter()
        .map(|(sdk, _)| (file(&format!("{sdk}.plain.ES256.json")), keys()))
        .collect();
    for algorithm in [Algorithm::Es256, Algorithm::EdDsa] {
        let (key, set) = key(algorithm);
        cards.push((signed(&file("plain.json"), &key), set.clone()));
        cards.push((signed(&file("rich.json"), &key), set));
    }
    for (text, keys) in cards {
        let card: Value = serde_json::from_str(&text).unwrap();
        assert!(verify(&text, &keys, now()).is_valid());
        let mut all = Vec::new();
        for (name, value) in card.as_object().unwrap() {
            if name != "signatures" {
                places(value, format!("/{name}"), &mut all);
            }
        }
        assert!(all.len() > 60, "{}", all.len());
        for place in all {
            let mut changed = card.clone();
            let value = changed.pointer_mut(&place).unwrap();
            match value {
                Value::String(text) => text.push('x'),
                Value::Bool(set) => *set = !*set,
                Value::Number(number) => *value = (number.as_f64().unwrap() * 2.0 + 1.0).into(),
                Value::Array(list) => list.push("x".into()),
                Value::Object(map) => {
                    let some = map.values().next().cloned();
                    map.insert("added".into(), some.unwrap_or_else(|| "x".into()));
                }
                Value::Null => *value = 1.into(),
            }
            // An unknown member is not covered, and that is said instead.
            let verdict = verify(&changed.to_string(), &keys, now());
            let told = matches!(&verdict, Verdict::Valid { uncovered, .. } if uncovered.len() == 1);
            assert!(!verdict.is_valid() || told, "{place} changed: {verdict:?}");

            let mut removed = card.clone();
            let (outer, key) = place.rsplit_once('/').unwrap();
            match removed.pointer_mut(outer).unwrap() {
                Value::Object(map) => {
                    map.remove(&key.replace("~1", "/").replace("~0", "~"));
                }
                Value::Array(list) => {
                    list.remove(key.parse().unwrap());
                }
                _ => unreachable!(),
            }
            let same = canonical(&removed.to_string(), Form::Strict)
                == canonical(&card.to_string(), Form::Strict);
            let verdict = verify(&removed.to_string(), &keys, now());
            assert_eq!(verdict.is_valid(), same, "{place} removed: {verdict:?}");
        }
    }
}

/// BR-108: not one byte of the text between quotes can change.
#[test]
fn br_108_any_byte_of_the_signature_counts() {
    let (key, keys) = key(Algorithm::Es256);
    let card = signed(r#"{"name":"n"}"#, &key);
    let card: Value = serde_json::from_str(&card).unwrap();
    for member in ["protected", "signature"] {
        let text = card["signatures"][0][member].as_str().unwrap().to_owned();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let mut changed = card.clone();
            changed["signatures"][0][member] = String::from_utf8(bytes).unwrap().into();
            assert!(
                !verify(&changed.to_string(), &keys, now()).is_valid(),
                "{member} {at}"
            );
        }
    }
}

/// A signature entry with a header of one's own, signed rightly otherwise.
fn forged(header: &Value, signature: &str) -> Value {
    let protected = URL_SAFE_NO_PAD.encode(header.to_string());
    serde_json::json!({"protected": protected, "signature": signature})
}

/// SIGN-06, SIGN-07, SIGN-08: what a header may not bring about.
#[test]
fn headers_are_not_believed_further_than_they_may() {
    use serde_json::json;
    let (key, keys) = key(Algorithm::Es256);
    let card = r#"{"name":"n"}"#;
    let good = signature(card, &key);
    let bytes = good["signature"].as_str().unwrap();
    let kid = key.kid();
    let one = |entry: Value| {
        let mut why = why_not(&with_signatures(card, &[entry]), &keys);
        assert_eq!(why.len(), 1);
        why.remove(0)
    };
    for alg in [
        "none", "None", "HS256", "HS512", "ES384", "ES256K", "RS1", "es256", "",
    ] {
        let entry = forged(&json!({"alg": alg, "kid": kid}), bytes);
        assert_eq!(one(entry), Why::Algorithm(alg.to_owned()));
        let entry = forged(&json!({"alg": alg, "kid": kid}), "");
        assert_eq!(one(entry), Why::Algorithm(alg.to_owned()));
    }
    for alg in ["RS256", "PS256", "EdDSA"] {
        let entry = forged(&json!({"alg": alg, "kid": kid}), bytes);
        assert_eq!(one(entry), Why::OtherAlgorithm);
    }
    let jwk = key.public_jwk();
    let own =
        json!({"alg": "ES256", "kid": "mine", "jku": "https://evil.example/keys", "jwk": jwk});
    assert_eq!(one(forged(&own, bytes)), Why::UnknownKey);
    for header in [
        json!({"alg": "ES256"}),
        json!({"kid": kid}),
        json!({"alg": "ES256", "kid": 1}),
        json!({"alg": ["ES256"], "kid": kid}),
        json!({"alg": "ES256", "kid": kid, "crit": ["b64"], "b64": false}),
        json!([]),
    ] {
        assert!(
            matches!(one(forged(&header, bytes)), Why::Malformed(_)),
            "{header}"
        );
    }
    for entry in [
        json!({}),
        json!("x"),
        json!(null),
        json!({"protected": "!", "signature": "AA"}),
        json!({"protected": good["protected"], "signature": "="}),
        json!({"protected": good["protected"], "signature": format!("{bytes}==")}),
        json!({"protected": good["protected"]}),
        json!({"protected": 1, "signature": bytes}),
    ] {
        assert!(matches!(one(entry.clone()), Why::Malformed(_)), "{entry}");
    }
    let twice = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"none","alg":"ES256","kid":"{kid}"}}"#));
    assert!(matches!(
        one(json!({"protected": twice, "signature": bytes})),
        Why::Malformed(_)
    ));

    // The unprotected header has no say, in either direction.
    let mut with_header = good.clone();
    with_header["header"] = json!({"alg": "none", "kid": "other", "crit": ["x"]});
    assert!(verify(&with_signatures(card, &[with_header]), &keys, now()).is_valid());
    let mut helped = forged(&json!({"typ": "JOSE"}), bytes);
    helped["header"] = json!({"alg": "ES256", "kid": kid});
    assert!(matches!(one(helped), Why::Malformed(_)));

    // A DER signature is none (SIGN-11).
    assert_eq!(URL_SAFE_NO_PAD.decode(bytes).unwrap().len(), 64);
    let der = URL_SAFE_NO_PAD.encode([0x30, 0x06, 0x02, 0x01, 0x01, 0x02, 0x01, 0x01]);
    assert_eq!(
        one(json!({"protected": good["protected"], "signature": der})),
        Why::Mismatch
    );
}

/// SIGN-07: the header is used as it came, blanks and order included.
#[test]
fn a_header_in_any_spelling_is_verified_as_it_came() {
    let card = r#"{"name":"n"}"#;
    let text = file("js-1.3.0.plain.ES256.json");
    let theirs: Value = serde_json::from_str(&text).unwrap();
    let protected = theirs["signatures"][0]["protected"].as_str().unwrap();
    let header = String::from_utf8(URL_SAFE_NO_PAD.decode(protected).unwrap()).unwrap();
    let spaced = URL_SAFE_NO_PAD.encode(header.replace(',', ", "));
    let changed = text.replace(protected, &spaced);
    assert_eq!(why_not(&changed, &keys()), [Why::Mismatch]);
    assert_eq!(verify(card, &keys(), now()), Verdict::Unsigned);
}

/// SIGN-09.
#[test]
fn one_good_signature_among_several_is_enough() {
    let (old, old_keys) = key(Algorithm::Es256);
    let (new, new_keys) = key(Algorithm::EdDsa);
    let mut card: AgentCard = json::decode(file("plain.json").as_bytes()).unwrap();
    for key in [&old, &new, &old] {
        assert_eq!(key.sign_card(&mut card).unwrap(), Vec::<String>::new());
    }
    assert_eq!(card.signatures.len(), 2, "one for each name");
    let text = json::encode(&card);
    for (key, keys) in [(&old, &old_keys), (&new, &new_keys)] {
        let verdict = verify(&text, keys, now());
        assert!(matches!(verdict, Verdict::Valid { kid, .. } if kid == key.kid()));
    }
    let (_, strangers) = self::key(Algorithm::Es256);
    assert_eq!(
        why_not(&text, &strangers),
        [Why::UnknownKey, Why::UnknownKey]
    );
    assert_eq!(
        why_not(&text, &KeySet::new()),
        [Why::UnknownKey, Why::UnknownKey]
    );

    for unsigned in [
        r#"{"name":"n"}"#,
        r#"{"signatures":[]}"#,
        r#"{"signatures":null}"#,
    ] {
        assert_eq!(verify(unsigned, &new_keys, now()), Verdict::Unsigned);
    }
    assert!(matches!(
        &why_not(r#"{"signatures":{}}"#, &new_keys)[..],
        [Why::Malformed(_)]
    ));
}

/// A card cannot make us compute without end.
#[test]
fn only_so_many_signatures_are_looked_at() {
    let (key, keys) = key(Algorithm::EdDsa);
    let card = r#"{"name":"n"}"#;
    let good = signature(card, &key);
    let mut many = vec![Value::Null; 16];
    many.push(good.clone());
    let why = why_not(&with_signatures(card, &many), &keys);
    assert_eq!((why.len(), why.last()), (17, Some(&Why::TooMany)));
    many[15] = good;
    assert!(verify(&with_signatures(card, &many), &keys, now()).is_valid());
}

/// SIGN-08.
#[test]
fn expired_and_revoked_keys_fail() {
    let (key, keys) = key(Algorithm::EdDsa);
    let card = signed(r#"{"name":"n"}"#, &key);
    let public = keys.keys()[0].clone();
    let earlier = Timestamp::from_unix_ms(now().unix_ms() - 1);
    let expired = KeySet::from(public.clone().with_not_after(earlier));
    assert_eq!(why_not(&card, &expired), [Why::Expired]);
    let until_now = KeySet::from(public.clone().with_not_after(now()));
    assert!(verify(&card, &until_now, now()).is_valid());
    let mut revoked = keys.clone();
    revoked.revoke(key.kid());
    assert_eq!(why_not(&card, &revoked), [Why::Revoked]);
    // A revocation counts for keys without a name, too.
    let mut nameless = KeySet::parse(&key.public_pem().unwrap()).unwrap();
    assert!(verify(&card, &nameless, now()).is_valid());
    nameless.extend(revoked);
    assert_eq!(why_not(&card, &nameless), [Why::Revoked]);
    // Of two keys with one name, the good one counts.
    let mut both = expired;
    both.add(public);
    assert!(verify(&card, &both, now()).is_valid());
}

/// SIGN-10: what a newer signer has added is covered by the whole form, and said to be uncovered
/// by the others.
#[test]
fn sign_10_unknown_members_are_covered_or_named() {
    let (key, keys) = key(Algorithm::Es256);
    let plain = signed(&file("plain.json"), &key);
    let mut more: Value = serde_json::from_str(&plain).unwrap();
    more["x-new"] = true.into();
    more["skills"][0]["price"] = 5.into();
    let Verdict::Valid {
        form, uncovered, ..
    } = verify(&more.to_string(), &keys, now())
    else {
        panic!("the known members are signed");
    };
    assert_eq!(form, Form::Strict);
    assert_eq!(uncovered, ["skills[0].price", "x-new"]);
    let told = key.sign(&more.to_string()).unwrap().warnings;
    assert!(
        told.iter().any(|w| w.starts_with("x-new is no member")),
        "{told:?}"
    );
}

#[test]
fn warnings_name_what_others_will_not_verify() {
    let (key, _) = key(Algorithm::Es256);
    assert_eq!(
        key.sign(&file("plain.json")).unwrap().warnings,
        Vec::<String>::new()
    );
    let warnings = key.sign(&file("rich.json")).unwrap().warnings;
    for start in [
        "description is there and empty",
        "documentationUrl is there and empty",
        "defaultInputModes is there and empty",
        "defaultOutputModes[0] is there and empty",
        "securitySchemes.mtls.mtlsSecurityScheme is there and empty",
        "capabilities.extensions[0].params.nothing is there and empty",
        "name has characters outside of ASCII",
        "capabilities.extensions[0].params.one is a number",
        "the name capabilities.extensions[0].params.€ has characters outside",
    ] {
        assert!(
            warnings.iter().any(|w| w.starts_with(start)),
            "{start}: {warnings:#?}"
        );
    }
}

/// TRAP-22: a card for callers with a key has no form that the specification and the SDKs share.
#[test]
fn a_key_can_sign_for_the_sdks_too() {
    let card = r#"{"name":"n","securityRequirements":[{"schemes":{"key":{}}}]}"#;
    let (key, keys) = key(Algorithm::Es256);
    assert_eq!(key.sign(card).unwrap().warnings.len(), 1);
    let key = key.for_sdks_too();
    let both = key.sign(card).unwrap();
    assert_eq!((both.signatures.len(), both.warnings.len()), (2, 0));
    for (entry, expected) in both.signatures.iter().zip([Form::Strict, Form::Sdk]) {
        let entry = serde_json::to_value(entry).unwrap();
        let verdict = verify(&with_signatures(card, &[entry]), &keys, now());
        assert!(matches!(verdict, Verdict::Valid { form, .. } if form == expected));
    }
    assert_eq!(key.sign(&file("plain.json")).unwrap().signatures.len(), 1);
    let mut card: AgentCard = json::decode(card.as_bytes()).unwrap();
    key.sign_card(&mut card).unwrap();
    key.sign_card(&mut card).unwrap();
    assert_eq!(card.signatures.len(), 2);
}

#[test]
fn keys_are_read_in_each_spelling_and_no_other() {
    for algorithm in [Algorithm::Es256, Algorithm::EdDsa] {
        let (key, pem) = SigningKey::generate(algorithm).unwrap();
        let again = SigningKey::parse(&pem).unwrap();
        assert_eq!((again.kid(), again.algorithm()), (key.kid(), algorithm));
        assert_eq!(again.public_jwk(), key.public_jwk());
        let card = signed(r#"{"name":"n"}"#, &again);
        let jwks = serde_json::json!({"keys": [key.public_jwk()]}).to_string();
        for public in [
            key.public_pem().unwrap(),
            key.public_jwk().to_string(),
            jwks,
        ] {
            let keys = KeySet::parse(&public).unwrap();
            assert!(verify(&card, &keys, now()).is_valid(), "{public}");
        }
        for secret in [
            pem.as_str(),
            "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----",
        ] {
            let error = KeySet::parse(secret).unwrap_err().to_string();
            assert!(error.contains("private"), "{error}");
        }
        assert!(SigningKey::parse(&key.public_pem().unwrap()).is_err());
        assert!(!format!("{key:?}").contains(&pem[40..60]));
    }
    assert!(SigningKey::generate(Algorithm::Rs256).is_err());
    for bad in [
        "",
        "hello",
        "-----BEGIN PUBLIC KEY-----\nAAAA",
        "-----BEGIN PUBLIC KEY-----\n!!!\n-----END PUBLIC KEY-----",
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
        "{}",
        r#"{"keys":[]}"#,
        r#"{"keys":5}"#,
        r#"{"keys":[5]}"#,
        r#"{"kty":"oct","k":"AAAA"}"#,
        r#"{"kty":"RSA","n":"","e":""}"#,
        r#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#,
        r#"{"kty":"EC","crv":"P-384","x":"AA","y":"AA"}"#,
        r#"{"kty":"OKP","crv":"X25519","x":"AA"}"#,
        r#"{"kty":"OKP","crv":"Ed25519","x":"AA"}"#,
    ] {
        assert!(KeySet::parse(bad).is_err(), "{bad}");
        assert!(SigningKey::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn short_rsa_keys_are_refused() {
    for (bytes, good) in [(128, false), (255, false), (256, true)] {
        let modulus = URL_SAFE_NO_PAD.encode(vec![0xc3; bytes]);
        let jwk = serde_json::json!({"kty": "RSA", "n": modulus, "e": "AQAB"});
        let read = KeySet::parse(&jwk.to_string());
        assert_eq!(read.is_ok(), good, "{bytes}: {read:?}");
    }
}

/// RFC 7515 A.3 has a P-256 key, RFC 8037 A.2 an Ed25519 key with its thumbprint.
#[test]
fn keys_of_the_rfcs_are_read() {
    let p256 = r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}"#;
    assert_eq!(
        SigningKey::parse(p256).unwrap().algorithm(),
        Algorithm::Es256
    );
    let ed25519 = r#"{"kty":"OKP","crv":"Ed25519","d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A",
        "x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    let key = SigningKey::parse(ed25519).unwrap();
    assert_eq!(key.kid(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    assert_eq!(key.with_kid("mine").public_jwk()["kid"], "mine");
    let mismatched = ed25519.replace("11qY", "11qZ");
    assert!(SigningKey::parse(&mismatched).is_err());
}

/// A JWK is kept to what it says it is for.
#[test]
fn a_jwk_limits_its_use() {
    let (key, _) = key(Algorithm::Es256);
    let card = signed(r#"{"name":"n"}"#, &key);
    let with = |name: &str, value: Value| {
        let mut jwk = key.public_jwk();
        jwk[name] = value;
        KeySet::parse(&jwk.to_string())
    };
    assert!(with("alg", "RS256".into()).is_err());
    assert!(with("alg", "HS256".into()).is_err());
    assert!(with("use", "enc".into()).is_err());
    assert!(with("key_ops", serde_json::json!(["sign"])).is_err());
    assert!(
        with("d", "AAAA".into())
            .unwrap_err()
            .to_string()
            .contains("private")
    );
    let good = with("key_ops", serde_json::json!(["verify"])).unwrap();
    assert!(verify(&card, &good, now()).is_valid());
    let other = with("kid", "other".into()).unwrap();
    assert_eq!(why_not(&card, &other), [Why::UnknownKey]);
    let rsa: Value = serde_json::from_str(&file("keys.jwks.json")).unwrap();
    let mut only = rsa["keys"][2].clone();
    only["alg"] = "PS256".into();
    let only = KeySet::parse(&only.to_string()).unwrap();
    assert!(verify(&file("js-1.3.0.rich.PS256.json"), &only, now()).is_valid());
    assert_eq!(
        why_not(&file("js-1.3.0.rich.RS256.json"), &only),
        [Why::OtherAlgorithm]
    );
}

/// Writes a value with its members in another order and blanks between all tokens.
fn scrambled(value: &Value, seed: u64, out: &mut String) {
    let blank = ["", " ", "\n\t", "\r\n  "][(seed % 4) as usize];
    match value {
        Value::Object(map) => {
            let mut entries: BTreeMap<u64, (&String, &Value)> = BTreeMap::new();
            for (index, entry) in map.iter().enumerate() {
                let order = seed.wrapping_mul(index as u64 + 7).rotate_left(17) ^ index as u64;
                entries.insert(order, entry);
            }
            // Two of the same order would lose one.
            let all: Vec<_> = if entries.len() == map.len() {
                entries.into_values().collect()
            } else {
                map.iter().rev().collect()
            };
            out.push('{');
            for (index, (key, inner)) in all.into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(blank);
                out.push_str(&serde_json::to_string(key).unwrap());
                out.push_str(blank);
                out.push(':');
                out.push_str(blank);
                scrambled(inner, seed.rotate_left(5), out);
            }
            out.push_str(blank);
            out.push('}');
        }
        Value::Array(list) => {
            out.push('[');
            for (index, inner) in list.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                out.push_str(blank);
                scrambled(inner, seed.rotate_left(3), out);
            }
            out.push_str(blank);
            out.push(']');
        }
        _ => out.push_str(&value.to_string()),
    }
}

/// A key that is made once: making one takes longer than signing.
fn one_key() -> &'static (SigningKey, KeySet) {
    static KEY: std::sync::OnceLock<(SigningKey, KeySet)> = std::sync::OnceLock::new();
    KEY.get_or_init(|| key(Algorithm::EdDsa))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_and_blanks_do_not_count(card in strategies::card(), seed in any::<u64>()) {
        let text = json::encode(&card);
        let mut other = String::new();
        scrambled(&serde_json::from_str(&text).unwrap(), seed, &mut other);
        for form in Form::ALL {
            assert_eq!(canonical(&text, form), canonical(&other, form), "{text}\n{other}");
        }
        assert_eq!(normalized(&text), normalized(&other));
    }

    #[test]
    fn what_is_signed_is_valid(card in strategies::card()) {
        let (key, keys) = one_key();
        let mut card = card;
        card.signatures.clear();
        key.sign_card(&mut card).unwrap();
        let text = json::encode(&card);
        let verdict = verify(&text, keys, now());
        assert!(matches!(&verdict, Verdict::Valid { form: Form::Strict, uncovered, .. } if uncovered.is_empty()), "{text} {verdict:?}");
        // A canonical form is a card whose canonical form it is.
        let strict = form_of(&text, Form::Strict);
        assert_eq!(form_of(&strict, Form::Strict), strict);
    }

    #[test]
    fn no_json_panics(
        value in strategies::json(),
        name in proptest::sample::select(vec!["name", "skills", "capabilities", "securitySchemes", "signatures", "x"]),
    ) {
        let (key, keys) = one_key();
        let mut card: Value = serde_json::from_str(&file("plain.json")).unwrap();
        card[name] = value.clone();
        for text in [value.to_string(), card.to_string()] {
            for form in Form::ALL {
                let _ = canonical(&text, form);
            }
            let _ = verify(&text, keys, now());
            let _ = key.sign(&text);
            let _ = KeySet::parse(&text);
            let _ = SigningKey::parse(&text);
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,64}", der in proptest::collection::vec(any::<u8>(), 0..64)) {
        let (_, keys) = one_key();
        let _ = canonical(&text, Form::OldPython);
        let _ = verify(&text, keys, now());
        let der = base64::engine::general_purpose::STANDARD.encode(der);
        for label in ["PUBLIC KEY", "PRIVATE KEY"] {
            let pem = format!("-----BEGIN {label}-----\n{der}\n-----END {label}-----");
            let _ = KeySet::parse(&pem);
            let _ = SigningKey::parse(&pem);
        }
    }
}
