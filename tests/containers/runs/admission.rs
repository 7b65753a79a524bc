//! Tests the queue of `sluice up`: fair across accounts, urgent orders first, and no more than may wait. Starts run a
//! few at a time.

use std::fs;

use futures_util::{StreamExt, stream};
use harness::{
    DockerGate, Outcome, Up, World, docker::Starts, eventually::eventually_within, store::rewrite,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use test_postgres::Database;

use crate::{
    recovery::survival::{PATIENCE, ended, record},
    sandbox::shell_agent,
};

/// Script of an agent that works until the test releases it.
const UNTIL_LET_GO: &str = "until [ -e go ]; do sleep 0.05; done";
/// Age of an order, in milliseconds, after which waiting changes nothing more for it.
const AN_HOUR: i64 = 3_600_000;

/// Starts a world without a proxy, with an agent that runs `script` and a `[worker]` with these settings.
async fn world(script: &str, worker: &str) -> World {
    let agent = shell_agent(script, "run_timeout = '60s'");
    let mut world = World::with(&format!("{agent}[worker]\nlease_duration = '2s'\n{worker}")).await;
    assert!(world.stop_proxy().await);
    world
}

async fn ask(world: &World, run: &str, account: &str, more: &[&str]) -> Outcome {
    let arguments = ["run", "--detach", "--run-id", run, "--agent", "test:sh", "--account", account];
    world.sluice().run(&[&arguments, more, &["q"]].concat()).await
}

async fn order(world: &World, run: &str, account: &str, more: &[&str]) {
    let outcome = ask(world, run, account, more).await;
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), run), "{outcome:?}");
}

/// Orders many runs of one account.
async fn flood(world: &World, account: &str, runs: usize) -> Vec<String> {
    let names: Vec<_> = (0..runs).map(|n| format!("{account}-{n:02}")).collect();
    stream::iter(&names).for_each_concurrent(6, |run| order(world, run, account, &[])).await;
    names
}

async fn list(world: &World, more: &[&str]) -> Vec<Value> {
    let outcome = world.sluice().run(&[&["runs", "ls", "--json", "-n", "100"], more].concat()).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.result()["runs"].as_array().unwrap().clone()
}

fn name(run: &Value) -> &str {
    run["run_id"].as_str().unwrap()
}

/// Returns the runs that were taken from the queue, in that order.
async fn claimed(world: &World) -> Vec<String> {
    let mut runs = list(world, &[]).await;
    runs.retain(|run| !run["claimed_ms"].is_null());
    runs.sort_by_key(|run| run["claimed_ms"].as_i64());
    runs.iter().map(|run| name(run).to_owned()).collect()
}

async fn at_work(world: &World) -> Vec<String> {
    list(world, &["--state", "running"]).await.iter().map(|run| name(run).to_owned()).collect()
}

/// Releases agents so that they end.
async fn let_go(world: &World, runs: &[String]) {
    for run in runs {
        fs::write(world.workspace(run).await.join("go"), "").unwrap();
    }
}

