//! Makes the certificate of an upstream that speaks TLS, and the configurations of both sides.

use std::{
    fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, pem::PemObject},
    version::{TLS12, TLS13},
};

/// Name on the certificate, beside the loopback address.
const NAME: &str = "localhost";

/// An upstream's certificate, which is its own authority, and its key.
#[derive(Debug)]
pub struct Identity {
    /// PEM file that clients trust.
    pub authority: PathBuf,
    /// Configuration of the server.
    pub server: Arc<ServerConfig>,
}

impl Identity {
    /// Makes a certificate and writes it into `dir`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let names = [NAME.to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).map_err(io::Error::other)?;
        let authority = dir.join("authority.pem");
        let certificate = STANDARD.encode(made.cert.der());
        let pem = format!("-----BEGIN CERTIFICATE-----\n{certificate}\n-----END CERTIFICATE-----\n");
        fs::write(&authority, pem)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .map_err(io::Error::other)?;
        Ok(Self { authority, server: Arc::new(server) })
    }
}

/// Returns the configuration of a client that trusts the certificates of a PEM file.
///
/// # Errors
/// If the file has no certificates.
pub fn trusting(authority: &Path) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority).map_err(io::Error::other)? {
        roots.add(certificate.map_err(io::Error::other)?).map_err(io::Error::other)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

/// Returns the name that clients expect on the certificate.
#[must_use]
pub fn server_name() -> ServerName<'static> {
    ServerName::try_from(NAME).unwrap_or(Ipv4Addr::LOCALHOST.into())
}
