//! Tests that a run is named by a part of its id, or as the newest, by every command that takes one.

use harness::{Outcome, World};
use platform_core::id::RunId;
use serde_json::Value;

const FIRST: &str = "run-1a2052bc0be-2364b5f2";
const SECOND: &str = "run-1a2052cc420-9f446d19";

/// Starts a world with two stored runs, which are open at the proxy and have made a call each.
async fn world_with_runs() -> World {
    let world = World::start().await;
    for run in [FIRST, SECOND] {
        let stored = world.sluice().run(&["run", "--detach", "--run-id", run, "q"]).await;
        assert_eq!(stored.code, Some(0), "{stored:?}");
        assert_eq!(world.run(run, "local").await.agent.chat("fake").await.status, 200);
    }
    world.records(2).await;
    world
}

async fn sluice(world: &World, arguments: &[&str]) -> Outcome {
    world.sluice().run(arguments).await
}

#[tokio::test]
async fn a_part_of_an_id_names_a_run() {
    let world = world_with_runs().await;
    let cases: [(&[&str], &str); 12] = [
        (&["runs", "show", "9f446d19"], SECOND),
        (&["runs", "show", "run-1a2052b"], FIRST),
        (&["runs", "show", "--last"], SECOND),
        (&["usage", "--run", "b5f2"], FIRST),
        (&["limit", "--run", "b5f2", "--requests", "9"], FIRST),
        (&["audit", "show", "--run", "6d19"], SECOND),
        (&["audit", "show", "--last"], SECOND),
        (&["audit", "stats", "--run", "b5f2"], FIRST),
        (&["audit", "stats", "--last"], SECOND),
        (&["usage", "--last"], SECOND),
        (&["limit", "--last", "--requests", "9"], SECOND),
        (&["runs", "cancel", "--no-wait", "6d19"], SECOND),
    ];
    for (arguments, run) in cases {
        let outcome = sluice(&world, arguments).await;
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
        assert!(outcome.stdout.contains(run), "{arguments:?}: {run} is not in {}", outcome.stdout);
    }
    for selection in [&["--run", "6d19"][..], &["--last"]] {
        let tail = sluice(&world, &[&["audit", "tail"], selection].concat()).await;
        let runs: Vec<Value> = tail.events().iter().map(|line| line["run_id"].clone()).collect();
        assert_eq!(runs, [SECOND]);
    }
    let trace = world.sluice().under(&["timeout", "1"]).run(&["audit", "trace", "--last"]).await;
    assert!(trace.stderr.contains(&format!("waiting for the next call of run {SECOND}")), "{trace:?}");
}

/// A proxy that starts anew knows open runs only; the journal has the calls of all.
#[tokio::test]
async fn the_usage_of_an_ended_run_is_in_the_journal() {
    let mut world = world_with_runs().await;
    world.control.close(&RunId::parse(FIRST).unwrap(), 0).await.unwrap();
    world.kill_proxy().await;
    world.start_proxy().await;
    for arguments in [&["usage", "--run", "b5f2"][..], &["limit", "--run", FIRST, "--requests", "9"]] {
        let ended = sluice(&world, arguments).await;
        let sums =
            format!("run {FIRST} is not open any more; `sluice audit stats --run {FIRST}` sums its calls");
        assert!(ended.code == Some(1) && ended.stderr.contains(&sums), "{ended:?}");
    }
    let unknown = sluice(&world, &["usage", "--run", "nightly"]).await;
    assert!(unknown.stderr.contains("there is no run nightly"), "the control: {unknown:?}");
}

#[tokio::test]
async fn an_ambiguous_part_lists_the_candidates() {
    let world = world_with_runs().await;
    let shared = "run-1a2052";
    for arguments in [
        &["runs", "show", shared][..],
        &["runs", "cancel", shared],
        &["usage", "--run", shared],
        &["audit", "show", "--run", shared],
        &["audit", "tail", "--run", shared],
    ] {
        let refused = sluice(&world, arguments).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains(FIRST) && refused.stderr.contains(SECOND), "{refused:?}");
    }
}

/// A token of a run that is not stored must not become one of another run.
#[tokio::test]
async fn a_token_is_of_the_run_that_was_named() {
    let world = world_with_runs().await;
    let mint = async |run| {
        let sluice = world.sluice().env("PROXY_SHARED_SECRET", "0123456789abcdef0123456789abcdef");
        sluice.run(&["token", "mint", "--run", run]).await
    };
    let (named, literal) = (mint("9f446d19").await, mint("run-1a2052c").await);
    assert!(named.stdout.starts_with(&format!("{SECOND}|")) && named.stderr.contains(SECOND), "{named:?}");
    assert!(literal.stdout.starts_with("run-1a2052c|"), "{literal:?}");
}
