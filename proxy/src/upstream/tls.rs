//! Opens TLS sessions with the upstream: which certificates are trusted, and what is wrong when a session fails.
//!
//! The upstream's name is always verified, and nothing of a call is sent before it was.

use std::{fmt, io, path::PathBuf, sync::Arc};

use platform_outbound::trust::{self, TrustError};
use rustls::{
    CertificateError, InvalidMessage,
    pki_types::{InvalidDnsNameError, ServerName, pem},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

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
}

impl SetupError {
    fn of_file(path: PathBuf, error: TrustError) -> Self {
        match error {
            TrustError::Unreadable(source) => Self::CaFile { path, source },
            TrustError::Unusable(source) => Self::Certificate { path, source },
            TrustError::Empty => Self::Empty { path },
        }
    }
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
        let mut config = match ca_file {
            Some(path) => trust::only_file(&path).map_err(|error| SetupError::of_file(path, error))?,
            None => trust::system().map_err(|_nothing| SetupError::NoRoots)?,
        };
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
