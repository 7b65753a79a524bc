//! connection opens byte streams to the API: TCP, with TLS for `https`.

use std::{fmt, io, sync::Arc};

use platform_runtime::settings::{BaseUrl, Scheme};
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use crate::error::Error;

/// Byte stream to the API.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

/// Opener of connections, with the certificates that it trusts.
#[derive(Clone)]
pub struct Dialer {
    tls: Option<TlsConnector>,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer").field("has_tls", &self.tls.is_some()).finish()
    }
}

impl Dialer {
    /// Creates an opener of connections to `base` that trusts what this system trusts.
    ///
    /// # Errors
    /// If TLS is needed, and this system trusts nothing.
    pub fn to(base: &BaseUrl) -> Result<Self, Error> {
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
    ///
    /// # Errors
    /// If the connection fails, or the host's certificate is not trusted.
    pub async fn open(&self, base: &BaseUrl) -> io::Result<Box<dyn ByteStream>> {
        let stream = TcpStream::connect((base.host.as_str(), base.port)).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let name = ServerName::try_from(base.host.clone()).map_err(invalid)?;
        Ok(Box::new(tls.connect(name, stream).await?))
    }
}

/// Returns whether a peer showed a certificate that is not trusted: no later try changes that.
#[must_use]
pub fn is_untrusted(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(inner, Some(rustls::Error::InvalidCertificate(_)))
}

#[cfg(test)]
mod tests {
    use platform_runtime::task;
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer},
    };
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };
    use tokio_rustls::TlsAcceptor;

    use super::*;

    /// Serves one byte to each client that trusts the certificate, which is for `name`.
    async fn serve(name: &str) -> (BaseUrl, CertificateDer<'static>) {
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
        (BaseUrl { scheme: Scheme::Https, host: "localhost".to_owned(), port }, cert.der().clone())
    }

    fn trusting(certificate: CertificateDer<'static>) -> Dialer {
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        Dialer::trusting(roots).unwrap()
    }

    #[tokio::test]
    async fn only_a_trusted_name_gets_a_connection() {
        let (base, certificate) = serve("localhost").await;
        let (other, other_certificate) = serve("other.example").await;
        let mut stream = trusting(certificate.clone()).open(&base).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), b'x', "the control");
        for (base, trusted) in
            [(&base, other_certificate.clone()), (&other, certificate), (&other, other_certificate)]
        {
            let error = trusting(trusted).open(base).await.err().unwrap();
            assert!(is_untrusted(&error), "{error}");
        }
    }

    #[tokio::test]
    async fn a_port_without_tls_is_no_untrusted_one() {
        let (mut base, certificate) = serve("localhost").await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        base.port = listener.local_addr().unwrap().port();
        let _server = task::spawn("plain server", async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            }
        });
        let error = trusting(certificate).open(&base).await.err().unwrap();
        assert!(!is_untrusted(&error), "{error}");
    }
}