async fn cancel(world: &World, runs: &[String]) {
    let mut arguments = vec!["runs", "cancel", "--no-wait"];
    arguments.extend(runs.iter().map(String::as_str));
    let outcome = world.sluice().run(&arguments).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

async fn end(world: World, up: Up) {
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

/// An account that orders much delays others by no more than the runs that are at work already.
#[tokio::test]
async fn a_flood_delays_others_by_running_runs_only() {
    let world = world(UNTIL_LET_GO, "max_concurrent_runs = 2\n").await;
    let flood = flood(&world, "many", 40).await;
    let up = Up::start(world.sluice()).await;
    let first = eventually_within(PATIENCE, "two run", || at_work(&world), |runs| runs.len() == 2).await;
    order(&world, "single", "other", &[]).await;
    // The control: one more order of the account that ordered much.
    order(&world, "many-late", "many", &[]).await;
    // Only one of the two is released. If both ended at once, neither account would have a run, and the earlier order
    // would go first.
    let_go(&world, &first[..1]).await;
    let third = || async { claimed(&world).await.get(2).cloned() };
    let third = eventually_within(PATIENCE, "a place is free", third, Option::is_some).await;
    assert_eq!(third.as_deref(), Some("single"), "before 38 that were ordered before it");
    let late = list(&world, &["--state", "queued"]).await;
    let late = late.iter().find(|run| name(run) == "many-late").unwrap();
    assert!(late["ahead"].as_u64().unwrap() >= 36, "{late}");
    let shown = world.sluice().run(&["runs", "show", "many-late"]).await.stdout;
    assert!(shown.contains("of its account and priority go before it"), "{shown}");
    cancel(&world, &[&flood[..], &["single".to_owned(), "many-late".to_owned()]].concat()).await;
    for run in flood.iter().chain([&"single".to_owned()]) {
        ended(&world, run).await;
    }
    end(world, up).await;
}

#[tokio::test]
async fn urgent_runs_go_first_and_none_starves() {
    let world = world("true", "max_concurrent_runs = 1\n[accounts.one]\npriority = 'high'\n").await;
    for (run, account, priority) in
        [("old", "two", "low"), ("low", "one", "low"), ("normal", "one", "normal"), ("high", "one", "high")]
    {
        order(&world, run, account, &["--priority", priority]).await;
    }
    let table = world.sluice().run(&["runs", "ls"]).await.stdout;
    assert!(table.contains("queued, 0 ahead") && table.contains("high"), "{table}");
    let shown = world.sluice().run(&["runs", "show", "low"]).await.stdout;
    assert!(shown.contains("is `sluice up` running?"), "{shown}");
    rewrite(&world, |table, row| {
        if table == "runs" && row["run"] == "old" {
            row["queued"] = json!(row["queued"].as_i64().unwrap() - AN_HOUR);
        }
    })
    .await;
    let up = Up::start(world.sluice()).await;
    for run in ["low", "normal", "high", "old"] {
        assert_eq!(ended(&world, run).await["state"], "succeeded", "{run}");
    }
    assert_eq!(claimed(&world).await, ["old", "high", "normal", "low"]);
    end(world, up).await;
}

#[tokio::test]
async fn a_priority_above_the_accounts_is_refused() {
    let world = world("true", "[accounts.'*']\npriority = 'low'\n[accounts.one]\npriority = 'high'\n").await;
    for (account, priority, stored) in [
        ("one", "high", true),
        ("other", "low", true),
        ("other", "normal", false),
        ("other", "high", false),
        ("other", "urgent", false),
    ] {
        let run = format!("{account}-{priority}");
        let outcome = ask(&world, &run, account, &["--priority", priority]).await;
        assert_eq!(outcome.code, Some(if stored { 0 } else { 2 }), "{outcome:?}");
        if priority == "high" && !stored {
            let mend = r#"`priority = "high"` in [accounts."other"] allows it"#;
            assert!(outcome.stderr.contains(mend), "{outcome:?}");
        }
    }
    assert_eq!(list(&world, &[]).await.len(), 2);
}

/// Stored runs are never refused.
#[tokio::test]
async fn a_full_queue_refuses_with_a_retry_time() {
    let world = world("true", "max_queued = 3\nmax_queued_per_account = 2\n").await;
    for (run, account) in [("r1", "one"), ("r2", "one"), ("r3", "two")] {
        order(&world, run, account, &[]).await;
    }
    for (run, account, setting, waiting) in
        [("r4", "one", "worker.max_queued_per_account", 2), ("r5", "two", "worker.max_queued", 3)]
    {
        let refused = ask(&world, run, account, &[]).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(75), ""), "{refused:?}");
        for words in ["try again in 300 s", &format!("or raise {setting}"), "is `sluice up` running?"] {
            assert!(refused.stderr.contains(words), "{words}: {refused:?}");
        }
        let refused = ask(&world, run, account, &["--json"]).await;
        let result = refused.result();
        assert_eq!(refused.code, Some(75), "{refused:?}");
        let fields = ["code", "setting", "waiting", "most", "retry_after_s", "taken_lately"];
        let expected =
            [json!("queue_full"), json!(setting), json!(waiting), json!(waiting), json!(300), json!(0)];
        assert_eq!(fields.map(|field| result["error"][field].clone()), expected, "{result}");
        assert_eq!(world.sluice().run(&["runs", "show", run]).await.code, Some(1), "it is not stored");
    }
    order(&world, "r1", "one", &[]).await;
    let up = Up::start(world.sluice()).await;
    for run in ["r1", "r2", "r3"] {
        assert_eq!(ended(&world, run).await["state"], "succeeded");
    }
    order(&world, "r4", "one", &[]).await;
    ended(&world, "r4").await;
    end(world, up).await;
}

