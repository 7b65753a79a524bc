//! Tests that a run tells what became of its commits, and that work which is in none of them is kept.

use harness::{GitRemote, Outcome, World};
use serde_json::{Value, json};

use super::COMMITS;
use crate::sandbox::shell_agent;

/// Script that executes its question.
const OBEYS: &str = r#"eval "$(cat /workspace/.cogni/prompt.txt)""#;
/// Question that commits what the repository may not have.
const REFUSED: &str = "echo '* @acme' > CODEOWNERS; git add --all; git commit --quiet -m Owners; echo done";

/// Executes `script` on `remote` as `run`.
async fn obey(world: &World, remote: &GitRemote, run: &str, script: &str, options: &[&str]) -> Outcome {
    let url = remote.url();
    let arguments = [&["run", "--agent", "test:sh", "--run-id", run, "--repo", &url], options, &[script]];
    world.sluice().run(&arguments.concat()).await
}

#[tokio::test]
async fn each_end_of_commits_is_told() {
    let world = World::with(&shell_agent(OBEYS, "")).await;
    let remote = GitRemote::in_world(&world, "app.git");
    let cases = [
        ("pushed", COMMITS, 0, "published", "commits: sandbox/pushed: pushed; 1 commit, 1 file"),
        ("refused", REFUSED, 1, "refused", "CODEOWNERS"),
        ("none", "echo done", 0, "unchanged", "commits: sandbox/none: the agent committed nothing"),
    ];
    for (run, script, code, stage, said) in cases {
        let outcome = obey(&world, &remote, run, script, &[]).await;
        assert_eq!((outcome.code, outcome.stdout.trim()), (Some(code), "done"), "{outcome:?}");
        assert!(outcome.stderr.contains(said), "{outcome:?}");
        assert_eq!(outcome.stderr.contains("sluice git explain refused"), code == 1, "{outcome:?}");
        assert!(!outcome.stderr.contains("not committed"), "control: {outcome:?}");
        let waited = world.sluice().run(&["runs", "wait", run, "--json"]).await;
        assert_eq!(waited.code, Some(code), "{waited:?}");
        let result = waited.result();
        assert_eq!((&result["ok"], &result["commits"]["stage"]), (&json!(true), &json!(stage)), "{result}");
        let branch = json!(format!("sandbox/{run}"));
        assert_eq!(result["commits"]["order"]["branch"], branch, "{result}");
    }
    let outcome = obey(&world, &remote, "again", REFUSED, &["--json"]).await;
    let result = outcome.result();
    let found = (outcome.code, &result["commits"]["stage"], &result["commits"]["objections"][0]["path"]);
    assert_eq!(found, (Some(1), &json!("refused"), &json!("CODEOWNERS")), "{result}");
    assert_eq!(remote.branches(), ["main first", "sandbox/pushed Change a"]);
    let without = world.sluice().run(&["run", "--agent", "test:sh", "--json", "echo done"]).await.result();
    assert_eq!(without["commits"], Value::Null, "control: it has no repository");
}

#[tokio::test]
async fn work_in_no_commit_is_kept() {
    let world = World::with(&shell_agent(OBEYS, "")).await;
    let remote = GitRemote::in_world(&world, "app.git");
    let elsewhere =
        "git checkout --quiet -b other; echo unseen > a.txt; git commit --quiet -am Other; echo done";
    let beside = format!("{COMMITS}; echo unseen > b.txt");
    let cases = [
        ("changed", "echo unseen > a.txt; echo done", "unchanged"),
        ("elsewhere", elsewhere, "unchanged"),
        ("beside", &beside, "published"),
    ];
    for (run, script, stage) in cases {
        let outcome = obey(&world, &remote, run, script, &[]).await;
        assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), "done"), "{outcome:?}");
        let said = format!(
            "not committed: some work is only in its workspace, which is kept for a while: sluice runs diff {run}"
        );
        assert!(outcome.stderr.contains(&said), "{outcome:?}");
        let diff = world.sluice().run(&["runs", "diff", run]).await;
        assert!(diff.code == Some(0) && diff.stdout.contains("+unseen"), "{diff:?}");
        let explained = world.sluice().run(&["git", "explain", run, "--json"]).await.result();
        let relay = &explained["relay"];
        assert_eq!((&relay["stage"], &relay["uncommitted"]), (&json!(stage), &json!(true)), "{relay}");
    }
    assert_eq!(remote.branches(), ["main first", "sandbox/beside Change a"]);
    let removed = world.sluice().run(&["runs", "gc", "--kept"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn what_no_commit_has_is_told() {
    let world = World::with(&shell_agent(OBEYS, "")).await;
    let remote = GitRemote::in_world(&world, "app.git");
    let outside = "left: 1 file outside repo (NOTES.md): `sluice runs diff` and commits do not have it";
    let whole = obey(&world, &remote, "whole", COMMITS, &[]).await;
    assert_eq!(whole.code, Some(0), "{whole:?}");
    assert!(!whole.stderr.contains("clone: ") && !whole.stderr.contains("outside"), "control: {whole:?}");

    let submodule = "[submodule \"lib\"]\n\tpath = lib\n\turl = https://host.invalid/lib\n";
    remote.add(".gitmodules", submodule.as_bytes());
    let parts = obey(&world, &remote, "parts", &format!("echo x > ../NOTES.md; {COMMITS}"), &[]).await;
    assert_eq!((parts.code, parts.stdout.trim()), (Some(0), "done"), "{parts:?}");
    for said in ["clone: 1 submodule without files", outside] {
        assert!(parts.stderr.contains(said), "{said} is not in {parts:?}");
    }
    let result = world.sluice().run(&["runs", "wait", "parts", "--json"]).await.result();
    assert_eq!(result["outside"], json!({ "files": 1, "names": ["NOTES.md"] }), "{result}");
    assert_eq!(result["commits"]["lacking"]["submodules"], 1, "{result}");
    world.assert_nothing_left().await;
}
