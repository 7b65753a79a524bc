//! Measures the minimal cost of a hop: copies bytes from a unix socket to TCP and back, without parsing them.

use std::{io, net::SocketAddr, path::Path, process::Command};

use tokio::net::{TcpStream, UnixListener};

use super::{Launch, Peer, Site};
use crate::{load::Target, spawn};

pub(super) const PEER: Peer = Peer {
    name: "relay",
    lacks: "everything: bytes only",
    control: None,
    launch: |site| {
        let mut command = Command::new(site.programs.join("bench"));
        command.arg("relay").arg(socket(site)).arg(site.setup.upstream.to_string());
        Ok(Launch { command: Some(command), ready: target(site), target: |site| Ok(target(site)) })
    },
};

fn socket(site: &Site) -> std::path::PathBuf {
    site.dir.join("relay.sock")
}

fn target(site: &Site) -> Target {
    Target::Unix(socket(site))
}

/// Relays between `socket` and `upstream` until the process is killed.
///
/// # Errors
/// If the socket cannot be bound.
pub async fn serve(socket: &Path, upstream: SocketAddr) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    loop {
        let (mut client, _) = listener.accept().await?;
        drop(spawn(async move {
            if let Ok(mut server) = TcpStream::connect(upstream).await
                && server.set_nodelay(true).is_ok()
            {
                drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
            }
        }));
    }
}
