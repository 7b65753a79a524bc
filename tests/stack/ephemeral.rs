//! The real OpenClaw in a sealed sandbox of its own for each run, with nothing scripted but the model.

use std::fs;

use harness::{Outcome, World};
use platform_core::record::Outcome as Called;

/// The entry that README.md tells users to add.
const ENTRY: &str = "[agents.'sandbox:openclaw']\nname = 'OpenClaw'\nimage = 'sluicegate/sandbox-openclaw:latest'\n\
    memory = '2GiB'\nruntime = '50s'\n";

async fn world(more: &str) -> World {
    World::with(&format!("{ENTRY}{more}\n")).await
}

async fn run(world: &World, model: &str, question: &str) -> Outcome {
    let arguments =
        ["run", "--agent", "sandbox:openclaw", "--run-id", "r1", "--account", "acct-1", "--model", model];
    world.sluice().run(&[&arguments[..], &["--keep", "--json", question]].concat()).await
}

/// A list of tool calls, as the scripted model reads it.
fn steps(calls: &[(&str, serde_json::Value)], answer: &str) -> String {
    let calls = calls.iter().map(|(tool, input)| format!("call: {tool} {input}\n"));
    format!("Please:\n{}say: {answer}", calls.collect::<String>())
}

fn exec(command: &str) -> (&'static str, serde_json::Value) {
    ("exec", serde_json::json!({ "command": command }))
}

#[tokio::test]
async fn a_tool_loop_edits_and_commits_in_the_repository() {
    let world = world("").await;
    let edit = serde_json::json!({ "path": "repo/file", "edits": [{ "oldText": "one", "newText": "two" }] });
    let question = steps(
        &[
            exec(
                "git init -q -b main repo && cd repo && echo one > file && git add . && git commit -qm first",
            ),
            ("edit", edit),
            exec(
                "cd repo && git commit -qam second && git log --format=%s,%an && cat file && git status --short",
            ),
        ],
        "Both are committed.",
    );
    let outcome = run(&world, "fake-steps", &question).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.result()["text"], "Both are committed.", "{outcome:?}");

    let repo = world.workspace("r1").await.join("repo");
    assert_eq!(fs::read_to_string(repo.join("file")).unwrap(), "two\n");
    let ledger = world.upstream.ledger().all();
    let told = ledger.last().unwrap().json().unwrap().to_string();
    assert!(told.contains("second,Sandboxed agent"), "{told}");
    let journal = world.records(4).await;
    assert_eq!((ledger.len(), journal.len()), (4, 4), "a call for each step and one for the answer");
    for (call, line) in ledger.iter().zip(&journal) {
        assert_eq!(
            (call.header("x-litellm-end-user-id"), line.record.outcome),
            (vec!["acct-1"], Called::Complete)
        );
        assert_eq!((line.record.run_id.as_str(), line.record.account.as_str()), ("r1", "acct-1"));
    }
}
