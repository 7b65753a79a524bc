//! Tests pull requests that applications order: over the API for runs, and in a chat.

use harness::{
    GitHost, Served,
    shell_agents::{prints, reporting_agent},
};
use serde_json::json;

use super::COMMITS;
use crate::runs::api::{
    chat::{CHAT, chunks, last_text, says},
    orders::{assert_problem, ended},
};

#[tokio::test]
async fn a_member_orders_a_pull_request() {
    let host = GitHost::start().await;
    let remote = host.repository("app");
    let account = format!("[accounts.'acct-7']\nrepositories = ['{}/*']\n", host.git.origin);
    let there = Served::of(&format!("\n{}{account}", host.settings_with_token()), COMMITS).await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let other = there.principal(&["other", "--account", "acct-8"]).await;
    let order = |url: &str| {
        let repository = json!({ "url": url, "base": "main", "pullRequest": true });
        json!({ "agentId": "test:sh", "model": "fake", "input": "q", "repository": repository })
    };
    let url = host.url("app");
    for (api, url) in [(&app, "https://github.com/octo/app"), (&other, &url)] {
        assert_problem(&api.post("/api/v1/runs", &order(url)).await, 403, "repository_forbidden");
    }
    let ordered = app.post("/api/v1/runs", &order(&url)).await;
    assert_eq!(ordered.status, 201, "{}", ordered.text());
    let run = ordered.json()["runId"].as_str().unwrap().to_owned();
    let record = ended(&app, &run).await;
    let pull = host.pull_url("app", 1);
    assert_eq!(record["answer"], json!(format!("done\n\n{pull}")), "{record:#}");
    assert_eq!(record["commits"]["pullRequest"], json!({ "number": 1, "url": pull }), "{record:#}");
    let log = record["commits"]["log"].as_array().unwrap();
    assert_eq!((log.len(), &log[0]["id"]), (1, &record["commits"]["commit"]), "{record:#}");
    assert_eq!(log[0]["subject"], "Change a", "{record:#}");
    assert!(log[0]["authoredAt"].as_str().unwrap().ends_with('Z'), "{record:#}");
    assert_eq!(record["commits"]["branch"], json!(format!("sandbox/{run}")));
    assert_eq!(record["commits"]["uncommitted"], false, "{record:#}");
    assert_eq!(remote.branches(), ["main first".to_owned(), format!("sandbox/{run} Change a")]);
    assert_eq!(app.get("/api/v1/runs").await.json()["runs"].as_array().unwrap().len(), 1, "refused: no run");
    there.end().await;
}

#[tokio::test]
async fn an_application_sees_work_in_no_commit() {
    let host = GitHost::start().await;
    let remote = host.repository("app");
    let account = format!("[accounts.'acct-7']\nrepositories = ['{}/*']\n", host.git.origin);
    let settings = format!("\n{}{account}", host.settings_with_token());
    let there = Served::of(&settings, &format!("{COMMITS}; echo unseen > b.txt")).await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let repository = json!({ "url": host.url("app"), "base": "main" });
    let order = json!({ "agentId": "test:sh", "model": "fake", "input": "q", "repository": repository });
    let ordered = app.post("/api/v1/runs", &order).await;
    assert_eq!(ordered.status, 201, "{}", ordered.text());
    let record = ended(&app, ordered.json()["runId"].as_str().unwrap()).await;
    let commits = &record["commits"];
    assert_eq!(
        (&commits["stage"], &commits["uncommitted"]),
        (&json!("published"), &json!(true)),
        "{record:#}"
    );
    assert_eq!(remote.branches().len(), 2, "the commits are published");
    // Its workspace is kept.
    let removed = there.world.sluice().run(&["runs", "gc", "--kept"]).await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    there.end().await;
}

/// Without a credential the API refuses the order: an agent would work for a pull request that cannot be made.
#[tokio::test]
async fn an_order_without_a_credential_is_refused() {
    let host = GitHost::start().await;
    let _remote = host.repository("app");
    let account = format!("[accounts.'acct-7']\nrepositories = ['{}/*']\n", host.git.origin);
    let there = Served::of(&format!("\n{}{account}", host.settings()), COMMITS).await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let order = |pull_request: bool| {
        let repository = json!({ "url": host.url("app"), "base": "main", "pullRequest": pull_request });
        json!({ "agentId": "test:sh", "model": "fake", "input": "q", "repository": repository })
    };
    let refused = app.post("/api/v1/runs", &order(true)).await;
    assert_problem(&refused, 400, "invalid_repository");
    assert!(refused.text().contains("this host has no credential that can be used"), "{}", refused.text());
    assert_eq!(app.get("/api/v1/runs").await.json()["runs"], json!([]), "refused: no run");
    let branch = app.post("/api/v1/runs", &order(false)).await;
    assert_eq!(branch.status, 201, "control: a branch alone is ordered: {}", branch.text());
    ended(&app, branch.json()["runId"].as_str().unwrap()).await;
    there.end().await;
}

/// The agent streams its answer, and the address comes after the agent's end.
#[tokio::test]
async fn a_chat_ends_with_the_pull_request() {
    let host = GitHost::start().await;
    let remote = host.repository("app");
    let lines = [
        json!({ "type": "text", "text": "It is " }),
        json!({ "type": "text", "text": "done" }),
        json!({ "type": "result", "text": "It is done" }),
    ];
    let script = format!("{COMMITS} >&2; {}", prints(&lines));
    let entry = format!("stream = 'answer'\nrepo = '{}'\npull_request = true", host.url("app"));
    let agent = reporting_agent(&script, &entry).replace("test:sh", "test:pr");
    let there = Served::of(&format!("\n{}{agent}", host.settings_with_token()), "true").await;
    let app = there.principal(&["app", "--account", "acct-7"]).await;
    let mut body = says("t1", "m1", "one");
    body["graphName"] = "test:pr".into();
    let streamed = app.post(CHAT, &body).await;
    let received = chunks(&streamed);
    let answer = format!("It is done\n\n{}", host.pull_url("app", 1));
    assert_eq!(last_text(&received), answer, "{received:#?}");
    let texts = received.iter().filter(|chunk| chunk["type"] == "text-start").count();
    assert_eq!(texts, 1, "the streamed text goes on: {received:#?}");
    let run = streamed.headers["x-cogni-run-id"].to_str().unwrap();
    assert_eq!(app.get(&format!("/api/v1/runs/{run}")).await.json()["answer"], json!(answer));
    let shown = app.get("/api/v1/threads/t1").await.json();
    let part = json!({ "type": "text", "text": answer, "state": "done" });
    assert_eq!(shown["messages"][1]["parts"], json!([part]), "{shown:#}");
    assert_eq!(remote.branches().len(), 2, "main, and that of the thread");
    let completion = json!({ "model": "test:pr", "messages": [{ "role": "user", "content": "q" }] });
    let completed = app.post("/v1/chat/completions", &completion).await.json();
    let second = format!("It is done\n\n{}", host.pull_url("app", 2));
    assert_eq!(completed["choices"][0]["message"]["content"], json!(second), "{completed:#}");
    there.end().await;
}
