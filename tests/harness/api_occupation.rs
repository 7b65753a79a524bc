//! Measures the HTTP API of `sluice up` while strangers try to take all of its connections.

use std::time::{Duration, Instant};

use platform_runtime::task;
use rustix::process::Signal;
use serde::Serialize;

use crate::{
    api_soak::{Times, list_times},
    served::Served,
    strangers::{Habit, Strangers},
};

/// Strangers at an API.
#[derive(Debug, Clone, Copy)]
pub struct ApiOccupation {
    /// Clients that send their bodies slowly.
    pub slow_bodies: usize,
    /// Clients that send nothing.
    pub idle: usize,
    /// Time of each of the two measurements.
    pub span: Duration,
}

/// Outcome of an occupation.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Occupied {
    /// Duration of `GET /api/v1/runs` of a principal, each on its own connection, without strangers.
    pub alone: Times,
    /// The same beside them.
    pub beside_strangers: Times,
    /// Connections that they have opened.
    pub opened: usize,
}

impl ApiOccupation {
    /// Occupies an API, and returns how long requests take.
    ///
    /// # Panics
    /// If a request fails.
    pub async fn run(self) -> Occupied {
        let there = Served::with("").await;
        let app = there.principal(&["app", "--account", "acct-7"]).await;
        let measured = async || {
            let lists = task::spawn("list", list_times(app.clone(), Instant::now() + self.span));
            Times::of(lists.await.unwrap())
        };
        let alone = measured().await;
        let address = there.address();
        let strangers = [(self.slow_bodies, Habit::SlowBody), (self.idle, Habit::Idle)];
        let strangers = strangers.map(|(count, habit)| Strangers::come(address, count, habit));
        let beside_strangers = measured().await;
        let opened = strangers.iter().map(Strangers::opened).sum();
        drop(strangers);
        there.up.stop(Signal::TERM).await;
        Occupied { alone, beside_strangers, opened }
    }
}
