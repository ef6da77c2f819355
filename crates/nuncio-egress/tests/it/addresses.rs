//! The table of addresses and spellings that must never be reached (S03, BR-092).

use nuncio_egress::{EgressPolicy, IpNet, Rule};
use url::Url;

use crate::support::{Canary, OK, Script, egress, get, rule};

/// Hosts of URLs with the rule that refuses each; PORT is where a listener waits on loopback.
const REFUSED: &[(&str, Rule)] = &[
    // Loopback in every spelling.
    ("127.0.0.1", Rule::Loopback),
    ("127.0.0.2", Rule::Loopback),
    ("127.1.2.3", Rule::Loopback),
    ("127.255.255.255", Rule::Loopback),
    ("127.0.0.1.", Rule::Loopback),
    ("127.1", Rule::Loopback),
    ("127.0.1", Rule::Loopback),
    ("2130706433", Rule::Loopback),
    ("2130706433.", Rule::Loopback),
    ("0x7f000001", Rule::Loopback),
    ("0x7F000001", Rule::Loopback),
    ("0X7f.1", Rule::Loopback),
    ("0x7f.0.0.1", Rule::Loopback),
    ("0x7f.0x0.0x0.0x1", Rule::Loopback),
    ("0177.0.0.1", Rule::Loopback),
    ("0177.0000.0000.0001", Rule::Loopback),
    ("017700000001", Rule::Loopback),
    ("0177.1", Rule::Loopback),
    ("0x7f.0.1", Rule::Loopback),
    ("127.0x1", Rule::Loopback),
    ("127.00.00.01", Rule::Loopback),
    ("%31%32%37.0.0.1", Rule::Loopback),
    ("127%2e0%2e0%2e1", Rule::Loopback),
    ("127。0。0。1", Rule::Loopback),
    (
        "\u{ff11}\u{ff12}\u{ff17}.\u{ff10}.\u{ff10}.\u{ff11}",
        Rule::Loopback,
    ),
    ("①②⑦.⓪.⓪.①", Rule::Loopback),
    (
        "\u{ff11}\u{ff12}\u{ff17}\u{ff0e}\u{ff10}\u{ff0e}\u{ff10}\u{ff0e}\u{ff11}",
        Rule::Loopback,
    ),
    ("[::1]", Rule::Loopback),
    ("[0:0:0:0:0:0:0:1]", Rule::Loopback),
    ("[0000:0000::0001]", Rule::Loopback),
    ("[::0.0.0.1]", Rule::Loopback),
    // IPv4 inside IPv6.
    ("[::ffff:127.0.0.1]", Rule::Loopback),
    ("[::ffff:7f00:1]", Rule::Loopback),
    ("[::FFFF:7F00:0001]", Rule::Loopback),
    ("[0:0:0:0:0:ffff:127.0.0.1]", Rule::Loopback),
    ("[::ffff:10.0.0.1]", Rule::Private),
    ("[::ffff:172.16.0.1]", Rule::Private),
    ("[::ffff:192.168.0.1]", Rule::Private),
    ("[::ffff:169.254.169.254]", Rule::LinkLocal),
    ("[::ffff:a9fe:a9fe]", Rule::LinkLocal),
    ("[::ffff:100.64.0.1]", Rule::Shared),
    ("[::ffff:0.0.0.0]", Rule::Unspecified),
    ("[::127.0.0.1]", Rule::Transition),
    ("[::10.0.0.1]", Rule::Transition),
    ("[::8.8.8.8]", Rule::Transition),
    ("[::ffff:0:127.0.0.1]", Rule::Transition),
    ("[64:ff9b::127.0.0.1]", Rule::Transition),
    ("[64:ff9b::a9fe:a9fe]", Rule::Transition),
    ("[64:ff9b::8.8.8.8]", Rule::Transition),
    ("[64:ff9b:1::10.0.0.1]", Rule::Transition),
    ("[64:ff9b:1:7f00:0:100::]", Rule::Transition),
    ("[2002:7f00:1::]", Rule::Transition),
    ("[2002:a00:1::1]", Rule::Transition),
    ("[2002:c0a8:101::1]", Rule::Transition),
    ("[2002:808:808::1]", Rule::Transition),
    ("[2001:0:7f00:1::]", Rule::Transition),
    ("[2001::f5ff:fffe]", Rule::Transition),
    ("[2001:0:4136:e378:8000:63bf:80ff:fffe]", Rule::Transition),
    ("[2606:4700::5efe:127.0.0.1]", Rule::Loopback),
    ("[2606:4700::200:5efe:10.0.0.1]", Rule::Private),
    // "This network" and the unspecified addresses.
    ("0.0.0.0", Rule::Unspecified),
    ("0", Rule::Unspecified),
    ("0x0", Rule::Unspecified),
    ("00", Rule::Unspecified),
    ("0.1.2.3", Rule::Unspecified),
    ("0.255.255.255", Rule::Unspecified),
    ("[::]", Rule::Unspecified),
    ("[0:0:0:0:0:0:0:0]", Rule::Unspecified),
    // Private networks.
    ("10.0.0.0", Rule::Private),
    ("10.0.0.1", Rule::Private),
    ("10.255.255.255", Rule::Private),
    ("10.1", Rule::Private),
    ("167772161", Rule::Private),
    ("0xa000001", Rule::Private),
    ("012.0.0.1", Rule::Private),
    ("172.16.0.1", Rule::Private),
    ("172.31.255.255", Rule::Private),
    ("0xac.0x10.0.1", Rule::Private),
    ("192.168.0.1", Rule::Private),
    ("192.168.255.255", Rule::Private),
    ("192.168.1", Rule::Private),
    ("3232235777", Rule::Private),
    ("0300.0250.1.1", Rule::Private),
    ("[fc00::1]", Rule::Private),
    ("[fd00::1]", Rule::Private),
    ("[fd00:ec2::254]", Rule::Private),
    ("[fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]", Rule::Private),
    ("[fec0::1]", Rule::Private),
    ("[feff::1]", Rule::Private),
    // Carriers' networks.
    ("100.64.0.1", Rule::Shared),
    ("100.100.100.200", Rule::Shared),
    ("100.127.255.255", Rule::Shared),
    ("0x64400001", Rule::Shared),
    // Link-local: cloud metadata.
    ("169.254.0.1", Rule::LinkLocal),
    ("169.254.169.254", Rule::LinkLocal),
    ("169.254.170.2", Rule::LinkLocal),
    ("169.254.169.254.", Rule::LinkLocal),
    ("2852039166", Rule::LinkLocal),
    ("0xa9fea9fe", Rule::LinkLocal),
    ("0xa9.0xfe.0xa9.0xfe", Rule::LinkLocal),
    ("0251.0376.0251.0376", Rule::LinkLocal),
    ("169.254.43518", Rule::LinkLocal),
    ("169.16689662", Rule::LinkLocal),
    (
        "\u{ff11}\u{ff16}\u{ff19}.\u{ff12}\u{ff15}\u{ff14}.\u{ff11}\u{ff16}\u{ff19}.\u{ff12}\u{ff15}\u{ff14}",
        Rule::LinkLocal,
    ),
    ("[fe80::1]", Rule::LinkLocal),
    ("[febf::1]", Rule::LinkLocal),
    // Multicast.
    ("224.0.0.1", Rule::Multicast),
    ("239.255.255.250", Rule::Multicast),
    ("[ff02::1]", Rule::Multicast),
    ("[ff0e::1]", Rule::Multicast),
    // Reserved, documentation, measurement.
    ("192.0.0.1", Rule::Reserved),
    ("192.0.0.192", Rule::Reserved),
    ("192.0.2.1", Rule::Reserved),
    ("192.88.99.1", Rule::Reserved),
    ("198.18.0.1", Rule::Reserved),
    ("198.19.255.255", Rule::Reserved),
    ("198.51.100.1", Rule::Reserved),
    ("203.0.113.1", Rule::Reserved),
    ("240.0.0.1", Rule::Reserved),
    ("255.255.255.255", Rule::Reserved),
    ("4294967295", Rule::Reserved),
    ("[100::1]", Rule::Reserved),
    ("[2001:2::1]", Rule::Reserved),
    ("[2001:10::1]", Rule::Reserved),
    ("[2001:20::1]", Rule::Reserved),
    ("[2001:db8::1]", Rule::Reserved),
    ("[3fff::1]", Rule::Reserved),
    ("[5f00::1]", Rule::Reserved),
    ("[4000::1]", Rule::Reserved),
    ("[200::1]", Rule::Reserved),
    // Names of the machine itself.
    ("localhost", Rule::LocalName),
    ("LOCALHOST", Rule::LocalName),
    ("localhost.", Rule::LocalName),
    ("foo.localhost", Rule::LocalName),
    ("a.b.localhost.", Rule::LocalName),
    ("localhost.localdomain", Rule::LocalName),
    ("localhost6", Rule::LocalName),
    ("ip6-localhost", Rule::LocalName),
    ("ip6-loopback", Rule::LocalName),
    ("local\u{ad}host", Rule::LocalName),
];

