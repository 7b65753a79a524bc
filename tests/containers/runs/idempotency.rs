//! Tests that the same order again is the same run, also when another program stored it.

use harness::{World, store::rewrite};
use serde_json::{Value, json};
use test_postgres::Database;

use crate::{recovery::survival::order, sandbox::shell_agent};

/// Removes from a stored agent the fields that older programs did not know.
fn age(table: &str, row: &mut serde_json::Map<String, Value>) {
    if table != "runs" {
        return;
    }
    let mut wanted: Value = serde_json::from_str(row["wanted"].as_str().unwrap()).unwrap();
    let agent = wanted["agent"].as_object_mut().unwrap();
    for new in ["stream", "environment", "volumes", "workspace", "mode", "disk"] {
        assert!(agent.remove(new).is_some(), "{new} is new no more: {agent:?}");
    }
    wanted.as_object_mut().unwrap().remove("keep").unwrap();
    row["wanted"] = json!(wanted.to_string());
}

async fn an_order_is_the_same_after_an_upgrade(world: &World) {
    order(world, "r1", "test:sh").await;
    rewrite(world, age).await;
    let old = world.sluice().run(&["runs", "show", "r1", "--json"]).await.result();
    assert!(old["order"]["agent"].get("stream").is_none(), "control: {old:#}");
    order(world, "r1", "test:sh").await;
    let again = ["run", "--detach", "--run-id", "r1", "--agent", "test:sh"];
    for other in [&["another question"][..], &["--model", "fake-words3", "q"], &["--account", "other", "q"]] {
        let refused = world.sluice().run(&[&again[..], other].concat()).await;
        assert!(refused.code == Some(2) && refused.stderr.contains("r1"), "{other:?}: {refused:?}");
    }
    let waits = world.sluice().run(&["runs", "ls", "--json"]).await.result();
    assert_eq!(waits["runs"].as_array().unwrap().len(), 1, "{waits:#}");
}

#[tokio::test]
async fn a_request_stored_by_an_older_version_matches() {
    let world = World::with(&shell_agent("true", "")).await;
    an_order_is_the_same_after_an_upgrade(&world).await;
    let postgres = Database::create().await;
    let world = World::with(&shell_agent("true", "")).await;
    world.keep_store_at(&postgres.url()).await.close().await;
    an_order_is_the_same_after_an_upgrade(&world).await;
}
