//! TLS with a certificate that is of another host and signed by nobody.

use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Makes a key and a certificate.
pub(crate) fn self_signed() -> Arc<ServerConfig> {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("openssl")
        .args("req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=else.example".split(' '))
        .args(["-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder.path())
        .output()
        .expect("this test needs the openssl program");
    assert!(made.status.success(), "{made:?}");
    let read = |name| fs::read(folder.path().join(name)).unwrap();
    let certificate = CertificateDer::from_pem_slice(&read("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(&read("key.pem")).unwrap();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let config = ServerConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    Arc::new(config.unwrap())
}

/// Shakes hands; `None` if the other side does not like the certificate.
pub(crate) fn accept(
    config: &Arc<ServerConfig>,
    mut stream: TcpStream,
) -> Option<StreamOwned<ServerConnection, TcpStream>> {
    let mut connection = ServerConnection::new(Arc::clone(config)).ok()?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).ok()?;
    }
    Some(StreamOwned::new(connection, stream))
}