/// Whole URLs that are refused, or are no URLs at all.
const REFUSED_URLS: &[(&str, Rule)] = &[
    ("file:///etc/passwd", Rule::Scheme),
    ("ftp://93.184.215.14/", Rule::Scheme),
    ("gopher://93.184.215.14:70/_x", Rule::Scheme),
    ("ws://93.184.215.14/", Rule::Scheme),
    ("data:text/plain,x", Rule::Scheme),
    ("javascript:alert(1)", Rule::Scheme),
    ("unix:/var/run/docker.sock", Rule::Scheme),
    ("http://user@93.184.215.14/", Rule::UserInformation),
    ("http://user:pw@93.184.215.14/", Rule::UserInformation),
    ("http://:pw@93.184.215.14/", Rule::UserInformation),
    ("http://93.184.215.14@127.0.0.1/", Rule::UserInformation),
    ("http://93.184.215.14:0/", Rule::Port),
    ("http:\\\\127.0.0.1\\x", Rule::Loopback),
    ("http:127.0.0.1", Rule::Loopback),
    ("http:///127.0.0.1", Rule::Loopback),
    ("  http://127.0.0.1  ", Rule::Loopback),
    ("ht\ntp://127.0.0.1", Rule::Loopback),
    ("http://[fe80::1%25eth0]/", Rule::NotAUrl),
    ("http://[fe80::1%eth0]/", Rule::NotAUrl),
    ("http://[::1", Rule::NotAUrl),
    ("http://1.2.3.4.5/", Rule::NotAUrl),
    ("http://256.256.256.256/", Rule::NotAUrl),
    ("http://0x7f.0.0.0x100/", Rule::NotAUrl),
    ("http://4294967296/", Rule::NotAUrl),
    ("http://127.0.0.1%00.example.com/", Rule::NotAUrl),
    ("http://", Rule::NotAUrl),
    ("http://./", Rule::NotAUrl),
    ("//127.0.0.1/", Rule::NotAUrl),
    ("/path", Rule::NotAUrl),
    ("", Rule::NotAUrl),
];

