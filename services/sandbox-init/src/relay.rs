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

/// Connection with two directions that can be used at once, without a lock.
pub(crate) trait RelayIo {
    /// Returns the directions to read from and to write to.
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
/// After a failure of the server the client still gets all bytes that have arrived. A failure of the client ends the
/// relay.
pub(crate) async fn relay(client: &mut impl RelayIo, server: &mut impl RelayIo) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.halves();
    let (mut from_server, mut to_server) = server.halves();
    let mut upload = pin!(async {
        match forward(&mut from_client, &mut to_server).await {
            // The server stopped reading, as it does after a refusal. The client must finish sending before it reads
            // the answer.
            Err(ForwardError::Write(_)) => copy(&mut from_client, &mut sink()).await.map(drop),
            Err(ForwardError::Read(error)) => Err(error),
            Ok(()) => Ok(()),
        }
    });
    let mut download = pin!(async {
        match forward(&mut from_server, &mut to_client).await {
            // The server closed without having read everything. The client gets that as a normal end.
            Err(ForwardError::Read(_)) => to_client.shutdown().await,
            Err(ForwardError::Write(error)) => Err(error),
            Ok(()) => Ok(()),
        }
    });
    tokio::select! {
        uploaded = &mut upload => {
            uploaded?;
            download.await
        }
        downloaded = &mut download => {
            downloaded?;
            timeout(LINGER_TIMEOUT, upload).await?
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

/// Passes bytes on until the sender ends, and then passes the end on.
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
