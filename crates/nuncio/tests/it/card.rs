//! Cards in one's hands: making keys, signing, verifying, judging and comparing.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fake::Fake;
use crate::support::{Said, Server, nuncio, run};

/// A folder with a card and a pair of keys, where commands run.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        desk.write("card.json", CARD);
        desk.run(&["keys", "create", "--card", "key.pem"]).exits(0);
        desk
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, arguments: &[&str]) -> Said {
        let mut command = nuncio(self.path());
        command.args(arguments);
        run(command, "")
    }

    fn verify(&self, card: &str, more: &[&str]) -> Said {
        let words = ["card", "verify", card, "--keys", "key.jwks.json"];
        self.run(&[&words[..], more].concat())
    }
}

const CARD: &str = r#"{
  "version": "1.0",
  "name": "Signed",
  "description": "Has numbers: no",
  "supportedInterfaces": [ {"url": "https://h.example/a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"} ],
  "capabilities": {"streaming": false},
  "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
  "skills": [{"id": "s", "name": "S", "description": "d", "tags": ["t"]}]
}
"#;

#[test]
fn a_card_that_was_signed_verifies_and_a_changed_one_does_not() {
    let desk = Desk::new();
    for algorithm in ["ES256", "EdDSA"] {
        let words = [
            "keys",
            "create",
            "--card",
            &format!("{algorithm}.pem"),
            "--algorithm",
        ];
        let made = desk.run(&[&words[..], &[algorithm]].concat()).exits(0);
        assert_eq!(made.field("Algorithm"), algorithm);
        assert_eq!(made.field("Public Key"), format!("{algorithm}.jwks.json"));
        let key = format!("{algorithm}.pem");
        let signed = desk
            .run(&["card", "sign", "card.json", "--key", &key])
            .exits(0);
        assert_eq!(signed.err, "");
        desk.write("signed.json", &signed.out);
        let keys = format!("{algorithm}.jwks.json");
        let verified = desk
            .run(&["card", "verify", "signed.json", "--keys", &keys])
            .exits(0);
        assert_eq!(
            verified.out,
            format!(
                "Signature: valid\nKey ID: {}\nAlgorithm: {algorithm}\nForm: strict\n",
                made.field("Key ID")
            )
        );
        // Only `signatures` is new; all else stands as it was written.
        let kept = CARD.trim_end().trim_end_matches(['}', '\n']);
        for line in kept
            .lines()
            .skip(1)
            .flat_map(|line| line.split(", \"default"))
        {
            let line = line.trim().trim_end_matches(',');
            assert!(signed.out.contains(line), "{line}\n{}", signed.out);
        }
        desk.write(
            "changed.json",
            &signed.out.replace("h.example", "evil.example"),
        );
        let changed = desk
            .run(&["card", "verify", "changed.json", "--keys", &keys])
            .exits(1);
        assert!(
            changed.err.contains("does not fit this card and key"),
            "{changed:?}"
        );
        assert!(
            changed.err.contains("code: A2ACLI_ERR_CARD_INVALID"),
            "{changed:?}"
        );
        assert_eq!(changed.out, "");
    }
    let stranger = desk.verify("signed.json", &["-o", "json"]).exits(1);
    assert_eq!(stranger.json()["error"]["code"], "A2ACLI_ERR_CARD_INVALID");
    assert!(stranger.out.contains("no trusted key has this name"));
    let unsigned = desk.verify("card.json", &[]).exits(1);
    assert!(
        unsigned.err.starts_with("error: the card is not signed\n"),
        "{unsigned:?}"
    );
}

#[test]
fn a_card_is_signed_in_place_and_by_several_keys() {
    let desk = Desk::new();
    let sign = |key: &str, kid: &str, more: &[&str]| {
        let words = [
            "card",
            "sign",
            "card.json",
            "--out",
            "card.json",
            "--key",
            key,
            "--kid",
            kid,
        ];
        desk.run(&[&words[..], more].concat()).exits(0)
    };
    desk.run(&[
        "keys",
        "create",
        "--card",
        "new.pem",
        "--algorithm",
        "EdDSA",
    ])
    .exits(0);
    assert_eq!(
        sign("key.pem", "2026-a", &[]).out,
        "Key ID: 2026-a\nAlgorithm: ES256\nSigned Card: card.json\n"
    );
    let told = sign("new.pem", "2026-b", &["-o", "json"]).json();
    assert_eq!(
        told,
        json!({"keyId": "2026-b", "algorithm": "EdDSA", "file": "card.json"})
    );
    sign("key.pem", "2026-a", &[]);
    let card: Value = serde_json::from_str(&desk.read("card.json")).unwrap();
    assert_eq!(card["signatures"].as_array().unwrap().len(), 2);
    assert!(!desk.path().join("card.json.new").exists());
    for name in ["key", "new"] {
        // The names are not those of the key files.
        let keys = desk.read(&format!("{name}.jwks.json"));
        let mut keys: Value = serde_json::from_str(&keys).unwrap();
        keys["keys"][0].as_object_mut().unwrap().remove("kid");
        desk.write("nameless.json", &keys.to_string());
        desk.run(&["card", "verify", "card.json", "--keys", "nameless.json"])
            .exits(0);
    }
    let both = [
        "card",
        "verify",
        "card.json",
        "--keys",
        "key.jwks.json",
        "--keys",
        "nameless.json",
        "-o",
        "json",
    ];
    let told = desk.run(&both).exits(0).json();
    assert_eq!(told["keyId"], "2026-b");
    assert_eq!(told["signature"], "valid");
    assert_eq!(told["form"], "strict");
    assert_eq!(told["uncovered"], json!([]));
}

