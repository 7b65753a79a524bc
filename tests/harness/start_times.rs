//! Measures the time from an order to the first instruction of its agent. Starts are cold, warm, and as the predecessor
//! made them, side by side on this machine.
//!
//! The agent's first instruction reports the time. The predecessor started a container with nginx for each run, waited
//! for its socket, and then started the agent's. Both are played through Docker's API, with the predecessor's hardening
//! and its configuration of nginx. The wait for the socket is shorter than the predecessor's.

use std::{
    fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use bench::upstream::ScriptedUpstream;
use futures_util::future::join_all;
use http::Method;
use platform_core::name::label;
use rustix::process::Signal;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    agent::Agent,
    docker::{SOCKET, docker},
    eventually::eventually,
    nginx,
    up::Up,
    world::{World, grant},
};

const IMAGE: &str = "sluicegate/sandbox-runtime:latest";
/// Runs that begin at the same moment.
const AT_ONCE: usize = 8;

/// Number of measurements of each kind of start.
#[derive(Debug, Clone, Copy)]
pub struct StartTimes {
    /// Measurements of one start at a time.
    pub alone: usize,
    /// Rounds of eight starts at once.
    pub rounds: usize,
}

/// Measurements of one kind of start, in milliseconds.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Name of the kind.
    pub what: &'static str,
    /// Every measurement of one at a time, sorted.
    pub alone_ms: Vec<f64>,
    /// Every measurement of eight at once, sorted.
    pub at_once_ms: Vec<f64>,
}

impl StartTimes {
    /// Measures all kinds of start in turn.
    ///
    /// # Panics
    /// If a run fails.
    pub async fn measure(self) -> Vec<Row> {
        let before = Predecessor::new().await;
        let (cold, warm) = (Ours::new(0).await, Ours::new(AT_ONCE).await);
        let files = CopiedFiles::write();
        let kinds = ["predecessor: nginx container, then the agent's", "cold", "warm", CopiedFiles::KIND];
        let mut rows = kinds.map(|what| Row { what, alone_ms: Vec::new(), at_once_ms: Vec::new() });
        for (count, rounds) in [(1, self.alone), (AT_ONCE, self.rounds)] {
            for round in 0..rounds {
                let name = |number| format!("b{count}-{round}-{number}");
                let names: Vec<_> = (0..count).map(name).collect();
                // The same worker has a run of each of the names already.
                let with_files: Vec<_> = names.iter().map(|name| format!("{name}-files")).collect();
                let times = [
                    before.begin(&names).await,
                    cold.begin(&names, &[]).await,
                    warm.begin(&names, &[]).await,
                    warm.begin(&with_files, &files.options()).await,
                ];
                for (row, times) in rows.iter_mut().zip(times) {
                    let all = if count == 1 { &mut row.alone_ms } else { &mut row.at_once_ms };
                    all.extend(times);
                }
            }
        }
        for ours in [cold, warm] {
            ours.world.sluice().run(&["runs", "gc", "--kept"]).await;
            ours.up.stop(Signal::TERM).await;
            ours.world.assert_nothing_left().await;
        }
        for row in &mut rows {
            row.alone_ms.sort_by(f64::total_cmp);
            row.at_once_ms.sort_by(f64::total_cmp);
        }
        rows.into()
    }
}

/// Returns the duration that `percent` of a hundred starts did not exceed.
#[must_use]
pub fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

/// A `sluice up` with a number of warm containers.
struct Ours {
    world: World,
    up: Up,
    warm: usize,
}

impl Ours {
    async fn new(warm: usize) -> Self {
        let agent = "[agents.'bench:clock']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['bash', '-c', 'echo $EPOCHREALTIME']\nprotocol = 'text'\nkeep = '1s'\n";
        let mut world =
            World::with(&format!("{agent}warm_pool_size = {warm}\n[worker]\nmax_concurrent_runs = 64\n"))
                .await;
        assert!(world.stop_proxy().await);
        world.use_docker_on(Path::new(SOCKET));
        let up = Up::start(world.sluice().env("SLUICE_LOG", "warn")).await;
        Self { world, up, warm }
    }

    /// Starts these runs at the same moment, with these further options, and returns their start times.
    async fn begin(&self, names: &[String], options: &[&str]) -> Vec<f64> {
        self.until_ready().await;
        let one = async |run: &String| {
            let arguments = ["run", "--detach", "--run-id", run, "--agent", "bench:clock", "q"];
            let ordered = self.world.sluice().run(&[&arguments[..], options].concat()).await;
            assert_eq!(ordered.code, Some(0), "{ordered:?}");
            let waited = self.world.sluice().run(&["runs", "wait", run]).await;
            let shown = self.world.sluice().run(&["runs", "show", run, "--json"]).await.result();
            let first: f64 = waited.stdout.trim().parse().unwrap_or_else(|_| panic!("{waited:?} {shown:#}"));
            first * 1e3 - shown["created_ms"].as_f64().unwrap()
        };
        join_all(names.iter().map(one)).await
    }

