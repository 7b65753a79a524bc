//! Tests that people see the commits of a run, and that a clone has the room of its agent's workspace.

use harness::{GitRemote, World};
use serde_json::{Value, json};

use super::{COMMITS, relay, run_on};
use crate::sandbox::shell_agent;

/// Commits twice: one subject has a code for terminals, the other commit its own time.
const TWO_COMMITS: &str = "echo 1 > b.txt; git add b.txt; \
     git commit --quiet --date='2001-02-03T04:05:06Z' -m 'Add b'; echo 2 > b.txt; \
     git commit --quiet -am \"$(printf 'Change b \\033[31mred')\"; echo done";

#[tokio::test]
async fn people_see_the_commits_of_a_run() {
    let world = World::with(&shell_agent(TWO_COMMITS, "")).await;
    let remote = GitRemote::in_world(&world, "app.git");
    let outcome = run_on(&world, &remote, "r1", &["--keep"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let ids = remote.git(&["log", "--format=%H", "main..sandbox/r1"]);
    let ids: Vec<_> = ids.lines().collect();
    let recorded = relay(&world, "r1").await["commits"].clone();
    assert_eq!((&recorded[0]["id"], &recorded[1]["id"]), (&json!(ids[0]), &json!(ids[1])), "{recorded}");
    assert_eq!(recorded[1]["subject"], "Add b", "{recorded}");
    assert_eq!(recorded[1]["authored_ms"], 981_173_106_000_i64, "{recorded}");
    let red = recorded[0]["subject"].as_str().unwrap();
    assert!(red.starts_with("Change b ") && !red.contains('\u{1b}'), "{red:?}");

    let line = format!("commit     {} 2001-02-03T04:05:06Z Add b\n", &ids[1][..12]);
    for words in [["git", "explain", "r1"], ["runs", "diff", "r1"]] {
        let shown = world.sluice().run(&words).await;
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(shown.stdout.contains(&line), "{shown:?}");
        assert!(!shown.stdout.contains('\u{1b}'), "{shown:?}");
    }
    let diff = world.sluice().run(&["runs", "diff", "r1"]).await.stdout;
    assert!(diff.contains("+++ b/b.txt"), "the files come after them: {diff}");
    let diff = world.sluice().run(&["runs", "diff", "r1", "--json"]).await.result();
    assert_eq!(diff["commits"], recorded, "{diff:#}");
}

/// The commits outlive the workspace.
#[tokio::test]
async fn commits_are_shown_without_their_files() {
    let world = World::with(&shell_agent(COMMITS, "")).await;
    let remote = GitRemote::in_world(&world, "app.git");
    run_on(&world, &remote, "r1", &[]).await;
    let shown = world.sluice().run(&["runs", "diff", "r1"]).await;
    assert!(shown.code == Some(0) && shown.stdout.ends_with(" Change a\n"), "{shown:?}");
    assert!(shown.stderr.starts_with("no files: "), "{shown:?}");
    let json = world.sluice().run(&["runs", "diff", "r1", "--json"]).await.result();
    assert_eq!(json["commits"][0]["subject"], "Change a", "{json:#}");
    let without = world.sluice().run(&["run", "--agent", "test:sh", "--run-id", "r2", "q"]).await;
    let none = world.sluice().run(&["runs", "diff", "r2"]).await;
    assert!(none.code != Some(0) && none.stdout.is_empty(), "control: no commits: {without:?} {none:?}");
    world.assert_nothing_left().await;
}

/// A clone takes at most half of the workspace, and an agent's own `disk` is its workspace.
#[tokio::test]
async fn a_clone_has_the_room_of_its_agent() {
    let size = "[sandbox]\nworkspace_size = '16MiB'\n";
    for (settings, stage) in [("", None), ("disk = '64MiB'\n", Some("published"))] {
        let world = World::with(&shell_agent(COMMITS, settings)).await;
        world.reconfigure("[sandbox]\n", size);
        let remote = GitRemote::in_world(&world, "app.git");
        let content: Vec<u8> =
            (0..10_u32 << 20).map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
        remote.add("large", &content);
        let outcome = run_on(&world, &remote, "r1", &["--json"]).await;
        match stage {
            Some(stage) => assert_eq!(relay(&world, "r1").await["stage"], stage, "{outcome:?}"),
            None => {
                let result: Value = serde_json::from_str(outcome.stdout.lines().last().unwrap()).unwrap();
                assert_eq!(result["error"]["code"], "repository_failed", "control: {outcome:?}");
            }
        }
    }
}