#[test]
fn what_a_signature_does_not_reach_is_said() {
    let desk = Desk::new();
    let odd = CARD.replace("\"Signed\"", "\"Grüße\", \"iconUrl\": \"\", \"x-new\": 1");
    desk.write("odd.json", &odd);
    let sign = ["card", "sign", "odd.json", "--key", "key.pem"];
    let signed = desk.run(&[&sign[..], &["-o", "json"]].concat()).exits(0);
    for warning in [
        "warning: iconUrl is there and empty",
        "warning: name has characters outside of ASCII",
        "warning: x-new is no member of the protocol: it is not signed",
    ] {
        assert!(signed.err.contains(warning), "{warning}: {signed:?}");
    }
    assert_eq!(signed.json()["x-new"], 1);
    desk.write("signed.json", &signed.out);
    let verified = desk.verify("signed.json", &["-o", "json"]).exits(0);
    assert_eq!(verified.json()["uncovered"], json!(["x-new"]));
    assert!(
        verified.err.contains("does not cover x-new"),
        "{verified:?}"
    );
    let for_sdks = desk
        .run(&[&sign[..], &["--sdk", "-o", "json"]].concat())
        .exits(0);
    assert!(!for_sdks.err.contains("iconUrl"), "{for_sdks:?}");
    assert_eq!(for_sdks.json()["signatures"].as_array().unwrap().len(), 2);
}

/// The other program's signature, its form, and a card over the network.
#[test]
fn cards_of_the_sdks_verify_wherever_they_are() {
    let desk = Desk::new();
    let vectors = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../nuncio-protocol/tests/signing"
    );
    for (card, keys, form) in [
        ("js-1.3.0.rich.PS256.json", "keys.jwks.json", "sdk"),
        ("python-1.0.3.rich.EdDSA.json", "ed.pem", "old-python"),
    ] {
        let (card, keys) = (format!("{vectors}/{card}"), format!("{vectors}/{keys}"));
        let verified = desk
            .run(&["card", "verify", &card, "--keys", &keys])
            .exits(0);
        assert_eq!(verified.field("Form"), form);
    }
    let card = fs::read_to_string(format!("{vectors}/python-1.3.0.plain.ES256.json")).unwrap();
    let fake = Fake::with_card(serde_json::from_str(&card).unwrap(), |_| unreachable!());
    let keys = format!("{vectors}/ec.pem");
    for words in [&[fake.url.as_str()][..], &["--agent-card", &fake.url]] {
        let arguments = [&["card", "verify", "--keys", &keys][..], words].concat();
        desk.run(&arguments).exits(0);
    }
}

#[test]
fn keys_are_kept_safe() {
    let desk = Desk::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let data = fs::metadata(desk.path().join("key.pem")).unwrap();
        assert_eq!(data.permissions().mode() & 0o777, 0o600);
    }
    let secret = desk.read("key.pem");
    let again = desk.run(&["keys", "create", "--card", "key.pem"]).exits(2);
    assert!(
        again.err.contains("name a file that is not there yet"),
        "{again:?}"
    );
    assert_eq!(desk.read("key.pem"), secret);
    let private = desk
        .run(&["card", "verify", "card.json", "--keys", "key.pem"])
        .exits(2);
    assert!(private.err.contains("this is a private key"), "{private:?}");
    let public = desk
        .run(&["card", "sign", "card.json", "--key", "key.jwks.json"])
        .exits(2);
    assert!(public.err.contains("keys create --card"), "{public:?}");
    for arguments in [
        &["card", "verify", "card.json"][..],
        &["card", "verify", "card.json", "--keys", "nowhere"],
        &[
            "card",
            "verify",
            "card.json",
            "-a",
            "h",
            "--keys",
            "key.jwks.json",
        ],
        &["card", "verify", "--keys", "key.jwks.json"],
        &["card", "sign", "card.json", "--key", "nowhere"],
        &["keys", "create", "--card", "x.pem", "--caller", "y"],
        &["keys", "create", "--algorithm", "ES256"],
        &["keys", "create", "--card", "x.pem", "--algorithm", "RS256"],
    ] {
        desk.run(arguments).exits(2);
    }
    assert!(!desk.path().join("x.pem").exists());
    desk.run(&["card", "sign", "nowhere.json", "--key", "key.pem"])
        .exits(3);
    desk.write("twice.json", r#"{"name":"a","name":"b","skills":[]}"#);
    desk.run(&["card", "sign", "twice.json", "--key", "key.pem"])
        .exits(1);
}

