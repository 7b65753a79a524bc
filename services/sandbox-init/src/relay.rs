//! One connection of a bridge, from its client to whoever serves and back: bytes both ways, with bounded memory.
//!
//! It knows nothing of HTTP. Each side's end is passed on by itself, so either may go on speaking after the other has
//! finished; whoever reads slowly is read from slowly.

use std::{io, pin::pin, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, sink},
    net::{TcpStream, UnixStream},
    time::timeout,
};

/// Bytes held of each direction of a connection.
const BUFFER: usize = 16 << 10;
/// How long a client may go on after the server has said its last.
const LINGER: Duration = Duration::from_secs(30);

/// A connection whose two directions can be used at once, without a lock.
pub(crate) trait Wire {
    fn halves(&mut self) -> (impl AsyncRead + Send + Unpin + '_, impl AsyncWrite + Send + Unpin + '_);
}

impl Wire for TcpStream {
    fn halves(&mut self) -> (impl AsyncRead + Send + Unpin + '_, impl AsyncWrite + Send + Unpin + '_) {
        self.split()
    }
}

impl Wire for UnixStream {
    fn halves(&mut self) -> (impl AsyncRead + Send + Unpin + '_, impl AsyncWrite + Send + Unpin + '_) {
        self.split()
    }
}

/// Passes on what `client` and `server` say until both have finished.
///
/// What goes wrong with the server is never a reason to keep from the client what it can still get; once something is wrong
/// with the client, there is nobody left.
pub(crate) async fn relay(client: &mut impl Wire, server: &mut impl Wire) -> io::Result<()> {
    let (mut from_client, mut to_client) = client.halves();
    let (mut from_server, mut to_server) = server.halves();
    let mut asking = pin!(async {
        match pour(&mut from_client, &mut to_server).await {
            // It takes no more of a request that it refuses: its client has to finish to get to read why.
            Err(Broken::Into(_)) => copy(&mut from_client, &mut sink()).await.map(drop),
            Err(Broken::From(error)) => Err(error),
            Ok(()) => Ok(()),
        }
    });
    let mut answering = pin!(async {
        match pour(&mut from_server, &mut to_client).await {
            // It closed without having read everything: an end like another.
            Err(Broken::From(_)) => to_client.shutdown().await,
            Err(Broken::Into(error)) => Err(error),
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
            timeout(LINGER, asking).await?
        }
    }
}

/// Which side of a direction has failed.
enum Broken {
    From(io::Error),
    Into(io::Error),
}

/// Passes bytes on until there are no more, and then that there are no more.
async fn pour(
    from: &mut (impl AsyncRead + Unpin),
    into: &mut (impl AsyncWrite + Unpin),
) -> Result<(), Broken> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer).await.map_err(Broken::From)? {
            0 => return into.shutdown().await.map_err(Broken::Into),
            length => into.write_all(&buffer[..length]).await.map_err(Broken::Into)?,
        }
    }
}
