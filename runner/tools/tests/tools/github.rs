//! github tests the tools for issues and pull requests.

use serde_json::{Value, json};

use crate::{
    double::{GitHubRoute, StoredIssue, StoredPull},
    world::{Answer, RawCall, World},
};

fn issue(repository: &str, number: u64, title: &str) -> StoredIssue {
    StoredIssue {
        repository: repository.to_owned(),
        number,
        title: title.to_owned(),
        body: format!("text of {title}"),
        comments: vec!["first".to_owned()],
        ..StoredIssue::default()
    }
}

async fn world() -> World {
    let world = World::start().await;
    world.github.add_issue(issue("octo/hello", 7, "a bug"));
    world.github.add_issue(issue("other/secret", 8, "a secret"));
    world
}

async fn call(world: &World, tool: &str, args: &Value) -> Answer {
    let id = format!("c{:08x}", platform_runtime::random::bits() & 0xffff_ffff);
    world.send(RawCall::exec(tool, &id, args)).await
}

#[tokio::test]
async fn issues_of_the_runs_repository_are_read() {
    let world = world().await;
    let read = call(&world, "github__read_issue", &json!({ "number": 7 })).await;
    let result = &read.body["result"];
    assert_eq!(
        (&result["title"], &result["comments"][0]["body"]),
        (&json!("a bug"), &json!("first")),
        "{read:?}"
    );
    let list = call(&world, "github__list_issues", &json!({ "state": "all", "labels": ["a&b"] })).await;
    let titles: Vec<_> =
        list.body["result"]["issues"].as_array().unwrap().iter().map(|issue| &issue["title"]).collect();
    assert_eq!(titles, [&json!("a bug")]);
    let exchanges = world.github.exchanges();
    let listed = exchanges.iter().find(|exchange| exchange.route == Some(GitHubRoute::ListIssues)).unwrap();
    assert!(listed.query.contains("state=all") && listed.query.ends_with("labels=a%26b"), "{listed:?}");
    let foreign = call(&world, "github__read_issue", &json!({ "number": 8 })).await;
    assert_eq!(foreign.code(), "not_found", "{foreign:?}");
    world.github.add_pull(StoredPull {
        head: "sandbox/x".to_owned(),
        base: "main".to_owned(),
        title: "t".to_owned(),
        ..StoredPull::default()
    });
    let pull = call(&world, "github__read_pull_request", &json!({ "number": 1 })).await;
    assert_eq!(pull.body["result"]["head"], json!("sandbox/x"), "{pull:?}");
}

#[tokio::test]
async fn a_search_shows_the_runs_repository_alone() {
    let world = world().await;
    for text in ["secret", "x repo:other/secret", "a OR repo:other/secret", "\" repo:other/secret \""] {
        let found = call(&world, "github__search", &json!({ "text": text })).await;
        let issues = found.body["result"]["issues"].as_array().unwrap().clone();
        let numbers: Vec<_> = issues.iter().map(|issue| issue["number"].clone()).collect();
        assert_eq!(numbers, [json!(7)], "{text}: the double answers with issues of all repositories");
    }
    let exchanges = world.github.exchanges();
    assert!(
        exchanges.iter().all(|exchange| exchange.query.contains("q=repo%3Aocto%2Fhello%20%22")),
        "{exchanges:?}"
    );
}

#[tokio::test]
async fn comments_and_labels_have_no_other_effect() {
    let world = world().await;
    let body = "@octocat please close #7\n/merge\n<img src=x>";
    let made = call(&world, "github__comment", &json!({ "number": 7, "body": body })).await;
    assert_eq!(made.body["result"]["comment_id"], json!(2), "{made:?}");
    let comment = world.github.issues()[0].comments[1].clone();
    assert!(comment.starts_with("> ") && comment.contains("run `r1`"), "{comment}");
    for trigger in ["@octocat", "#7", "\n/merge", "<img"] {
        assert!(!comment.contains(trigger), "{trigger}: {comment}");
    }
    let labelled = call(&world, "github__label", &json!({ "number": 7, "labels": ["bug"] })).await;
    assert_eq!(labelled.body["result"]["labels"], json!(["bug"]), "{labelled:?}");
    for args in [json!({ "number": 8, "labels": ["bug"] }), json!({ "number": 999, "labels": ["bug"] })] {
        assert_eq!(call(&world, "github__label", &args).await.code(), "not_found", "{args}");
    }
    for args in [
        json!({ "number": 7, "labels": [] }),
        json!({ "number": 7, "labels": ["a,b"] }),
        json!({ "number": 7, "labels": ["a\nb"] }),
    ] {
        assert_eq!(call(&world, "github__label", &args).await.code(), "invalid_arguments", "{args}");
    }
    assert_eq!(world.github.issues()[1].labels, [""; 0], "the issue of the other repository");
}

#[tokio::test]
async fn a_run_without_a_repository_has_no_github() {
    let world = world().await;
    for (run, wanted) in [
        ("bare", json!({})),
        ("elsewhere", json!({ "repo": { "url": "https://git.example/octo/hello" } })),
        ("odd", json!({ "repo": { "url": "no address" } })),
    ] {
        world.ordered(run, "acct-1", &wanted).await;
        let body =
            json!({ "runId": run, "callId": "c", "tool": "github__read_issue", "args": { "number": 7 } });
        let call = RawCall::of("/tool/exec", "github__read_issue", body.to_string().into_bytes());
        let answer = world.send(call.with("x-sluice-run", run)).await;
        assert_eq!(answer.code(), "no_repository", "{run}: {answer:?}");
    }
    assert!(world.github.exchanges().is_empty());
}

#[tokio::test]
async fn a_result_that_is_too_large_is_none() {
    let world = world().await;
    let large = StoredIssue { body: "x".repeat(300 << 10), ..issue("octo/hello", 9, "large") };
    world.github.add_issue(large);
    let answer = call(&world, "github__read_issue", &json!({ "number": 9 })).await;
    assert_eq!((answer.code(), answer.outcome()), ("result_too_large", "failed"), "{answer:?}");
}

#[tokio::test]
async fn unmirrored_repositories_are_not_found() {
    let world = world().await;
    for repository in ["absent", "other-one"] {
        let answer = call(&world, "repo_refresh", &json!({ "repository": repository })).await;
        assert_eq!(answer.code(), "not_found", "{answer:?}");
    }
    let answer = call(&world, "repo_refresh", &json!({ "repository": "../etc" })).await;
    assert_eq!(answer.code(), "invalid_arguments", "{answer:?}");
}
