use serde_json::json;

use super::*;

fn good() -> Value {
    json!({
        "name": "n", "description": "d", "version": "1",
        "provider": {"url": "https://example.com", "organization": "o"},
        "capabilities": {"extendedAgentCard": true},
        "supportedInterfaces": [
            {"url": "https://h.example/a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "h.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"},
            {"url": "https://h.example/b", "protocolBinding": "https://b.example/v1", "protocolVersion": "1.0"},
        ],
        "securitySchemes": {"key": {"apiKeySecurityScheme": {"location": "header", "name": "X"}}},
        "securityRequirements": [{"schemes": {"key": {"list": ["a"]}}}],
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "s", "name": "S", "description": "d", "tags": ["t"],
            "securityRequirements": [{"schemes": {"key": {"list": ["a"]}}}]}],
    })
}

fn lines(card: &Value, at: &str) -> Vec<String> {
    let at = Url::parse(at).ok();
    let findings = lint(&card.to_string(), at.as_ref());
    let line = |f: &Finding| format!("{} {}", f.severity.label(), f.line());
    findings.iter().map(line).collect()
}

#[test]
fn a_good_card_has_no_findings() {
    assert_eq!(lines(&good(), ""), Vec::<String>::new());
}

/// One change, one finding.
#[test]
fn each_rule_finds_its_breach_and_nothing_else() {
    let cases = [
        ("/name", json!(""), "Error CARD-05 name: "),
        ("/capabilities", json!(null), "Error CARD-05 capabilities: "),
        (
            "/defaultInputModes",
            json!([]),
            "Error CARD-05 defaultInputModes: ",
        ),
        (
            "/defaultInputModes/0",
            json!("text"),
            "Warning CARD-05 defaultInputModes[0]: ",
        ),
        (
            "/supportedInterfaces",
            json!([]),
            "Error CARD-02 supportedInterfaces: ",
        ),
        (
            "/supportedInterfaces/0/url",
            json!("/a"),
            "Error CARD-02 supportedInterfaces[0].url: is not an absolute",
        ),
        (
            "/supportedInterfaces/0/url",
            json!("https://h/.well-known/agent-card.json"),
            "Error BR-100 supportedInterfaces[0].url: ",
        ),
        (
            "/supportedInterfaces/0/url",
            json!("https://h.example/me"),
            "Error BR-100 supportedInterfaces[0].url: ",
        ),
        (
            "/supportedInterfaces/0/url",
            json!("https://0.0.0.0:80/"),
            "Error BR-098 supportedInterfaces[0].url: ",
        ),
        (
            "/supportedInterfaces/0/url",
            json!("http://[::]:80/"),
            "Error BR-098 supportedInterfaces[0].url: ",
        ),
        (
            "/supportedInterfaces/0/url",
            json!("http://localhost:80/"),
            "Warning BR-098 supportedInterfaces[0].url: ",
        ),
        (
            "/supportedInterfaces/0/url",
            json!("http://127.1.2.3/"),
            "Warning BR-098 supportedInterfaces[0].url: ",
        ),
        (
            "/supportedInterfaces/0/url",
            json!("http://h.example/"),
            "Warning AUTH-01 supportedInterfaces[0].url: ",
        ),
        (
            "/supportedInterfaces/0/url",
            json!("ftp://h.example/"),
            "Warning CARD-07 supportedInterfaces[0].url: ",
        ),
        (
            "/supportedInterfaces/0/protocolBinding",
            json!("jsonrpc"),
            "Warning CARD-02 supportedInterfaces[0].protocolBinding: ",
        ),
        (
            "/supportedInterfaces/0/protocolBinding",
            json!("REST"),
            "Error CARD-10 supportedInterfaces[0].protocolBinding: ",
        ),
        (
            "/supportedInterfaces/0/protocolVersion",
            json!("1.0.0"),
            "Error CARD-06 supportedInterfaces[0].protocolVersion: ",
        ),
        (
            "/supportedInterfaces/0/protocolVersion",
            json!("1"),
            "Error CARD-06 supportedInterfaces[0].protocolVersion: ",
        ),
        (
            "/supportedInterfaces/1/url",
            json!("h.example"),
            "Error CARD-07 supportedInterfaces[1].url: ",
        ),
        (
            "/supportedInterfaces/1/url",
            json!("0.0.0.0:50051"),
            "Error BR-098 supportedInterfaces[1].url: ",
        ),
        (
            "/supportedInterfaces/1/url",
            json!("https://h.example:1"),
            "Warning CARD-07 supportedInterfaces[1].url: ",
        ),
        (
            "/skills/0/description",
            json!(""),
            "Error BR-107 skills[0].description: ",
        ),
        ("/skills/0/tags", json!([]), "Error BR-107 skills[0].tags: "),
        (
            "/skills/0/inputModes",
            json!(["x"]),
            "Warning CARD-05 skills[0].inputModes[0]: ",
        ),
        (
            "/skills/0/securityRequirements/0/schemes",
            json!({"no": {}}),
            "Error AUTH-02 skills[0].securityRequirements[0].schemes.no: ",
        ),
        (
            "/securityRequirements/0/schemes",
            json!({"no": {}}),
            "Error AUTH-02 securityRequirements[0].schemes.no: ",
        ),
        (
            "/securitySchemes/new",
            json!({"quantum": {}}),
            "Warning CARD-09 securitySchemes.new: ",
        ),
        (
            "/securitySchemes/key/apiKeySecurityScheme/location",
            json!("body"),
            "Error AUTH-06 securitySchemes.key.apiKeySecurityScheme.location: ",
        ),
        (
            "/securitySchemes/o",
            json!({"oauth2SecurityScheme": {"flows": {"implicit": {}}}}),
            "Warning AUTH-06 securitySchemes.o.oauth2SecurityScheme.flows.implicit: ",
        ),
        (
            "/securitySchemes/o",
            json!({"oauth2SecurityScheme": {"flows": {"password": {}}}}),
            "Warning AUTH-06 securitySchemes.o.oauth2SecurityScheme.flows.password: ",
        ),
        (
            "/provider/organization",
            json!(""),
            "Error CARD-05 provider.organization: ",
        ),
        ("/iconUrl", json!("icon.png"), "Warning BR-098 iconUrl: "),
        (
            "/signatures",
            json!([{"protected": "e30", "signature": ""}]),
            "Error SIGN-06 signatures[0]: its header names no algorithm",
        ),
        ("/supportsAuthenticatedExtendedCard", json!(true), ""),
    ];
    for (pointer, value, expected) in cases {
        let mut card = good();
        let (outer, name) = pointer.rsplit_once('/').unwrap();
        match card.pointer_mut(outer).unwrap() {
            Value::Object(members) => {
                members.insert(name.to_owned(), value.clone());
            }
            other => other[name.parse::<usize>().unwrap()] = value.clone(),
        }
        let found = lines(&card, "https://h.example/me");
        let wanted = usize::from(!expected.is_empty());
        assert_eq!(found.len(), wanted, "{pointer} {value}: {found:?}");
        assert!(
            found.iter().all(|line| line.starts_with(expected)),
            "{pointer} {value}: {found:?}"
        );
    }
}

