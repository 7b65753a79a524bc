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
    io::TransportStream,
    resolve::Resolver,
    tls::{Tls, TlsProblem},
};

/// Most addresses that are tried for one connection.
const MAX_ADDRESSES: usize = 4;
/// Time within which a dead peer is detected: an upstream may work for an hour without sending a byte, but its machine
/// may also have vanished.
const KEEPALIVE_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// Reason why a connection failed: nothing was sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
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
        problem: TlsProblem,
        /// Error in detail.
        #[source]
        source: io::Error,
    },
    /// The upstream accepts, and does not complete a TLS session.
    #[error("no TLS session within {limit:?}")]
    TlsTimeout {
        /// Timeout that passed.
        limit: Duration,
    },
}

impl ConnectError {
    /// Returns the timeout that passed, if one did, and its length.
    pub(crate) const fn timeout(&self) -> Option<(Timeout, Duration)> {
        match *self {
            Self::ConnectTimeout { limit } => Some((Timeout::Connect, limit)),
            Self::TlsTimeout { limit } => Some((Timeout::Tls, limit)),
            Self::Name { .. } | Self::Connect { .. } | Self::Tls { .. } => None,
        }
    }

    /// Returns whether this machine has no descriptors, ports or memory left: the upstream may still be up.
    pub(super) fn is_local(&self) -> bool {
        const OURS: [Errno; 5] =
            [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM, Errno::ADDRNOTAVAIL];
        let (Self::Name { source, .. } | Self::Connect { source, .. } | Self::Tls { source, .. }) = self
        else {
            return false;
        };
        source.raw_os_error().is_some_and(|code| OURS.iter().any(|ours| ours.raw_os_error() == code))
    }
}

/// Opener of connections.
#[derive(Debug)]
pub(super) struct Connector {
    pub(super) resolver: Resolver,
    pub(super) tls: Option<Tls>,
    /// Longest wait for a connection, the look-up of the name included.
    pub(super) connect_timeout: Duration,
    /// Longest wait for a TLS session on it.
    pub(super) tls_timeout: Duration,
}

impl Connector {
    /// Opens a connection over which a request may be sent. Dropping the future gives it up.
    pub(super) async fn connect(&self) -> Result<TransportStream, ConnectError> {
        let connected = timeout(self.connect_timeout, self.reach()).await;
        let limit = self.connect_timeout;
        let stream = connected.unwrap_or(Err(ConnectError::ConnectTimeout { limit }))?;
        let Some(tls) = &self.tls else { return Ok(TransportStream::Plain(stream)) };
        let limit = self.tls_timeout;
        let session =
            timeout(limit, tls.over(stream)).await.map_err(|_elapsed| ConnectError::TlsTimeout { limit })?;
        let untrusted = |source| ConnectError::Tls {
            host: self.resolver.host().to_owned(),
            problem: TlsProblem::of(&source),
            source,
        };
        Ok(TransportStream::Tls(Box::new(session.map_err(untrusted)?)))
    }

    /// Tries one address after the other, each for its share of the time that is left.
    async fn reach(&self) -> Result<TcpStream, ConnectError> {
        let began = Instant::now();
        let unknown = |source| ConnectError::Name { host: self.resolver.host().to_owned(), source };
        let mut addresses = self.resolver.addresses(self.connect_timeout / 2).await.map_err(unknown)?;
        addresses.truncate(MAX_ADDRESSES);
        let mut failure = ConnectError::ConnectTimeout { limit: self.connect_timeout };
        for (tried, address) in addresses.iter().enumerate() {
            let left = self.connect_timeout.saturating_sub(began.elapsed());
            let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            match timeout(share, open(*address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(source)) => failure = ConnectError::Connect { address: *address, source },
                Err(_elapsed) => failure = ConnectError::ConnectTimeout { limit: self.connect_timeout },
            }
            self.resolver.avoid(*address);
        }
        Err(failure)
    }
}

async fn open(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE_TIMEOUT)?;
    sockopt::set_tcp_keepintvl(&stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(&stream, KEEPALIVE_PROBES)?;
    sockopt::set_socket_keepalive(&stream, true)?;
    Ok(stream)
}
