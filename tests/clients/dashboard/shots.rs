//! Takes the pictures of the documents, into `target/shots`: copy them to `docs/src/how-to/images` when pages change.

use std::path::Path;

use harness::{
    Dashboard,
    shell_agents::{prints, reporting_agent, shell_agent},
};
use serde_json::json;

const CASES: [&str; 6] = ["ordered", "runs", "run", "chat", "approvals", "agent"];
const MAX_BYTES: u64 = 60_000;
/// Script of an agent that asks its model once, and fails if it gets no answer.
const ASKS_MODEL: &str = "curl -s --fail-with-body http://localhost:8080/v1/chat/completions -H 'content-type: application/json' \
     -d '{\"model\":\"fake\",\"max_tokens\":400,\"messages\":[{\"role\":\"user\",\"content\":\"Which TLS library is used here?\"}]}' >&2 || exit 3; \
     echo done";

fn team() -> String {
    let edit = prints(&[
        json!({ "type": "text", "text": "Let me look at the route of the login. " }),
        json!({ "type": "tool_call", "id": "c1", "name": "bash", "arguments": { "command": "grep -rn redirect src" } }),
        json!({ "type": "tool_result", "id": "c1", "result": "src/login.rs:42: redirect(\"/\")" }),
        json!({ "type": "result", "text": "The handler and the middleware both redirect. I removed the one in the middleware, and the test of the login passes." }),
    ]);
    let agent = |entry: String, name: &str| entry.replace("test:sh", name);
    [
        agent(reporting_agent(&edit, "stream = 'answer'\nname = 'Editor'"), "team:edit"),
        agent(shell_agent("echo 'Two findings, both small.'", "name = 'Reviewer'"), "team:review"),
        agent(shell_agent(ASKS_MODEL, "name = 'Upgrader'"), "team:upgrade"),
        agent(shell_agent("sleep 50", "name = 'Watcher'\nrun_timeout = '50s'"), "team:watch"),
        agent(
            shell_agent(
                "cogni-tool exec core__get_current_time '{}'; sleep 1",
                "name = 'Asks'\nhost_tools = ['core__get_current_time']",
            ),
            "team:ask",
        ),
        "[gateways.coding]\naccount = 'acct-7'\n".to_owned(),
        "[worker]\nmax_concurrent_runs = 4\n[tools]\napproval = ['core__get_current_time']\n".to_owned(),
    ]
    .concat()
}

#[tokio::test]
async fn pictures_of_the_documents_are_taken() {
    let dashboard = Dashboard::start("", &team()).await;
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let shots = json!({ "shots": repository.join("target/shots") });
    let cases = dashboard.suite("shots", shots, &CASES).await;
    assert_eq!(
        cases.of("ordered")["ends"],
        json!(["succeeded", "succeeded", "failed", "succeeded", "succeeded"])
    );
    for (name, text) in [
        ("runs", "upgrade-tls"),
        ("run", "To change it"),
        ("chat", "both redirect"),
        ("approvals", "core__get_current_time"),
        ("agent", "make test"),
    ] {
        let case = cases.of(name);
        assert!(case["text"].as_str().unwrap().contains(text), "{case:#}");
        assert!(case["bytes"].as_u64().unwrap() <= MAX_BYTES, "{name}: {}", case["bytes"]);
    }
    dashboard.end().await;
}
