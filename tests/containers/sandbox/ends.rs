//! Tests that a run says how it ends, in every case, and that nothing of it is left.

use harness::{World, docker::docker, eventually, sluice::interrupt};
use serde_json::json;

use super::{run, shell_agent, world_with};

#[tokio::test]
async fn stdout_stderr_and_exit_code_are_told_apart() {
    let world = world_with("echo out; echo err >&2; exit 42").await;
    let outcome = run(&world).await;
    let result = outcome.result();
    assert_eq!(
        (outcome.code, &result["exit_code"], &result["error"]["code"]),
        (Some(1), &json!(42), &json!("container_failed"))
    );
    assert_eq!((&result["stdout"]["text"], &result["stderr"]["text"]), (&json!("out\n"), &json!("err\n")));
    assert_eq!(result["killed_by"], json!(null));
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn an_agent_that_reports_a_failure_is_believed() {
    let world = World::start().await;
    let outcome = world.sluice().run(&["run", "--json", "--model", "fake-status400", "q"]).await;
    let result = outcome.result();
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(
        result["error"]["message"].as_str().unwrap().contains("The script wants this status"),
        "{result}"
    );
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn an_interrupted_run_is_cancelled_and_cleaned() {
    for signal in [interrupt, harness::sluice::terminate] {
        let world = World::with(&shell_agent("touch /workspace/up; trap '' INT TERM; sleep 60", "")).await;
        let mut child = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", "r1", "q"]);
        let up = world.workspace("r1").await.join("up");
        eventually("the agent is up", || async { up.exists() }, |up| *up).await;
        signal(&child);
        assert_eq!(child.wait().await.unwrap().code(), Some(130));
        world.assert_nothing_left().await;
    }
}

#[tokio::test]
async fn a_failed_start_says_why_and_leaves_nothing() {
    let world = World::with(&shell_agent("true", "image = 'no-such-image:1'")).await;
    let outcome = run(&world).await;
    let message = outcome.result()["error"]["message"].as_str().unwrap().to_owned();
    assert_eq!(outcome.code, Some(70), "{outcome:?}");
    assert!(
        message.contains("image no-such-image:1 is not on this host")
            && message.contains("`docker pull no-such-image:1`"),
        "{message}"
    );
    assert_eq!(outcome.result()["error"]["code"], "image_missing");
    world.assert_nothing_left().await;

    let world = World::with("[agents.'test:sh']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['/no/such/program']\nprotocol = 'text'\n").await;
    assert_ne!(run(&world).await.code, Some(0));
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn leftover_containers_are_found() {
    let world = World::start().await;
    let label = format!("sluicegate.installation={}", world.installation());
    docker(&[
        "create",
        "--name",
        &world.installation(),
        "--label",
        &label,
        "sluicegate/sandbox-runtime:latest",
        "true",
    ])
    .await;
    let seen = harness::docker::containers_of(&world.installation()).await;
    docker(&["rm", "--force", &world.installation()]).await;
    assert_eq!(seen, [world.installation()]);
}
