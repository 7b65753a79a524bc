//! Opens a new connection to the upstream, each step within its own timeout.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, Instant},
};

use platform_core::record::Timeout;
use rustix::{io::Errno, net::sockopt};
use tokio::{net::TcpStream, time::timeout};

use super::{
    resolve::Resolver,
    tls::{Problem, Tls},
    wire::Stream,
};

/// Most addresses that are tried for one connection.
const MOST_ADDRESSES: usize = 4;
/// Time within which a dead peer is detected: an upstream may think for an hour without a byte, but its machine may
/// also have gone without a word.
const SILENCE: Duration = Duration::from_secs(30);
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(10);
const ASKED_AGAIN: u32 = 3;

/// Reason why there is no connection: nothing was sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The name of the upstream cannot be resolved.
    #[error("the name {host} cannot be looked up")]
    Name {
        /// Name of the upstream.
        host: String,
        /// The resolver's error.
        #[source]
        source: io::Error,
    },
    /// The upstream does not accept connections.
    #[error("no connection to {address}")]
    Connect {
        /// Address that was tried last.
        address: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The upstream neither accepts nor refuses.
    #[error("no connection within {limit:?}")]
    ConnectTimeout {
        /// Timeout that passed.
        limit: Duration,
    },
    /// The upstream accepts, but is not trusted or does not speak TLS.
    #[error("no TLS session with {host}: {problem}")]
    Tls {
        /// Name of the upstream.
        host: String,
        /// Kind of problem.
        problem: Problem,
        /// Error in detail.
        #[source]
        source: io::Error,
    },
    /// The upstream accepts, and sends nothing.
    #[error("no TLS session within {limit:?}")]
    TlsTimeout {
        /// Timeout that passed.
        limit: Duration,
    },
}

impl Failure {
    /// Returns the timeout that passed, if one did, and its length.
    pub(crate) const fn timeout(&self) -> Option<(Timeout, Duration)> {
        match *self {
            Self::ConnectTimeout { limit } => Some((Timeout::Connect, limit)),
            Self::TlsTimeout { limit } => Some((Timeout::Tls, limit)),
            Self::Name { .. } | Self::Connect { .. } | Self::Tls { .. } => None,
        }
    }

    /// Returns whether this machine has no descriptors, ports or memory left: that says nothing of the upstream.
    pub(super) fn is_ours(&self) -> bool {
        const OURS: [Errno; 5] =
            [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL];
        let (Self::Name { source, .. } | Self::Connect { source, .. } | Self::Tls { source, .. }) = self
        else {
            return false;
        };
        source.raw_os_error().is_some_and(|code| OURS.iter().any(|ours| ours.raw_os_error() == code))
    }
}

/// Opens connections.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) resolver: Resolver,
    pub(super) tls: Option<Tls>,
    /// Longest wait for a connection, the look-up of the name included.
    pub(super) connect: Duration,
    /// Longest wait for a TLS session on it.
    pub(super) handshake: Duration,
}

impl Connector {
    /// Opens a connection over which a request may be sent. Dropping the future gives it up.
    pub(super) async fn connect(&self) -> Result<Stream, Failure> {
        let connected = timeout(self.connect, self.reach()).await;
        let limit = self.connect;
        let stream = connected.unwrap_or(Err(Failure::ConnectTimeout { limit }))?;
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(stream)) };
        let limit = self.handshake;
        let session =
            timeout(limit, tls.over(stream)).await.map_err(|_elapsed| Failure::TlsTimeout { limit })?;
        let untrusted = |source| Failure::Tls {
            host: self.resolver.host().to_owned(),
            problem: Problem::of(&source),
            source,
        };
        Ok(Stream::Tls(Box::new(session.map_err(untrusted)?)))
    }

    /// Tries one address after the other, each for its share of the time that is left.
    async fn reach(&self) -> Result<TcpStream, Failure> {
        let began = Instant::now();
        let unknown = |source| Failure::Name { host: self.resolver.host().to_owned(), source };
        let mut addresses = self.resolver.addresses(self.connect / 2).await.map_err(unknown)?;
        addresses.truncate(MOST_ADDRESSES);
        let mut failure = Failure::ConnectTimeout { limit: self.connect };
        for (tried, address) in addresses.iter().enumerate() {
            let left = self.connect.saturating_sub(began.elapsed());
            let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            match timeout(share, open(*address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(source)) => failure = Failure::Connect { address: *address, source },
                Err(_elapsed) => failure = Failure::ConnectTimeout { limit: self.connect },
            }
            self.resolver.avoid(*address);
        }
        Err(failure)
    }
}

async fn open(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    sockopt::set_tcp_keepidle(&stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(&stream, ASKED_AGAIN_AFTER)?;
    sockopt::set_tcp_keepcnt(&stream, ASKED_AGAIN)?;
    sockopt::set_socket_keepalive(&stream, true)?;
    Ok(stream)
}
