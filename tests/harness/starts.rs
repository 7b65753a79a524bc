//! Executes many runs of the default agent for as many callers as `sluice up` serves at a time. Measures how long each
//! run took to start and to end, and the resources of the processes that worked on them.

use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File},
    path::Path,
};

use bench::measure::process;
use futures_util::future::join_all;
use platform_core::name::{header, label};
use rustix::process::Signal;
use serde::Serialize;
use serde_json::Value;
use tokio::process::Command;

use crate::{docker::SOCKET, eventually::eventually, up::Up, world::World};

/// Number of runs, in total and at a time.
#[derive(Debug, Clone, Copy)]
pub struct Starts {
    /// Number of runs in total.
    pub count: usize,
    /// Number of runs at a time.
    pub at_a_time: usize,
    /// Number of warm containers.
    pub warm: usize,
}

/// Results of a play.
#[derive(Debug, Serialize)]
pub struct Findings {
    /// Runs that succeeded.
    pub succeeded: usize,
    /// Failures of the others, in words.
    pub failures: Vec<String>,
    /// Runs that used a warm container. No two runs had the same one.
    pub warm: usize,
    /// Time from the order to Docker's report that the container started.
    pub order_to_container: Spread,
    /// Time from the order to the agent's first model call.
    pub order_to_first_call: Spread,
    /// Time from the order to the run's end, after its resources are removed.
    pub order_to_end: Spread,
    /// Resources of `sluice up`.
    pub up: Used,
    /// Resources of the proxy.
    pub proxy: Used,
}

/// Spread of durations, in milliseconds.
#[derive(Debug, Default, Serialize)]
pub struct Spread {
    /// Median.
    pub p50_ms: i64,
    /// 95th percentile.
    pub p95_ms: i64,
    /// Longest duration.
    pub max_ms: i64,
}

/// Resources that a process used during a play.
#[derive(Debug, Serialize)]
pub struct Used {
    /// Processor time, user and system.
    pub cpu_ms_per_run: f64,
    /// Resources held after the first tenth of the runs.
    pub early: Held,
    /// Resources held at the end.
    pub late: Held,
}

/// Resources that a process holds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Held {
    /// Resident memory, bytes.
    pub rss: u64,
    /// Open descriptors.
    pub descriptors: usize,
    #[serde(skip)]
    cpu_ns: u64,
}

impl Held {
    fn by(pid: u32) -> Self {
        let used = process::used(&[pid]).unwrap();
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
        Self { rss: used.rss, descriptors, cpu_ns: used.cpu_ns }
    }
}

impl Starts {
    /// Executes all runs and returns the measurements.
    ///
    /// # Panics
    /// If resources are left, or no worker claims the runs.
    pub async fn run(self) -> Findings {
        let agent = format!("[agents.'sandbox:agent']\ndisk = '256MiB'\nwarm_pool_size = {}\n", self.warm);
        let mut world =
            World::with(&format!("{agent}[worker]\nmax_concurrent_runs = {}\n", self.at_a_time)).await;
        assert!(world.stop_proxy().await);
        world.use_docker_on(Path::new(SOCKET));
        let up = Up::start(world.sluice().env("SLUICE_LOG", "warn")).await;
        let pids = [up.child.id().unwrap(), up.proxy_pid];
        let filter = format!("label={}={}", label::INSTALLATION, world.installation());
        let mut events = Command::new("docker");
        events.args(["events", "--filter", &filter, "--filter", "event=start", "--format", "{{json .}}"]);
        // The output goes to a file, because a slow reader of a pipe would delay Docker.
        let containers = world.path().join("events");
        events.stdout(File::create(&containers).unwrap()).kill_on_drop(true);
        let events = events.spawn().unwrap();
        // After the first tenth, pools and buffers have their final size.
        let first = pids.map(Held::by);
        let mut failures = self.execute(&world, 0..self.count / 10).await;
        let early = pids.map(Held::by);
        failures.extend(self.execute(&world, self.count / 10..self.count).await);
        let late = pids.map(Held::by);
        let succeeded = self.count - failures.len();
        let [up_used, proxy] = [0, 1].map(|which| Used {
            cpu_ms_per_run: (late[which].cpu_ns - first[which].cpu_ns) as f64 / 1e6 / self.count as f64,
            early: early[which],
            late: late[which],
        });
        let times = Times::of(&world, &containers, succeeded).await;
        let warm = self.containers(&world).await.into_iter().filter(|name| name.contains("-warm-")).count();
        drop(events);
        up.stop(Signal::TERM).await;
        world.assert_nothing_left().await;
        Findings {
            succeeded,
            failures,
            warm,
            order_to_container: times.spread(|run| run.container),
            order_to_first_call: times.spread(|run| run.first_call),
            order_to_end: times.spread(|run| run.ended),
            up: up_used,
            proxy,
        }
    }

