//! Opens TLS sessions with the upstream: which certificates are trusted, and what is wrong when a session fails.
//!
//! The upstream's name is always verified, and nothing of a call is sent before it was.

use std::{fmt, io, path::PathBuf, sync::Arc};

use platform_core::limit::ByteSize;
use platform_runtime::{file, report};
use rustls::{
    CertificateError, ClientConfig, InvalidMessage, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, InvalidDnsNameError, ServerName, pem, pem::PemObject},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// Largest file of CA certificates that is read.
const MAX_CA_FILE: ByteSize = ByteSize::mib(4);

/// Reason why TLS cannot be set up from the settings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    /// The file of CA certificates cannot be read, or holds something else.
    #[error("cannot read upstream.ca_file {}", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: pem::Error,
    },
    /// A certificate in the file is not a CA's.
    #[error("upstream.ca_file {} has a certificate that cannot be used", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Cause of the failure.
        #[source]
        source: rustls::Error,
    },
    /// The file has no certificate.
    #[error("upstream.ca_file {} has no certificate", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// This machine trusts no CA, as in an empty image.
    #[error("this system has no CA certificates: name those of the upstream in upstream.ca_file")]
    NoRoots,
    /// The host is not a valid name for a certificate.
    #[error("{host} is not a name that a certificate can have")]
    Name {
        /// Host from the settings.
        host: String,
        /// Cause of the failure.
        #[source]
        source: InvalidDnsNameError,
    },
    /// The TLS versions are not supported, which the compiled-in provider makes impossible.
    #[error("cannot set up TLS")]
    Versions(#[source] rustls::Error),
}

/// Opener of TLS sessions with one upstream, which resumes earlier ones.
pub(super) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tls {
    /// Creates an opener of sessions with `host`. The host's certificate is signed by one in `ca_file`; without a file
    /// by any that the system trusts.
    ///
    /// # Errors
    /// If that leaves no CA to trust.
    pub(super) fn new(host: &str, ca_file: Option<PathBuf>) -> Result<Self, SetupError> {
        let roots = match ca_file {
            Some(path) => roots_from_file(path)?,
            None => roots_from_system()?,
        };
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(SetupError::Versions)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(host.to_owned())
            .map_err(|source| SetupError::Name { host: host.to_owned(), source })?;
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }

    /// Opens a session over `stream`, and verifies the upstream's name.
    pub(super) async fn over(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.connector.connect(self.name.clone(), stream).await
    }
}

fn roots_from_file(path: PathBuf) -> Result<RootCertStore, SetupError> {
    let mut roots = RootCertStore::empty();
    let unreadable = |source| SetupError::CaFile { path: path.clone(), source };
    let text = file::text(&path, MAX_CA_FILE).map_err(|error| unreadable(pem::Error::Io(error)))?;
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        let certificate = certificate.map_err(unreadable)?;
        roots.add(certificate).map_err(|source| SetupError::Certificate { path: path.clone(), source })?;
    }
    if roots.is_empty() { Err(SetupError::Empty { path }) } else { Ok(roots) }
}

fn roots_from_system() -> Result<RootCertStore, SetupError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!(error = report::chain(error), "some of the system's CA certificates cannot be read");
    }
    let mut roots = RootCertStore::empty();
    let (_, unusable) = roots.add_parsable_certificates(found.certs);
    tracing::debug!(usable = roots.len(), unusable, "read the system's CA certificates");
    if roots.is_empty() { Err(SetupError::NoRoots) } else { Ok(roots) }
}

/// Reason why a session failed, in words that help an operator to fix it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TlsProblem {
    UnknownIssuer,
    Expired,
    NotYetValid,
    WrongName,
    NotTls,
    Other,
}

impl TlsProblem {
    /// Returns the problem behind the `error` of a handshake.
    pub(super) fn of(error: &io::Error) -> Self {
        let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
            return Self::Other;
        };
        match error {
            rustls::Error::InvalidCertificate(certificate) => match certificate {
                CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::UnknownIssuer,
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    Self::NotYetValid
                }
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    Self::WrongName
                }
                _ => Self::Other,
            },
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => Self::NotTls,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for TlsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownIssuer => {
                "no trusted authority has signed its certificate; name the CA in upstream.ca_file"
            }
            Self::Expired => "its certificate has run out",
            Self::NotYetValid => "its certificate holds from a later time on; are the clocks right?",
            Self::WrongName => "its certificate is for another name than the one in upstream.base_url",
            Self::NotTls => "it does not speak TLS on this port; is upstream.base_url http:// there?",
            Self::Other => "the handshake failed",
        })
    }
}
