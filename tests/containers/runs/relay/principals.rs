//! Tests that a principal works on its own repositories alone, whichever route or entry names one.

use harness::{GitHost, Served, shell_agents::reporting_agent};
use serde_json::json;

use super::COMMITS;
use crate::runs::api::{
    chat::{CHAT, says},
    orders::{assert_problem, ended},
};

const FORBIDDEN: &str = "repository_not_allowed";

#[tokio::test]
async fn a_principal_works_on_its_repositories_alone() {
    let host = GitHost::start().await;
    let remotes = ["app", "other"].map(|name| host.repository(name));
    let account = format!("[accounts.'acct-7']\nrepositories = ['{}/*']\n", host.git.origin);
    let entry = format!("repo = '{}'", host.url("other"));
    let agent = reporting_agent(&format!("{COMMITS} >&2"), &entry).replace("test:sh", "test:pr");
    let there = Served::of(&format!("\n{}{account}{agent}", host.settings_with_token()), COMMITS).await;
    let free = there.principal(&["free", "--account", "acct-7"]).await;
    // Neither case nor `.git` makes it another repository.
    let listed = format!("{}.git", host.url("App"));
    let bound = there.principal(&["bound", "--account", "acct-7", "--repository", &listed]).await;
    let order = |name: &str| {
        let repository = json!({ "url": host.url(name), "base": "main" });
        json!({ "agentId": "test:sh", "model": "fake", "input": "q", "repository": repository })
    };
    assert_problem(&bound.post("/api/v1/runs", &order("other")).await, 403, FORBIDDEN);
    let of_entry = json!({ "agentId": "test:pr", "model": "fake", "input": "q" });
    assert_problem(&bound.post("/api/v1/runs", &of_entry).await, 403, FORBIDDEN);
    let mut chat = says("t1", "m1", "one");
    chat["repository"] = order("other")["repository"].clone();
    assert_problem(&bound.post(CHAT, &chat).await, 403, FORBIDDEN);
    let completion = json!({ "model": "test:pr", "messages": [{ "role": "user", "content": "q" }] });
    let completed = bound.post("/v1/chat/completions", &completion).await;
    assert_eq!((completed.status.as_u16(), &completed.json()["error"]["code"]), (403, &json!(FORBIDDEN)));
    let runs = free.get("/api/v1/runs").await.json();
    assert_eq!(runs["runs"], json!([]), "refused: no run");

    // Control: the account may use both, and the principal the one of its list.
    for (api, name) in [(&free, "other"), (&bound, "app")] {
        let ordered = api.post("/api/v1/runs", &order(name)).await;
        assert_eq!(ordered.status, 201, "{}", ordered.text());
        let run = ordered.json()["runId"].as_str().unwrap().to_owned();
        let record = ended(api, &run).await;
        assert_eq!(record["commits"]["stage"], "published", "{record:#}");
        let again = bound.post(&format!("/api/v1/runs/{run}/again"), &json!({})).await;
        if name == "other" {
            assert_problem(&again, 403, FORBIDDEN);
        } else {
            assert_eq!(again.status, 202, "control: {}", again.text());
            ended(api, &run).await;
        }
    }
    assert_eq!(remotes.map(|remote| remote.branches().len()), [2, 2]);
    there.end().await;
}
