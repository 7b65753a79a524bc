//! Kills the proxy, the worker and LiteLLM while runs go on, and starts them again.

use std::{
    cell::Cell,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::Serialize;

use crate::{litellm::LiteLlm, pace::pace, process::kill_proxies, up::Up, world::World};

/// Interval at which the number of ended runs is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Numbers of kills.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Kills {
    /// Kills of the proxy, which `sluice up` starts again.
    pub proxy: usize,
    /// Kills of `sluice up`, after which another one takes the runs over.
    pub worker: usize,
    /// Kills of LiteLLM.
    pub litellm: usize,
}

#[derive(Debug, Clone, Copy)]
enum Victim {
    Proxy,
    Worker,
    LiteLlm,
}

/// Kill after a number of ended runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedKill {
    after: usize,
    victim: Victim,
}

impl Kills {
    /// Returns the kills of a play of `runs` runs, evenly distributed.
    pub(super) fn planned(self, runs: usize) -> Vec<PlannedKill> {
        let of = |victim, kills: usize| {
            (1..=kills).map(move |number| PlannedKill { after: number * runs / (kills + 1), victim })
        };
        let mut all: Vec<_> = of(Victim::Proxy, self.proxy)
            .chain(of(Victim::Worker, self.worker))
            .chain(of(Victim::LiteLlm, self.litellm))
            .collect();
        all.sort_by_key(|kill| kill.after);
        all
    }
}

/// Processes that are killed. If a play fails, drop ends those that would go on.
#[derive(Debug)]
pub(super) struct Victims {
    pub(super) litellm: LiteLlm,
    pub(super) up: Option<Up>,
    /// Times at which LiteLLM was killed, in milliseconds since 1970.
    pub(super) litellm_kills: Vec<u64>,
}

impl Victims {
    /// Makes the planned kills, as so many runs have `ended`.
    pub(super) async fn kill(&mut self, world: &World, planned: Vec<PlannedKill>, ended: &Cell<usize>) {
        for PlannedKill { after, victim } in planned {
            while ended.get() < after {
                pace(LOOK_INTERVAL).await;
            }
            match victim {
                Victim::Proxy => {
                    kill_proxies(world.path());
                }
                Victim::Worker => {
                    let mut up = self.up.take().expect("a worker runs");
                    up.child.kill().await.unwrap();
                    drop(up);
                    self.up = Some(Up::start(world.sluice()).await);
                }
                Victim::LiteLlm => {
                    self.litellm_kills.push(unix_ms());
                    self.litellm.kill_and_restart().await;
                }
            }
        }
    }
}

fn unix_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}