#[test]
fn a_card_is_judged_by_rule() {
    let desk = Desk::new();
    let good = desk.run(&["card", "lint", "card.json"]).exits(0);
    assert_eq!(
        (good.out.as_str(), good.err.as_str()),
        ("Errors: 0\nWarnings: 0\n", "")
    );
    let bad = CARD
        .replace("https://h.example/a", "http://0.0.0.0:1/")
        .replace("\"tags\": [\"t\"]", "\"tags\": []")
        .replace("\"text/plain\"], \"default", "\"text\"], \"default");
    desk.write("bad.json", &bad);
    let bad = desk.run(&["card", "lint", "bad.json"]).exits(1);
    assert_eq!(
        bad.out,
        "Error: BR-107 skills[0].tags: needs at least one entry\n\
         Error: BR-098 supportedInterfaces[0].url: is an address to listen on; nobody can call it\n\
         Warning: CARD-05 defaultInputModes[0]: \"text\" is no media type such as text/plain\n\
         Errors: 2\n\
         Warnings: 1\n"
    );
    let told = desk
        .run(&["card", "lint", "bad.json", "-o", "json"])
        .exits(1)
        .json();
    assert_eq!((&told["errors"], &told["warnings"]), (&json!(2), &json!(1)));
    assert_eq!(
        told["findings"][0],
        json!({"id": "BR-107", "severity": "error", "path": "skills[0].tags", "message": "needs at least one entry"})
    );
    // BR-100: the card's address stands in the card.
    let fake = Fake::answering(|_| unreachable!());
    desk.run(&["card", "lint", &fake.url]).exits(0);
    let card = format!("{}/.well-known/agent-card.json", fake.url);
    let own = json!([{"url": card, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]);
    let fake = Fake::with_card(json!({"supportedInterfaces": own}), |_| unreachable!());
    let found = desk.run(&["card", "lint", &fake.url]).exits(1);
    assert!(found.field("Error").starts_with("BR-100 "), "{found:?}");
}

#[test]
fn our_own_cards_have_no_findings() {
    let server = Server::echo();
    let said = server.run(&["card", "lint"], &[]).exits(0);
    assert_eq!(said.out, "Errors: 0\nWarnings: 0\n");
}

#[test]
fn cards_are_compared_by_what_they_say() {
    let desk = Desk::new();
    let value: Value = serde_json::from_str(CARD).unwrap();
    desk.write(
        "same.json",
        &value.to_string().replace("\"iconUrl\"", "\"icon_url\""),
    );
    let same = desk
        .run(&["card", "diff", "card.json", "same.json"])
        .exits(0);
    assert_eq!((same.out.as_str(), same.err.as_str()), ("", ""));
    let same = desk
        .run(&["card", "diff", "card.json", "same.json", "-o", "json"])
        .exits(0);
    assert_eq!(same.json(), json!({"differences": []}));
    desk.write(
        "other.json",
        &CARD.replace("\"1.0\",\n", "\"1.1\", \"iconUrl\": \"i\",\n"),
    );
    let other = desk
        .run(&["card", "diff", "card.json", "other.json"])
        .exits(1);
    assert_eq!(
        other.out,
        "+ iconUrl: \"i\"\n~ version: \"1.0\" -> \"1.1\"\n"
    );
    assert_eq!(other.err, "");
    let other = desk
        .run(&["card", "diff", "card.json", "other.json", "-o", "json"])
        .exits(1);
    assert_eq!(
        other.json(),
        json!({"differences": [{"path": "iconUrl", "after": "i"}, {"path": "version", "before": "1.0", "after": "1.1"}]})
    );
    let fake = Fake::with_card(json!({"name": "Other"}), |_| unreachable!());
    let far = desk.run(&["card", "diff", &fake.url, "card.json"]).exits(1);
    assert!(
        far.out.contains("~ name: \"Other\" -> \"Signed\"\n"),
        "{far:?}"
    );
    desk.run(&["card", "diff", "card.json", "nowhere.json", "-o", "json"])
        .exits(3);
    desk.run(&["card", "diff", "card.json"]).exits(2);
}