#[test]
fn more_than_one_member_can_be_the_matter() {
    let with = |more: Value| {
        let mut card = good();
        card.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        lines(&card, "")
    };
    let skill = good()["skills"][0].clone();
    let twice = with(json!({"skills": [skill, skill]}));
    assert!(
        twice[0].starts_with("Error BR-107 skills[1].id: "),
        "{twice:?}"
    );
    let open = with(json!({"securitySchemes": {}, "securityRequirements": [], "skills": []}));
    assert!(
        open.iter().any(|l| l.starts_with("Error CARD-05 skills: ")),
        "{open:?}"
    );
    assert!(
        open.iter().any(|l| l.starts_with("Warning OP-XCARD-02 ")),
        "{open:?}"
    );
    // Both versions in one card (CARD-14).
    let union = json!({"url": "https://h.example/a", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0",
        "supportsAuthenticatedExtendedCard": true});
    assert_eq!(with(union.clone()), Vec::<String>::new());
    for (name, value, id) in [
        (
            "preferredTransport",
            json!("HTTP+JSON"),
            "MAP-02 preferredTransport",
        ),
        (
            "protocolVersion",
            json!("1.0"),
            "V03-CARD-01 protocolVersion",
        ),
        (
            "supportsAuthenticatedExtendedCard",
            json!(false),
            "CARD-14 supportsAuthenticated",
        ),
        (
            "additionalInterfaces",
            json!([{"url": "https://h.example/a", "transport": "GRPC"}]),
            "V03-CARD-02 additionalInterfaces[0]",
        ),
    ] {
        let mut union = union.clone();
        union[name] = value;
        let found = with(union);
        assert!(found.len() == 1 && found[0].contains(id), "{found:?}");
    }
    // An agent on this machine may say so.
    let mut here = good();
    here["supportedInterfaces"][0]["url"] = "http://127.0.0.1:8080/".into();
    assert_eq!(
        lines(&here, "http://127.0.0.1:8080/.well-known/agent-card.json"),
        Vec::<String>::new()
    );
    // A signature that some cannot verify.
    let header = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ";
    let odd = with(json!({"name": "ü", "signatures": [{"protected": header, "signature": "AA"}]}));
    assert!(
        odd.iter()
            .any(|l| l.starts_with("Warning TRAP-22 name has characters")),
        "{odd:?}"
    );
    let twice = lint(r#"{"name":"a","name":"b"}"#, None);
    assert_eq!((twice.len(), twice[0].id), (1, "SIGN-05"));
}
