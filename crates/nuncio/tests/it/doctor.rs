//! `nuncio doctor`: a healthy server, and each way to be ill.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::fake::{Fake, Request};
use crate::support::{Said, Server, nuncio, run};

/// The key `alpha`.
const KEYS: &str = "[[auth.keys]]\n\
    sha256 = \"8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\"\n\
    caller = \"a\"\n";

fn doctor(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Said {
    let mut command = nuncio(folder);
    command.arg("doctor").args(arguments);
    command.envs(environment.iter().copied());
    run(command, "")
}

/// Examines a server that runs, by its configuration.
fn examine(server: &Server, more: &[&str]) -> Said {
    let listen = server.url.rsplit('/').next().unwrap();
    let config = server.folder.path().join("nuncio.toml");
    let arguments = [&["--config", config.to_str().unwrap()], more].concat();
    let listen = [("NUNCIO__SERVER__LISTEN", listen)];
    doctor(server.folder.path(), &arguments, &listen)
}

fn at(url: &str, more: &[&str]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    doctor(folder.path(), &[&["--url", url], more].concat(), &[])
}

/// The lines with this beginning, without latencies.
fn lines<'a>(said: &'a Said, beginning: &str) -> Vec<&'a str> {
    let lines = said.out.lines();
    lines.filter(|line| line.starts_with(beginning)).collect()
}

#[track_caller]
fn has(said: &Said, beginning: &str, words: &[&str]) {
    let found = lines(said, beginning);
    let fits = |line: &&&str| words.iter().all(|word| line.contains(word));
    assert!(
        found.iter().find(fits).is_some(),
        "{beginning} {words:?}: {}",
        said.out
    );
}

/// BR-100: every interface of our own card answers.
#[test]
fn a_server_that_runs_well_has_no_errors() {
    let server = Server::configured(
        "[[agents]]\nid = \"one\"\nkind = \"echo\"\n[[agents]]\nid = \"two\"\nkind = \"echo\"\n",
    );
    let said = examine(&server, &[]).exits(0);
    assert!(said.err.is_empty(), "{said:?}");
    has(&said, "Ok: configuration: ", &["nuncio.toml", "one, two"]);
    has(&said, "Ok: data folder: ", &["can be written"]);
    has(&said, "Ok: store: ", &["intact", "in use"]);
    has(&said, "Ok: listen: ", &["a nuncio answers at"]);
    has(&said, "Ok: /livez: ", &["ms"]);
    has(&said, "Ok: /readyz: ", &["ms"]);
    let url = &server.url;
    for version in ["1.0", "0.3"] {
        for agent in ["one", "two"] {
            for binding in ["JSONRPC", "HTTP+JSON"] {
                let what = format!("Ok: interface {binding} {version} {url}/agents/{agent}: ");
                has(&said, &what, &["it answers (", " ms)"]);
            }
        }
        let address = url.strip_prefix("http://").unwrap();
        let what = format!("Ok: interface GRPC {version} {address}: ");
        has(&said, &what, &["it answers (", " ms)"]);
    }
    let address = url.strip_prefix("http://").unwrap();
    let what = format!("Ok: interface GRPC 1.0 {address} tenant two: ");
    has(&said, &what, &["it answers ("]);
    assert_eq!(said.field("Warnings"), "0", "{}", said.out);
    assert_eq!(said.field("Errors"), "0");

    let outside = at(url, &[]).exits(0);
    has(
        &outside,
        &format!("Ok: card {url}/.well-known/agent-card.json: "),
        &["is found under each name"],
    );
    has(&outside, "Ok: /readyz: ", &[]);
    assert!(!outside.out.contains("Ok: store"), "{outside:?}");
    at(&format!("{url}/agents/two"), &[]).exits(0);
}

