//! Tests the metrics of `sluice up`: they count what the runs were. No agent or client can put its own word into
//! them.

use std::{collections::BTreeSet, fs, path::Path};

use harness::{
    Agent, Up, World, bridge::free_port, eventually, eventually::eventually_within, metrics::Scrape,
};
use rustix::process::Signal;
use serde_json::Value;

use crate::{
    recovery::survival::{PATIENCE, ended, order, record, state},
    sandbox::shell_agent,
};

/// Starts a world with its API up; returns it with a client.
async fn served(toml: &str) -> (World, Up, Agent) {
    let address = free_port();
    let mut world = World::with(&format!("[api]\nlisten = '{address}'\n{toml}")).await;
    assert!(world.stop_proxy().await);
    let up = Up::start(world.sluice().log_to(&world.path().join("up.log"))).await;
    (world, up, Agent::over_tcp(address).searched())
}

async fn scrape(api: &Agent) -> Scrape {
    let answer = api.get("/metrics").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    Scrape::of(answer.text())
}

fn runs(seen: &Scrape, agent: &str, status: &str) -> f64 {
    seen.sum("sandbox_runs_total", &[("agent", agent), ("status", status)])
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn seconds(record: &Value, from: &str, to: &str) -> f64 {
    (record[to].as_u64().unwrap() - record[from].as_u64().unwrap()) as f64 / 1000.0
}

/// Their durations are those of the store.
#[tokio::test]
async fn runs_are_counted_by_agent_and_end() {
    let (world, up, api) = served(&shell_agent("exit $(( $(wc -c < .cogni/messages.json) < 90 ))", "")).await;
    let ask = async |run: &str, agent: &str, question: &str| {
        let words =
            ["run", "--detach", "--run-id", run, "--agent", agent, "--account", "acct-secret", question];
        assert_eq!(world.sluice().run(&words).await.code, Some(0));
        ended(&world, run).await
    };
    let long = "q".repeat(100);
    let records = [
        ask("run-secret", "sandbox:agent", "q").await,
        ask("fails", "test:sh", "q").await,
        ask("prints", "test:sh", &long).await,
        ask("prints-too", "test:sh", &long).await,
    ];
    // It is over in the store before it is counted.
    let counted = || async { scrape(&api).await };
    let seen =
        eventually("all are counted", counted, |seen| seen.sum("sandbox_runs_total", &[]) == 4.0).await;
    assert_eq!(runs(&seen, "sandbox:agent", "succeeded"), 1.0);
    assert_eq!((runs(&seen, "test:sh", "succeeded"), runs(&seen, "test:sh", "failed")), (2.0, 1.0));
    let took: f64 = records[1..].iter().map(|record| seconds(record, "created_ms", "ended_ms")).sum();
    let name = "sandbox_run_duration_seconds";
    assert!((seen.sum(&format!("{name}_sum"), &[("agent", "test:sh")]) - took).abs() < 1e-6, "{}", seen.text);
    assert_eq!(seen.sum(&format!("{name}_count"), &[("agent", "test:sh")]), 3.0);
    let started: f64 = records.iter().map(|record| seconds(record, "created_ms", "started_ms")).sum();
    let starts = seen.sum("sandbox_start_seconds_sum", &[("start", "cold")]);
    // It is stored that an agent may run before its container is started.
    assert!(started - 0.01 < starts && starts < started + took, "{starts} after {started}\n{}", seen.text);
    assert_eq!(seen.sum("sandbox_start_seconds_count", &[]), 4.0);
    assert_eq!((seen.one("sluice_store_up"), seen.sum("sandbox_queue_length", &[])), (1.0, 0.0));
    assert_eq!(seen.one("sandbox_starts_in_progress"), 0.0);
    assert!(seen.one("sluice_store_operation_seconds_count") > 20.0);
    assert_eq!(seen.sum("sluice_store_errors_total", &[]), 0.0);
    assert!(seen.one("sluice_gc_passes_total") >= 1.0);
    for word in ["secret", "prints", "qqq"] {
        assert!(!seen.text.contains(word), "{word} is in\n{}", seen.text);
    }

    // Beside those of its proxy, in one text that Prometheus could read.
    let printed = world.sluice().run(&["metrics"]).await;
    let both = Scrape::of(printed.stdout);
    assert_eq!(runs(&both, "test:sh", "succeeded"), 2.0, "{}", printed.stderr);
    let calls = both.sum("sluicegate_calls_total", &[("route", "chat_completions"), ("outcome", "complete")]);
    assert_eq!((calls, printed.code), (1.0, Some(0)));
    // Each without the other, and which is missing.
    let away = world.sluice().run(&["metrics", "--set", "proxy.run_dir=/nowhere"]).await;
    let seen = Scrape::of(away.stdout);
    assert_eq!((away.code, runs(&seen, "test:sh", "succeeded")), (Some(69), 2.0), "{}", away.stderr);
    assert!(away.stderr.contains("metrics of the proxy are missing"), "{}", away.stderr);
    let nobody = format!("api.listen={}", free_port());
    let away = world.sluice().run(&["metrics", "--set", &nobody]).await;
    let seen = Scrape::of(away.stdout);
    assert_eq!((away.code, seen.sum("sandbox_runs_total", &[])), (Some(69), 0.0), "{}", away.stderr);
    assert!(
        seen.sum("sluicegate_calls_total", &[]) > 0.0 && away.stderr.contains("metrics of `sluice up` at ")
    );
    up.stop(Signal::TERM).await;
    let alone = world.sluice().run(&["metrics"]).await;
    assert_eq!((alone.code, alone.stdout.as_str()), (Some(69), ""), "{alone:?}");
}

/// Returns the names of families in `text`.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|char: char| !(char.is_ascii_lowercase() || char == '_'));
    let ours =
        |word: &&str| ["sandbox_", "sluice_", "sluicegate_"].iter().any(|begin| word.starts_with(begin));
    words.filter(ours).collect()
}

