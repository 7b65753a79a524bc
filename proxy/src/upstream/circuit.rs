//! Tracks whether the upstream is up, for all threads.
//!
//! Transitions are rare, with a new connection or a probe, and happen under a lock; a call reads one atomic.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use platform_core::control::UpstreamState;
use platform_runtime::{random, sync::Mutex};
use tokio::sync::Notify;

use super::circuit_state::{CircuitState, Jitter};
use crate::clock;

/// Time after which an abandoned connection attempt counts as failed: the first packet was lost or dropped.
const ABANDONED_ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
/// Value of [`Circuit::due`] with which calls pass.
const NOW: u64 = 0;

/// Circuit of the upstream.
#[derive(Debug)]
pub(crate) struct Circuit {
    inner: Mutex<CircuitInner>,
    /// Time when a call may pass, in milliseconds of [`clock::uptime`] plus one, or [`NOW`].
    due: AtomicU64,
    /// Wakes one prober.
    went_down: Notify,
}

#[derive(Debug)]
struct CircuitInner {
    state: CircuitState,
    /// Wall-clock time at which the upstream went down.
    since: Duration,
    /// Reason of the last outage.
    reason: String,
}

/// Next step of a prober.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeStep {
    /// Send a probe.
    Probe,
    /// Wait so long.
    Wait(Duration),
    /// Stop: the upstream is up.
    Stop,
}

impl Default for Circuit {
    fn default() -> Self {
        let inner =
            CircuitInner { state: CircuitState::INITIAL, since: Duration::ZERO, reason: String::new() };
        Self { inner: Mutex::new(inner), due: AtomicU64::new(NOW), went_down: Notify::new() }
    }
}

impl Circuit {
    /// Returns the time after which a retry may be worth it, if the upstream is down.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self.due.load(Ordering::Relaxed) {
            NOW => None,
            due => Some(Duration::from_millis(due - 1).saturating_sub(uptime())),
        }
    }

    /// Returns the state for a person to read.
    pub(crate) fn state(&self) -> UpstreamState {
        let inner = self.inner.lock();
        let since = clock::rfc3339(inner.since);
        let reason = inner.reason.clone();
        match inner.state {
            CircuitState::Up { .. } => UpstreamState::Up,
            CircuitState::Probing { .. } => UpstreamState::Probing { since, reason },
            CircuitState::Down { next, .. } => {
                let wait = next.saturating_sub(uptime()).as_millis();
                UpstreamState::Down { since, reason, probe_in_ms: u64::try_from(wait).unwrap_or(u64::MAX) }
            }
        }
    }

    /// Records that a connection was opened.
    pub(super) fn connected(&self) {
        let mut inner = self.inner.lock();
        if inner.state.due().is_some() {
            tracing::info!("the upstream is up again");
        }
        inner.state = inner.state.connected();
        self.publish(&inner);
    }

    /// Records that a call could not get a connection.
    pub(super) fn failed(&self, reason: impl FnOnce() -> String) {
        let mut inner = self.inner.lock();
        let was_up = inner.state.due().is_none();
        inner.state = inner.state.failed(uptime(), jitter());
        if !was_up || inner.state.due().is_none() {
            return;
        }
        inner.since = clock::now();
        inner.reason = reason();
        tracing::error!(
            reason = inner.reason,
            "the upstream is down: calls are refused until a probe reaches it"
        );
        self.publish(&inner);
        self.went_down.notify_one();
    }

    /// Waits until the upstream goes down; of several waiting probers, one is woken.
    pub(super) async fn went_down(&self) {
        self.went_down.notified().await;
    }

    /// Returns the prober's next step. After `ProbeStep::Probe` the prober must report the result.
    pub(super) fn next_probe_step(&self) -> ProbeStep {
        let mut inner = self.inner.lock();
        let now = uptime();
        if let Some(probing) = inner.state.probe(now) {
            inner.state = probing;
            self.publish(&inner);
            return ProbeStep::Probe;
        }
        match inner.state {
            CircuitState::Up { .. } => ProbeStep::Stop,
            CircuitState::Down { next, .. } => ProbeStep::Wait(next.saturating_sub(now)),
            // Another prober is sending its probe.
            CircuitState::Probing { .. } => ProbeStep::Wait(ABANDONED_ATTEMPT_TIMEOUT),
        }
    }

    /// Records that the probe has failed.
    pub(super) fn probe_failed(&self, reason: String) {
        let mut inner = self.inner.lock();
        inner.state = inner.state.probe_failed(uptime(), jitter());
        inner.reason = reason;
        self.publish(&inner);
    }

    fn publish(&self, inner: &CircuitInner) {
        let due =
            inner.state.due().map_or(NOW, |due| u64::try_from(due.as_millis()).unwrap_or(u64::MAX - 1) + 1);
        self.due.store(due, Ordering::Relaxed);
    }
}

fn uptime() -> Duration {
    clock::uptime(Instant::now())
}

fn jitter() -> Jitter {
    random::bits().to_ne_bytes()[0]
}

/// Attempt to connect. An attempt that its caller abandons counts as failed after `ABANDONED_ATTEMPT_TIMEOUT`.
/// Otherwise agents that wait for less than `upstream.connect_timeout` would never find out that the upstream is down.
#[derive(Debug)]
pub(super) struct ConnectAttempt<'c> {
    circuit: &'c Circuit,
    began: Instant,
    has_ended: bool,
}

impl<'c> ConnectAttempt<'c> {
    pub(super) fn of(circuit: &'c Circuit) -> Self {
        Self { circuit, began: Instant::now(), has_ended: false }
    }

    pub(super) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for ConnectAttempt<'_> {
    fn drop(&mut self) {
        if !self.has_ended && self.began.elapsed() >= ABANDONED_ATTEMPT_TIMEOUT {
            self.circuit.failed(|| "no connection before its callers had left".to_owned());
        }
    }
}