#[test]
fn json_is_a_list_of_checks() {
    let server = Server::echo();
    let said = at(&server.url, &["-o", "json"]).exits(0).json();
    let checks = said.as_array().unwrap();
    assert!(checks.len() > 5, "{said}");
    for check in checks {
        let status = check["status"].as_str().unwrap();
        assert!(["ok", "warning"].contains(&status), "{check}");
        assert!(
            check["check"].is_string() && check["message"].is_string(),
            "{check}"
        );
    }
    let called = checks.iter().find(|check| {
        let what = check["check"].as_str().unwrap();
        what.starts_with("interface JSONRPC 1.0")
    });
    assert!(called.unwrap()["latencyMs"].is_u64(), "{said}");
    let ill = at("http://127.0.0.1:1", &["-o", "json"]).exits(1).json();
    assert_eq!(ill[0]["status"], "error");
    assert!(ill[0]["hint"].is_string(), "{ill}");
    let wrong = at("http://127.0.0.1:1", &["-o", "json", "--keys", "nowhere"]).exits(2);
    assert_eq!(wrong.json()["error"]["code"], "A2ACLI_ERR_USAGE");
}

/// BR-098, BR-100: the address in the card is the one that fails, and it is named.
#[test]
fn a_wrong_public_url_is_told_with_each_interface() {
    let server = Server::configured("[server]\npublic_url = \"http://127.0.0.1:1/y\"\n");
    let said = examine(&server, &[]).exits(1);
    has(
        &said,
        "Error: public address: ",
        &["http://127.0.0.1:1/y", "server.public_url"],
    );
    for binding in ["JSONRPC", "HTTP+JSON"] {
        let what = format!("Error: interface {binding} 1.0 http://127.0.0.1:1/y/agents/echo: ");
        has(&said, &what, &["connect", "server.public_url"]);
    }
    // Without a path gRPC is offered too.
    let bare = Server::configured("[server]\npublic_url = \"http://127.0.0.1:1\"\n");
    let said = examine(&bare, &[]).exits(1);
    for version in ["1.0", "0.3"] {
        for binding in ["JSONRPC", "HTTP+JSON", "GRPC"] {
            let what = format!("Error: interface {binding} {version} ");
            has(&said, &what, &["127.0.0.1:1", "connect"]);
        }
    }
    let outside = at(&server.url, &[]).exits(1);
    has(&outside, "Warning: interface JSONRPC 1.0 ", &["elsewhere"]);
    has(&outside, "Error: interface JSONRPC 1.0 ", &["connect"]);
}

#[test]
fn keys_are_asked_for_and_taken() {
    let server = Server::configured(KEYS);
    let without = examine(&server, &[]).exits(0);
    let with = examine(&server, &["--api-key", "alpha"]).exits(0);
    let wrong = examine(&server, &["--api-key", "beta"]).exits(0);
    for version in ["1.0", "0.3"] {
        for binding in ["JSONRPC", "HTTP+JSON", "GRPC"] {
            let what = format!("interface {binding} {version} ");
            let asks = ["asks for a credential", "--api-key"];
            has(&without, &format!("Ok: {what}"), &asks);
            has(&with, &format!("Ok: {what}"), &["it answers ("]);
            has(
                &wrong,
                &format!("Warning: {what}"),
                &["refuses the credential"],
            );
        }
    }
    assert!(!wrong.out.contains("beta"), "{wrong:?}");
}