#[tokio::test]
async fn dashboard_and_alerts_ask_for_what_there_is() {
    let (world, up, api) = served("").await;
    let look = || async { scrape(&api).await };
    eventually("the store is open", look, |seen| seen.one("sluice_store_up") == 1.0).await;
    let text = world.sluice().run(&["metrics"]).await.stdout;
    let families: BTreeSet<_> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../platform");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let (dashboard, alerts) = (read("grafana/sluicegate.json"), read("config/alerts.example.yml"));
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let asked: Vec<_> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap())
        .chain([alerts.as_str()])
        .flat_map(names)
        .collect();
    assert!(asked.len() > 30, "{asked:?}");
    let is_there = |name: &str| {
        let of_histogram = ["_bucket", "_count"].into_iter().filter_map(|part| name.strip_suffix(part));
        [name].into_iter().chain(of_histogram).any(|family| families.contains(family))
    };
    let missing: Vec<_> = asked.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(!is_there("sandbox_runs"), "control");
    up.stop(Signal::TERM).await;
}

/// Agents that are new or gone are counted under their own label.
#[tokio::test]
async fn queued_and_running_runs_are_gauged() {
    let agent = shell_agent("until [ -e go ]; do sleep 0.1; done", "run_timeout = '60s'");
    let (world, up, api) = served(&format!("[worker]\nmax_concurrent_runs = 1\n{agent}")).await;
    for run in ["first", "second", "third"] {
        order(&world, run, "test:sh").await;
    }
    eventually_within(PATIENCE, "it runs", || state(&world, "first"), |state| state == "running").await;
    let look = || async { scrape(&api).await };
    let waits = |seen: &Scrape| seen.sum("sandbox_runs_in_state", &[("state", "running")]) == 1.0;
    let seen = eventually("it is shown", look, waits).await;
    assert_eq!(
        (seen.sum("sandbox_queue_length", &[("priority", "normal")]), seen.sum("sandbox_runs_in_state", &[])),
        (2.0, 3.0)
    );
    let older =
        |later: &Scrape| later.one("sandbox_queue_oldest_seconds") > seen.one("sandbox_queue_oldest_seconds");
    eventually("the oldest gets older", look, older).await;
    world.sluice().run(&["runs", "cancel", "second"]).await;
    world.sluice().run(&["runs", "cancel", "third"]).await;
    up.stop(Signal::TERM).await;

    // A process without the agent in its configuration finishes the run.
    let config = fs::read_to_string(world.config()).unwrap();
    fs::write(world.config(), config.replace("[agents.'test:sh']", "[agents.'test:other']")).unwrap();
    let up = Up::start(world.sluice()).await;
    fs::write(world.workspace("first").await.join("go"), "").unwrap();
    assert_eq!(ended(&world, "first").await["epoch"], 2);
    let counted = |seen: &Scrape| runs(seen, "other", "succeeded") == 1.0;
    let seen = eventually("it is counted", look, counted).await;
    assert_eq!(seen.sum("sandbox_runs_total", &[]), 1.0, "those of this process");
    assert!(seen.values("agent").contains("test:other") && !seen.values("agent").contains("test:sh"));
    assert_eq!(record(&world, "second").await["state"], "cancelled");
    up.stop(Signal::TERM).await;
}
