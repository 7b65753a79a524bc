//! Tests TLS: a gateway is trusted only with a certificate for its name.

use std::sync::Arc;

use platform_outbound::trust;
use rustls::{RootCertStore, ServerConfig, pki_types::PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::accept_async;

use crate::{Error, Settings, transport};

#[tokio::test]
async fn only_the_named_gateway_is_trusted() {
    let [certificate, other] =
        [(); 2].map(|()| rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap());
    let key = PrivateKeyDer::try_from(certificate.signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let serving = async {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(stream) = acceptor.accept(stream).await {
                drop(accept_async(stream).await);
            }
        }
    };
    let settings = |host: &str, trusted: bool| {
        let mut roots = RootCertStore::empty();
        let root = if trusted { &certificate } else { &other };
        roots.add(root.cert.der().clone()).unwrap();
        let config = trust::only(roots).unwrap();
        let endpoint = format!("wss://{host}:{port}").parse().unwrap();
        Settings { tls: Some(Arc::new(config)), ..Settings::new(endpoint, None) }
    };
    let handshake = async {
        for (host, trusted, believed) in
            [("localhost", true, true), ("localhost", false, false), ("127.0.0.1", true, false)]
        {
            match transport::connect(&settings(host, trusted)).await {
                Ok(_) => assert!(believed, "{host} {trusted}"),
                Err(error @ Error::Unreachable { .. }) => assert!(!believed, "{host} {trusted}: {error:?}"),
                Err(error) => panic!("{error:?}"),
            }
        }
    };
    tokio::select! {
        () = handshake => {}
        () = serving => {}
    }
}
