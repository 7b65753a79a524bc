//! Serves the control plane's requests to the data plane, over its own unix socket.
//!
//! The socket lies in a directory that is mounted nowhere. The kernel identifies the peer; the messages are
//! [`platform_core::control`]. Runs on the main thread: it can be slow without slowing a call.

mod answer;
mod corrections;
mod known;
pub(crate) mod metrics;
mod ready;
pub(crate) mod reload;
mod request;
mod reserved_fds;
mod routes;
pub(crate) mod shown_prices;
mod spend;
mod streams;

use std::{
    convert::Infallible,
    os::unix::net::UnixListener as StdListener,
    sync::{Arc, atomic::AtomicU64},
    time::Instant,
};

use arc_swap::ArcSwap;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use platform_core::{
    control::{Unstored, UpstreamHealth},
    name,
};
use platform_runtime::{
    accept::{Acceptor, AfterFailure, RateLimitedLog},
    report,
    shutdown::Watch,
    socket::{self, PrivateSocket},
    task,
};
use tokio::net::{UnixListener, UnixStream};

use self::{reserved_fds::ReservedFds, shown_prices::ShownPrices};
use crate::{
    balance_gate::BalanceGate,
    body_memory::BodyMemory,
    config::{Config, ConfigSources},
    exchange::Snapshot,
    freezes::Freezes,
    journal::Journal,
    metrics::Metrics,
    runs::Runs,
    server::HeadMemory,
    tap::Rings,
    upstream::Upstream,
};

/// State that control requests use.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) runs: Runs,
    pub(crate) journal: Arc<Journal>,
    /// Memory for the request bodies of all runs.
    pub(crate) body_memory: Arc<BodyMemory>,
    /// Memory for unfinished request heads.
    pub(crate) heads: Arc<HeadMemory>,
    /// Memory for the taps of all runs.
    pub(crate) taps: Arc<Rings>,
    pub(crate) metrics: Arc<Metrics>,
    /// Freezes that an operator has set.
    pub(crate) freezes: Arc<Freezes>,
    /// Accounts with a balance below their floor.
    pub(crate) balances: Arc<BalanceGate>,
    /// Settings that calls use; replaced on a reload.
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    pub(crate) config: ArcSwap<Config>,
    /// Sources of the configuration, for a reload.
    pub(crate) config_sources: Arc<ConfigSources>,
    /// Number of reloads that were applied. `sluice up` reads its own part of the configuration after each.
    pub(crate) reloads: AtomicU64,
    /// Held during a reload.
    pub(crate) reloading: tokio::sync::Mutex<()>,
    /// Held while a page of the upstream's ledger is in memory.
    pub(crate) reading_spend: tokio::sync::Mutex<()>,
    /// State of the prices that the upstream shows.
    pub(crate) shown_prices: ShownPrices,
    /// Signal that a stop was requested.
    pub(crate) stop: Watch,
    pub(crate) started: Instant,
    /// Control's own connection to the upstream, to query its models.
    pub(crate) upstream: Upstream,
}

impl Control {
    /// Returns the health of the upstream, which is asked with the present key.
    async fn upstream_health(&self) -> UpstreamHealth {
        let authorization = self.snapshot.load().authorization.clone();
        self.upstream.health(authorization.as_ref()).await
    }

    /// Returns the kinds of changes that are in effect but not stored yet.
    pub(crate) fn unstored(&self) -> Vec<Unstored> {
        let stored = [
            (Unstored::Freezes, self.freezes.is_stored()),
            (Unstored::Revocations, self.runs.registry().is_stored()),
            (Unstored::ClosedRuns, self.runs.closed().is_stored()),
            (Unstored::ExhaustedAccounts, self.balances.is_stored()),
            (Unstored::AccountLimits, self.runs.accounts().limits().is_stored()),
        ];
        stored.into_iter().filter_map(|(kind, is_stored)| (!is_stored).then_some(kind)).collect()
    }

    /// Deletes the keys of runs that have ended. Runs for ever.
    pub(crate) async fn delete_run_keys(&self) {
        let run_keys = self.runs.run_keys();
        loop {
            let admin = self.snapshot.load().admin.clone();
            run_keys.delete_retired(&self.upstream, admin).await;
            run_keys.wait_for_retired().await;
        }
    }

