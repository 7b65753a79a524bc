//! Tracks whether the upstream is up, for all threads.
//!
//! Transitions are rare, with a new connection or a probe, and made under a lock; a call reads one atomic.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use platform_core::control::UpstreamState;
use platform_runtime::random;

use tokio::sync::Notify;

use super::phase::{Jitter, Phase};
use crate::clock;

/// Time after which an abandoned connection attempt counts as failed: the first packet was lost or dropped.
const LONG_ENOUGH: Duration = Duration::from_secs(1);
/// Value of [`Circuit::due`] with which calls pass.
const NOW: u64 = 0;

/// Circuit of the upstream.
#[derive(Debug)]
pub(crate) struct Circuit {
    inside: Mutex<Inside>,
    /// Time when a call may pass, in milliseconds of [`clock::uptime`] and one more, or [`NOW`].
    due: AtomicU64,
    /// Wakes one prober.
    went_down: Notify,
}

#[derive(Debug)]
struct Inside {
    phase: Phase,
    /// Wall-clock time at which the upstream went down.
    since: Duration,
    /// Reason of the last outage.
    reason: String,
}

/// Next step of a prober.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Send a probe.
    Probe,
    /// Wait so long.
    Wait(Duration),
    /// Stop: the upstream is up.
    Over,
}

impl Default for Circuit {
    fn default() -> Self {
        let inside = Inside { phase: Phase::NEW, since: Duration::ZERO, reason: String::new() };
        Self { inside: Mutex::new(inside), due: AtomicU64::new(NOW), went_down: Notify::new() }
    }
}

impl Circuit {
    /// Returns after how long a retry may be worth it, if the upstream is down.
    pub(crate) fn down(&self) -> Option<Duration> {
        match self.due.load(Ordering::Relaxed) {
            NOW => None,
            due => Some(Duration::from_millis(due - 1).saturating_sub(uptime())),
        }
    }

    /// Returns the state for a person to read.
    pub(crate) fn state(&self) -> UpstreamState {
        let inside = self.lock();
        let (since, reason) = (clock::rfc3339(inside.since), inside.reason.clone());
        match inside.phase {
            Phase::Up { .. } => UpstreamState::Up,
            Phase::Probing { .. } => UpstreamState::Probing { since, reason },
            Phase::Down { next, .. } => {
                let wait = next.saturating_sub(uptime()).as_millis();
                UpstreamState::Down { since, reason, probe_in_ms: u64::try_from(wait).unwrap_or(u64::MAX) }
            }
        }
    }

    /// Records that a connection was made.
    pub(super) fn connected(&self) {
        let mut inside = self.lock();
        if inside.phase.due().is_some() {
            tracing::info!("the upstream is up again");
        }
        inside.phase = inside.phase.connected();
        self.publish(&inside);
    }

    /// Records that a call could not get a connection.
    pub(super) fn failed(&self, reason: impl FnOnce() -> String) {
        let mut inside = self.lock();
        let was_up = inside.phase.due().is_none();
        inside.phase = inside.phase.failed(uptime(), jitter());
        if !was_up || inside.phase.due().is_none() {
            return;
        }
        (inside.since, inside.reason) = (clock::now(), reason());
        tracing::error!(
            reason = inside.reason,
            "the upstream is down: calls are refused until a probe reaches it"
        );
        self.publish(&inside);
        self.went_down.notify_one();
    }

    /// Waits until the upstream goes down; of several waiting probers, one is woken.
    pub(super) async fn went_down(&self) {
        self.went_down.notified().await;
    }

    /// Returns the prober's next step. After `Turn::Probe` the prober must report the result.
    pub(super) fn turn(&self) -> Turn {
        let mut inside = self.lock();
        let now = uptime();
        if let Some(probing) = inside.phase.probe(now) {
            inside.phase = probing;
            self.publish(&inside);
            return Turn::Probe;
        }
        match inside.phase {
            Phase::Up { .. } => Turn::Over,
            Phase::Down { next, .. } => Turn::Wait(next.saturating_sub(now)),
            // Another prober is sending its probe.
            Phase::Probing { .. } => Turn::Wait(LONG_ENOUGH),
        }
    }

    /// Records that the probe has failed.
    pub(super) fn probe_failed(&self, reason: String) {
        let mut inside = self.lock();
        inside.phase = inside.phase.probe_failed(uptime(), jitter());
        inside.reason = reason;
        self.publish(&inside);
    }

    fn publish(&self, inside: &Inside) {
        let due =
            inside.phase.due().map_or(NOW, |due| u64::try_from(due.as_millis()).unwrap_or(u64::MAX - 1) + 1);
        self.due.store(due, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn uptime() -> Duration {
    clock::uptime(Instant::now())
}

fn jitter() -> Jitter {
    random::bits().to_ne_bytes()[0]
}

/// Attempt to connect. An attempt that its caller abandons counts as failed after `LONG_ENOUGH`. Otherwise agents that
/// are less patient than `upstream.connect_timeout` would never find out that the upstream is down.
#[derive(Debug)]
pub(super) struct Attempt<'c> {
    circuit: &'c Circuit,
    began: Instant,
    is_over: bool,
}

impl<'c> Attempt<'c> {
    pub(super) fn of(circuit: &'c Circuit) -> Self {
        Self { circuit, began: Instant::now(), is_over: false }
    }

    pub(super) fn end(mut self) {
        self.is_over = true;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.is_over && self.began.elapsed() >= LONG_ENOUGH {
            self.circuit.failed(|| "no connection before those who waited for it had left".to_owned());
        }
    }
}
