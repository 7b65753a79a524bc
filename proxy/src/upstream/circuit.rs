//! Whether the upstream is up, as all threads see it.
//!
//! Moves are rare, with a new connection or a probe, and made under a lock; a call reads one atomic.

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

/// A connection attempt whose caller leaves after this long has failed: the first packet was lost or dropped.
const LONG_ENOUGH: Duration = Duration::from_secs(1);
/// In [`Circuit::due`]: calls pass.
const NOW: u64 = 0;

/// The circuit.
#[derive(Debug)]
pub(crate) struct Circuit {
    inside: Mutex<Inside>,
    /// When a call may pass, in milliseconds of [`clock::uptime`] and one more, or [`NOW`].
    due: AtomicU64,
    /// Calls one prober.
    went_down: Notify,
}

#[derive(Debug)]
struct Inside {
    phase: Phase,
    /// When it went down, by the clock on the wall.
    since: Duration,
    /// Why it was down last.
    reason: String,
}

/// What a prober does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Probes.
    Probe,
    /// Waits so long.
    Wait(Duration),
    /// Leaves: it is up.
    Over,
}

impl Default for Circuit {
    fn default() -> Self {
        let inside = Inside { phase: Phase::NEW, since: Duration::ZERO, reason: String::new() };
        Self { inside: Mutex::new(inside), due: AtomicU64::new(NOW), went_down: Notify::new() }
    }
}

impl Circuit {
    /// If the upstream is down: after how long it may be worth asking again.
    pub(crate) fn down(&self) -> Option<Duration> {
        match self.due.load(Ordering::Relaxed) {
            NOW => None,
            due => Some(Duration::from_millis(due - 1).saturating_sub(uptime())),
        }
    }

    /// For a person.
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

    /// A connection was made.
    pub(super) fn connected(&self) {
        let mut inside = self.lock();
        if inside.phase.due().is_some() {
            tracing::info!("the upstream is up again");
        }
        inside.phase = inside.phase.connected();
        self.publish(&inside);
    }

    /// A call's connection was not to be had.
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

    /// Waits until it goes down; of several who wait, one is called.
    pub(super) async fn went_down(&self) {
        self.went_down.notified().await;
    }

    /// What a prober does next; if it is to probe, it has to say what came of it.
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
            // Another prober is at it.
            Phase::Probing { .. } => Turn::Wait(LONG_ENOUGH),
        }
    }

    /// The probe has failed.
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

/// An attempt to connect. If whoever wants it leaves before it came to an end, it may have failed all the same: agents that
/// are less patient than `upstream.connect` would otherwise never find out that the upstream is down.
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
