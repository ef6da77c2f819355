//! TLS at the listener and client certificates, with OpenSSL's certificates and curl as client.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::support::Server;

fn openssl(folder: &Path, arguments: &str) {
    let made = Command::new("openssl")
        .args(arguments.split(' '))
        .current_dir(folder)
        .output()
        .expect("this test needs the openssl program");
    assert!(made.status.success(), "{arguments}: {made:?}");
}

/// An authority, a server of 127.0.0.1 and a client, all in one folder.
fn certificates(folder: &Path) {
    openssl(
        folder,
        "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=authority -keyout ca.key -out ca.pem",
    );
    fs::write(folder.join("san"), "subjectAltName=IP:127.0.0.1").unwrap();
    for name in ["server", "client"] {
        openssl(
            folder,
            &format!(
                "req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
            ),
        );
        openssl(
            folder,
            &format!(
                "x509 -req -days 1 -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile san -out {name}.pem"
            ),
        );
    }
    openssl(folder, "x509 -in client.pem -outform DER -out client.der");
}

fn curl(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let done = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "20"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("this test needs the curl program");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    (done.status.code().unwrap_or(-1), text)
}

/// AUTH-01, AUTH-06: HTTP/2 over TLS, https in the card, and who shows a known certificate comes in.
#[test]
fn tls_and_client_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_owned();
    certificates(&at);
    let digest = Sha256::digest(fs::read(at.join("client.der")).unwrap());
    let digest: String = digest.iter().map(|b| format!("{b:02x}")).collect();
    let config = format!(
        "[server.tls]\ncertificate = \"{0}/server.pem\"\nkey = \"{0}/server.key\"\n\
         client_authorities = \"{0}/ca.pem\"\n\
         [[auth.certificates]]\nsha256 = \"{digest}\"\ncaller = \"machine\"\n\
         [[agents]]\nid = \"echo\"\nkind = \"echo\"\n",
        at.display()
    );
    let server = Server::configured(&config);
    let url = server.url.clone();
    assert!(url.starts_with("https://"), "{url}");
    let card = format!("{url}/.well-known/agent-card.json");
    let trust = ["--cacert", "ca.pem"];
    let (code, text) = curl(
        &at,
        &[&trust[..], &["--http2", "-w", "\n%{http_version}", &card]].concat(),
    );
    assert_eq!(code, 0, "{text}");
    let (body, version) = text.rsplit_once('\n').unwrap();
    assert_eq!(version, "2", "ALPN");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["url"], format!("{url}/agents/echo"));
    assert!(body["securitySchemes"]["mutualTls"].is_object(), "{body}");
    assert_ne!(curl(&at, &[&card]).0, 0, "an unknown authority");

    let tasks = format!("{url}/tasks");
    let shows = ["--cert", "client.pem", "--key", "client.key"];
    let status = ["-o", "/dev/null", "-w", "%{http_code}", &tasks];
    let (_, with) = curl(&at, &[&trust[..], &shows, &status].concat());
    let (_, without) = curl(&at, &[&trust[..], &status].concat());
    assert_eq!((with.as_str(), without.as_str()), ("200", "401"));
    // The server's own certificate is of the authority too, but of no caller.
    let other = ["--cert", "server.pem", "--key", "server.key"];
    let (_, other) = curl(&at, &[&trust[..], &other, &status].concat());
    assert_eq!(other, "401");
}

/// gRPC over TLS on the same port, told from the card alone.
#[test]
fn grpc_is_spoken_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().to_owned();
    certificates(&at);
    let config = format!(
        "[server.tls]\ncertificate = \"{0}/server.pem\"\nkey = \"{0}/server.key\"\n\
         [[agents]]\nid = \"echo\"\nkind = \"echo\"\n",
        at.display()
    );
    let server = Server::configured(&config);
    for version in ["1.0", "0.3"] {
        let options = [
            "--insecure",
            "--transport",
            "GRPC",
            "--a2a-version",
            version,
            "hello",
        ];
        let said = server.send(&options).exits(0);
        assert_eq!(said.field("State"), "COMPLETED", "{version}: {said:?}");
    }
}
