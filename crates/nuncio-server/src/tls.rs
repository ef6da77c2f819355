//! TLS at the listener, with client certificates if wanted (AUTH-01).

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::auth::ClientCertificate;

/// What a listener proves itself with. TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
}

/// Why TLS cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// Not a chain of certificates in PEM form.
    #[error("cannot read the certificates: {0}")]
    Certificates(String),
    /// Not a private key in PEM form.
    #[error("cannot read the private key: {0}")]
    Key(String),
    /// The key does not belong to the certificate, or the like.
    #[error("{0}")]
    Unusable(String),
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads a chain, the server's own certificate first, and its key; both PEM.
    ///
    /// With the certificates of authorities, clients may show a certificate that one of those has
    /// issued. Showing none is no error here: who must come in how is the authenticator's business.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn from_pem(
        chain: &[u8],
        key: &[u8],
        client_authorities: Option<&[u8]>,
    ) -> Result<Self, TlsError> {
        let chain = certificates(chain)?;
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::Key(error.to_string()))?;
        let unusable = |error: &dyn fmt::Display| TlsError::Unusable(error.to_string());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let builder = match client_authorities {
            None => builder.with_no_client_auth(),
            Some(authorities) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(authorities)? {
                    roots.add(authority).map_err(|error| unusable(&error))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .allow_unauthenticated()
                        .build()
                        .map_err(|error| unusable(&error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| unusable(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            config: Arc::new(config),
        })
    }

    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> std::io::Result<(TlsStream<TcpStream>, Option<ClientCertificate>)> {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.config));
        let stream = acceptor.accept(stream).await?;
        let shown = stream.get_ref().1.peer_certificates();
        let leaf = shown.and_then(|chain| chain.first());
        let certificate = leaf.map(|leaf| ClientCertificate(Sha256::digest(leaf).into()));
        Ok((stream, certificate))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let chain = read.map_err(|error| TlsError::Certificates(error.to_string()))?;
    if chain.is_empty() {
        return Err(TlsError::Certificates("there is none".to_owned()));
    }
    Ok(chain)
}
