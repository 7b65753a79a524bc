//! Binds the listener that runs share. One thread accepts its connections, and hands each to the thread with the fewest.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use platform_runtime::settings;
use rustix::net::sockopt;
use tokio::net::TcpSocket;

use crate::Error;

/// Silence of a client after which the kernel sends keep-alive probes. They detect a client that vanishes while its
/// call waits for the upstream; once an answer is on its way, the client's timeout does. No shorter limit of the
/// kernel's own is set: it would also cut a client that only pauses.
const KEEPALIVE_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
const KEEPALIVE_PROBES: u32 = 4;
const KEEPALIVE_PROBE_INTERVAL: Duration = Duration::from_secs(15);

/// Most connections that wait to be accepted.
const MAX_BACKLOG: u32 = 1024;

/// Binds the listener, if an address is set. Must be called in a runtime.
pub(crate) fn bind(proxy: &settings::Proxy) -> Result<Option<TcpListener>, Error> {
    let Some(address) = proxy.listen else { return Ok(None) };
    let bound = listen(address);
    bound.map(Some).map_err(|source| Error::Listen { setting: "proxy.listen", address, source })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Connections inherit these.
    socket.set_nodelay(true)?;
    sockopt::set_socket_keepalive(&socket, true)?;
    sockopt::set_tcp_keepidle(&socket, KEEPALIVE_IDLE_TIMEOUT)?;
    sockopt::set_tcp_keepintvl(&socket, KEEPALIVE_PROBE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(&socket, KEEPALIVE_PROBES)?;
    socket.bind(address)?;
    socket.listen(MAX_BACKLOG)?.into_std()
}