#[test]
fn a_card_that_names_another_place_is_found_out() {
    // Its interface leads to a page, as behind a proxy that has lost the prefix.
    let page = |request: &Request| match request.line.starts_with("POST") {
        true => ("200 OK", "text/html", "<html>hello</html>".to_owned()),
        false => ("404 Not Found", "text/html", "<html>".to_owned()),
    };
    let said = at(&Fake::answering(page).url, &[]).exits(1);
    has(&said, "Error: interface JSONRPC 1.0 ", &["text/html"]);
    has(&said, "Warning: card ", &["agent.json: ", "404"]);
    let plain = |_: &Request| {
        (
            "404 Not Found",
            "application/json",
            "{\"detail\": \"Not Found\"}".to_owned(),
        )
    };
    let interface = |url: &str, binding: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": "1.0"});
    let fake = Fake::answering(plain);
    let rest = json!([
        interface(&fake.url, "HTTP+JSON"),
        interface("http://0.0.0.0:9/", "JSONRPC"),
        interface("https://x.example/odd", "https://x.example/pigeon")
    ]);
    let other = Fake::with_card(json!({"supportedInterfaces": rest}), plain);
    let said = at(&other.url, &[]).exits(1);
    has(
        &said,
        "Error: interface HTTP+JSON 1.0 ",
        &["but: Not Found"],
    );
    has(&said, "Warning: interface HTTP+JSON 1.0 ", &["elsewhere"]);
    has(&said, "Error: card ", &["BR-098", "nobody can call it"]);
    has(
        &said,
        "Error: interface JSONRPC 1.0 http://0.0.0.0:9/: ",
        &[],
    );
    has(
        &said,
        "Warning: interface https://x.example/pigeon 1.0 ",
        &["not called"],
    );
}

#[test]
fn a_proxy_that_keeps_the_pulse_to_itself_is_looked_through() {
    let behind = |request: &Request| {
        if request.line.starts_with("GET") {
            return ("404 Not Found", "text/plain", "no".to_owned());
        }
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let error = json!({"code": -32001, "message": "Task not found"});
        let answer = json!({"jsonrpc": "2.0", "id": body["id"], "error": error});
        ("200 OK", "application/json", answer.to_string())
    };
    let fake = Fake::answering(behind);
    let said = by(&format!("{FREE}public_url = \"{}\"\n", fake.url)).exits(0);
    has(&said, "Warning: /livez: ", &["404", "proxy"]);
    has(&said, "Ok: interface JSONRPC 1.0 ", &["it answers ("]);
    let down = Fake::bare(|_| ("502 Bad Gateway", "text/plain", String::new()));
    let said = by(&format!("{FREE}public_url = \"{}\"\n", down.url)).exits(0);
    has(&said, "Warning: server: ", &["does not run here"]);
}

/// MAP-02: an agent of 0.3 is called in the words of 0.3.
#[test]
fn an_older_agent_is_called_as_it_speaks() {
    let unknown = |request: &Request| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(body["method"], "tasks/get");
        let error = json!({"code": -32001, "message": "Task not found"});
        let answer = json!({"jsonrpc": "2.0", "id": body["id"], "error": error});
        ("200 OK", "application/json", answer.to_string())
    };
    let fake = Fake::answering(unknown);
    let interfaces =
        json!([{"url": fake.url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}]);
    let other = Fake::with_card(json!({"supportedInterfaces": interfaces}), unknown);
    let said = at(&other.url, &[]).exits(0);
    has(&said, "Ok: interface JSONRPC 0.3 ", &["it answers ("]);
}

#[test]
fn an_untrusted_certificate_is_an_error() {
    let fake = Fake::behind_tls(|_| unreachable!());
    let said = at(&fake.url, &[]).exits(1);
    has(&said, "Error: card of https://", &["certificate"]);
}

#[test]
fn tls_of_the_server_itself_is_judged_as_callers_do() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .args("req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=else.example".split(' '))
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder.path())
        .output()
        .expect("this test needs the openssl program");
    assert!(made.status.success(), "{made:?}");
    let at = folder.path().display();
    let tls = format!("[server.tls]\ncertificate = \"{at}/cert.pem\"\nkey = \"{at}/key.pem\"\n");
    let server = Server::configured(&tls);
    let said = examine(&server, &[]).exits(1);
    has(&said, "Ok: TLS: ", &["fit"]);
    has(&said, "Ok: listen: ", &["https://"]);
    has(
        &said,
        "Error: /livez: ",
        &["certificate", "server.public_url"],
    );
    // Who takes any certificate sees the rest, gRPC over TLS included.
    let listen = server.url.rsplit('/').next().unwrap();
    let config = server.folder.path().join("nuncio.toml");
    let said = doctor(
        server.folder.path(),
        &["--config", config.to_str().unwrap()],
        &[
            ("NUNCIO__SERVER__LISTEN", listen),
            ("A2ACLI_INSECURE", "true"),
        ],
    );
    let said = said.exits(0);
    has(&said, "Ok: interface GRPC 1.0 ", &["it answers ("]);
    assert!(said.err.contains("SECURITY"), "{said:?}");
}

