//! Issues certificates for servers under test, and connects to them over TLS.

use std::{fs, io, net::SocketAddr, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::tls_terminator::ca;

/// CA of a test, which issues certificates for `localhost`.
#[derive(Debug)]
pub struct TestCa {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// Certificate and private key of a server, in PEM.
#[derive(Debug)]
pub struct ServerIdentity {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Default for TestCa {
    fn default() -> Self {
        let (pem, issuer) = ca();
        Self { pem, issuer }
    }
}

impl TestCa {
    /// Issues a certificate for `localhost`, with a new key.
    ///
    /// # Panics
    /// If the system has no randomness.
    #[must_use]
    pub fn issue(&self) -> ServerIdentity {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        ServerIdentity {
            certificate: pem("CERTIFICATE", certificate.der()),
            key: pem("PRIVATE KEY", &key.serialize_der()),
        }
    }

    /// Opens a TLS session with the server at `address`, which must have a certificate of this CA for `localhost`.
    ///
    /// # Errors
    /// If it has another certificate, or no TLS.
    ///
    /// # Panics
    /// If the certificate of the CA is invalid.
    pub async fn connect(&self, address: SocketAddr) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TcpStream::connect(address).await?;
        TlsConnector::from(Arc::new(config)).connect(name, stream).await
    }
}

impl ServerIdentity {
    /// Writes the files `api.pem` and `api.key` into `dir`, the key closed to other users.
    ///
    /// # Panics
    /// If `dir` cannot be written.
    pub fn write(&self, dir: &Path) {
        fs::write(dir.join("api.pem"), &self.certificate).unwrap();
        let key = dir.join("api.key");
        fs::write(&key, &self.key).unwrap();
        fs::set_permissions(key, fs::Permissions::from_mode(0o600)).unwrap();
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}