    /// Returns the containers of the runs, and asserts that no two runs had the same one.
    async fn containers(self, world: &World) -> BTreeSet<String> {
        let mut containers = BTreeSet::new();
        for number in 0..self.count {
            let shown = world.sluice().run(&["runs", "show", &format!("r{number}"), "--json"]).await.result();
            let resources = shown["resources"].as_array().unwrap();
            for resource in resources.iter().filter(|resource| resource["kind"] == "container") {
                let name = resource["name"].as_str().unwrap();
                assert!(containers.insert(name.to_owned()), "{name} had two runs");
            }
        }
        containers
    }

    /// Executes `runs` for as many callers as may work at a time, and returns the failures.
    async fn execute(self, world: &World, runs: std::ops::Range<usize>) -> Vec<String> {
        let callers = (0..self.at_a_time).map(async |caller| {
            let mut failures = Vec::new();
            for number in runs.clone().skip(caller).step_by(self.at_a_time) {
                let run = format!("r{number}");
                let ordered = world.sluice().run(&["run", "--detach", "--run-id", &run, "q"]).await;
                let waited = world.sluice().run(&["runs", "wait", &run]).await;
                if (ordered.code, waited.code) != (Some(0), Some(0)) {
                    failures.push(format!("{run}: {ordered:?} {waited:?}"));
                }
            }
            failures
        });
        join_all(callers).await.concat()
    }
}

/// Times of a run's steps, in milliseconds since its order.
#[derive(Debug, Default, Clone, Copy)]
struct Run {
    container: Option<i64>,
    first_call: Option<i64>,
    ended: Option<i64>,
}

struct Times(Vec<Run>);

impl Times {
    async fn of(world: &World, containers: &Path, count: usize) -> Self {
        let listed = world.sluice().run(&["runs", "ls", "--json", "--number", "100000"]).await;
        let mut runs = HashMap::new();
        for run in listed.result()["runs"].as_array().unwrap() {
            let ordered = run["created_ms"].as_i64().unwrap();
            let ended = run["ended_ms"].as_i64().map(|ended| ended - ordered);
            runs.insert(
                run["run_id"].as_str().unwrap().to_owned(),
                (ordered, Run { ended, ..Run::default() }),
            );
        }
        let reported = || async { fs::read_to_string(containers).unwrap() };
        let is_complete = |text: &String| text.lines().count() >= count && text.ends_with('\n');
        for event in eventually("Docker has told of all", reported, is_complete).await.lines() {
            let event: Value = serde_json::from_str(event).unwrap();
            // The label of a warm container names no run.
            let Some(run_id) = event["Actor"]["Attributes"][label::RUN_ID].as_str() else { continue };
            let at = event["timeNano"].as_i64().unwrap() / 1_000_000;
            let (ordered, run) = runs.get_mut(run_id).unwrap();
            run.container.get_or_insert(at - *ordered);
        }
        for call in world.upstream.ledger().all() {
            if let [run_id] = call.header(header::COGNI_RUN_ID)[..]
                && let Some((ordered, run)) = runs.get_mut(run_id)
            {
                run.first_call.get_or_insert(call.unix_ms.cast_signed() - *ordered);
            }
        }
        Self(runs.into_values().map(|(_, run)| run).collect())
    }

    fn spread(&self, of: impl Fn(&Run) -> Option<i64>) -> Spread {
        let mut all: Vec<_> = self.0.iter().filter_map(of).collect();
        all.sort_unstable();
        let at = |percent: usize| all.get((all.len() * percent / 100).min(all.len().saturating_sub(1)));
        let at = |percent| at(percent).copied().unwrap_or_default();
        Spread { p50_ms: at(50), p95_ms: at(95), max_ms: at(100) }
    }
}
