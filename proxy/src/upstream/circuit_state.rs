//! Decides whether calls are sent to the upstream: a circuit breaker's states and its legal transitions. Pure.
//!
//! ```text
//!         several failures in a row           its time has come
//!   Up ───────────────────────────▶ Down ─────────────────────────▶ Probing
//!   ▲                                ▲ the probe fails: wait longer    │
//!   │                                └─────────────────────────────────┤
//!   └──────────────── a connection is made, by any task ───────────────┘
//! ```
//!
//! Only failures to connect count. An upstream that accepts a call and breaks off may have done so because of that
//! call. If that counted, one agent could close the upstream to all others.

use std::time::Duration;

/// Failures in a row after which the upstream is taken to be down.
const FAILURE_THRESHOLD: u32 = 5;
/// Wait from the moment the upstream went down to the first probe. It doubles with every probe that fails.
const FIRST_PROBE_DELAY: Duration = Duration::from_millis(500);
/// Longest wait for the next probe.
const MAX_PROBE_DELAY: Duration = Duration::from_secs(15);

/// State of the circuit. Times are since the same moment, on a clock that never goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CircuitState {
    /// Calls are sent (a closed circuit).
    Up {
        /// Failures in a row.
        failures: u32,
    },
    /// Calls are refused (open).
    Down {
        /// Time at which the upstream went down.
        since: Duration,
        /// Probes that have failed.
        probes: u32,
        /// Time at which the next probe is due.
        next: Duration,
    },
    /// Calls are refused, and a probe is under way (half open).
    Probing {
        /// Time at which the upstream went down.
        since: Duration,
        /// Probes that have failed.
        probes: u32,
    },
}

/// Part of a wait that is waited, so that not all clients come back at once: from 0 (half of it) to 255 (all of it).
pub(super) type Jitter = u8;

impl CircuitState {
    pub(super) const INITIAL: Self = Self::Up { failures: 0 };

    /// Returns the state after a call could not get a connection.
    pub(super) fn failed(self, now: Duration, jitter: Jitter) -> Self {
        match self {
            Self::Up { failures } if failures + 1 >= FAILURE_THRESHOLD => {
                Self::Down { since: now, probes: 0, next: now + probe_delay(0, jitter) }
            }
            Self::Up { failures } => Self::Up { failures: failures + 1 },
            // The call was under way when the upstream went down.
            Self::Down { .. } | Self::Probing { .. } => self,
        }
    }

    /// Returns the state after a connection was opened.
    pub(super) const fn connected(self) -> Self {
        Self::INITIAL
    }

    /// Returns the state in which a probe is under way, if one is due.
    pub(super) fn probe(self, now: Duration) -> Option<Self> {
        match self {
            Self::Down { since, probes, next } if now >= next => Some(Self::Probing { since, probes }),
            _ => None,
        }
    }

    /// Returns the state after a failed probe.
    pub(super) fn probe_failed(self, now: Duration, jitter: Jitter) -> Self {
        match self {
            Self::Probing { since, probes } => {
                let probes = probes.saturating_add(1);
                Self::Down { since, probes, next: now + probe_delay(probes, jitter) }
            }
            // A call was faster than the probe.
            Self::Up { .. } | Self::Down { .. } => self,
        }
    }

    /// Returns when a call may pass, as far as that is known; `None` if it may now.
    pub(super) const fn due(self) -> Option<Duration> {
        match self {
            Self::Up { .. } => None,
            Self::Down { next, .. } => Some(next),
            Self::Probing { .. } => Some(Duration::ZERO),
        }
    }
}

/// Returns the wait for the next probe after so many that have failed.
fn probe_delay(probes: u32, jitter: Jitter) -> Duration {
    let whole = FIRST_PROBE_DELAY.saturating_mul(1 << probes.min(10)).min(MAX_PROBE_DELAY);
    whole / 2 + whole * u32::from(jitter) / (2 * u32::from(Jitter::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn down(at: Duration) -> CircuitState {
        (0..FAILURE_THRESHOLD).fold(CircuitState::INITIAL, |state, _| state.failed(at, Jitter::MAX))
    }

    #[test]
    fn only_failures_in_a_row_open_the_circuit() {
        let almost = (1..FAILURE_THRESHOLD).fold(CircuitState::INITIAL, |state, _| state.failed(ms(0), 0));
        assert_eq!(almost.due(), None);
        assert_eq!(almost.connected().failed(ms(1), 0), CircuitState::Up { failures: 1 });
        let down = almost.failed(ms(1000), Jitter::MAX);
        assert_eq!(down, CircuitState::Down { since: ms(1000), probes: 0, next: ms(1500) });
        assert_eq!(down.failed(ms(1100), 0), down, "a straggler changes nothing");
    }

    #[test]
    fn a_probe_waits_for_its_time_and_there_is_one() {
        let down = down(ms(1000));
        assert_eq!(down.probe(ms(1499)), None);
        let probing = down.probe(ms(1500)).unwrap();
        assert_eq!(probing, CircuitState::Probing { since: ms(1000), probes: 0 });
        assert_eq!(probing.probe(ms(99_999)), None);
        assert_eq!(probing.connected(), CircuitState::INITIAL);
        let again = probing.probe_failed(ms(1600), Jitter::MAX);
        assert_eq!(again, CircuitState::Down { since: ms(1000), probes: 1, next: ms(2600) });
    }

    #[test]
    fn a_failed_probe_after_a_success_is_ignored() {
        assert_eq!(CircuitState::INITIAL.probe_failed(ms(5), 0), CircuitState::INITIAL);
        assert_eq!(CircuitState::INITIAL.probe(ms(5)), None);
    }

    #[test]
    fn probe_delays_double_and_half_is_random() {
        let longest = |probes| probe_delay(probes, Jitter::MAX);
        assert_eq!([0, 1, 2, 5, 40].map(longest), [ms(500), ms(1000), ms(2000), ms(15_000), ms(15_000)]);
        assert_eq!([0, 1].map(|probes| probe_delay(probes, 0)), [ms(250), ms(500)]);
    }

    #[derive(Debug, Clone, Copy)]
    enum Event {
        Failed,
        Connected,
        Probe,
        ProbeFailed,
    }

    proptest! {
        /// Checks any order of events: the circuit opens only after failures, and from there every way leads on.
        #[test]
        fn no_order_of_events_leaves_it_stuck(
            events in prop::collection::vec((prop::sample::select(vec![
                Event::Failed, Event::Connected, Event::Probe, Event::ProbeFailed,
            ]), 0_u64..20_000, any::<Jitter>()), 0..200)
        ) {
            let (mut state, mut now) = (CircuitState::INITIAL, Duration::ZERO);
            for (event, later, jitter) in events {
                now += ms(later);
                let before = state;
                state = match event {
                    Event::Failed => state.failed(now, jitter),
                    Event::Connected => state.connected(),
                    Event::Probe => state.probe(now).unwrap_or(state),
                    Event::ProbeFailed => state.probe_failed(now, jitter),
                };
                match (before, state) {
                    (CircuitState::Up { .. }, CircuitState::Probing { .. }) => prop_assert!(false, "probed while up"),
                    (CircuitState::Up { failures }, CircuitState::Down { .. }) => prop_assert_eq!(failures + 1, FAILURE_THRESHOLD),
                    _ => {}
                }
                if let CircuitState::Down { next, .. } = state {
                    prop_assert!(next <= now + MAX_PROBE_DELAY);
                    prop_assert!(state.probe(next).is_some());
                }
            }
        }
    }
}
