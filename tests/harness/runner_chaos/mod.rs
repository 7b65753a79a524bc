//! Kills workers, proxy and sandboxes again and again while runs go on, under a supervisor that starts them again.
//!
//! A play has rounds: kills, then quiet, in which every run must end. The random numbers come from a seed, and those of
//! a round also from its number. The machine decides how the pieces interleave. Findings are judged here and reported
//! by the caller.

mod agents;
mod judge;
mod workers;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use platform_core::{id::RunId, name::label};
use runner_store::{Filter, Store};
use serde::{Deserialize, Serialize};
use test_postgres::Database;

use self::{
    agents::Script,
    workers::{Change, Worker},
};
use crate::{
    World,
    docker::{Starts, docker},
    endurance::auditor::Auditor,
    eventually,
    pace::pace,
    process::kill_proxies,
    random::Random,
};

/// Largest number of runs that have not ended.
const RUNS: usize = 10;
/// Kills of a round.
const KILLS: u64 = 10;
/// Longest wait for rest at the end of a round, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(45);
const SETTINGS: &str = "[worker]\nlease_duration = '2s'\nmax_concurrent_runs = 10\ngc_interval = '2s'\n";

/// Events of a round and the state at its end.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub struct Round {
    /// Its number, from 0.
    pub number: u64,
    /// Kills by victim: `worker`, `worker at a point`, `proxy`, `sandbox`.
    pub kills: BTreeMap<String, u64>,
    /// Workers that were suspended and resumed.
    pub stops: u64,
    /// Runs by how they ended.
    pub runs: BTreeMap<String, u64>,
    /// Times a worker took a run over.
    pub take_overs: u64,
    /// Calls that the upstream has seen since the play began.
    pub calls: usize,
    /// Time from the last kill until rest, in milliseconds.
    pub quiet_ms: u64,
    /// Duration of the round, in seconds.
    pub seconds: u64,
    /// Last log lines of workers that ended by themselves.
    pub ended_by_themselves: Vec<String>,
    /// Violations, in words.
    pub faults: Vec<String>,
}

/// A run of this round.
#[derive(Debug)]
struct RequestedRun {
    id: RunId,
    script: Script,
    /// If true, its sandbox was killed.
    is_killed: bool,
}

/// A play in progress.
#[derive(Debug)]
pub struct Stage {
    seed: u64,
    random: Random,
    workers: [Worker; 2],
    runs: Vec<RequestedRun>,
    round: Round,
    /// Ids of calls that the upstream has seen.
    seen: BTreeSet<String>,
    auditor: Auditor,
    /// Declared before the world, so that it is dropped first: its file is in the world's directory.
    starts: Starts,
    store: Store,
    world: World,
    _postgres: Database,
}

impl Stage {
    /// Starts a play with `seed`.
    ///
    /// # Panics
    /// If something does not start.
    pub async fn set(seed: u64) -> Self {
        let postgres = Database::create().await;
        let mut world = World::with(&format!("{}{SETTINGS}", Script::registry())).await;
        assert!(world.stop_proxy().await);
        let store = world.keep_store_at(&postgres.url()).await;
        let starts = Starts::follow(&world.installation(), &world.path().join("starts")).await;
        let mut workers = ["one", "two"].map(|name| Worker::new(&world, name));
        workers[0].start(&world, None);
        let health = || async { world.control.health().await.map_err(|error| error.to_string()) };
        eventually("a proxy answers", health, Result::is_ok).await.unwrap();
        let auditor = Auditor::of(world.control.clone()).await;
        Self {
            seed,
            random: Random::of(seed),
            workers,
            runs: Vec::new(),
            round: Round::default(),
            seen: BTreeSet::new(),
            auditor,
            starts,
            store,
            world,
            _postgres: postgres,
        }
    }

