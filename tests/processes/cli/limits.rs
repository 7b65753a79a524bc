//! `sluice usage` and `sluice limit`: how far limits go, and other ones while runs live.

use harness::{Outcome, World, eventually::PATIENCE, grant, sluice::interrupt};
use http::Method;
use platform_core::{
    budget::{Budget, Limit},
    grant::RunGrant,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::timeout,
};

const CONFIG: &str = "[accounts.'acct-1']\nrequests = 100\n[prices.'*']\ninput = '1'\noutput = '2'";

async fn sluice(world: &World, arguments: &[&str]) -> String {
    let outcome = world.sluice().run(arguments).await;
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{arguments:?}: {outcome:?}");
    outcome.stdout
}

async fn json_of(world: &World, arguments: &[&str]) -> Value {
    serde_json::from_str(&sluice(world, &[arguments, &["--json"]].concat()).await).unwrap()
}

/// Returns a row of a table, its cells split.
fn row<'t>(table: &'t str, start: &str) -> Vec<&'t str> {
    let line = table.lines().find(|line| line.starts_with(start));
    let cells = line.unwrap_or_else(|| panic!("no {start} in {table}")).split("  ");
    cells.map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

fn limit<'v>(view: &'v Value, name: &str) -> &'v Value {
    view["limits"].as_array().unwrap().iter().find(|limit| limit["limit"] == name).unwrap()
}

fn budget() -> Budget {
    Budget { total_tokens: Some(30_000), calls_in_flight: Some(4), ..Budget::default() }
}

/// Starts a world in which `r1` of `acct-1` has made one call of ten tokens for three, one that was refused, and has
/// one in flight.
async fn world_with_calls() -> (World, harness::agent::Stream) {
    let world = World::with(CONFIG).await;
    let run = world.run_with(RunGrant { budget: budget(), ..grant("r1", "acct-1") }).await;
    world.run("r2", "acct-2").await;
    assert_eq!(run.agent.chat("fake").await.status, 200);
    assert_eq!(run.agent.get("/v1/nothing").await.status, 404);
    let mut held = run.agent.stream("fake-stall1").await;
    held.next().await.unwrap();
    world.records(2).await;
    (world, held)
}

/// Shown for a run, for an account and for all of them.
#[tokio::test]
async fn usage_shows_used_reserved_and_left() {
    let (world, _held) = world_with_calls().await;
    let text = sluice(&world, &["usage", "--run", "r1"]).await;
    assert!(text.starts_with("run r1 of account acct-1: open, 1 in flight\n"), "{text}");
    assert_eq!(row(&text, "1  "), ["1", "1", "3", "10", "0", "0", "2", "$0.000023"], "{text}");
    let cells = row(&text, "total tokens");
    let [used, reserved, left] = [2, 3, 4].map(|at| cells[at].parse::<u64>().unwrap());
    assert_eq!((cells[1], used), ("30000", 13), "{text}");
    assert!(reserved > 8192 && left == 30_000 - used - reserved, "{text}");
    assert_eq!(row(&text, "calls in flight"), ["calls in flight", "4", "0", "1", "3"], "{text}");
    assert_eq!(row(&text, "output tokens")[1..3], ["-", "10"], "{text}");

    let view = json_of(&world, &["usage", "--run", "r1"]).await;
    assert_eq!((&view["run"], &view["account"]), (&json!("r1"), &json!("acct-1")), "{view}");
    assert_eq!(
        limit(&view, "total_tokens"),
        &json!({ "limit": "total_tokens", "allowed": 30_000, "used": used, "reserved": reserved, "left": left })
    );
    assert_eq!(view["usage"]["refused"], 1, "{view}");

    let text = sluice(&world, &["usage", "--account", "acct-1"]).await;
    assert_eq!(row(&text, "requests "), ["requests", "100", "1", "1", "98"], "{text}");
    let text = sluice(&world, &["usage"]).await;
    assert_eq!(row(&text, "acct-1  ")[1..], ["1", "1", "3", "10", "$0.000023", "requests, 2 %"], "{text}");
    assert!(row(&text, "acct-1   r1")[1..3] == ["r1", "1"], "{text}");
    assert_eq!(row(&text, "acct-2   r2")[1..], ["r2", "0", "0", "0", "0", "$0.00", "-"], "{text}");
    let all = json_of(&world, &["usage"]).await;
    assert_eq!((&all["accounts"][1]["account"], &all["runs"][0]), (&json!("acct-2"), &view), "{all}");
}

