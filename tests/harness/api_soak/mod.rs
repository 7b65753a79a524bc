//! Loads the HTTP API of `sluice up`: many stored runs, runs that work, slow readers of chats, and a client that lists.
//!
//! Three times are measured, without and with the slow readers. A list takes some time. An event reaches a follower that
//! reads at once some time after it was stored. An ordered run waits for its claim while there is room.

mod clients;

use std::time::{Duration, Instant, SystemTime};

use bench::{load::percentile, measure::process};
use http::Method;
use platform_runtime::task;
use rustix::process::Signal;
use serde::Serialize;
use serde_json::{Map, Value, json};

pub(crate) use self::clients::list_times;
use self::clients::{claim_delay, event_delays, open_slowly, read_slowly};
use crate::{
    agent::Agent,
    eventually::eventually_within,
    served::Served,
    shell_agents::{reporting_agent, shell_agent},
    store,
    up::Up,
    world::World,
};

const CHAT: &str = "/api/v1/ai/chat";
const ACCOUNT: &str = "acct-7";
/// Runs that work.
const RUNS: usize = 8;
/// Streams of a principal, fewer than it may hold.
const STREAMS_OF_ONE: usize = 25;
const PATIENCE: Duration = Duration::from_secs(60);
/// Script of a working agent: two events every 200 ms, one of them with a text of 1,000 bytes.
const WORK: &str = r#"text=$(head -c 1000 /dev/zero | tr '\0' x); n=0
until [ -e stop ]; do
  n=$((n + 1))
  printf '{"type":"tool_call","id":"c%d","name":"sh","arguments":{"n":%d}}\n' $n $n
  printf '{"type":"tool_result","id":"c%d","result":"%s"}\n' $n $text
  sleep 0.2
done"#;

/// Load of the API.
#[derive(Debug, Clone, Copy)]
pub struct ApiSoak {
    /// Runs that are stored before.
    pub stored: usize,
    /// Slow readers.
    pub streams: usize,
    /// Time of each of the two measurements.
    pub span: Duration,
}

/// Percentiles of times, in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Times {
    /// Number of measured times.
    pub count: usize,
    /// Median.
    pub p50_us: u64,
    /// Time that one of a hundred exceeds.
    pub p99_us: u64,
    /// Longest time.
    pub max_us: u64,
}

/// Figures of one measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// Duration of `GET /api/v1/runs`, 50 runs.
    pub list: Times,
    /// Time from the storing of an event to its arrival.
    pub event_delay: Times,
    /// Time from the order of a run to its claim.
    pub claim_delay: Times,
    /// Resident memory of `sluice up` at the end, in bytes.
    pub rss: u64,
    /// Largest resident memory of `sluice up`, in bytes.
    pub peak: u64,
}

/// Outcome of a soak.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Stored runs, as the store counts them.
    pub stored: usize,
    /// Figures with the measuring clients alone.
    pub without_streams: Figures,
    /// Time in which all slow readers have opened their streams at once, in milliseconds.
    pub opening_ms: u128,
    /// Figures beside the slow readers.
    pub with_streams: Figures,
    /// Bytes that the slow readers have received.
    pub slow_bytes: u64,
    /// Resident memory of `sluice up` after the slow readers have left, in bytes.
    pub rss_after: u64,
}

impl Times {
    pub(crate) fn of(mut times: Vec<u64>) -> Self {
        assert!(!times.is_empty(), "nothing was measured");
        let [p50_us, p99_us, max_us] = [500, 990, 1000].map(|share| percentile(&mut times, share));
        Self { count: times.len(), p50_us, p99_us, max_us }
    }
}

impl ApiSoak {
    /// Loads an API, and returns its figures.
    ///
    /// # Panics
    /// If a request fails.
    pub async fn run(self) -> Outcome {
        let there = self.served().await;
        let app = there.principal(&["app", "--account", ACCOUNT]).await;
        let runs = self.working(&app).await;
        let without_streams = self.measure(&there, &app, &runs).await;
        let tokens = self.tokens(&there).await;
        let began = Instant::now();
        let opening = (0..self.streams).map(|n| {
            let path = format!("{CHAT}/t{}/stream", n % RUNS);
            let token = tokens[n / STREAMS_OF_ONE].clone();
            task::spawn("slow reader", open_slowly(there.url(), token, path))
        });
        let mut readers = Vec::new();
        for opened in opening.collect::<Vec<_>>() {
            readers.push(task::spawn("slow reader", read_slowly(opened.await.unwrap(), self.span)));
        }
        let opening_ms = began.elapsed().as_millis();
        let with_streams = self.measure(&there, &app, &runs).await;
        let mut slow_bytes = 0;
        for reader in readers {
            slow_bytes += reader.await.unwrap();
        }
        let rss_after = used(&there).rss;
        for thread in 0..RUNS {
            app.post(&format!("{CHAT}/t{thread}/stop"), &Value::Null).await;
        }
        let left = || there.world.left();
        eventually_within(PATIENCE, "nothing is left", left, Vec::is_empty).await;
        there.up.stop(Signal::TERM).await;
        Outcome { stored: self.stored, without_streams, opening_ms, with_streams, slow_bytes, rss_after }
    }

