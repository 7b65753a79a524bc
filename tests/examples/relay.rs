//! `relay FILE COUNT` measures the time from an agent's end to its pull request, and writes it as JSON. It fails if a run
//! fails.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed, with the place")]

use bench::measure::machine::Machine;
use harness::{GitHost, World, shell_agents::shell_agent, start_times::percentile};
use serde_json::{Value, json};

const USAGE: &str = "usage: relay FILE COUNT";
/// Agent that commits a change.
const COMMITS: &str = "echo changed >> a.txt; git commit --quiet -am 'Change a' && echo done";
/// Median that a run may take, in milliseconds.
const TARGET_MS: f64 = 1500.0;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, count] = arguments.as_slice() else { panic!("{USAGE}") };
    let count: usize = count.parse().expect(USAGE);
    let host = GitHost::start().await;
    let remote = host.repository("app");
    let world = World::with(&format!("{}{}", shell_agent(COMMITS, ""), host.settings())).await;
    let mut times = Vec::new();
    for number in 0..count {
        let run = format!("r{number}");
        let url = host.url("app");
        let order = ["run", "--agent", "test:sh", "--run-id", &run, "--repo", &url, "--pr", "q"];
        let outcome = host.authorize(world.sluice()).run(&order).await;
        let answer = format!("done\n\n{}", host.pull_url("app", number + 1));
        assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), answer.as_str()), "{outcome:?}");
        assert_eq!(remote.pushes(&format!("sandbox/{run}")), 1);
        times.push(relay_ms(&world, &run).await);
    }
    times.sort_by(f64::total_cmp);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let record = json!({
        "command": format!("cargo run -p tests --example relay {}", arguments.join(" ")),
        "machine": Machine::here(),
        "build": build,
        "load_average_at_the_end": load.trim(),
        "runs": count,
        "from": "the agent's end (phase `collecting`)",
        "to": "the pull request is stored, and the run's answer ends with its address",
        "target_p50_ms": TARGET_MS,
        "p50_ms": percentile(&times, 50),
        "p90_ms": percentile(&times, 90),
        "all_ms": times,
    });
    std::fs::write(file, format!("{record:#}\n")).unwrap();
}

/// Returns the time between the events of a run that stand for the agent's end and for the answer.
async fn relay_ms(world: &World, run: &str) -> f64 {
    let events = world.sluice().run(&["runs", "events", run, "--json"]).await.events();
    let at = |is_it: &dyn Fn(&Value) -> bool| {
        let event = events.iter().find(|event| is_it(event));
        event.unwrap_or_else(|| panic!("{events:#?}"))["at_ms"].as_f64().unwrap()
    };
    let begun = at(&|event| event["phase"] == "collecting");
    at(&|event| event["type"] == "assistant_final") - begun
}
