//! Copies bytes to the upstream and back, without parsing them: the least that a hop can do.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

/// Relays a client's connection until either side closes.
pub(super) async fn serve(mut client: impl AsyncRead + AsyncWrite + Unpin, upstream: SocketAddr) {
    if let Ok(mut server) = TcpStream::connect(upstream).await
        && server.set_nodelay(true).is_ok()
    {
        drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
    }
}
