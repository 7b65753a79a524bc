//! Sends bursts of calls, as far apart as their upstream keeps idle connections. Each call meets a connection that is
//! about to be closed, was closed just now, or is being closed.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bench::upstream::ScriptedUpstream;
use serde::Serialize;

use crate::{
    agent::Agent,
    idle_closing_upstream::{Counters, IdleClosingUpstream, Timing},
    pace::pace,
    world::World,
};

/// Parameters of a play.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Soak {
    /// Calls at a time.
    pub callers: usize,
    /// Calls of each caller.
    pub rounds: usize,
    /// Idle timeout of the upstream, in milliseconds.
    pub upstream_idle_ms: u64,
    /// `upstream.pool_idle_timeout`, in milliseconds.
    pub pool_idle_ms: u64,
    /// Time from an answer to the next call on its connection, in milliseconds; it varies by the length of a burst.
    pub gap_ms: u64,
    /// Duration of an answer, in milliseconds.
    pub hold_ms: u64,
}

/// Results of a play.
#[derive(Debug, Serialize)]
pub struct Found {
    /// Calls.
    pub calls: u64,
    /// Answers other than 200, by status and code.
    pub failures: BTreeMap<String, u64>,
    /// Calls that the upstream received more than once.
    pub heard_twice: usize,
    /// Counters of the upstream.
    pub upstream: Counters,
}

impl Soak {
    /// Sends the bursts and returns the results.
    ///
    /// # Panics
    /// If the proxy gives no answer at all.
    pub async fn play(self) -> Found {
        let ms = Duration::from_millis;
        let timing = Timing { idle: ms(self.upstream_idle_ms), hold: ms(self.hold_ms) };
        let idle_closing = IdleClosingUpstream::start(timing).await;
        let settings = format!(
            "base_url = '{}'\npool_idle_timeout = '{}ms'\npool_max_idle_per_thread = {}",
            idle_closing.base_url(),
            self.pool_idle_ms,
            self.callers
        );
        let world = World::reaching(ScriptedUpstream::start().await.unwrap(), &settings, "").await;
        // The proxy serves each run on another data-plane thread.
        let runs = [world.run("r1", "acct-1").await, world.run("r2", "acct-1").await];
        let began = Instant::now();
        let callers =
            (0..self.callers).map(|caller| self.call(runs[caller % 2].agent.clone(), caller, began));
        let answers = futures_util::future::join_all(callers).await;
        let mut failures = BTreeMap::new();
        for failure in answers.into_iter().flatten() {
            *failures.entry(failure).or_default() += 1;
        }
        let upstream = idle_closing.counters();
        let heard_twice = upstream.calls.values().filter(|times| **times > 1).count();
        Found { calls: (self.callers * self.rounds) as u64, failures, heard_twice, upstream }
    }

    /// Makes a call in every round, at the same time as the other callers, and returns the failures. So each call needs
    /// its own connection, which is idle since the round before.
    async fn call(self, agent: Agent, caller: usize, began: Instant) -> Vec<String> {
        let period = Duration::from_millis(self.hold_ms + self.gap_ms);
        let mut failures = Vec::new();
        for round in 0..self.rounds {
            // Jitter keeps a burst from always falling on the same side of the moment of the close.
            let jitter = Duration::from_millis(((caller * 7 + round * 13) % 7) as u64);
            let due = began + period * u32::try_from(round).unwrap() + jitter;
            pace(due.saturating_duration_since(Instant::now())).await;
            let answer = agent.chat("fake").await;
            if answer.status != 200 {
                failures.push(format!("{} {}", answer.status.as_u16(), answer.json()["error"]["code"]));
            }
        }
        failures
    }
}
