//! Tests the HTTP API by its own OpenAPI document: schemathesis sends what the document allows and what it forbids, and
//! compares each answer with it.

use std::fs;

use harness::{Up, World, bridge::free_port, canary, clients::schemathesis};
use rustix::process::Signal;
use serde_json::Value;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/reference/openapi.json");

/// An agent that fails at once, so that hundreds of orders start no container.
const AGENT: &str = "[agents.'sandbox:agent']\nargv = ['true']\nimage = 'no-such-image:1'\n";

/// Options that bound the run, and make it the same each time. All checks run, but those that [`SETTINGS`] leaves out.
const OPTIONS: [&str; 6] = ["--max-examples", "20", "--seed", "1", "--request-timeout", "20"];

/// Settings of schemathesis, which it reads where it runs.
const SETTINGS: &str = include_str!("schemathesis.toml");

/// Number of operations that [`SETTINGS`] leaves out.
const LEFT_OUT: usize = 2;

#[tokio::test]
async fn the_api_answers_as_its_document_says() {
    let address = free_port();
    let mut world = World::with(&format!("[api]\nlisten = '{address}'\n{AGENT}")).await;
    assert!(world.stop_proxy().await);
    let sluice = world.sluice().env("SLUICE_UPSTREAM_DEFAULT_MODEL", "fake");
    let up = Up::start(sluice.log_to(&world.path().join("up.log"))).await;
    // An administrator reaches every route. It orders no other agent.
    let arguments = ["principals", "add", "tester", "--account", "acct-1", "--role", "admin"];
    let added = world.sluice().run(&[&arguments[..], &["--agent", "sandbox:agent"]].concat()).await;
    let token = added.stdout.trim();
    canary::hand_out(token);
    let url = format!("http://{address}");
    let header = format!("Authorization: Bearer {token}");
    let directory = tempfile::tempdir().unwrap();
    let own = ["run", DOCUMENT, "--url", &url, "--header", &header];
    fs::write(directory.path().join("schemathesis.toml"), SETTINGS).unwrap();
    let report = schemathesis(directory.path(), &[&own[..], &OPTIONS].concat()).await;
    let document: Value = serde_json::from_str(&fs::read_to_string(DOCUMENT).unwrap()).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let operations: usize = paths.values().map(|path| path.as_object().unwrap().len()).sum();
    let selected = format!("{} selected / {operations} total", operations - LEFT_OUT);
    assert!(report.contains(&selected), "control: {selected}:\n{report}");
    for phase in ["Examples", "Coverage", "Fuzzing", "Stateful"] {
        assert!(report.contains(&format!("✅ {phase}")), "control: {phase} ran:\n{report}");
    }
    let runs = world.sluice().run(&["runs", "ls", "--json"]).await.stdout;
    assert!(runs.contains("image_missing"), "control: orders were accepted:\n{report}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}
