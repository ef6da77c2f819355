//! Cards both ways, and cards for readers of both versions.

use serde_json::{Value, json};

use super::super::card::{decode, encode, union};
use crate::{
    AgentCard, AgentInterface, AgentSkill, ApiKeySecurityScheme, AuthorizationCodeOAuthFlow,
    Binding, DeviceCodeOAuthFlow, HttpAuthSecurityScheme, MutualTlsSecurityScheme,
    OAuth2SecurityScheme, OAuthFlows, SecurityRequirement, SecurityScheme, StringList,
};

fn interface(url: &str, binding: Binding, version: &str) -> AgentInterface {
    AgentInterface {
        protocol_version: version.to_owned(),
        ..AgentInterface::new(url, binding)
    }
}

fn requirement(scheme: &str, scopes: &[&str]) -> SecurityRequirement {
    let list = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    SecurityRequirement {
        schemes: [(scheme.to_owned(), StringList { list })].into(),
    }
}

fn oauth(flows: Option<OAuthFlows>) -> SecurityScheme {
    SecurityScheme::OAuth2(OAuth2SecurityScheme {
        flows,
        ..OAuth2SecurityScheme::default()
    })
}

fn card() -> AgentCard {
    let mut card = AgentCard {
        name: "N".to_owned(),
        version: "7".to_owned(),
        supported_interfaces: vec![
            interface("https://a.example/v1.0", Binding::JsonRpc, "1.0"),
            interface("https://a.example/rest", Binding::HttpJson, "0.3"),
            interface("https://a.example/rpc", Binding::JsonRpc, "0.3.0"),
        ],
        security_requirements: vec![requirement("key", &[])],
        skills: vec![AgentSkill {
            id: "s".to_owned(),
            security_requirements: vec![requirement("oauth", &["read"])],
            ..AgentSkill::default()
        }],
        ..AgentCard::default()
    };
    card.capabilities.extended_agent_card = Some(true);
    let key = ApiKeySecurityScheme {
        location: "header".to_owned(),
        name: "X-Key".to_owned(),
        ..ApiKeySecurityScheme::default()
    };
    let schemes = &mut card.security_schemes.0;
    schemes.insert("key".to_owned(), SecurityScheme::ApiKey(key));
    let flow = AuthorizationCodeOAuthFlow {
        token_url: "https://t.example".to_owned(),
        pkce_required: true,
        ..AuthorizationCodeOAuthFlow::default()
    };
    let flows = OAuthFlows::AuthorizationCode(flow);
    schemes.insert("oauth".to_owned(), oauth(Some(flows)));
    card.signatures.push(crate::AgentCardSignature::default());
    card
}

/// V03-CARD-01, V03-CARD-02.
#[test]
fn only_interfaces_of_0_3_are_written() {
    let mut card = card();
    card.supported_interfaces[1].tenant = Some("acme".to_owned());
    let shown = encode(&card);
    assert_eq!(shown["url"], "https://a.example/rest");
    assert_eq!(shown["preferredTransport"], "HTTP+JSON");
    assert_eq!(shown["protocolVersion"], "0.3.0");
    assert_eq!(
        shown["additionalInterfaces"],
        json!([
            {"url": "https://a.example/rest", "transport": "HTTP+JSON"},
            {"url": "https://a.example/rpc", "transport": "JSONRPC"},
        ])
    );
    for gone in ["supportedInterfaces", "signatures", "securityRequirements"] {
        assert_eq!(shown[gone], Value::Null, "{gone}");
    }
    card.supported_interfaces.truncate(1);
    let none = encode(&card);
    assert_eq!(
        (&none["url"], &none["preferredTransport"]),
        (&json!(""), &Value::Null)
    );
}

#[test]
fn the_extended_card_is_a_member_of_its_own() {
    let shown = encode(&card());
    assert_eq!(shown["supportsAuthenticatedExtendedCard"], true);
    assert_eq!(shown["capabilities"]["extendedAgentCard"], Value::Null);
    let read = decode(&shown).unwrap();
    assert_eq!(read.capabilities.extended_agent_card, Some(true));
}

