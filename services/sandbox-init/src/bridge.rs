//! Bridges ports of `localhost` and sockets in a mounted directory, all in one thread. The exit leads out of the
//! sandbox to the proxy; the entry leads to a server at a port inside.

use std::{
    convert::Infallible,
    fs::{self, Permissions},
    io,
    net::Ipv4Addr,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::Path,
    sync::Arc,
    time::Duration,
};

use rustix::process::{Resource, getrlimit};
use tokio::{
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    task::JoinSet,
    time::sleep,
};

use crate::{error::Error, relay::relay};

/// Most connections out at a time: more than the proxy allows a run, so that the proxy refuses the excess with a
/// message. Further ones wait to be accepted.
const CLIENTS: u64 = 1024;
/// Most connections in at a time.
const VISITORS: u64 = 64;
/// Descriptors that a connection needs.
const DESCRIPTORS: u64 = 2;
/// Descriptors kept for everything else.
const RESERVED: u64 = 32;
/// Delay before a connection that failed for lack of resources is retried; it doubles up to `LONGEST_PAUSE`.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(320);
/// Mode of a socket that leads in. Its directory, which belongs to the host, decides who may connect.
const ENTRY_MODE: u32 = 0o666;

/// Way out of the sandbox: a port of `localhost` that leads to a socket.
#[derive(Debug)]
pub(crate) struct Exit {
    listener: TcpListener,
    socket: Arc<Path>,
}

impl Exit {
    /// Binds `port`. Clients are served as soon as [`Exit::serve`] runs.
    pub(crate) async fn listen(port: u16, socket: &Path) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(|source| Error::Listen { port, source })?;
        Ok(Self { listener, socket: socket.into() })
    }

    /// Serves clients until dropped, which also ends their connections.
    pub(crate) async fn serve(self) -> Infallible {
        let Self { listener, socket } = self;
        let lead = |client| lead_out(client, Arc::clone(&socket));
        serve(async || Ok(listener.accept().await?.0), lead, connections(CLIENTS)).await
    }
}

/// Way into the sandbox: a socket that leads to a port of `localhost`.
#[derive(Debug)]
pub(crate) struct Entry {
    listener: UnixListener,
    port: u16,
}

impl Entry {
    /// Listens at `socket`, and replaces a socket that an earlier process left there.
    pub(crate) async fn listen(socket: &Path, port: u16) -> Result<Self, Error> {
        let listener =
            bind(socket).await.map_err(|source| Error::Entry { socket: socket.to_owned(), source })?;
        Ok(Self { listener, port })
    }

    /// Serves visitors until dropped, which also ends their connections.
    pub(crate) async fn serve(self) -> Infallible {
        let Self { listener, port } = self;
        let lead = |visitor| lead_in(visitor, port);
        serve(async || Ok(listener.accept().await?.0), lead, connections(VISITORS)).await
    }
}

async fn serve<C, L>(
    accept: impl AsyncFn() -> io::Result<C>,
    lead: impl Fn(C) -> L,
    most: usize,
) -> Infallible
where
    L: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = accept(), if connections.len() < most => match accepted {
                Ok(client) => drop(connections.spawn(lead(client))),
                Err(_gone_or_no_room) => sleep(PAUSE).await,
            },
            Some(_ended) = connections.join_next() => {}
        }
    }
}

/// Returns how many connections may be open: `most`, or fewer if there are not enough descriptors.
fn connections(most: u64) -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let room = (descriptors.saturating_sub(RESERVED) / DESCRIPTORS).clamp(1, most);
    usize::try_from(room).unwrap_or(usize::MAX)
}

/// Connects a client to the proxy; closes its connection if the proxy cannot be reached.
async fn lead_out(mut client: TcpStream, socket: Arc<Path>) -> io::Result<()> {
    // Events of a stream must not wait for each other.
    client.set_nodelay(true)?;
    let mut proxy = connect(&socket).await?;
    relay(&mut client, &mut proxy).await
}

/// Connects a visitor to the port; closes its connection if no server listens there.
async fn lead_in(mut visitor: UnixStream, port: u16) -> io::Result<()> {
    let mut host = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    host.set_nodelay(true)?;
    relay(&mut visitor, &mut host).await
}

/// Connects, and waits while the proxy's backlog is full.
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

/// Listens at `socket`. Replaces an existing socket only if no process listens there.
async fn bind(socket: &Path) -> io::Result<UnixListener> {
    let listener = match UnixListener::bind(socket) {
        Err(taken) if taken.kind() == io::ErrorKind::AddrInUse => {
            if !is_abandoned(socket).await {
                return Err(taken);
            }
            fs::remove_file(socket)?;
            UnixListener::bind(socket)?
        }
        bound => bound?,
    };
    fs::set_permissions(socket, Permissions::from_mode(ENTRY_MODE))?;
    Ok(listener)
}

async fn is_abandoned(socket: &Path) -> bool {
    let is_socket = fs::symlink_metadata(socket).is_ok_and(|found| found.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(socket).await.is_err_and(refused)
}