#[test]
fn signatures_are_verified_with_the_keys_at_hand() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["key.pem", "other.pem"] {
        let mut command = nuncio(folder.path());
        command.args(["keys", "create", "--card", name]);
        run(command, "").exits(0);
    }
    let path = |name: &str| folder.path().join(name).display().to_string();
    let config = format!("[server]\ncard_key = \"{}\"\n", path("key.pem"));
    let server = Server::configured(&config);
    let said = examine(&server, &[]).exits(0);
    has(&said, "Ok: card key: ", &["signs as"]);
    has(&said, "Ok: card http", &["it is signed by"]);
    has(
        &at(&server.url, &[]).exits(0),
        "Ok: card http",
        &["--keys would verify"],
    );
    let right = at(&server.url, &["--keys", &path("key.jwks.json")]).exits(0);
    has(&right, "Ok: card http", &["it is signed by"]);
    let wrong = at(&server.url, &["--keys", &path("other.jwks.json")]).exits(1);
    has(&wrong, "Error: card http", &["signature is invalid"]);
    let unsigned = Server::echo();
    let said = at(&unsigned.url, &["--keys", &path("key.jwks.json")]).exits(1);
    has(&said, "Error: card http", &["not signed"]);
}

fn config(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("nuncio.toml"), text).unwrap();
    folder
}

fn by(text: &str) -> Said {
    let folder = config(text);
    doctor(folder.path(), &["--config", "nuncio.toml"], &[])
}

const FREE: &str = "[server]\nlisten = \"127.0.0.1:0\"\n";

#[test]
fn what_does_not_run_yet_is_only_warned_of() {
    let said = by(FREE).exits(0);
    has(&said, "Ok: data folder: ", &["is made at the first start"]);
    has(&said, "Ok: store: ", &["is made at the first start"]);
    has(&said, "Ok: auth: ", &["without a credential"]);
    has(&said, "Ok: webhooks: ", &["public addresses"]);
    has(&said, "Warning: server: ", &["does not run here"]);
    let nothing = config("");
    assert_eq!(fs::read_dir(nothing.path()).unwrap().count(), 1);
    doctor(
        nothing.path(),
        &["--config", "nuncio.toml"],
        &[("NUNCIO__SERVER__LISTEN", "127.0.0.1:0")],
    )
    .exits(0);
    assert_eq!(
        fs::read_dir(nothing.path()).unwrap().count(),
        1,
        "nothing is left behind"
    );
}

#[test]
fn mistakes_in_the_configuration_are_told_as_checks() {
    let said = by("[server]\nlisten = \"nowhere\"\ndrain_seconds = 9999\n").exits(1);
    has(
        &said,
        "Error: configuration: ",
        &["nuncio.toml:2: server.listen", "hint: "],
    );
    has(
        &said,
        "Error: configuration: ",
        &["nuncio.toml:3: server.drain_seconds"],
    );
    assert_eq!(said.field("Errors"), "2");
    let said = by("[server\n").exits(1);
    has(&said, "Error: configuration: ", &["failed to parse"]);
    let folder = tempfile::tempdir().unwrap();
    let said = doctor(folder.path(), &["--config", "nowhere.toml"], &[]).exits(1);
    has(&said, "Error: configuration: ", &["nowhere.toml"]);
    doctor(folder.path(), &["--config", "a", "--url", "b"], &[]).exits(2);
}

