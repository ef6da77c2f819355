//! Certificates are checked, unless somebody says very clearly that they are not to be.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::{fs, thread};

use nuncio_egress::{EgressError, EgressPolicy, EgressRequest};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::support::{OK, Script, egress, get};

/// A certificate of another host that nobody has signed.
fn self_signed() -> ServerConfig {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .args("req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=else.example".split(' '))
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder.path())
        .output()
        .expect("this test needs the openssl program");
    assert!(made.status.success(), "{made:?}");
    let certificate =
        CertificateDer::from_pem_slice(&fs::read(folder.path().join("cert.pem")).unwrap());
    let key = PrivateKeyDer::from_pem_slice(&fs::read(folder.path().join("key.pem")).unwrap());
    ServerConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.unwrap()], key.unwrap())
        .unwrap()
}

fn server() -> String {
    let config = Arc::new(self_signed());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            // A client that does not like the certificate goes away here.
            if stream.read(&mut [0; 1024]).is_ok() {
                stream.write_all(OK.as_bytes()).unwrap();
                stream.conn.send_close_notify();
                stream.flush().unwrap();
            }
        }
    });
    url
}

#[tokio::test]
async fn a_bad_certificate_is_refused_unless_any_is_accepted() {
    let url = server();
    let strict = egress(EgressPolicy::open(), Script::default());
    let refused = get(&strict, &url).await.unwrap_err();
    assert!(
        matches!(refused, EgressError::Connect { .. }),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("certificate"), "{refused}");
    let mut policy = EgressPolicy::open();
    policy.accept_any_certificate = true;
    let lax = egress(policy.clone(), Script::default());
    let answer = get(&lax, &url).await.unwrap();
    assert_eq!(answer.bytes().await.unwrap(), "ok");
    // Which addresses may be dialled stays the same.
    policy.allow.clear();
    let guarded = egress(policy, Script::default());
    assert!(matches!(
        get(&guarded, &url).await,
        Err(EgressError::Refused(_))
    ));
}

#[test]
fn no_policy_accepts_any_certificate_by_itself() {
    assert!(!EgressPolicy::default().accept_any_certificate);
    assert!(!EgressPolicy::open().accept_any_certificate);
}

/// gRPC needs HTTP/2, and TLS is where that is agreed on.
#[tokio::test]
async fn http2_is_agreed_on_in_the_handshake() {
    let mut config = self_signed();
    config.alpn_protocols = vec![b"http/1.1".to_vec(), b"h2".to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let connection = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        let mut preface = [0; 14];
        stream.read_exact(&mut preface).unwrap();
        (stream.conn.alpn_protocol().unwrap().to_vec(), preface)
    });
    let mut policy = EgressPolicy::open();
    policy.accept_any_certificate = true;
    let egress = egress(policy, Script::default());
    let request = EgressRequest::get(url.parse().unwrap()).http2_only();
    egress.send(request).await.unwrap_err();
    let (protocol, preface) = server.join().unwrap();
    assert_eq!(
        (protocol.as_slice(), &preface),
        (&b"h2"[..], b"PRI * HTTP/2.0")
    );
}