    /// Starts a world with runs in its store, and its `sluice up`.
    async fn served(self) -> Served {
        let disk = "disk = '32 MiB'";
        let works = reporting_agent(WORK, &format!("{disk}\nrun_timeout = '30min'"));
        let works = works.replace("test:sh", "test:works");
        let ends = shell_agent("echo it is done", disk);
        let world = World::with(&format!(
            "[api]\nlisten = '127.0.0.1:0'\n[worker]\nmax_concurrent_runs = {}\n{works}{ends}",
            RUNS + 2
        ))
        .await;
        let seed = ["run", "--agent", "test:sh", "--account", ACCOUNT, "--run-id", "seed", "q"];
        let ran = world.sluice().run(&seed).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        store::replace(&world, |table, row| copies(table, row, self.stored)).await;
        let up = Up::start(world.sluice()).await;
        let address = up.said.lines().find_map(|line| line.strip_prefix("api       http://")).unwrap();
        let api = Agent::over_tcp(address.parse().unwrap());
        Served { world, up, api }
    }

    /// Orders the runs that work, each in a thread; returns their ids once they run.
    async fn working(self, app: &Agent) -> Vec<String> {
        let mut runs = Vec::new();
        for thread in 0..RUNS {
            let body = json!({ "message": "q", "stateKey": format!("t{thread}"), "graphName": "test:works" });
            let begun = app.send(Method::POST, CHAT, body.to_string().into()).await.unwrap();
            assert_eq!(begun.status, 200);
            let run = begun.headers["x-cogni-run-id"].to_str().unwrap().to_owned();
            let state = || async { app.get(&format!("/api/v1/runs/{run}")).await.json()["state"].clone() };
            eventually_within(PATIENCE, "it runs", state, |state| state == "running").await;
            runs.push(run);
        }
        runs
    }

    /// Adds the principals of the slow readers.
    async fn tokens(self, there: &Served) -> Vec<String> {
        let mut tokens = Vec::new();
        for n in 0..self.streams.div_ceil(STREAMS_OF_ONE) {
            tokens.push(there.token(&[&format!("slow-{n}"), "--account", ACCOUNT]).await);
        }
        tokens
    }

    async fn measure(self, there: &Served, app: &Agent, runs: &[String]) -> Figures {
        process::forget_peak(&[there.up.child.id().unwrap()]).unwrap();
        let since = SystemTime::now();
        let until = Instant::now() + self.span;
        let followers = runs.iter().map(|run| {
            let path = format!("/api/v1/runs/{run}/events");
            task::spawn("follower", event_delays(app.clone(), path, since, until))
        });
        let followers: Vec<_> = followers.collect();
        let lists = task::spawn("list", list_times(app.clone(), until));
        let mut claims = Vec::new();
        while Instant::now() < until {
            claims.push(claim_delay(app).await);
        }
        let mut delays = Vec::new();
        for follower in followers {
            delays.extend(follower.await.unwrap());
        }
        let list = Times::of(lists.await.unwrap());
        let process::Used { rss, peak, .. } = used(there);
        Figures { list, event_delay: Times::of(delays), claim_delay: Times::of(claims), rss, peak }
    }
}

fn used(there: &Served) -> process::Used {
    process::used(&[there.up.child.id().unwrap()]).unwrap()
}

/// Returns a row, and its copies if it is of the run `seed`: each of a separate run, that was ordered earlier.
fn copies(table: &str, row: Map<String, Value>, count: usize) -> Vec<Map<String, Value>> {
    let is_copied = ["runs", "events"].contains(&table) && row["run"] == "seed";
    let copy = |n: usize| {
        let mut copy = row.clone();
        copy["run"] = format!("seed-{n}").into();
        for time in ["created", "queued", "claimed", "started", "ended", "changed", "time"] {
            if let Some(at) = copy.get(time).and_then(Value::as_i64) {
                copy[time] = (at - 1000 * i64::try_from(n).unwrap()).into();
            }
        }
        copy
    };
    let copies: Vec<_> = (1..if is_copied { count } else { 1 }).map(copy).collect();
    [vec![row], copies].concat()
}