#[test]
fn requirements_are_lists_of_scopes() {
    let shown = encode(&card());
    assert_eq!(shown["security"], json!([{"key": []}]));
    assert_eq!(shown["skills"][0]["security"], json!([{"oauth": ["read"]}]));
    assert_eq!(shown["skills"][0]["securityRequirements"], Value::Null);
    let read = decode(&shown).unwrap();
    assert_eq!(read.security_requirements, card().security_requirements);
    assert_eq!(read.skills, card().skills);
    let proto =
        json!({"name": "N", "security": [{"schemes": {"oauth": {"list": ["read"]}}}, {"x": 5}]});
    let read = decode(&proto).unwrap().security_requirements;
    assert_eq!(
        read,
        [requirement("oauth", &["read"]), requirement("x", &[])]
    );
}

/// V03-CARD-03.
#[test]
fn schemes_are_told_apart_by_type() {
    let shown = encode(&card());
    let key = &shown["securitySchemes"]["key"];
    assert_eq!(
        (&key["type"], &key["in"]),
        (&json!("apiKey"), &json!("header"))
    );
    assert_eq!(key["location"], Value::Null);
    let read = decode(&shown).unwrap().security_schemes;
    assert_eq!(read.0["key"], card().security_schemes.0["key"]);

    let foreign = json!({"name": "N", "securitySchemes": {
        "http": {"type": "http", "scheme": "bearer", "bearer_format": "JWT"},
        "tls": {"type": "mutualTLS"},
        "proto": {"httpAuthSecurityScheme": {"scheme": "basic"}},
        "proto_name": {"mtls_security_scheme": {}},
        "later": {"type": "magic"},
        "broken": {"type": "http", "scheme": 5},
        "none": 5,
    }});
    let read = decode(&foreign).unwrap().security_schemes.0;
    let http = |scheme: &str, format: Option<&str>| {
        SecurityScheme::HttpAuth(HttpAuthSecurityScheme {
            scheme: scheme.to_owned(),
            bearer_format: format.map(str::to_owned),
            ..HttpAuthSecurityScheme::default()
        })
    };
    assert_eq!(read["http"], http("bearer", Some("JWT")));
    assert_eq!(read["proto"], http("basic", None));
    let tls = SecurityScheme::MutualTls(MutualTlsSecurityScheme::default());
    assert_eq!((&read["tls"], &read["proto_name"]), (&tls, &tls));
    assert_eq!(read.len(), 4, "what cannot be read is left out");
}

/// The order of the table: the strongest flow of several is kept.
#[test]
fn one_flow_of_several_is_kept() {
    let all = json!({"password": {"tokenUrl": "p"}, "implicit": {"authorizationUrl": "i"},
        "clientCredentials": {"tokenUrl": "c"}, "authorizationCode": {"authorizationUrl": "a", "tokenUrl": "t"}});
    let mut left = all.as_object().unwrap().clone();
    for kept in [
        "authorizationCode",
        "clientCredentials",
        "implicit",
        "password",
    ] {
        let foreign =
            json!({"name": "N", "securitySchemes": {"o": {"type": "oauth2", "flows": left}}});
        let read = decode(&foreign).unwrap();
        let shown = serde_json::to_value(&read.security_schemes).unwrap();
        let flows = shown["o"]["oauth2SecurityScheme"]["flows"]
            .as_object()
            .unwrap();
        assert_eq!(flows.keys().collect::<Vec<_>>(), [kept]);
        left.remove(kept);
    }
    let none = json!({"name": "N", "securitySchemes": {"o": {"type": "oauth2", "flows": {}}}});
    assert_eq!(decode(&none).unwrap().security_schemes.0["o"], oauth(None));
}

#[test]
fn the_device_code_flow_and_pkce_are_lost() {
    let mut card = card();
    let shown = encode(&card);
    let flow = &shown["securitySchemes"]["oauth"]["flows"]["authorizationCode"];
    assert_eq!(flow["pkceRequired"], Value::Null);
    assert_eq!(flow["scopes"], json!({}));
    let device = OAuthFlows::DeviceCode(DeviceCodeOAuthFlow::default());
    let schemes = &mut card.security_schemes.0;
    schemes.insert("oauth".to_owned(), oauth(Some(device)));
    let shown = encode(&card);
    assert_eq!(shown["securitySchemes"]["oauth"]["flows"], json!({}));
}

