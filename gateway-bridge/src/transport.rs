//! Connects to an address by TCP, TLS or a unix socket, then upgrades to a WebSocket.
//!
//! The upgrade has no `Origin` and no header of a proxy. With either one, gateways treat the client as a browser or as
//! another program's client.

use std::{io, sync::Arc};

use platform_outbound::{ByteStream, Dialer, trust};
use platform_runtime::socket;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{self, client::IntoClientRequest, protocol::WebSocketConfig},
};

use crate::{
    endpoint::Endpoint,
    error::{DisconnectReason, Error},
    settings::Settings,
};

/// WebSocket over the stream that the address names.
pub(crate) type GatewaySocket = WebSocketStream<Box<dyn ByteStream>>;

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

async fn open(settings: &Settings) -> io::Result<Box<dyn ByteStream>> {
    match &settings.endpoint {
        // A gateway in a container has created this path, possibly as a link to another socket of this host.
        Endpoint::Unix(path) => Ok(Box::new(socket::connect(path).await?)),
        Endpoint::Tcp { host, port } => Dialer::default().open(host, *port).await,
        Endpoint::Tls { host, port } => {
            let config = match &settings.tls {
                Some(config) => config.clone(),
                None => Arc::new(trust::system().map_err(|_empty| {
                    io::Error::new(io::ErrorKind::NotFound, "the system has no CA certificates")
                })?),
            };
            Dialer::with_tls(config).open(host, *port).await
        }
    }
}
