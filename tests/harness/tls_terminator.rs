//! Terminates TLS in front of an upstream, with a good or a faulty certificate.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::{HandshakeKind, ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

/// Fault of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    /// No fault: the certificate is for `localhost`, and signed by the CA.
    Good,
    /// The certificate has expired.
    Expired,
    /// The certificate is for another name.
    OtherName,
    /// The certificate is signed by another CA of the same name.
    OtherIssuer,
    /// The certificate is signed only by itself.
    SelfSigned,
}

/// A server that accepts TLS connections and forwards their plain bytes.
#[derive(Debug)]
pub struct TlsTerminator {
    address: SocketAddr,
    /// Certificate of its CA, in PEM.
    pub ca: String,
    sessions: Arc<Mutex<Vec<HandshakeKind>>>,
}

impl TlsTerminator {
    /// Starts a terminator in front of `target`.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn to(target: SocketAddr, certificate: Certificate) -> Self {
        let (ca, config) = identity(certificate);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let terminator = Self { address: listener.local_addr().unwrap(), ca, sessions: Arc::default() };
        let sessions = Arc::clone(&terminator.sessions);
        platform_runtime::task::spawn("TLS terminator", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, sessions) = (acceptor.clone(), Arc::clone(&sessions));
                platform_runtime::task::spawn("TLS connection", async move {
                    let Ok(mut session) = acceptor.accept(stream).await else { return };
                    let kind = session.get_ref().1.handshake_kind();
                    sessions.lock().unwrap_or_else(PoisonError::into_inner).extend(kind);
                    let mut plain = TcpStream::connect(target).await.unwrap();
                    drop(copy_bidirectional(&mut session, &mut plain).await);
                });
            }
        });
        terminator
    }

    /// Returns `https://localhost:PORT`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    /// Returns the kind of handshake of each session so far.
    #[must_use]
    pub fn sessions(&self) -> Vec<HandshakeKind> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns the certificate of a new CA in PEM, and what it issues certificates with.
pub(crate) fn ca() -> (String, Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "a CA of a test");
    let certificate = params.self_signed(&key).unwrap();
    let pem = format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        STANDARD.encode(certificate.der())
    );
    (pem, Issuer::new(params, key))
}

fn identity(certificate: Certificate) -> (String, ServerConfig) {
    let (pem, issuer) = ca();
    let key = KeyPair::generate().unwrap();
    let name = if certificate == Certificate::OtherName { "elsewhere.example" } else { "localhost" };
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    if certificate == Certificate::Expired {
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
    }
    let signed = match certificate {
        Certificate::SelfSigned => params.self_signed(&key),
        Certificate::OtherIssuer => params.signed_by(&key, &ca().1),
        Certificate::Good | Certificate::Expired | Certificate::OtherName => params.signed_by(&key, &issuer),
    };
    let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.unwrap().der().clone()], private)
        .unwrap();
    (pem, config)
}
