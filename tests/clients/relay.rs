//! Tests the way of the real OpenClaw's commits to a pull request, with only the model scripted.

use std::time::Duration;

use harness::{GitHost, World};
use serde_json::json;

/// The entry that README.md tells users to add.
const ENTRY: &str = "[agents.'sandbox:openclaw']\nargv = ['node', '/agent/run.mjs']\nname = 'OpenClaw'\n\
    image = 'sluicegate/sandbox-openclaw:latest'\nmemory = '2GiB'\nrun_timeout = '200s'\n";
/// Longest duration of the run: OpenClaw takes seconds to start, and more on a busy machine.
const PATIENCE: Duration = Duration::from_secs(210);

#[tokio::test]
async fn openclaw_makes_a_pull_request() {
    let host = GitHost::start().await;
    let remote = host.repository("app");
    let world = World::with(&format!("{ENTRY}{}", host.settings())).await;
    let change = "cd /workspace/repo && git branch --show-current && echo changed >> a.txt && git commit -qam 'Change a'";
    let describe =
        json!({ "path": "/workspace/.cogni/pr.md", "content": "Change a\n\nAs @octocat asked.\n" });
    let question = format!(
        "Please:\ncall: exec {}\ncall: write {describe}\nsay: It is committed.",
        json!({ "command": change })
    );
    let url = host.url("app");
    let order = ["run", "--agent", "sandbox:openclaw", "--run-id", "r1", "--model", "fake-steps", "--json"];
    let outcome = host.authorize(world.sluice()).within(PATIENCE);
    let outcome = outcome.run(&[&order[..], &["--repo", &url, "--pr", &question]].concat()).await;
    let result = outcome.result();
    let answer = format!("It is committed.\n\n{}", host.pull_url("app", 1));
    assert_eq!((outcome.code, &result["text"]), (Some(0), &json!(answer)), "{outcome:?}");
    assert_eq!(remote.branches(), ["main first", "sandbox/r1 Change a"]);
    assert_eq!(remote.content("sandbox/r1", "a.txt"), "text\nchanged\n");
    let pulls = host.github.pulls();
    let [pull] = &pulls[..] else { panic!("{pulls:?}") };
    assert_eq!((pull.head.as_str(), pull.title.as_str()), ("sandbox/r1", "Change a"));
    assert!(
        pull.body.starts_with("> As @ octocat asked.\n\n---\n\nMade by agent `sandbox:openclaw`"),
        "{pull:?}"
    );
    let seen = world.upstream.ledger().all()[1].json().unwrap().to_string();
    assert!(seen.contains("sandbox/r1"), "control: the tool worked in the clone: {seen}");
    world.assert_nothing_left().await;
}
