//! Reads the certificate and the key of the API, and serves later connections with a new pair after a reload.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use platform_core::limit::ByteSize;
use platform_runtime::{
    file::{self, Unread},
    settings,
    sync::RwLock,
    trust::Trusted,
};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
};
use tokio_rustls::TlsAcceptor;

/// Largest file of certificates or of a key.
const MAX_FILE: ByteSize = ByteSize::mib(1);

/// Reason why the API has no TLS identity.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of certificates cannot be read.
    #[error("cannot read api.tls_certificate {}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// The file of certificates holds none, or something else.
    #[error("api.tls_certificate {} is not a certificate in PEM", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// The file of the key cannot be read, or other users can read or change it.
    #[error("cannot read api.tls_key {}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Error of the read.
        #[source]
        source: Unread,
    },
    /// The file of the key holds none, or something else.
    #[error("api.tls_key {} is not a private key in PEM", path.display())]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The certificate and the key do not fit each other, or one is of an unknown kind.
    #[error(
        "api.tls_certificate {} and api.tls_key {} cannot be used together",
        certificate.display(),
        key.display()
    )]
    Pair {
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
        /// Reason of the refusal.
        #[source]
        source: rustls::Error,
    },
}

/// TLS identity of the API, which a reload replaces for connections to come. Clones share it.
#[derive(Clone)]
pub struct TlsIdentity {
    files: settings::ApiTls,
    current: Arc<RwLock<Arc<ServerConfig>>>,
}

/// Certificate and key that were read and fit each other, but are not served yet.
pub struct ReadIdentity(Arc<ServerConfig>);

impl TlsIdentity {
    /// Reads the identity in `files`.
    ///
    /// # Errors
    /// If a file cannot be read or used, or if other users can read the key.
    pub(crate) fn load(files: &settings::ApiTls) -> Result<Self, TlsError> {
        let ReadIdentity(config) = read(files)?;
        Ok(Self { files: files.clone(), current: Arc::new(RwLock::new(config)) })
    }

    /// Reads the files again, and serves the present identity on.
    ///
    /// # Errors
    /// If a file cannot be read or used, or if other users can read the key.
    pub fn read_again(&self) -> Result<ReadIdentity, TlsError> {
        read(&self.files)
    }

    /// Serves later connections with `identity`. Open ones go on.
    pub fn replace(&self, ReadIdentity(config): ReadIdentity) {
        *self.current.write() = config;
    }

    /// Returns an acceptor with the present identity.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current.read()))
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").field("files", &self.files).finish_non_exhaustive()
    }
}

impl fmt::Debug for ReadIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadIdentity(…)")
    }
}

fn read(files: &settings::ApiTls) -> Result<ReadIdentity, TlsError> {
    let settings::ApiTls { certificate, key } = files;
    let unusable = |source| TlsError::Pair { certificate: certificate.clone(), key: key.clone(), source };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(read_certificates(certificate)?, read_key(key)?)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(ReadIdentity(Arc::new(config)))
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unread = |source| TlsError::Certificate { path: path.to_owned(), source };
    let text = file::text(path, MAX_FILE).map_err(unread)?;
    let certificates: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let certificates = certificates.ok().filter(|certificates| !certificates.is_empty());
    certificates.ok_or_else(|| TlsError::NoCertificate { path: path.to_owned() })
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let unread = |source| TlsError::Key { path: path.to_owned(), source };
    let text = file::secret(path, MAX_FILE, &Trusted::own()).map_err(unread)?;
    let key = PrivateKeyDer::from_pem_slice(text.expose().as_bytes());
    // The cause may show a part of the key.
    key.map_err(|_shows_the_file| TlsError::NoKey { path: path.to_owned() })
}
