//! The bridge from `localhost` to the run's socket: bytes both ways, in one thread, with bounded memory.
//!
//! It knows nothing of HTTP. Each side's end is passed on by itself, so either may go on speaking after the other has
//! finished; whoever reads slowly is read from slowly.

use std::{convert::Infallible, io, net::Ipv4Addr, path::Path, pin::pin, sync::Arc, time::Duration};

use rustix::process::{Resource, getrlimit};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, sink},
    net::{TcpListener, TcpStream, UnixStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::error::Error;

/// Most connections at a time: more than the proxy gives a run, so that it is the proxy who refuses, in words. Beyond that they
/// wait to be accepted.
const CONNECTIONS: u64 = 1024;
/// Descriptors of a connection.
const DESCRIPTORS: u64 = 2;
/// Descriptors for everything else.
const RESERVED: u64 = 32;
/// Bytes held of each direction of a connection.
const BUFFER: usize = 16 << 10;
/// How long a client may go on after the proxy has said its last.
const LINGER: Duration = Duration::from_secs(30);
/// Before what failed for want of room is tried again, and the longest such pause.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(320);

/// A port of `localhost` that is listened on.
#[derive(Debug)]
pub(crate) struct Bridge {
    listener: TcpListener,
    socket: Arc<Path>,
    most: usize,
}

impl Bridge {
    /// Takes `port`. Who connects is served as soon as [`Bridge::serve`] is.
    pub(crate) async fn listen(port: u16, socket: &Path) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(|source| Error::Listen { port, source })?;
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Ok(Self { listener, socket: socket.into(), most: connections(descriptors) })
    }

    /// Serves clients until it is dropped, and they with it.
    pub(crate) async fn serve(self) -> Infallible {
        let mut clients = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if clients.len() < self.most => match accepted {
                    Ok((client, _)) => drop(clients.spawn(relay(client, Arc::clone(&self.socket)))),
                    Err(_gone_or_no_room) => sleep(PAUSE).await,
                },
                Some(_ended) = clients.join_next() => {}
            }
        }
    }
}

/// How many connections there may be in a process with so many descriptors.
fn connections(descriptors: u64) -> usize {
    let most = (descriptors.saturating_sub(RESERVED) / DESCRIPTORS).clamp(1, CONNECTIONS);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// One connection, from its client to the proxy and back. A client that gets no proxy is hung up on.
///
/// What goes wrong with the proxy is never a reason to keep from the client what it can still get; once something is wrong
/// with the client, there is nobody left.
async fn relay(mut client: TcpStream, socket: Arc<Path>) -> io::Result<()> {
    // Events of a stream must not wait for each other.
    client.set_nodelay(true)?;
    let mut proxy = connect(&socket).await?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_proxy, mut to_proxy) = proxy.split();
    let mut asking = pin!(async {
        match pour(&mut from_client, &mut to_proxy).await {
            // It takes no more of a request that it refuses: its client has to finish to get to read why.
            Err(Broken::Into(_)) => copy(&mut from_client, &mut sink()).await.map(drop),
            Err(Broken::From(error)) => Err(error),
            Ok(()) => Ok(()),
        }
    });
    let mut answering = pin!(async {
        match pour(&mut from_proxy, &mut to_client).await {
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

/// Connects, and waits while more want to than the proxy has room for.
async fn connect(socket: &Path) -> io::Result<UnixStream> {
    let mut pause = PAUSE;
    loop {
        match UnixStream::connect(socket).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(pause).await,
            connected => return connected,
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
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