#[tokio::test]
async fn queued_runs_outlive_their_worker() {
    let world = world("echo done", "max_concurrent_runs = 1\n").await;
    let starts = Starts::follow(&world.installation(), &world.path().join("starts")).await;
    let runs = flood(&world, "one", 6).await;
    let mut up = Up::start(world.sluice()).await;
    ended(&world, &claimed_first(&world).await).await;
    kill(up.child.id().unwrap());
    up.child.wait().await.unwrap();
    let waiting = list(&world, &["--state", "queued"]).await;
    assert!(!waiting.is_empty(), "some are still to come");
    let next = Up::start(world.sluice()).await;
    for run in &runs {
        let record = ended(&world, run).await;
        assert_eq!(
            (&record["state"], &record["answer"]),
            (&json!("succeeded"), &json!("done")),
            "{record:#}"
        );
        assert_eq!(starts.of(run), 1, "{run}");
    }
    next.stop(Signal::TERM).await;
    // The proxy that the first one started has outlived it.
    kill(up.proxy_pid);
    world.assert_nothing_left().await;
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

/// Waits until a run was taken, and returns the first one.
async fn claimed_first(world: &World) -> String {
    let first = || async { claimed(world).await.first().cloned() };
    eventually_within(PATIENCE, "one is taken", first, Option::is_some).await.unwrap()
}

/// Both use one Postgres.
#[tokio::test]
async fn two_workers_never_claim_the_same_run() {
    let postgres = Database::create().await;
    let world = world("true", "max_concurrent_runs = 3\n").await;
    drop(world.keep_store_at(&postgres.url()).await);
    let starts = Starts::follow(&world.installation(), &world.path().join("starts")).await;
    let mut runs = flood(&world, "many", 16).await;
    runs.extend(flood(&world, "few", 4).await);
    let up = async |name: &str| Up::start(world.sluice().log_to(&world.path().join(name))).await;
    let (first, second) = (up("first.log").await, up("second.log").await);
    let mut owners = Vec::new();
    for run in &runs {
        let record = ended(&world, run).await;
        assert_eq!((&record["state"], &record["epoch"]), (&json!("succeeded"), &json!(1)), "{record:#}");
        assert_eq!(starts.of(run), 1, "{run}");
        owners.extend(record["resources"].as_array().unwrap().iter().map(|thing| thing["owner"].to_string()));
    }
    owners.sort();
    owners.dedup();
    assert_eq!(owners.len(), 2, "either took some");
    let claimed = claimed(&world).await;
    let last_of_few = claimed.iter().rposition(|run| run.starts_with("few")).unwrap();
    assert!(last_of_few < 14, "they are not behind those of who ordered much: {claimed:?}");
    second.stop(Signal::TERM).await;
    end(world, first).await;
}

/// Counts the runs that are past waiting for their start, and all runs under a lease.
async fn starting(world: &World) -> (usize, usize) {
    let runs = list(world, &[]).await;
    let held = runs.iter().filter(|run| !run["lease"].is_null());
    let begun = held.clone().filter(|run| run["state"] != "queued");
    (begun.count(), held.count())
}

/// Starts a world in which six runs are ordered, and Docker starts nothing before the gate is opened.
async fn held_up(settings: &str) -> (World, DockerGate, Up, Vec<String>) {
    let world = world("true", &format!("max_concurrent_runs = 6\n{settings}")).await;
    let gate = DockerGate::on(&world.path().join("gate.sock"), "POST ", "/start");
    let runs = flood(&world, "one", 6).await;
    let up = Up::start(world.sluice().env("SLUICE_SANDBOX_DOCKER_SOCKET", &gate.socket())).await;
    (world, gate, up, runs)
}

/// Runs that wait for their start are kept meanwhile.
#[tokio::test]
async fn starts_are_bounded_and_leases_renewed() {
    let (world, gate, up, runs) = held_up("max_concurrent_starts = 2\n").await;
    let look = || starting(&world);
    eventually_within(PATIENCE, "all are claimed, two begin", look, |seen| *seen == (2, 6)).await;
    let waits = list(&world, &["--state", "queued"]).await;
    let until = |run: &Value| run["lease"]["until_ms"].as_i64().unwrap();
    let (waits, gives_up) = (waits[0].clone(), name(&waits[1]).to_owned());
    let shown = world.sluice().run(&["runs", "show", name(&waits)]).await.stdout;
    assert!(
        shown.contains("its worker starts no more than worker.max_concurrent_starts at a time"),
        "{shown}"
    );
    // It is cancelled before it has had its turn.
    let cancelled = world.sluice().run(&["runs", "cancel", &gives_up]).await;
    assert_eq!(cancelled.stdout.trim(), format!("{gives_up} cancelled"), "{cancelled:?}");
    // Twice the lease it began with.
    let later = || record(&world, name(&waits));
    let renewed = |run: &Value| until(run) > until(&waits) + 4_000;
    let later = eventually_within(PATIENCE, "its lease is renewed", later, renewed).await;
    assert_eq!((&later["epoch"], &later["state"]), (&json!(1), &json!("queued")));
    assert_eq!(starting(&world).await, (2, 5), "nobody has begun meanwhile");
    gate.open();
    for run in runs.iter().filter(|run| **run != gives_up) {
        let record = ended(&world, run).await;
        assert_eq!((&record["state"], &record["epoch"]), (&json!("succeeded"), &json!(1)), "{record:#}");
    }
    end(world, up).await;
}

/// Six runs start at once in a world without a tight limit of starts. It is the control of the test before.
#[tokio::test]
async fn without_a_bound_all_start_at_once() {
    let (world, gate, up, runs) = held_up("max_concurrent_starts = 100\n").await;
    let look = || starting(&world);
    eventually_within(PATIENCE, "all begin", look, |seen| *seen == (6, 6)).await;
    gate.open();
    for run in &runs {
        ended(&world, run).await;
    }
    end(world, up).await;
}

#[tokio::test]
async fn a_thread_takes_one_run_at_a_time() {
    let world = World::start().await;
    let order = async |run: &str, door: &[&str]| {
        world.sluice().run(&[&["run", "--state-key", "chat", "--run-id", run], door, &["q"]].concat()).await
    };
    assert_eq!(order("r1", &["--detach"]).await.code, Some(0));
    for door in [&["--detach"][..], &[]] {
        let refused = order("r2", door).await;
        assert_eq!(refused.code, Some(75), "{refused:?}");
        assert!(refused.stderr.contains("run r1 is the last one of this thread"), "{refused:?}");
    }
    assert_eq!(order("r1", &["--detach"]).await.code, Some(0), "the same order again is the same run");
    assert_eq!(list(&world, &[]).await.len(), 1);
}

#[tokio::test]
async fn a_worker_with_zero_starts_is_a_mistake() {
    let world = World::start().await;
    let outcome = world.sluice().run(&["config", "check", "--set", "worker.max_concurrent_starts=0"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("worker.max_concurrent_starts"), "{outcome:?}");
}
