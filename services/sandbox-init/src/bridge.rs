//! Bridges ports of `localhost` and sockets in a mounted directory, all in one thread. The exit bridge leads out of the
//! sandbox to the proxy. The entry bridge leads in, to a server at a port inside.

use std::{
    convert::Infallible,
    fs::{self, Permissions},
    future::pending,
    io,
    net::{Ipv4Addr, Ipv6Addr},
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

/// Most connections out at a time. The proxy allows a run fewer, so it refuses the excess with a message. Connections
/// beyond this limit wait to be accepted.
const MAX_OUTBOUND: u64 = 1024;
/// Most connections in at a time.
const MAX_INBOUND: u64 = 64;
/// Descriptors that a connection needs.
const DESCRIPTORS_PER_CONNECTION: u64 = 2;
/// Descriptors kept for everything else.
const RESERVED_DESCRIPTORS: u64 = 32;
/// Delay after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);
/// Delay while the proxy's backlog is full; it doubles up to `MAX_CONNECT_RETRY_DELAY`.
const CONNECT_RETRY_DELAY: Duration = Duration::from_millis(10);
/// Longest delay while the proxy's backlog is full.
const MAX_CONNECT_RETRY_DELAY: Duration = Duration::from_millis(320);
/// Mode of a socket that leads in. Its directory, which belongs to the host, decides who may connect.
const ENTRY_MODE: u32 = 0o666;

/// Way out of the sandbox: a port of `localhost` that leads to a socket.
#[derive(Debug)]
pub(crate) struct ExitBridge {
    listener: TcpListener,
    /// At `::1`, if the sandbox has it: `localhost` means either.
    ipv6: Option<TcpListener>,
    socket: Arc<Path>,
}

impl ExitBridge {
    /// Binds `port`. Clients are served as soon as [`ExitBridge::serve`] runs.
    pub(crate) async fn listen(port: u16, socket: &Path) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(|source| Error::Listen { port, source })?;
        let ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.ok();
        Ok(Self { listener, ipv6, socket: socket.into() })
    }

    /// Serves clients inside the sandbox until dropped, which also ends their connections.
    pub(crate) async fn serve(self) -> Infallible {
        let Self { listener, ipv6, socket } = self;
        let handle = |client| relay_out(client, Arc::clone(&socket));
        let accept = async || {
            let ipv6 = async {
                match &ipv6 {
                    Some(ipv6) => ipv6.accept().await,
                    None => pending().await,
                }
            };
            let (client, _address) = tokio::select! {
                accepted = listener.accept() => accepted?,
                accepted = ipv6 => accepted?,
            };
            Ok(client)
        };
        serve(accept, handle, max_connections(MAX_OUTBOUND)).await
    }
}

/// Way into the sandbox: a socket that leads to a port of `localhost`.
#[derive(Debug)]
pub(crate) struct EntryBridge {
    listener: UnixListener,
    port: u16,
}

impl EntryBridge {
    /// Listens at `socket`, and replaces a socket there that no process serves any more.
    pub(crate) async fn listen(socket: &Path, port: u16) -> Result<Self, Error> {
        let listener =
            bind(socket).await.map_err(|source| Error::Entry { socket: socket.to_owned(), source })?;
        Ok(Self { listener, port })
    }

    /// Serves clients from outside until dropped, which also ends their connections.
    pub(crate) async fn serve(self) -> Infallible {
        let Self { listener, port } = self;
        let handle = |client| relay_in(client, port);
        serve(async || Ok(listener.accept().await?.0), handle, max_connections(MAX_INBOUND)).await
    }
}

/// Accepts connections, at most `max` at a time, and passes each to `handle`.
async fn serve<C, H>(
    accept: impl AsyncFn() -> io::Result<C>,
    handle: impl Fn(C) -> H,
    max: usize,
) -> Infallible
where
    H: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = accept(), if connections.len() < max => match accepted {
                Ok(client) => drop(connections.spawn(handle(client))),
                Err(_gone_or_no_descriptor) => sleep(ACCEPT_RETRY_DELAY).await,
            },
            Some(_ended) = connections.join_next() => {}
        }
    }
}

/// Returns the number of connections that may be open: `max`, or fewer if there are not enough descriptors.
fn max_connections(max: u64) -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let affordable = descriptors.saturating_sub(RESERVED_DESCRIPTORS) / DESCRIPTORS_PER_CONNECTION;
    usize::try_from(affordable.clamp(1, max)).unwrap_or(usize::MAX)
}

/// Relays a client's connection to the proxy; closes it if the proxy cannot be reached.
async fn relay_out(mut client: TcpStream, socket: Arc<Path>) -> io::Result<()> {
    // Each event of a stream is sent at once.
    client.set_nodelay(true)?;
    let mut proxy = connect(&socket).await?;
    relay(&mut client, &mut proxy).await
}

/// Relays a client's connection to the port; closes it if no server listens there.
async fn relay_in(mut client: UnixStream, port: u16) -> io::Result<()> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    server.set_nodelay(true)?;
    relay(&mut client, &mut server).await
}

/// Connects to `socket`, and retries while the proxy's backlog is full.
async fn connect(socket: &Path) -> io::Result<UnixStream> {
    let mut delay = CONNECT_RETRY_DELAY;
    loop {
        match UnixStream::connect(socket).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(delay).await,
            connected => return connected,
        }
        delay = (delay * 2).min(MAX_CONNECT_RETRY_DELAY);
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