    /// Waits until exactly the warm containers run.
    async fn until_ready(&self) {
        let filter = format!("label={}={}", label::INSTALLATION, self.world.installation());
        let running = || async {
            let names = docker(&["ps", "--filter", &filter, "--format", "{{.Names}}"]).await;
            names.lines().count()
        };
        eventually("they run", running, |count| *count == self.warm).await;
        // The store's row of a warm container is written shortly after the container starts.
        eventually("they wait", || self.world.sluice().waiting(), |count| *count == self.warm).await;
    }
}

/// Directory that a run begins with.
struct CopiedFiles(tempfile::TempDir);

impl CopiedFiles {
    const KIND: &str = "warm, with 200 files of 10 KB";

    fn write() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..200 {
            fs::write(dir.path().join(format!("{number}.txt")), [b'x'; 10_000]).unwrap();
        }
        Self(dir)
    }

    fn options(&self) -> [&str; 2] {
        ["--workspace", self.0.path().to_str().unwrap()]
    }
}

/// The predecessor: for each run, a container with nginx, and then the agent's container.
struct Predecessor {
    docker: Agent,
    upstream: ScriptedUpstream,
}

impl Predecessor {
    async fn new() -> Self {
        Self {
            docker: Agent::on(Path::new(SOCKET)).unsearched(),
            upstream: ScriptedUpstream::start().await.unwrap(),
        }
    }

    async fn begin(&self, names: &[String]) -> Vec<f64> {
        join_all(names.iter().map(|name| self.start_one(name))).await
    }

    async fn start_one(&self, run: &str) -> f64 {
        let dir = tempfile::Builder::new().prefix("sw-before-").tempdir_in("/tmp").unwrap();
        let mounted = dir.path().display().to_string();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let address = self.upstream.base_url().trim_start_matches("http://").parse().unwrap();
        let config = nginx::configuration(dir.path(), address, &grant(run, "acct-1"), "sk-key");
        std::fs::write(dir.path().join("nginx.conf"), config).unwrap();
        let proxy = self.container(json!({
            "Image": IMAGE, "User": "0:0", "Entrypoint": ["/usr/sbin/nginx"],
            "Cmd": ["-e", "stderr", "-p", mounted, "-c", format!("{mounted}/nginx.conf")],
            // The image has no nginx, so the machine's own is mounted.
            "HostConfig": { "Binds": [format!("{mounted}:{mounted}"), "/usr:/usr:ro"], "NetworkMode": "none" },
        }));
        let proxy = proxy.await;
        let socket = dir.path().join("llm.sock");
        eventually("nginx listens", || async { socket.exists() }, |exists| *exists).await;
        let agent = self.container(json!({
            "Image": IMAGE, "User": "1001:1001", "Entrypoint": ["bash", "-c", "echo $EPOCHREALTIME"],
            "HostConfig": {
                "Binds": [format!("{mounted}:/llm-sock")], "NetworkMode": "none", "ReadonlyRootfs": true,
                "CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges:true"], "PidsLimit": 256,
                "Memory": 536_870_912, "MemorySwap": 536_870_912, "Init": true,
                "Tmpfs": { "/tmp": "rw,noexec,nosuid,size=67108864", "/run": "rw,noexec,nosuid,size=1048576" },
            },
        }));
        let agent = agent.await;
        docker(&["wait", &agent]).await;
        let first: f64 = docker(&["logs", &agent]).await.parse().unwrap();
        docker(&["rm", "--force", &agent, &proxy]).await;
        (first - began) * 1e3
    }

    /// Creates a container, starts it, and returns its id.
    async fn container(&self, body: Value) -> String {
        let created = self.docker.clone().with_header("content-type", "application/json");
        let created =
            created.request(Method::POST, "/containers/create", body.to_string().into()).await.unwrap();
        assert!(created.status.is_success(), "{}", created.text());
        let id = created.json()["Id"].as_str().unwrap().to_owned();
        let path = format!("/containers/{id}/start");
        let started = self.docker.request(Method::POST, &path, Vec::new().into()).await.unwrap();
        assert!(started.status.is_success(), "{}", started.text());
        id
    }
}
