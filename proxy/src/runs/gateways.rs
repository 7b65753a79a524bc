//! Sockets of gateways that have no network: many runs' sessions call there, and each call proves whose it is.
//!
//! Like a run's, such a socket outlives the proxy: what is kept of it has the next one open it again at the same path. Which runs
//! may call there is said by their grants, not here.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs, io,
    path::{Path, PathBuf},
};

use platform_core::{
    control::{GatewayDoor, NotReady, SocketDir},
    id::GatewayId,
    name::path::SOCKET_FILE,
};
use platform_runtime::{file, report};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    Error, Runs,
    claims::{Claim, Owner},
    door::Door,
};
use crate::worker::GatewaySocket;

/// All gateways that are heard.
#[derive(Debug)]
pub(super) struct Gateways {
    open: Mutex<BTreeMap<GatewayId, Open>>,
    kept: KeptGateways,
}

#[derive(Debug)]
struct Open {
    door: GatewayDoor,
    /// Ends its listener, and cuts its connections.
    closing: CancellationToken,
    /// Ends when all of them are gone, and their calls recorded.
    left: mpsc::Receiver<Infallible>,
    /// Held as long as its directory is its own.
    #[expect(dead_code, reason = "dropping it gives the directory up")]
    claim: Claim,
}

impl Gateways {
    /// None yet; what is kept of them lies in `dir`, which is there.
    pub(super) fn new(dir: &Path) -> Self {
        Self { open: Mutex::default(), kept: KeptGateways(dir.to_owned()) }
    }
}

impl Runs {
    /// Hears a gateway at a socket of its own; when this returns, it can connect. Not cancel safe.
    pub(crate) async fn open_gateway(
        &self,
        gateway: GatewayId,
        door: GatewayDoor,
    ) -> Result<SocketDir, Error> {
        let mut open = self.gateways.open.lock().await;
        // One that was closed, and whose directory stayed, is heard anew.
        match open.get(&gateway).filter(|there| !there.closing.is_cancelled()) {
            Some(there) if there.door == door => return Ok(self.socket_dir(&door.socket_dir)),
            Some(_) => return Err(Error::GatewayConflict { gateway }),
            None => {}
        }
        let claim = self.claim(&door.socket_dir, Owner::Gateway(gateway.clone()))?;
        self.gateways
            .kept
            .write(&gateway, &door)
            .map_err(|source| Error::KeepGateway { gateway: gateway.clone(), source })?;
        let opened = self.hear(&gateway, door, claim).await;
        match opened {
            Ok((dir, heard)) => {
                open.insert(gateway, heard);
                Ok(dir)
            }
            Err(error) => {
                self.gateways.kept.remove(&gateway);
                Err(error)
            }
        }
    }

    async fn hear(
        &self,
        gateway: &GatewayId,
        door: GatewayDoor,
        claim: Claim,
    ) -> Result<(SocketDir, Open), Error> {
        let dir = self.reserve(&door.socket_dir)?;
        let closing = CancellationToken::new();
        let (here, left) = mpsc::channel(1);
        let socket = GatewaySocket {
            gateway: gateway.clone(),
            peer_uid: door.peer_uid,
            path: dir.path.join(SOCKET_FILE),
            closing: closing.clone(),
            here,
        };
        self.next_worker().open_gateway(socket).await?;
        Ok((dir, Open { door, closing, left, claim }))
    }

    /// Hears a gateway no more, and removes its directory. Its connections are cut; when this returns, their calls are recorded. One
    /// that is not heard is as good.
    pub(crate) async fn close_gateway(&self, gateway: &GatewayId) -> Result<(), Error> {
        let mut open = self.gateways.open.lock().await;
        let Some(there) = open.get_mut(gateway) else { return Ok(()) };
        let dir = self.socket_dir(&there.door.socket_dir);
        there.closing.cancel();
        there.left.recv().await;
        let path = dir.path.clone();
        // In this order: whoever asks again, and a proxy that comes after this one, removes what it knows of.
        Door::Directory(dir).remove();
        if path.is_dir() {
            // The log says why.
            return Err(Error::Leftover { path });
        }
        self.gateways.kept.remove(gateway);
        open.remove(gateway);
        Ok(())
    }

    /// Hears those again that a proxy before this one heard and that are not heard yet. Returns those that cannot be.
    ///
    /// # Errors
    /// If it cannot be read which they were.
    pub(super) async fn restore_gateways(&self) -> io::Result<Vec<NotReady>> {
        let mut open = self.gateways.open.lock().await;
        let mut not_open = Vec::new();
        for (gateway, door) in self.gateways.kept.all()? {
            if open.contains_key(&gateway) {
                continue;
            }
            let claim = self.claim(&door.socket_dir, Owner::Gateway(gateway.clone()));
            let heard = match claim {
                Ok(claim) => self.hear(&gateway, door, claim).await,
                Err(error) => Err(error),
            };
            match heard {
                Ok((_, heard)) => drop(open.insert(gateway, heard)),
                Err(error) => {
                    not_open.push(NotReady::GatewayNotOpen { gateway, why: report::chain(&error) });
                }
            }
        }
        Ok(not_open)
    }
}

/// The gateways that are heard, on disk: a file each, beside those of runs.
#[derive(Debug)]
struct KeptGateways(PathBuf);

/// Ends the name of such a file. A run's ends differently.
const EXTENSION: &str = "gateway";

impl KeptGateways {
    /// Keeps a gateway: a crash leaves the whole file, or none.
    fn write(&self, gateway: &GatewayId, door: &GatewayDoor) -> io::Result<()> {
        file::replace(&self.path(gateway), 0o600, &serde_json::to_vec(door)?)
    }

    fn remove(&self, gateway: &GatewayId) {
        match fs::remove_file(self.path(gateway)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%gateway, %error, "what was kept of the gateway stays behind");
            }
            _ => {}
        }
    }

    /// All that are kept. What cannot be understood is logged and left alone.
    fn all(&self) -> io::Result<Vec<(GatewayId, GatewayDoor)>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != EXTENSION) {
                continue;
            }
            let gateway = path.file_stem().and_then(|name| GatewayId::parse(name.to_str()?).ok());
            let door = file::own(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
            match (gateway, door) {
                (Some(gateway), Some(door)) => all.push((gateway, door)),
                _ => tracing::error!(path = %path.display(), "a gateway does not come back: this is none"),
            }
        }
        Ok(all)
    }

    fn path(&self, gateway: &GatewayId) -> PathBuf {
        self.0.join(format!("{gateway}.{EXTENSION}"))
    }
}
