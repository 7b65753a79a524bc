//! `bench-openclaw README` measures the time of `sandbox:openclaw` from the order to its first model call. It compares
//! a container created for the run with a warm one. It also measures the peak memory until the end of a tool. The
//! results are a table between two marks of the README.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed, with the place")]

use std::{fs, path::Path, time::Duration};

use bench::measure::machine::Machine;
use harness::{
    Up, World,
    docker::{SOCKET, docker},
    eventually::eventually_within,
};
use platform_core::name::{header, label};
use rustix::process::Signal;

const BEGIN: &str = "<!-- starts:begin -->";
const END: &str = "<!-- starts:end -->";
const ROUNDS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(120);

/// The same agent with and without a warm container.
const AGENTS: &str = "[agents.'bench:cold']\nargv = ['node', '/agent/run.mjs']\nimage = 'sluicegate/sandbox-openclaw:latest'\nmemory = '2GiB'\nrun_timeout = '100s'\n\
    [agents.'bench:warm']\nargv = ['node', '/agent/run.mjs']\nimage = 'sluicegate/sandbox-openclaw:latest'\nmemory = '2GiB'\nrun_timeout = '100s'\nwarm_pool_size = 1\n";
/// Message for a tool that prints the peak memory of the control group, of either version.
const QUESTION: &str = "Please:\ncall: exec {\"command\":\"echo peak=$(cat /sys/fs/cgroup/memory.peak || \
    cat /sys/fs/cgroup/memory/memory.max_usage_in_bytes)=\"}\nsay: Done.";

/// Measurements of one run.
struct Measurement {
    first_call_ms: u64,
    peak_mib: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [readme] = arguments.as_slice() else { panic!("usage: bench-openclaw README") };
    let mut world = World::with(AGENTS).await;
    assert!(world.stop_proxy().await);
    world.use_docker_on(Path::new(SOCKET));
    let up = Up::start(world.sluice().env("SLUICE_LOG", "warn")).await;
    run(&world, "cold", "first").await; // reads the image from disk
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        cold.push(run(&world, "cold", &format!("cold-{round}")).await);
        warm.push(run(&world, "warm", &format!("warm-{round}")).await);
    }
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
    let machine = Machine::here();
    let about = format!(
        "`make bench-openclaw` on {} ({} cores, {}), commit `{}`, {ROUNDS} runs of each in turns, after one that is not counted.",
        machine.processor, machine.cores, machine.kernel, machine.commit,
    );
    let rows = row("cold", &cold) + &row("warm", &warm);
    let head = "| container | order to the first call, median (least to most) | peak of its control group |\n|---|--:|--:|\n";
    let text = fs::read_to_string(readme).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the README has a place for the table");
    let (_, after) = rest.split_once(END).expect("it has an end");
    fs::write(readme, format!("{before}{BEGIN}\n{about}\n\n{head}{rows}{END}{after}")).unwrap();
}

fn row(name: &str, measured: &[Measurement]) -> String {
    let mut times: Vec<_> = measured.iter().map(|run| run.first_call_ms).collect();
    times.sort_unstable();
    let [least, median, most] = [0, times.len() / 2, times.len() - 1]
        .map(|at| format!("{}.{} s", times[at] / 1000, times[at] % 1000 / 100));
    let peaks = measured.iter().map(|run| run.peak_mib);
    let (low, high) = (peaks.clone().min().unwrap(), peaks.max().unwrap());
    format!("| {name} | {median} ({least} to {most}) | {low} to {high} MiB |\n")
}

async fn run(world: &World, agent: &str, run: &str) -> Measurement {
    let filter = format!("label={}={}", label::INSTALLATION, world.installation());
    let ready =
        || async { docker(&["ps", "--filter", &filter, "--format", "{{.Names}}"]).await.lines().count() };
    eventually_within(PATIENCE, "one waits", ready, |count| *count == 1).await;
    // The store's row of a warm container is written shortly after the container starts.
    eventually_within(PATIENCE, "its row is stored", || world.sluice().waiting(), |count| *count == 1).await;
    let named = format!("bench:{agent}");
    let arguments =
        ["run", "--detach", "--run-id", run, "--agent", &named, "--model", "fake-steps", QUESTION];
    let ordered = world.sluice().run(&arguments).await;
    assert_eq!(ordered.code, Some(0), "{ordered:?}");
    let waited = world.sluice().within(PATIENCE).run(&["runs", "wait", run]).await;
    assert_eq!((waited.code, waited.stdout.trim()), (Some(0), "Done."), "{waited:?}");
    let shown = world.sluice().run(&["runs", "show", run, "--json"]).await.result();
    assert_eq!(shown["resources"].to_string().contains("-warm-"), agent == "warm", "{shown:#}");
    let calls = world.upstream.ledger().all();
    let calls: Vec<_> = calls.iter().filter(|call| call.header(header::COGNI_RUN_ID) == [run]).collect();
    let request = calls.last().unwrap().json().unwrap().to_string();
    let peak: u64 =
        request.rsplit("peak=").find_map(|rest| rest.split('=').next()?.parse().ok()).expect(&request);
    Measurement {
        first_call_ms: calls[0].unix_ms - shown["created_ms"].as_u64().unwrap(),
        peak_mib: peak >> 20,
    }
}