const PUBLIC: &[&str] = &[
    "http://1.1.1.1/",
    "https://93.184.215.14/",
    "http://9.255.255.255/",
    "http://11.0.0.0/",
    "http://100.63.255.255/",
    "http://100.128.0.0/",
    "http://126.255.255.255/",
    "http://128.0.0.0/",
    "http://169.253.255.255/",
    "http://172.15.255.255/",
    "http://172.32.0.0/",
    "http://192.167.255.255/",
    "http://198.17.255.255/",
    "http://223.255.255.255/",
    "http://[2606:4700:4700::1111]/",
    "http://[2a00:1450:4001:81b::200e]/",
    "http://[::ffff:1.1.1.1]/",
    "https://agents.example.com/a",
    "https://xn--bcher-kva.example/",
];

#[test]
fn the_table_is_as_long_as_promised() {
    let urls = REFUSED.iter().chain(REFUSED_URLS).map(|(text, _)| *text);
    let distinct: std::collections::HashSet<&str> = urls.collect();
    assert_eq!(distinct.len(), REFUSED.len() + REFUSED_URLS.len());
    assert!(distinct.len() >= 120);
}

#[tokio::test]
async fn no_spelling_of_a_special_address_is_ever_dialled() {
    let canary = Canary::start(OK).await;
    let egress = egress(EgressPolicy::default(), Script::default());
    for (host, expected) in REFUSED {
        let url = format!("http://{host}:{}/", canary.port);
        let found = egress.check_url(&url).map_err(|refusal| refusal.rule);
        assert_eq!(found.map(|_| ()), Err(*expected), "{host}");
        assert_eq!(rule(get(&egress, &url).await), *expected, "{host}");
    }
    assert_eq!(canary.hits(), 0);
}

