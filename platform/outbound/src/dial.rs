//! Opens byte streams to servers: TCP, with TLS where their addresses say so.

use std::{fmt, io, sync::Arc};

use platform_runtime::settings::{BaseUrl, Scheme};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, ToSocketAddrs},
};
use tokio_rustls::TlsConnector;

use crate::trust::{self, TrustError};

/// Byte stream to a server.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Opener of connections, with the certificates that it trusts.
#[derive(Clone, Default)]
pub struct Dialer {
    tls: Option<TlsConnector>,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("has_tls", &self.tls.is_some()).finish()
    }
}

impl Dialer {
    /// Creates an opener of connections for HTTP/1.1 to `base`. It trusts what this system trusts.
    ///
    /// # Errors
    /// If TLS is needed, and this system trusts nothing.
    pub fn to(base: &BaseUrl) -> Result<Self, TrustError> {
        if base.scheme == Scheme::Http {
            return Ok(Self::default());
        }
        let mut config = trust::system()?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self::with_tls(Arc::new(config)))
    }

    /// Creates an opener of connections with TLS.
    #[must_use]
    pub fn with_tls(config: Arc<ClientConfig>) -> Self {
        Self { tls: Some(config.into()) }
    }

    /// Opens a connection. The caller limits the time.
    ///
    /// # Errors
    /// If the connection fails, or the host's certificate is not trusted.
    pub async fn open(&self, host: &str, port: u16) -> io::Result<Box<dyn ByteStream>> {
        self.open_at((host, port), host).await
    }

    /// Opens a connection to an address of `host` that the caller has chosen.
    ///
    /// # Errors
    /// As for [`Dialer::open`].
    pub async fn open_at(&self, address: impl ToSocketAddrs, host: &str) -> io::Result<Box<dyn ByteStream>> {
        let stream = TcpStream::connect(address).await?;
        // Each message is written whole; waiting for more to send only delays it.
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let name = ServerName::try_from(host.to_owned()).map_err(invalid)?;
        Ok(Box::new(tls.connect(name, stream).await?))
    }
}

#[cfg(test)]
mod tests {
    use platform_runtime::task;
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use rustls::{
        RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer},
    };
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::Error;

    /// Serves one byte to each client that trusts the certificate, which is for `name`. Returns the port.
    async fn serve(name: &str) -> (u16, CertificateDer<'static>) {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed([name.to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let _server = task::spawn("tls server", async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    stream.write_all(b"x").await.unwrap();
                }
            }
        });
        (port, cert.der().clone())
    }

    fn trusting(certificate: CertificateDer<'static>) -> Dialer {
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        Dialer::with_tls(Arc::new(trust::only(roots).unwrap()))
    }

    /// Opens a connection that fails.
    async fn failure(dialer: Dialer, port: u16) -> Error {
        Error::unconnected(dialer.open("localhost", port).await.err().unwrap())
    }

    #[tokio::test]
    async fn only_a_trusted_name_gets_a_connection() {
        let (port, certificate) = serve("localhost").await;
        let (other, other_certificate) = serve("other.example").await;
        let mut stream = trusting(certificate.clone()).open("localhost", port).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'x', "the control");
        for (port, trusted) in
            [(port, other_certificate.clone()), (other, certificate), (other, other_certificate)]
        {
            let error = failure(trusting(trusted), port).await;
            assert!(matches!(error, Error::Untrusted(_)), "{error}");
        }
    }

    #[tokio::test]
    async fn a_port_without_tls_is_no_untrusted_one() {
        let (_port, certificate) = serve("localhost").await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let _server = task::spawn("plain server", async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            }
        });
        let error = failure(trusting(certificate), port).await;
        assert!(matches!(error, Error::Unconnected(_)), "{error}");
    }
}
