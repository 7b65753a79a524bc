//! Serves the hops that are measured as peers and are not products. They show how little a hop can cost, and which part of
//! a proxy does cost that much.

mod hyper_relay;
mod relay;
mod skeleton;

use std::{
    io, net::SocketAddr, os::unix::net::UnixListener as StdUnixListener, path::PathBuf, rc::Rc, thread,
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream},
    task::{LocalSet, spawn_local},
};

use self::{hyper_relay::HyperRelay, skeleton::Skeleton};

/// Kind of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum HopKind {
    /// Copies bytes, one connection to the upstream for each of a client
    Relay,
    /// Forwards requests with hyper's server and client; headers are copied, connections pooled per thread
    HyperRelay,
    /// Makes Sluicegate's system calls and parses nothing
    Skeleton,
}

/// Listeners, upstream and threads of a hop.
#[derive(Debug, Clone, clap::Args)]
pub struct Hop {
    /// Kind of the hop
    kind: HopKind,
    /// Unix socket to listen on
    pub socket: PathBuf,
    /// Address to listen on
    pub address: SocketAddr,
    /// Address to forward to
    pub upstream: SocketAddr,
    /// Directory for files that are written
    pub dir: PathBuf,
    /// Number of threads, each with its own runtime
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// PEM file of the authority of an upstream that speaks TLS
    #[arg(long)]
    pub authority: Option<PathBuf>,
}

/// Connection of a client.
enum Accepted {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Hop {
    /// Serves until the process is killed.
    ///
    /// # Errors
    /// If a listener cannot be bound.
    pub fn serve(self) -> io::Result<()> {
        let unix = StdUnixListener::bind(&self.socket)?;
        unix.set_nonblocking(true)?;
        let mut threads = Vec::new();
        for _ in 1..self.threads {
            let (hop, unix) = (self.clone(), unix.try_clone()?);
            threads.push(thread::spawn(move || hop.serve_thread(unix)));
        }
        self.serve_thread(unix)?;
        threads.into_iter().try_for_each(|thread| {
            thread.join().map_err(|_panicked| io::Error::other("a thread of the hop panicked"))?
        })
    }

    fn serve_thread(&self, unix: StdUnixListener) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        LocalSet::new().block_on(&runtime, async {
            let listeners =
                Listeners { unix: UnixListener::from_std(unix)?, tcp: bind_shared(self.address)? };
            match self.kind {
                HopKind::Relay => self.relay(listeners).await,
                HopKind::HyperRelay => self.relay_with_hyper(listeners).await,
                HopKind::Skeleton => self.make_system_calls(listeners).await,
            }
        })
    }

    async fn relay(&self, listeners: Listeners) -> io::Result<()> {
        let upstream = self.upstream;
        loop {
            match listeners.accept().await? {
                Accepted::Unix(client) => drop(spawn_local(relay::serve(client, upstream))),
                Accepted::Tcp(client) => drop(spawn_local(relay::serve(client, upstream))),
            }
        }
    }

    async fn relay_with_hyper(&self, listeners: Listeners) -> io::Result<()> {
        let relay = Rc::new(HyperRelay::new(self.upstream, self.authority.as_deref())?);
        loop {
            let relay = Rc::clone(&relay);
            match listeners.accept().await? {
                Accepted::Unix(client) => drop(spawn_local(relay.serve(client))),
                Accepted::Tcp(client) => drop(spawn_local(relay.serve(client))),
            }
        }
    }

    async fn make_system_calls(&self, listeners: Listeners) -> io::Result<()> {
        let skeleton = Rc::new(Skeleton::new(&self.dir, self.upstream)?);
        loop {
            let skeleton = Rc::clone(&skeleton);
            match listeners.accept().await? {
                Accepted::Unix(client) => drop(spawn_local(skeleton.serve(client.into_std()?))),
                Accepted::Tcp(client) => drop(spawn_local(skeleton.serve(client.into_std()?))),
            }
        }
    }
}

struct Listeners {
    unix: UnixListener,
    tcp: TcpListener,
}

impl Listeners {
    async fn accept(&self) -> io::Result<Accepted> {
        tokio::select! {
            accepted = self.unix.accept() => Ok(Accepted::Unix(accepted?.0)),
            accepted = self.tcp.accept() => {
                let client = accepted?.0;
                client.set_nodelay(true)?;
                Ok(Accepted::Tcp(client))
            }
        }
    }
}

/// Binds a listener at an address that other threads listen on as well. The kernel divides connections among them.
///
/// # Errors
/// If the address is not free.
pub(crate) fn bind_shared(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(4096)
}