/// V03-CARD-02: main first, no duplicates, and the list is right about a disputed transport.
#[test]
fn interfaces_are_read_main_first() {
    let foreign = json!({"name": "N", "url": "https://a.example", "additionalInterfaces": [
        {"url": "https://b.example", "transport": "GRPC"},
        {"url": "https://a.example", "transport": "HTTP+JSON"},
        {"url": "https://b.example", "transport": "GRPC"},
        {"url": 5}, {}, "x", null,
    ], "capabilities": {"stateTransitionHistory": true}, "signatures": [{}]});
    let read = decode(&foreign).unwrap();
    assert_eq!(
        read.supported_interfaces,
        [
            interface("https://a.example", Binding::HttpJson, "0.3"),
            interface("https://b.example", Binding::Grpc, "0.3"),
        ]
    );
    assert!(read.signatures.is_empty());
    let older = json!({"name": "N", "url": "https://a.example", "protocolVersion": "0.2.5"});
    let read = decode(&older).unwrap();
    assert_eq!(
        read.supported_interfaces,
        [interface("https://a.example", Binding::JsonRpc, "0.3")]
    );
    let proto = json!({"name": "N", "url": "https://a.example", "preferred_transport": "GRPC",
        "additional_interfaces": [{"url": "https://a.example", "transport": "GRPC"}],
        "supports_authenticated_extended_card": true});
    let read = decode(&proto).unwrap();
    assert_eq!(
        read.supported_interfaces,
        [interface("https://a.example", Binding::Grpc, "0.3")]
    );
    assert_eq!(read.capabilities.extended_agent_card, Some(true));
}

/// TRAP-31: cards in the wild.
#[test]
fn sloppy_cards_are_read_and_broken_ones_refused_by_path() {
    let sloppy = json!({"name": "N", "skills": null, "capabilities": null, "provider": {"organization": "O"},
        "defaultInputModes": null, "security": null, "securitySchemes": null});
    assert!(decode(&sloppy).unwrap().supported_interfaces.is_empty());
    for (broken, path) in [
        (json!({"name": 5}), "name"),
        (json!({"skills": [{"name": []}]}), "skills[0].name"),
        (json!({"supportedInterfaces": 5}), "supportedInterfaces"),
        (json!([]), ""),
    ] {
        assert_eq!(decode(&broken).unwrap_err().path, path, "{broken}");
    }
}

/// MAP-02, TRAP-13.
#[test]
fn a_union_card_is_read_by_both_versions() {
    let card = card();
    let unsigned = AgentCard {
        signatures: Vec::new(),
        ..card.clone()
    };
    let shown = union(&card);
    let newer: AgentCard = serde_json::from_value(shown.clone()).unwrap();
    assert_eq!(newer, unsigned, "a reader of 1.0");
    assert_eq!(decode(&shown).unwrap(), unsigned, "a reader of both");

    let mut older = shown;
    let members = older.as_object_mut().unwrap();
    members.remove("supportedInterfaces");
    members.remove("securityRequirements");
    for scheme in members["securitySchemes"]
        .as_object_mut()
        .unwrap()
        .values_mut()
    {
        let scheme = scheme.as_object_mut().unwrap();
        scheme.retain(|name, _| !name.ends_with("SecurityScheme"));
    }
    assert_eq!(
        decode(&older).unwrap().supported_interfaces,
        decode(&encode(&card)).unwrap().supported_interfaces
    );
    assert_eq!(
        decode(&older).unwrap().security_schemes,
        decode(&encode(&card)).unwrap().security_schemes
    );
    let only_newer = AgentCard {
        supported_interfaces: vec![AgentInterface::new("https://a.example", Binding::Grpc)],
        ..unsigned
    };
    assert_eq!(
        union(&only_newer),
        serde_json::to_value(&only_newer).unwrap()
    );
}

/// MAP-02: members of 0.3 add interfaces that the list of 1.0 does not have.
#[test]
fn older_members_of_a_newer_card_add_interfaces() {
    let both = json!({"name": "N", "url": "https://old.example", "signatures": [{"signature": "s"}],
    "supportedInterfaces": [
        {"url": "https://new.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
    ]});
    let read = decode(&both).unwrap();
    let urls: Vec<&str> = read
        .supported_interfaces
        .iter()
        .map(|i| i.url.as_str())
        .collect();
    assert_eq!(urls, ["https://new.example", "https://old.example"]);
    assert_eq!(read.supported_interfaces[1].protocol_version, "0.3");
    assert_eq!(read.signatures.len(), 1);
}
