//! dial opens connections to a server of the settings, and to no other.

use std::sync::Arc;

use platform_runtime::settings::{BaseUrl, Scheme};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
};
use tokio_rustls::TlsConnector;

use super::address::choose;
use crate::{error::ServerError, text::quote};

/// Byte stream to a server.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Opener of connections, with the certificates that this system trusts.
#[derive(Clone)]
pub(super) struct Dialer(Option<TlsConnector>);

impl Dialer {
    /// Creates an opener of connections to `base`.
    ///
    /// # Errors
    /// If TLS is needed, and this system trusts nothing.
    pub(super) fn to(base: &BaseUrl) -> Result<Self, ServerError> {
        if base.scheme == Scheme::Http {
            return Ok(Self(None));
        }
        let nothing = || ServerError::Unreachable { problem: "this system trusts no certificate".to_owned() };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(nothing());
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(|_error| nothing())?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Some(TlsConnector::from(Arc::new(config)))))
    }

    /// Opens a connection. The caller limits the time.
    pub(super) async fn open(&self, base: &BaseUrl) -> Result<Box<dyn ByteStream>, ServerError> {
        let unreachable =
            |error: std::io::Error| ServerError::Unreachable { problem: quote(&error.to_string()) };
        let found = lookup_host((base.host.as_str(), base.port)).await.map_err(unreachable)?;
        let stream = TcpStream::connect(choose(&base.host, found)?).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let Some(tls) = &self.0 else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(base.host.clone())
            .map_err(|error| ServerError::Unreachable { problem: error.to_string() })?;
        Ok(Box::new(tls.connect(name, stream).await.map_err(unreachable)?))
    }
}
