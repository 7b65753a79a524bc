//! Tests that commands mark unknown costs and estimated tokens, and that overviews leave out trial runs.

use harness::World;
use serde_json::{Value, json};

use crate::sandbox::{run, world_with};

/// A call of a model without a price, of ten words.
const CALL: &str = r#"curl -sS --unix-socket /llm-sock/llm.sock http://x/v1/chat/completions -H 'content-type: application/json' \
    -d '{"model":"fake","messages":[{"role":"user","content":"hi"}]}' >/dev/null && echo answer"#;

async fn sluice(world: &World, arguments: &[&str]) -> String {
    let outcome = world.sluice().run(arguments).await;
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{arguments:?}: {outcome:?}");
    outcome.stdout
}

async fn json_of(world: &World, arguments: &[&str]) -> Value {
    serde_json::from_str(&sluice(world, &[arguments, &["--json"]].concat()).await).unwrap()
}

/// Returns the words of the row that has `name` among its first two cells.
fn row<'t>(table: &'t str, name: &str) -> Vec<&'t str> {
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut rows = rows.filter(|row| row.iter().take(2).any(|cell| *cell == name));
    rows.next().unwrap_or_else(|| panic!("no {name} in {table}"))
}

/// Starts a world without prices. The cost of `r1` is known, that of `r2` is not, that of `r3` is in part. Tokens of
/// `r3` are estimated, and the call of `r4` fails. Each run has its own account.
async fn world_with_calls() -> World {
    let world = World::start().await;
    for (run_id, account, models) in [
        ("r1", "acct-1", &["fake-cost"][..]),
        ("r2", "acct-2", &["fake"]),
        ("r3", "acct-3", &["fake-cost", "fake-nousage"]),
        ("r4", "acct-4", &["fake-status500"]),
    ] {
        let run = world.run(run_id, account).await;
        for model in models {
            run.agent.chat(model).await;
        }
    }
    world.records(5).await;
    world
}

#[tokio::test]
async fn inexact_sums_are_marked() {
    let mut world = world_with_calls().await;
    for restart in [false, true] {
        if restart {
            world.kill_proxy().await;
            world.start_proxy().await;
        }
        let usage = sluice(&world, &["usage"]).await;
        assert!(row(&usage, "acct-1").contains(&"$0.000023"), "control: {usage}");
        assert!(row(&usage, "acct-2").ends_with(&["3", "10", "-", "-"]), "{usage}");
        let mixed = row(&usage, "acct-3");
        assert!(
            mixed.contains(&"$0.000023+") && mixed[3].starts_with('~') && mixed[4].starts_with('~'),
            "{usage}"
        );
        assert!(row(&usage, "acct-4").contains(&"$0.00"), "a failed call costs nothing: {usage}");
    }
    for command in [&["audit", "stats"][..], &["audit", "top"]] {
        let table = sluice(&world, command).await;
        assert!(
            row(&table, "r1").contains(&"$0.000023") && !row(&table, "r1").concat().contains('~'),
            "{table}"
        );
        assert!(row(&table, "r2").contains(&"-") && !row(&table, "r2").concat().contains('$'), "{table}");
        assert!(
            row(&table, "r3").contains(&"$0.000023+") && row(&table, "r3").concat().contains('~'),
            "{table}"
        );
    }
    let stats = json_of(&world, &["audit", "stats"]).await;
    assert_eq!(stats["all"]["inexact"], json!({ "unpriced": 2, "estimated": 1 }), "{stats}");
}

#[tokio::test]
async fn a_live_run_marks_its_inexact_sums() {
    let world = world_with_calls().await;
    let usage = sluice(&world, &["usage", "--run", "r3"]).await;
    assert!(row(&usage, "cost").contains(&"$0.000023+"), "{usage}");
    assert!(row(&usage, "total")[3].starts_with('~'), "{usage}");
    let usage = sluice(&world, &["usage", "--run", "r2"]).await;
    assert_eq!((row(&usage, "cost")[2], usage.contains('~')), ("-", false), "{usage}");
    let usage = sluice(&world, &["usage", "--account", "acct-1"]).await;
    assert_eq!(row(&usage, "cost")[2], "$0.000023", "control: {usage}");
}

#[tokio::test]
async fn a_run_of_unknown_cost_shows_no_zero() {
    let world = world_with(CALL).await;
    let shown =
        world.sluice().on_terminal(&["run", "--agent", "test:sh", "--run-id", "r1", "Why?\nNow."]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.text().contains(" tokens in, 10 out, -, "), "{shown:?}");
    let table = sluice(&world, &["runs", "ls"]).await;
    assert_eq!(row(&table, "r1")[row(&table, "r1").len() - 3..], ["-", "Why?", "Now."], "{table}");
    let text = sluice(&world, &["runs", "show", "r1"]).await;
    assert!(text.contains(" tokens in, 10 out, -\n"), "{text}");
    assert!(text.contains("question   Why? Now.\n"), "{text}");
}

#[tokio::test]
async fn trial_runs_of_doctor_are_left_out() {
    let world = world_with("echo answer").await;
    assert_eq!(run(&world).await.code, Some(0));
    let doctor = world.sluice().run(&["doctor"]).await;
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    let accounts = async |command: &[&str], list: &str| {
        let listed = json_of(&world, command).await;
        let accounts = listed[list].as_array().unwrap().iter();
        let accounts = accounts.map(|item| item["account"].as_str().unwrap().to_owned());
        accounts.collect::<std::collections::BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    assert_eq!(accounts(&["runs", "ls"], "runs").await, ["local"]);
    assert_eq!(accounts(&["usage"], "accounts").await, ["local"]);
    assert_eq!(accounts(&["runs", "ls", "--account", "doctor"], "runs").await, ["doctor"]);
    assert_eq!(accounts(&["runs", "ls", "--all"], "runs").await, ["doctor", "local"]);
    assert_eq!(accounts(&["usage", "--all"], "accounts").await, ["doctor", "local"]);
    assert_eq!(json_of(&world, &["usage", "--account", "doctor"]).await["account"], "doctor");
}