#[tokio::test]
async fn limit_changes_only_the_named_limits() {
    let (world, held) = world_with_calls().await;
    let run = world.run_with(RunGrant { budget: budget(), ..grant("r1", "acct-1") }).await;
    let text = sluice(&world, &["limit", "--run", "r1", "--requests", "2", "--cost", "1.50"]).await;
    assert_eq!(row(&text, "requests "), ["requests", "2", "1", "1", "0"], "{text}");
    assert_eq!(row(&text, "cost")[1..3], ["$1.50", "$0.000023"], "{text}");
    assert_eq!((row(&text, "total tokens")[1], row(&text, "calls in flight")[1]), ("30000", "4"), "{text}");
    assert_eq!(run.agent.chat("fake").await.status, 429, "the second request is in flight");
    drop(held);
    let view =
        json_of(&world, &["limit", "--run", "r1", "--none", "requests", "--none", "total-tokens"]).await;
    let allowed = |name| limit(&view, name)["allowed"].clone();
    assert_eq!([allowed("requests"), allowed("total_tokens")], [json!(null), json!(null)], "{view}");
    assert_eq!([allowed("cost_nanodollars"), allowed("calls_in_flight")], [json!(1_500_000_000), json!(4)]);
    assert_eq!(run.agent.chat("fake").await.status, 200);

    let view = json_of(&world, &["limit", "--account", "acct-1", "--requests-per-minute", "600"]).await;
    let allowed = |name| limit(&view, name)["allowed"].clone();
    assert_eq!([allowed("requests"), allowed("requests_per_minute")], [json!(100), json!(600)], "{view}");
    assert_eq!(json_of(&world, &["usage", "--account", "acct-1"]).await, view);
}

