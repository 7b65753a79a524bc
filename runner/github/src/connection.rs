//! connection opens byte streams to the API: TCP, with TLS for `https`.

use std::{io, sync::Arc};

use platform_runtime::settings::{BaseUrl, Scheme};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use crate::error::Error;

/// Byte stream to the API.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Opener of connections, with the certificates that it trusts.
#[derive(Clone)]
pub(crate) struct Dialer {
    tls: Option<TlsConnector>,
}

impl Dialer {
    /// Creates an opener of connections to `base` that trusts what this system trusts.
    ///
    /// # Errors
    /// If TLS is needed, and this system trusts nothing.
    pub(crate) fn to(base: &BaseUrl) -> Result<Self, Error> {
        if base.scheme == Scheme::Http {
            return Ok(Self { tls: None });
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Self::trusting(roots)
    }

    /// Creates an opener of connections that trusts `roots`.
    pub(crate) fn trusting(roots: RootCertStore) -> Result<Self, Error> {
        if roots.is_empty() {
            return Err(Error::NoRoots);
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        // The compiled-in provider has the safe versions.
        let builder = builder.with_safe_default_protocol_versions().map_err(|_error| Error::NoRoots)?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { tls: Some(TlsConnector::from(Arc::new(config))) })
    }

    /// Opens a connection. The caller limits the time.
    pub(crate) async fn open(&self, base: &BaseUrl) -> io::Result<Box<dyn ByteStream>> {
        let stream = TcpStream::connect((base.host.as_str(), base.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let name = ServerName::try_from(base.host.clone()).map_err(invalid)?;
        Ok(Box::new(tls.connect(name, stream).await?))
    }
}

/// Returns whether a peer showed a certificate that is not trusted: no later try changes that.
pub(crate) fn is_untrusted(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}