/// BR-098, BR-146.
#[test]
fn exposure_is_warned_of() {
    let said = by("[server]\nlisten = \"0.0.0.0:0\"\n").exits(0);
    has(
        &said,
        "Warning: exposure: ",
        &["open to the network", "`serve` refuses", "[[auth.keys]]"],
    );
    let said = by(&format!("[server]\nlisten = \"0.0.0.0:0\"\n{KEYS}")).exits(0);
    has(
        &said,
        "Warning: configuration: ",
        &["set server.public_url"],
    );
    let said = by(&format!(
        "[server]\nlisten = \"0.0.0.0:0\"\npublic_url = \"http://localhost\"\n{KEYS}"
    ));
    has(
        &said.exits(0),
        "Warning: exposure: ",
        &["their own machine"],
    );
    let said = by(&format!("{FREE}public_url = \"http://0.0.0.0\"\n")).exits(1);
    has(&said, "Error: exposure: ", &["nobody can call it"]);
    let said = by(&format!("{FREE}public_url = \"https://agents.invalid\"\n")).exits(0);
    has(&said, "Warning: exposure: ", &["needs no key"]);
    let said = by(&format!(
        "{FREE}[webhooks]\nallow_networks = [\"127.0.0.0/8\", \"10.0.0.0/8\"]\n"
    ));
    has(
        &said.exits(0),
        "Warning: webhooks: ",
        &["127.0.0.0/8", "this machine"],
    );
    let said = by(&format!("{FREE}[store]\nurl = \"memory:\"\n")).exits(0);
    has(&said, "Warning: store: ", &["in memory"]);
}

#[test]
fn files_that_are_missing_wrong_or_open_to_others_are_named() {
    let text = format!(
        "{FREE}card_key = \"absent.pem\"\n[server.tls]\ncertificate = \"a.pem\"\nkey = \"b.pem\"\n"
    );
    let said = by(&text).exits(1);
    has(&said, "Error: TLS: ", &["a.pem"]);
    has(&said, "Error: card key: ", &["absent.pem"]);
    let folder = config(&format!("{FREE}data = \"data\"\n"));
    fs::write(folder.path().join("data"), "").unwrap();
    let said = doctor(folder.path(), &["--config", "nuncio.toml"], &[]).exits(1);
    has(&said, "Error: data folder: ", &["is no folder"]);
    fs::remove_file(folder.path().join("data")).unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(
        folder.path().join("data/nuncio.db"),
        "not a database, by far",
    )
    .unwrap();
    fs::write(folder.path().join("data/token.key"), [0; 32]).unwrap();
    let said = doctor(folder.path(), &["--config", "nuncio.toml"], &[]).exits(1);
    has(&said, "Error: store: ", &["failed to check"]);
    #[cfg(unix)]
    {
        has(
            &said,
            "Warning: data folder: ",
            &["open to others", "chmod 700"],
        );
        has(&said, "Warning: secrets: ", &["token.key", "chmod 600"]);
    }
}

#[test]
fn a_port_that_another_program_has_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let answering = Fake::bare(|_| ("200 OK", "text/html", "hello".to_owned()));
    let busy = answering.url.strip_prefix("http://").unwrap().to_owned();
    let said = by(&format!("[server]\nlisten = \"{busy}\"\n")).exits(1);
    has(&said, "Error: listen: ", &["another program", &busy]);
    drop(taken);
    let said = by(&format!("[server]\nlisten = \"{address}\"\n")).exits(0);
    has(&said, "Ok: listen: ", &["is free"]);
    let value: Value = json!("192.0.2.1:8080");
    let said = by(&format!("[server]\nlisten = {value}\n{KEYS}")).exits(1);
    has(&said, "Error: listen: ", &["failed to listen"]);
}