#[tokio::test]
async fn usage_follow_reports_changes_until_close() {
    let (world, held) = world_with_calls().await;
    let mut usage = world.sluice().spawn(&["usage", "--run", "r1", "-f"]);
    let mut lines = BufReader::new(usage.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("a change in time");
        line.unwrap().map(|line| serde_json::from_str::<Value>(&line).unwrap())
    };
    assert_eq!(next().await.unwrap()["in_flight"], 1);
    drop(held);
    assert_eq!(next().await.unwrap()["in_flight"], 0);
    sluice(&world, &["limit", "--run", "r1", "--requests", "7"]).await;
    assert_eq!(limit(&next().await.unwrap(), "requests")["allowed"], 7);
    world.control.close(&grant("r1", "acct-1").run_id, 0).await.unwrap();
    assert_eq!(next().await.unwrap()["state"], "closed");
    assert_eq!(next().await, None);
    assert_eq!(usage.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn usage_bars_redraw_in_place_until_close() {
    let (world, held) = world_with_calls().await;
    let close = async {
        drop(held);
        world.control.close(&grant("r1", "acct-1").run_id, 0).await.unwrap();
    };
    let shown = world.sluice().on_terminal_until(&["usage", "--run", "r1", "-f"], "cost", close).await;
    let text = shown.text();
    assert_eq!(shown.code, Some(0), "{text:?}");
    assert_eq!(
        (text.matches("run r1 of account").count(), text.matches("\x1b[13A\x1b[J").count()),
        (2, 1),
        "{text}"
    );
    assert!(text.contains("█▒▒▒▒▒") && text.contains("closed, 0 in flight"), "{text}");
}

/// The mistakes: unknown runs and accounts, impossible values, and a proxy that is gone.
#[tokio::test]
async fn usage_and_limit_name_each_mistake() {
    let mut world = World::with(CONFIG).await;
    let closed = world.run("done", "acct-1").await;
    world.control.close(&closed.grant.run_id, 0).await.unwrap();
    let cases: [(&[&str], i32, &str); 10] = [
        (&["usage", "--run", "r9"], 1, "there is no run r9"),
        (&["usage", "--account", "acct-9"], 1, "does not know account acct-9"),
        (&["limit", "--run", "r9", "--requests", "1"], 1, "there is no run r9"),
        (&["limit", "--run", "done", "--requests", "1"], 1, "closed"),
        (&["limit", "--account", "acct-9", "--requests", "1"], 1, "does not know account acct-9"),
        (&["limit", "--requests", "1"], 2, "--account ACCOUNT"),
        (&["limit", "--run", "done"], 2, "--total-tokens"),
        (&["limit", "--run", "done", "--none", "money"], 2, "requests-per-minute"),
        (&["limit", "--run", "done", "--none", "cost", "--cost", "1"], 2, "cost"),
        (&["usage", "--run", "r1", "--account", "acct-1"], 2, "cannot be used with"),
    ];
    for (arguments, code, words) in cases {
        let outcome = world.sluice().run(arguments).await;
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(code), ""), "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.contains(words), "{arguments:?}: {words} is not in {}", outcome.stderr);
    }
    let text = sluice(&world, &["usage", "--run", "done"]).await;
    assert!(text.starts_with("run done of account acct-1: closed"), "control: {text}");
    world.stop_proxy().await;
    for arguments in [&["usage"][..], &["limit", "--run", "r1", "--requests", "1"]] {
        let outcome: Outcome = world.sluice().run(arguments).await;
        assert_eq!(outcome.code, Some(69), "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.contains("sluice up"), "{}", outcome.stderr);
    }
}

#[tokio::test]
async fn ctrl_c_ends_a_view_that_follows() {
    let world = World::start().await;
    let mut usage = world.sluice().spawn(&["usage", "-f"]);
    let mut lines = BufReader::new(usage.stdout.take().unwrap()).lines();
    let first = timeout(PATIENCE, lines.next_line()).await.expect("it shows something");
    assert_eq!(first.unwrap().as_deref(), Some(r#"{"accounts":[],"runs":[]}"#));
    interrupt(&usage);
    timeout(PATIENCE, usage.wait()).await.expect("it ends").unwrap();
}

/// An operator sets a limit to zero, by any interface; it allows nothing, never everything.
#[tokio::test]
async fn zero_allows_nothing_and_never_all() {
    let world = World::start().await;
    for (limit, name) in [
        (json!({ "output_tokens": 0 }), "limits.output_tokens"),
        (json!({ "request_body": 0 }), "limits.request_body"),
        (json!({ "times": { "call_ms": 0 } }), "limits.times.call_ms"),
        (json!({ "times": { "body_rate": 0 } }), "limits.times.body_rate"),
    ] {
        let grant = json!({ "run_id": "r0", "account": "a", "graph": "s:a", "limits": limit });
        let body = json!({ "grant": grant }).to_string();
        let answer = world.control.send(Method::PUT, "/v1/runs/r0", body).await;
        assert_eq!(answer.status.as_u16(), 400, "{name}: {}", answer.text());
        assert!(answer.text().contains(&format!("{name} of the grant is 0")), "{}", answer.text());
    }
    for limit in Limit::ALL {
        let mut budget = Budget::default();
        budget.allow(limit, Some(0));
        let run = world
            .run_with(RunGrant { budget, ..grant(&format!("r-{}", limit.setting().replace('_', "-")), "a") })
            .await;
        assert_ne!(run.agent.chat("fake").await.status, 200, "{limit}");
    }
    assert!(world.upstream.ledger().all().iter().all(|asked| asked.path != "/v1/chat/completions"));
    assert_eq!(world.run("r1", "a").await.agent.chat("fake").await.status, 200, "the control");

    for option in ["--cost", "--total-tokens"] {
        let outcome = world.sluice().run(&["run", option, "0", "q"]).await;
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(&format!("{option} 0 allows no call")), "{outcome:?}");
    }
    let unpriced = world.sluice().run(&["run", "--cost", "1", "q"]).await;
    assert_eq!(unpriced.code, Some(2), "{unpriced:?}");
    assert!(unpriced.stderr.contains("model fake has no price"), "{unpriced:?}");
}