#[tokio::test]
async fn odd_urls_are_refused_by_name_of_the_rule() {
    let egress = egress(EgressPolicy::default(), Script::default());
    for (url, expected) in REFUSED_URLS {
        let found = egress.check_url(url).map_err(|refusal| refusal.rule);
        assert_eq!(found.map(|_| ()), Err(*expected), "{url}");
        if Url::parse(url).is_ok() {
            assert_eq!(rule(get(&egress, url).await), *expected, "{url}");
        }
    }
}

#[test]
fn the_neighbours_of_special_ranges_are_public() {
    let egress = egress(EgressPolicy::default(), Script::default());
    for url in PUBLIC {
        assert!(egress.check_url(url).is_ok(), "{url}");
    }
}

#[test]
fn a_refusal_tells_the_rule_and_no_address() {
    let egress = egress(EgressPolicy::default(), Script::default());
    let refusal = egress.check_url("http://10.20.30.40/").unwrap_err();
    let text = refusal.to_string();
    assert!(text.contains("private network"), "{text}");
    assert!(!text.contains("10."), "{text}");
}

#[tokio::test]
async fn an_allowed_network_is_reached_and_its_neighbour_is_not() {
    let canary = Canary::start(OK).await;
    let net: IpNet = "127.0.0.0/30".parse().unwrap();
    let egress = egress(EgressPolicy::default().allowing(net), Script::default());
    for host in ["127.0.0.1", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}/", canary.port);
        assert!(egress.check_url(&url).is_ok(), "{host}");
    }
    let url = format!("http://127.0.0.1:{}/", canary.port);
    let answer = get(&egress, &url).await.unwrap();
    assert_eq!(&answer.bytes().await.unwrap()[..], b"ok");
    assert_eq!(canary.hits(), 1);
    let beyond = format!("http://127.0.0.4:{}/", canary.port);
    assert_eq!(rule(get(&egress, &beyond).await), Rule::Loopback);
}

/// Allowing the carrier of a mechanism does not allow what it carries.
#[test]
fn an_allowed_gateway_prefix_still_judges_the_address_inside() {
    let nat64: IpNet = "64:ff9b::/96".parse().unwrap();
    let egress = egress(EgressPolicy::default().allowing(nat64), Script::default());
    assert!(egress.check_url("http://[64:ff9b::1.1.1.1]/").is_ok());
    let inside = egress.check_url("http://[64:ff9b::10.0.0.1]/").unwrap_err();
    assert_eq!(inside.rule, Rule::Private);
}

#[test]
fn the_open_policy_is_for_people_and_still_keeps_metadata_out() {
    let egress = egress(EgressPolicy::open(), Script::default());
    for url in [
        "http://localhost:8080/",
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://0.0.0.0:9999/",
        "http://10.1.2.3/",
        "http://192.168.1.1/",
        "http://100.100.1.1/",
        "http://[fd00::1]/",
    ] {
        assert!(egress.check_url(url).is_ok(), "{url}");
    }
    for url in [
        "http://169.254.169.254/",
        "http://[fe80::1]/",
        "http://224.0.0.1/",
        "file:///etc/passwd",
        "http://u:p@localhost/",
    ] {
        assert!(egress.check_url(url).is_err(), "{url}");
    }
}

#[test]
fn https_and_ports_can_be_demanded() {
    let mut policy = EgressPolicy::default();
    policy.https_only = true;
    policy.allowed_ports = Some(vec![443, 8443]);
    let egress = egress(policy, Script::default());
    let rule = |url| egress.check_url(url).map(|_| ()).map_err(|r| r.rule);
    assert_eq!(rule("https://a.example/"), Ok(()));
    assert_eq!(rule("https://a.example:8443/"), Ok(()));
    assert_eq!(rule("http://a.example:443/"), Err(Rule::HttpsOnly));
    assert_eq!(rule("https://a.example:22/"), Err(Rule::Port));
}
