//! Listens on Postgres for changes that other processes make, and reports them to the watchers of this process.
//!
//! The connection is one beside the pool. A listener counts as connected while its probes arrive: notifications that
//! it sends itself over the pool. So a silent connection does not pass for a quiet database, nor does a connection
//! pooler that delivers no notifications. What happened while it was not connected is unknown: at each loss and each
//! return, watchers learn that any run may have changed.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use platform_core::id::InstallationId;
use platform_runtime::{report, retry::Backoff, task};
use sqlx::{
    Any, Pool,
    postgres::{PgConnectOptions, PgListener, PgPoolOptions},
};
use tokio::{
    task::JoinHandle,
    time::{Interval, MissedTickBehavior, interval},
};

use super::{
    Address, CONNECT_TIMEOUT, RunChanges, Store,
    notification::{NOTIFY, Notification, channel},
};

/// Name of the connection, for operators of the database.
const APPLICATION_NAME: &str = "sluice listener";
/// Interval between two probes, and longest time that one may take.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// Delays before another connection is opened.
const RECONNECT: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(10));

/// Listener of a store, from its first use to the end of the store.
#[derive(Debug)]
pub(super) struct StoreListener {
    address: Address,
    /// Channel of the installation; absent if the database has none.
    channel: Option<Arc<str>>,
    is_connected: Arc<AtomicBool>,
    task: OnceLock<ListenerTask>,
}

/// Task that listens. Ends on drop.
#[derive(Debug)]
struct ListenerTask(JoinHandle<()>);

/// State of the task that listens.
struct ChangeReceiver {
    options: PgConnectOptions,
    channel: Arc<str>,
    changes: RunChanges,
    is_connected: Arc<AtomicBool>,
    /// Connections of the store, which send the probes.
    pool: Pool<Any>,
}

/// Reason why a connection does not listen any more.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("the connection failed")]
    Failed(#[from] sqlx::Error),
    #[error("the connection was closed")]
    Closed,
    #[error("a probe did not arrive within {} s", PROBE_INTERVAL.as_secs())]
    Silent,
}

/// Probe of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    Sent,
    Arrived,
}

impl StoreListener {
    /// Returns a listener for changes of `installation` in the database at `address`. It does not listen yet.
    pub(super) fn of(address: &Address, installation: &InstallationId) -> Self {
        Self {
            channel: channel(address.backend, installation),
            address: address.clone(),
            is_connected: Arc::default(),
            task: OnceLock::new(),
        }
    }

    /// Returns the channel of the installation; `None` if the database has none.
    pub(super) fn channel(&self) -> Option<Arc<str>> {
        self.channel.clone()
    }
}

impl Drop for ListenerTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Store {
    /// Listens for changes of other processes from now on, if the database reports them. A second call changes nothing.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn listen(&self) {
        let Some(channel) = self.listener.channel() else { return };
        let options = match PgConnectOptions::try_from(&self.listener.address.options) {
            Ok(options) => options.application_name(APPLICATION_NAME),
            Err(error) => {
                return tracing::warn!(error = report::chain(&error), "changes of other processes not heard");
            }
        };
        self.listener.task.get_or_init(|| {
            let receiver = ChangeReceiver {
                options,
                channel,
                changes: self.changes.clone(),
                is_connected: Arc::clone(&self.listener.is_connected),
                pool: self.pool.clone(),
            };
            ListenerTask(task::spawn("store listener", receiver.run()))
        });
    }

    /// Returns whether watchers see changes of other processes at once. While they do not, a follower has to read the
    /// store regularly. Each change of this is reported to them as an unknown change of any run.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.listener.is_connected.load(Ordering::Acquire)
    }
}

impl ChangeReceiver {
    /// Listens until the task ends, over one connection after another.
    async fn run(self) {
        let mut backoff = RECONNECT;
        loop {
            let lost = self.listen_once().await;
            if self.is_connected.swap(false, Ordering::AcqRel) {
                backoff.reset();
                self.changes.report_unknown();
                tracing::warn!(error = report::chain(&lost), "changes of other processes are polled for now");
            } else {
                tracing::debug!(error = report::chain(&lost), "changes of other processes not heard yet");
            }
            backoff.wait().await;
        }
    }

    /// Listens over a new connection until it is lost.
    async fn listen_once(&self) -> Lost {
        match self.connect().await {
            Ok(mut listener) => self.receive(&mut listener).await.err().unwrap_or(Lost::Closed),
            Err(error) => Lost::Failed(error),
        }
    }

    async fn connect(&self) -> Result<PgListener, sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .acquire_timeout(CONNECT_TIMEOUT)
            .connect_with(self.options.clone())
            .await?;
        let mut listener = PgListener::connect_with(&pool).await?;
        // A lost connection has to be seen here: watchers learn of it.
        listener.eager_reconnect(false);
        listener.listen(&self.channel).await?;
        Ok(listener)
    }

    /// Reports what `listener` receives, until its connection is lost.
    async fn receive(&self, listener: &mut PgListener) -> Result<(), Lost> {
        let mut probe = Probe::Arrived;
        let mut probes = probe_interval();
        loop {
            tokio::select! {
                _ = probes.tick() => match probe {
                    Probe::Sent => return Err(Lost::Silent),
                    Probe::Arrived => {
                        self.send_probe().await?;
                        probe = Probe::Sent;
                    }
                },
                received = listener.try_recv() => {
                    let Some(received) = received? else { return Err(Lost::Closed) };
                    match Notification::parse(received.payload()) {
                        Some((reporter, Notification::Probe)) if reporter == self.changes.reporter() => {
                            probe = Probe::Arrived;
                            self.connected();
                        }
                        // This process has reported its own changes already.
                        Some((reporter, _)) if reporter == self.changes.reporter() => {}
                        Some((_, notification)) => self.changes.report(notification.changed()),
                        None => self.changes.report_unknown(),
                    }
                }
            }
        }
    }

    async fn send_probe(&self) -> Result<(), sqlx::Error> {
        let text = Notification::Probe.text(self.changes.reporter());
        sqlx::query(NOTIFY).bind(&*self.channel).bind(text).execute(&self.pool).await.map(drop)
    }

    /// Notes that notifications arrive. Reports the changes that were made before, if they did not.
    fn connected(&self) {
        if !self.is_connected.swap(true, Ordering::AcqRel) {
            self.changes.report_unknown();
            tracing::debug!("changes of other processes are heard");
        }
    }
}

fn probe_interval() -> Interval {
    let mut probes = interval(PROBE_INTERVAL);
    probes.set_missed_tick_behavior(MissedTickBehavior::Delay);
    probes
}
