//! Connects to an address by TCP, TLS or a unix socket, then upgrades to a WebSocket.
//!
//! The upgrade has no `Origin` and no header of a proxy. With either one, gateways treat the client as a browser or as
//! another program's client.

use std::{io, sync::Arc};

use platform_runtime::socket;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{self, client::IntoClientRequest, protocol::WebSocketConfig},
};

use crate::{
    endpoint::Endpoint,
    error::{DisconnectReason, Error},
    settings::Settings,
};

/// Byte stream that a WebSocket runs over.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// WebSocket over the stream that the address names.
pub(crate) type GatewaySocket = WebSocketStream<Box<dyn Stream>>;

/// Size of the read buffer; tungstenite's own choice is 128 KiB for each connection.
const READ_BUFFER_SIZE: usize = 16 * 1024;

/// Connects and upgrades. The caller limits the time.
pub(crate) async fn connect(settings: &Settings) -> Result<GatewaySocket, Error> {
    let endpoint = &settings.endpoint;
    let unreachable =
        |source| Error::Unreachable { endpoint: endpoint.to_string(), source: Arc::new(source) };
    let stream = open(settings).await.map_err(unreachable)?;
    let receive = settings.limits.receive.as_usize();
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_SIZE)
        .max_message_size(Some(receive))
        .max_frame_size(Some(receive));
    let request = format!("ws://{}/", endpoint.authority()).into_client_request().map_err(|error| {
        let source = io::Error::new(io::ErrorKind::InvalidInput, error);
        Error::Unreachable { endpoint: endpoint.to_string(), source: Arc::new(source) }
    })?;
    match client_async_with_config(request, stream, Some(config)).await {
        Ok((socket, _response)) => Ok(socket),
        Err(tungstenite::Error::Http(response)) => {
            Err(Error::NotUpgraded { status: response.status().as_u16() })
        }
        Err(tungstenite::Error::Io(source)) => Err(unreachable(source)),
        Err(_other) => Err(Error::Disconnected { why: DisconnectReason::Protocol }),
    }
}

async fn open(settings: &Settings) -> io::Result<Box<dyn Stream>> {
    match &settings.endpoint {
        // A gateway in a container has created this path, possibly as a link to another socket of this host.
        Endpoint::Unix(path) => Ok(Box::new(socket::connect(path).await?)),
        Endpoint::Tcp { host, port } => Ok(Box::new(tcp(host, *port).await?)),
        Endpoint::Tls { host, port } => {
            let config = match &settings.tls {
                Some(config) => config.clone(),
                None => Arc::new(system_config()?),
            };
            let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
            let name = ServerName::try_from(host.clone()).map_err(invalid)?;
            let stream = tcp(host, *port).await?;
            Ok(Box::new(TlsConnector::from(config).connect(name, stream).await?))
        }
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // Each frame is written whole; waiting for more to send only delays it.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Returns a TLS configuration that trusts what the operating system trusts.
fn system_config() -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the system has no CA certificates"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
