//! The guide for Temporal: its activity and its workflow, executed as they are written.

use std::{collections::BTreeMap, fs};

use harness::{chat_clients::ChatClients, clients, eventually, served::Served, shell_agents::toml_argument};
use serde_json::{Value, json};

use harness::book::Page;

/// Files that the page has a reader save, in its order.
const FILES: [&str; 3] = ["agent_activity.py", "agent_workflow.py", "agent_worker.py"];

/// Returns settings with an agent that writes to its log for a minute, and with one that cannot start.
fn agents() -> String {
    let ticks = toml_argument("for tick in $(seq 120); do echo $tick >&2; sleep 0.5; done");
    format!(
        "\n[agents.'test:ticks']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['bash', '-c', {ticks}]\n\
         protocol = 'text'\n[agents.'test:broken']\nimage = 'no-such-image:1'\nargv = ['true']\n"
    )
}

/// Saves the files of the page, as a reader does.
fn saved() -> Page {
    let page = Page::read("docs/src/how-to/temporal.md");
    for pinned in clients::versions(&[("TEMPORAL", "temporalio=="), ("HTTPX", "httpx==")]) {
        assert!(page.says(&pinned), "the page names another version than {pinned}");
    }
    let blocks = page.blocks("python");
    assert_eq!(blocks.len(), FILES.len());
    for (name, block) in FILES.iter().zip(blocks) {
        assert!(page.says(&format!("Save this as `{name}`")), "{name}");
        fs::write(format!("{}/{name}", page.root()), block).unwrap();
    }
    page
}

fn refused(code: &str) -> Value {
    json!({ "type": code, "retryable": false, "delay": null })
}

#[tokio::test]
async fn the_temporal_activity_works_as_written() {
    let there = Served::with(&agents()).await;
    let token = there.token(&["workflows", "--account", "acct-7"]).await;
    let revoked = there.token(&["gone", "--account", "acct-7"]).await;
    assert_eq!(there.world.sluice().run(&["principals", "revoke", "gone"]).await.code, Some(0));
    let page = saved();
    let api = ChatClients { url: there.url(), token: token.clone() };
    let lines = clients::temporal(&page.root(), &api, &revoked).await;
    let found: BTreeMap<_, _> =
        lines.iter().map(|line| (line["case"].as_str().unwrap(), &line["value"])).collect();
    let case = |name: &str| found[name];

    assert_eq!(case("answer")["text"], "it is done");
    assert_eq!(case("retry"), case("answer"), "another attempt finds the same run");
    assert_ne!(case("other")["run_id"], case("answer")["run_id"], "control: another activity");
    assert!(!["cancelled", "succeeded", "failed"].contains(&case("worker stops")["state"].as_str().unwrap()));
    assert_eq!(
        case("cancelled")["run"],
        case("worker stops")["run"],
        "the next attempt follows the same run"
    );
    let seq = |name: &str| case(name)["seq"].as_u64().unwrap();
    assert_eq!(seq("cancelled"), seq("worker stops") + 1, "from the event after the last one");
    let app = there.authorized(&token);
    let path = format!("/api/v1/runs/{}", case("cancelled")["run"].as_str().unwrap());
    let state = || async { app.get(&path).await.json()["state"].clone() };
    eventually("the run is cancelled", state, |state| state == "cancelled").await;
    assert_eq!(case("failed run"), &refused("image_missing"));
    assert_eq!(case("unknown agent"), &refused("unknown_agent"));
    assert_eq!(case("wrong token"), &refused("unauthenticated"));
    assert_eq!(case("no API"), &json!({ "type": "unreachable", "retryable": true, "delay": null }));
    assert_eq!(case("429"), &json!({ "type": "refused", "retryable": true, "delay": 7.0 }));
    assert_eq!(case("503"), &json!({ "type": "refused", "retryable": true, "delay": null }));
    assert_eq!(case("workflow"), "NoneType", "the workflow calls the activity");
    assert_eq!(case("other workflow"), "NondeterminismError", "control: a replay compares activities");
    let runs = app.get("/api/v1/runs").await.json()["runs"].as_array().unwrap().len();
    assert_eq!(runs, 4, "answered, other, long and failing");
    there.end().await;
}
