//! Serves the sockets of gateways that have no network: sessions of many runs call there, and each call proves its run.
//!
//! Like a run's, such a socket outlives the proxy: the next one opens it again at the same path, from a file on disk.
//! Grants, not this module, say which runs may call there.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs, io,
    path::{Path, PathBuf},
};

use platform_core::{
    control::{GatewayListener, NotReady, SocketDir},
    id::GatewayId,
    json::{self, Bounds},
    name::path::SOCKET_FILE,
};
use platform_runtime::{file, report};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    Error, Runs,
    claims::{Claim, DirOwner},
    run_listener::RunListener,
};
use crate::server::GatewaySocket;

/// All gateways that are served.
#[derive(Debug)]
pub(super) struct Gateways {
    open: Mutex<BTreeMap<GatewayId, OpenGateway>>,
    state_dir: GatewayStateDir,
}

#[derive(Debug)]
struct OpenGateway {
    listener: GatewayListener,
    /// Ends its listener, and cuts its connections.
    closing: CancellationToken,
    /// Ends when all its connections have ended, and their calls are recorded.
    connections_gone: mpsc::Receiver<Infallible>,
    /// Held as long as the directory belongs to the gateway.
    #[expect(dead_code, reason = "dropping it gives the directory up")]
    claim: Claim,
}

impl Gateways {
    /// Creates an empty list of gateways, with their files in `dir`, which exists.
    pub(super) fn new(dir: &Path) -> Self {
        Self { open: Mutex::default(), state_dir: GatewayStateDir(dir.to_owned()) }
    }
}

impl Runs {
    /// Serves a gateway at its own socket; when this returns, it can connect. Not cancel safe.
    pub(crate) async fn open_gateway(
        &self,
        gateway: GatewayId,
        listener: GatewayListener,
    ) -> Result<SocketDir, Error> {
        let mut open = self.gateways.open.lock().await;
        // A gateway that was closed, but kept its directory, is served again.
        match open.get(&gateway).filter(|served| !served.closing.is_cancelled()) {
            Some(served) if served.listener == listener => return Ok(self.socket_dir(&listener.socket_dir)),
            Some(_) => return Err(Error::GatewayConflict { gateway }),
            None => {}
        }
        let claim = self.claim(&listener.socket_dir, DirOwner::Gateway(gateway.clone()))?;
        self.gateways
            .state_dir
            .write(&gateway, &listener)
            .map_err(|source| Error::GatewayNotPersisted { gateway: gateway.clone(), source })?;
        let opened = self.open_gateway_socket(&gateway, listener, claim).await;
        match opened {
            Ok((dir, opened)) => {
                open.insert(gateway, opened);
                Ok(dir)
            }
            Err(error) => {
                self.gateways.state_dir.remove(&gateway);
                Err(error)
            }
        }
    }

    async fn open_gateway_socket(
        &self,
        gateway: &GatewayId,
        listener: GatewayListener,
        claim: Claim,
    ) -> Result<(SocketDir, OpenGateway), Error> {
        let dir = self.reserve(&listener.socket_dir)?;
        let closing = CancellationToken::new();
        let (in_use, connections_gone) = mpsc::channel(1);
        let socket = GatewaySocket {
            gateway: gateway.clone(),
            peer_uid: listener.peer_uid,
            path: dir.path.join(SOCKET_FILE),
            closing: closing.clone(),
            in_use,
        };
        self.least_loaded_thread()?.open_gateway(socket).await?;
        Ok((dir, OpenGateway { listener, closing, connections_gone, claim }))
    }

    /// Closes a gateway's socket, and removes its directory. Its connections are cut; when this returns, their calls
    /// are recorded. A gateway that is not served is not an error.
    pub(crate) async fn close_gateway(&self, gateway: &GatewayId) -> Result<(), Error> {
        let mut open = self.gateways.open.lock().await;
        let Some(served) = open.get_mut(gateway) else { return Ok(()) };
        let dir = self.socket_dir(&served.listener.socket_dir);
        served.closing.cancel();
        served.connections_gone.recv().await;
        let path = dir.path.clone();
        // In this order: another attempt, or a later proxy, removes what is still listed.
        RunListener::Directory(dir).remove();
        if path.is_dir() {
            // The log says why.
            return Err(Error::Leftover { path });
        }
        self.gateways.state_dir.remove(gateway);
        open.remove(gateway);
        Ok(())
    }

    /// Serves the gateways again that a proxy before this one served and that are not served yet. Returns those that
    /// failed.
    ///
    /// # Errors
    /// If the list of gateways cannot be read.
    pub(super) async fn restore_gateways(&self) -> io::Result<Vec<NotReady>> {
        let mut open = self.gateways.open.lock().await;
        let mut not_open = Vec::new();
        for (gateway, listener) in self.gateways.state_dir.all()? {
            if open.contains_key(&gateway) {
                continue;
            }
            let claim = self.claim(&listener.socket_dir, DirOwner::Gateway(gateway.clone()));
            let opened = match claim {
                Ok(claim) => self.open_gateway_socket(&gateway, listener, claim).await,
                Err(error) => Err(error),
            };
            match opened {
                Ok((_, opened)) => drop(open.insert(gateway, opened)),
                Err(error) => {
                    not_open.push(NotReady::GatewayNotOpen { gateway, why: report::chain(&error) });
                }
            }
        }
        Ok(not_open)
    }
}

/// Served gateways on disk: a file each, beside those of runs.
#[derive(Debug)]
struct GatewayStateDir(PathBuf);

/// Extension of such a file; that of a run's file differs.
const EXTENSION: &str = "gateway";

impl GatewayStateDir {
    /// Stores a gateway: a crash leaves the whole file, or none.
    fn write(&self, gateway: &GatewayId, listener: &GatewayListener) -> io::Result<()> {
        file::replace(&self.path(gateway), 0o600, &serde_json::to_vec(listener)?)
    }

    fn remove(&self, gateway: &GatewayId) {
        match fs::remove_file(self.path(gateway)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%gateway, error = report::chain(&error), "stored state of the gateway not removed");
            }
            _ => {}
        }
    }

    /// Returns all stored gateways. A file that cannot be parsed is logged and left alone.
    fn all(&self) -> io::Result<Vec<(GatewayId, GatewayListener)>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != EXTENSION) {
                continue;
            }
            let gateway = path.file_stem().and_then(|name| GatewayId::parse(name.to_str()?).ok());
            let listener =
                file::own(&path).ok().and_then(|text| json::from_slice(&text, Bounds::STORED).ok());
            match (gateway, listener) {
                (Some(gateway), Some(listener)) => all.push((gateway, listener)),
                _ => {
                    tracing::error!(path = %path.display(), "gateway not restored: the file does not describe one")
                }
            }
        }
        Ok(all)
    }

    fn path(&self, gateway: &GatewayId) -> PathBuf {
        self.0.join(format!("{gateway}.{EXTENSION}"))
    }
}
