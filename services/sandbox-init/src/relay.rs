//! Relays one connection of a bridge between its client and the server: bytes both ways, with bounded memory.
//!
//! The relay knows nothing of HTTP. Each side's end is passed on by itself, so either side may go on sending after the
//! other has finished. A slow reader slows its sender down.

use std::{io, pin::pin, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, sink},
    net::{TcpStream, UnixStream},
    time::timeout,
};

/// Bytes buffered for each direction of a connection.
const BUFFER_SIZE: usize = 16 << 10;
/// Time for the client to go on sending after the server has finished.
const LINGER_TIMEOUT: Duration = Duration::from_secs(30);

/// Connection whose two directions can be used at once, without a lock.
pub(crate) trait RelayIo {
    fn halves(&mut self) -> (impl AsyncRead + Send + Unpin + '_, impl AsyncWrite + Send + Unpin + '_);
}

impl RelayIo for TcpStream {
    fn halves(&mut self) -> (impl AsyncRead + Send + Unpin + '_, impl AsyncWrite + Send + Unpin + '_) {
        self.split()
    }
}

impl RelayIo for UnixStream {
    fn halves(&mut self) -> (impl AsyncRead + Send + Unpin + '_, impl AsyncWrite + Send + Unpin + '_) {
        self.split()
    }
}

/// Passes bytes between `client` and `server` until both have finished.
///
/// A failure of the server never keeps from the client the bytes that it can still get. A failure of the client ends
/// the relay.
pub(crate) async fn relay(client: &mut impl RelayIo, server: &mut impl RelayIo) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.halves();
    let (mut from_server, mut to_server) = server.halves();
    let mut asking = pin!(async {
        match forward(&mut from_client, &mut to_server).await {
            // The server stops reading a request that it refuses: the client must finish sending before it reads why.
            Err(ForwardError::Write(_)) => copy(&mut from_client, &mut sink()).await.map(drop),
            Err(ForwardError::Read(error)) => Err(error),
            Ok(()) => Ok(()),
        }
    });
    let mut answering = pin!(async {
        match forward(&mut from_server, &mut to_client).await {
            // The server closed without having read everything: an end like any other.
            Err(ForwardError::Read(_)) => to_client.shutdown().await,
            Err(ForwardError::Write(error)) => Err(error),
            Ok(()) => Ok(()),
        }
    });
    tokio::select! {
        asked = &mut asking => {
            asked?;
            answering.await
        }
        answered = &mut answering => {
            answered?;
            timeout(LINGER_TIMEOUT, asking).await?
        }
    }
}

/// Side of a direction that has failed.
enum ForwardError {
    /// The side that is read from.
    Read(io::Error),
    /// The side that is written to.
    Write(io::Error),
}

/// Passes bytes on until there are no more, and then passes the end on.
async fn forward(
    from: &mut (impl AsyncRead + Unpin),
    into: &mut (impl AsyncWrite + Unpin),
) -> Result<(), ForwardError> {
    let mut buffer = vec![0; BUFFER_SIZE];
    loop {
        match from.read(&mut buffer).await.map_err(ForwardError::Read)? {
            0 => return into.shutdown().await.map_err(ForwardError::Write),
            length => into.write_all(&buffer[..length]).await.map_err(ForwardError::Write)?,
        }
    }
}
