//! Tests that an agent's commits reach a branch of their repository, and that nothing else does.

mod applications;
mod commits;
mod faults;
mod github;
mod github_faults;
mod hostile;
mod outcomes;
mod parallel;
mod principals;
mod refusals;
mod waits;

use harness::{GitRemote, Outcome, Up, World, eventually::eventually_within};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    recovery::survival::{LEASE, PATIENCE, ended},
    sandbox::shell_agent,
};

/// Script that commits a change.
const COMMITS: &str = "echo changed >> a.txt; git commit --quiet -am 'Change a' && echo done";

/// Runs the world's shell agent on `remote` as `run`.
async fn run_on(world: &World, remote: &GitRemote, run: &str, options: &[&str]) -> Outcome {
    let url = remote.url();
    let arguments =
        [&["run", "--agent", "test:sh", "--run-id", run, "--repo", &url], options, &["q"]].concat();
    world.sluice().run(&arguments).await
}

/// Returns what is known of the commits of `run`.
async fn relay(world: &World, run: &str) -> Value {
    let outcome = world.sluice().run(&["git", "explain", run, "--json"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    serde_json::from_str::<Value>(&outcome.stdout).unwrap()["relay"].clone()
}

#[tokio::test]
async fn commits_reach_a_branch_of_their_own() {
    const SEES: &str =
        "pwd; git log --format=%s; git branch --show-current; git remote; git config user.name; whoami; ";
    let world = World::with(&shell_agent(&[SEES, COMMITS].concat(), "")).await;
    let remote = GitRemote::in_world(&world, "app.git");
    let outcome = run_on(&world, &remote, "r1", &[]).await;
    let seen = "/workspace/repo\nfirst\nsandbox/r1\nSluicegate agent\nsandboxer\ndone";
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), seen), "{outcome:?}");
    assert_eq!(remote.branches(), ["main first", "sandbox/r1 Change a"]);
    assert_eq!(remote.content("sandbox/r1", "a.txt"), "text\nchanged\n");
    let relay = relay(&world, "r1").await;
    assert_eq!((&relay["stage"], &relay["work"]["commits"]), (&json!("published"), &json!(1)), "{relay}");
    let shown = world.sluice().run(&["runs", "show", "r1"]).await;
    assert!(shown.stdout.contains("sandbox/r1: pushed; 1 commit, 1 file"), "{}", shown.stdout);
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_branch_is_continued_from_its_tip() {
    let script = ["git log --format=%s; ", COMMITS].concat();
    let world = World::with(&shell_agent(&script, "")).await;
    let remote = GitRemote::in_world(&world, "app.git");
    for (run, seen) in [("r1", "first\ndone"), ("r2", "Change a\ndone")] {
        let outcome = run_on(&world, &remote, run, &["--branch", "fix"]).await;
        assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), seen), "{outcome:?}");
    }
    assert_eq!(remote.content("sandbox/fix", "a.txt"), "text\nchanged\nchanged\n");
    world.assert_nothing_left().await;
}

/// Commits that were made before a run failed, timed out or was stopped are kept.
#[tokio::test]
async fn commits_before_a_failure_are_kept() {
    let cases = [("failed", "exit 3", 1), ("late", "sleep 60", 124)];
    for (name, end, code) in cases {
        let world = World::with(&shell_agent(&format!("{COMMITS}; {end}"), "run_timeout = '12s'")).await;
        let remote = GitRemote::in_world(&world, "app.git");
        let outcome = run_on(&world, &remote, name, &[]).await;
        assert_eq!(outcome.code, Some(code), "{outcome:?}");
        assert_eq!(remote.branches(), ["main first".to_owned(), format!("sandbox/{name} Change a")]);
        world.assert_nothing_left().await;
    }
}

#[tokio::test]
async fn a_warm_container_gets_the_clone() {
    let settings = "disk = '64MiB'\nwarm_pool_size = 1\n";
    let mut world = World::with(&format!("{}{LEASE}", shell_agent(COMMITS, settings))).await;
    assert!(world.stop_proxy().await);
    let remote = GitRemote::in_world(&world, "app.git");
    let up = Up::start(world.sluice()).await;
    let waiting = async || world.sluice().run(&["runs", "gc", "--dry-run"]).await.stdout;
    eventually_within(PATIENCE, "one waits", waiting, |text| text.contains("it waits for a run")).await;
    assert_eq!(run_on(&world, &remote, "r1", &["--detach"]).await.code, Some(0));
    let record = ended(&world, "r1").await;
    assert!(record["resources"].to_string().contains("-warm-"), "{record:#}");
    assert_eq!(remote.branches(), ["main first", "sandbox/r1 Change a"]);
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}