    /// Stores changes that are in effect but not stored yet.
    pub(crate) fn store_changes(&self) {
        for kind in self.unstored() {
            let stored = match kind {
                Unstored::Freezes => self.freezes.store(),
                Unstored::Revocations => self.runs.registry().store(),
                Unstored::ClosedRuns => self.runs.closed().store(),
                Unstored::ExhaustedAccounts => self.balances.store(),
                Unstored::AccountLimits => self.runs.accounts().limits().store(),
            };
            match stored {
                Ok(()) => tracing::info!(?kind, "changes stored at last"),
                Err(error) => {
                    tracing::debug!(?kind, error = report::chain(&error), "changes still not stored");
                }
            }
        }
    }
}

/// The bound control socket.
#[derive(Debug)]
pub(crate) struct Socket {
    socket: PrivateSocket,
    listener: UnixListener,
    /// Reserve of descriptors: control stays reachable when the process has no others left.
    fds: Arc<ReservedFds>,
}

impl Socket {
    /// Binds the socket: the group [`name::CONTROL_GROUP`] may connect if it exists, else only the owner.
    ///
    /// # Errors
    /// If the directory or the socket cannot be created.
    pub(crate) fn bind(config: &Config) -> Result<Self, socket::Error> {
        let group = group_id(name::CONTROL_GROUP);
        let proxy = &config.settings.proxy;
        let dir = proxy.control_dir();
        let path = proxy.control_socket();
        socket::private_dir(&dir, if group.is_some() { 0o750 } else { 0o700 })?;
        let (socket, listener): (_, StdListener) = PrivateSocket::bind(&path, 0o660)?;
        let io = |action: &'static str, path: &std::path::Path| {
            let path = path.to_owned();
            move |source| socket::Error::Io { action, path, source }
        };
        if let Some(group) = group {
            for path in [&dir, &path] {
                std::os::unix::fs::chown(path, None, Some(group))
                    .map_err(io("give to the control group", path))?;
            }
        }
        let listener = UnixListener::from_std(listener).map_err(io("listen on", &path))?;
        let fds = ReservedFds::new().map_err(io("open spare descriptors for", &path))?;
        Ok(Self { socket, listener, fds: Arc::new(fds) })
    }

    /// Serves until a stop is requested.
    pub(crate) async fn serve(self, control: Arc<Control>) {
        let stop = control.stop.clone();
        let mut acceptor = Acceptor::new(self.listener, Arc::<RateLimitedLog>::default());
        let free_descriptor =
            || if self.fds.give_up() { AfterFailure::AcceptAgain } else { AfterFailure::Wait };
        loop {
            let stream = tokio::select! {
                () = stop.requested() => break,
                stream = acceptor.accept_or(free_descriptor) => stream,
            };
            let control = Arc::clone(&control);
            let fds = Arc::clone(&self.fds);
            let stop = stop.clone();
            task::spawn("control connection", async move {
                let stream = connection(control, stream, stop).await;
                drop(stream.into_std().map(|stream| fds.close(stream.into())));
            });
        }
        drop(self.socket);
    }
}

/// Serves a connection until it ends, and returns it.
async fn connection(control: Arc<Control>, stream: UnixStream, stop: Watch) -> UnixStream {
    match stream.peer_cred() {
        Ok(peer) if control.config.load().may_control(peer.uid()) => {}
        Ok(peer) => {
            tracing::warn!(uid = peer.uid(), "control connection rejected: uid not in proxy.control_uids");
            return stream;
        }
        Err(error) => {
            tracing::warn!(error = report::chain(&error), "control connection rejected: uid unknown");
            return stream;
        }
    }
    let service = service_fn(|request| {
        let control = Arc::clone(&control);
        async move { Ok::<_, Infallible>(routes::respond(control, request).await) }
    });
    let mut served =
        http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        ended = &mut served => if let Err(error) = ended {
            tracing::debug!(error = report::chain(&error), "control connection ended");
        },
        () = stop.requested() => {}
    }
    served.into_parts().io.into_inner()
}

/// Returns the gid of a group of this host. Reads `/etc/group`, the only source that a static binary can read.
fn group_id(name: &str) -> Option<u32> {
    let groups = std::fs::read_to_string("/etc/group").ok()?;
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    })
}