    /// Plays a round, and returns the findings.
    ///
    /// # Panics
    /// If the play itself cannot go on.
    pub async fn round(&mut self, number: u64) -> Round {
        self.random = Random::of(self.seed.wrapping_mul(0x9e37_79b9).wrapping_add(number * 7919 + 1));
        self.round = Round { number, ..Round::default() };
        self.runs.clear();
        let began = Instant::now();
        while self.round.kills.values().sum::<u64>() < KILLS {
            self.supervise();
            self.operate().await;
            let pause = self.random.below(250);
            pace(Duration::from_millis(pause as u64)).await;
        }
        self.come_to_rest().await;
        self.judge().await;
        self.round.seconds = began.elapsed().as_secs();
        std::mem::take(&mut self.round)
    }

    async fn operate(&mut self) {
        match self.random.below(100) {
            0..50 => self.start_run().await,
            50..58 => self.cancel_one().await,
            58..72 => {
                let which = self.random.below(2);
                if self.workers[which].kill(&mut self.random).await {
                    self.count_kill("worker");
                }
            }
            72..77 => {
                let which = self.random.below(2);
                self.round.stops += u64::from(self.workers[which].stop(&mut self.random));
            }
            77..85 => self.kill_proxy(),
            85..90 => self.kill_sandbox().await,
            _ => {}
        }
    }

    fn count_kill(&mut self, victim: &str) {
        *self.round.kills.entry(victim.to_owned()).or_default() += 1;
    }

    fn supervise(&mut self) {
        for which in 0..self.workers.len() {
            match self.workers[which].supervise(&self.world, &mut self.random) {
                Some(Change::Died) => self.count_kill("worker at a point"),
                Some(Change::Suspended) => self.round.stops += 1,
                Some(Change::Ended) => {
                    let lines = self.workers[which].last_log_lines();
                    self.round.ended_by_themselves.push(lines);
                }
                None => {}
            }
        }
    }

    async fn start_run(&mut self) {
        if self.not_ended().await.len() >= RUNS {
            return;
        }
        let script = Script::ALL[self.random.below(Script::ALL.len())];
        let id = format!("r{}-{}", self.round.number, self.runs.len());
        let arguments = ["run", "--detach", "--run-id", &id, "--agent", script.agent(), "q"];
        let outcome = self.world.sluice().run(&arguments).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        self.runs.push(RequestedRun { id: RunId::parse(&id).unwrap(), script, is_killed: false });
    }

    /// Returns the ids of runs that have not ended.
    async fn not_ended(&self) -> Vec<RunId> {
        let states = vec!["queued", "preparing", "starting", "running", "settling"];
        let page = self.store.list(&Filter { states, ..Filter::default() }, 100).await.unwrap();
        page.runs.into_iter().map(|run| run.run_id).collect()
    }

    async fn cancel_one(&mut self) {
        let waiting: Vec<_> = self.runs.iter().filter(|run| run.script == Script::Waits).collect();
        if !waiting.is_empty() {
            let at = self.random.below(waiting.len());
            self.store.request_cancel(&waiting[at].id).await.unwrap();
        }
    }

    fn kill_proxy(&mut self) {
        if kill_proxies(self.world.path()) > 0 {
            self.count_kill("proxy");
        }
    }

    /// Kills a running sandbox.
    async fn kill_sandbox(&mut self) {
        let filter = format!("label={}={}", label::INSTALLATION, self.world.installation());
        let format = format!("{{{{.ID}}}} {{{{.Label {:?}}}}}", label::RUN_ID);
        let running = docker(&["ps", "--filter", &filter, "--format", &format]).await;
        let running: Vec<_> = running.lines().filter_map(|line| line.split_once(' ')).collect();
        if running.is_empty() {
            return;
        }
        let (container, run) = running[self.random.below(running.len())];
        let mut kill = tokio::process::Command::new("docker");
        // The container may have ended meanwhile.
        if kill.args(["kill", container]).output().await.unwrap().status.success() {
            self.count_kill("sandbox");
            if let Some(run) = self.runs.iter_mut().find(|requested| requested.id.as_str() == run) {
                run.is_killed = true;
            }
        }
    }

    /// Ends the play.
    ///
    /// # Panics
    /// If something is left.
    pub async fn end(mut self) {
        for worker in &mut self.workers {
            worker.end().await;
        }
        self.world.assert_nothing_left().await;
        assert_eq!(self.world.canaries(), Vec::<String>::new(), "a secret is where it must not be");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        kill_proxies(self.world.path());
    }
}
