//! issues tests how issues are read and written, and with which permissions.

use std::sync::Arc;

use runner_github::{CommentText, CredentialSource, IssueFilter, Issues, RunFooter};
use serde_json::json;

use crate::{
    double::{GitHubFault, GitHubRoute, StoredIssue},
    world::World,
};

fn issue(repository: &str) -> StoredIssue {
    StoredIssue {
        repository: repository.to_owned(),
        number: 7,
        title: format!("of {repository}"),
        ..StoredIssue::default()
    }
}

async fn world() -> World {
    let world = World::start().await;
    world.github.add_issue(issue("octo/hello"));
    world.github.add_issue(issue("other/secret"));
    world
}

#[tokio::test]
async fn an_app_uses_the_least_permissions() {
    let world = world().await;
    let app = CredentialSource::open(&world.app_settings(), None).expect("the key is valid");
    let issues = Issues::of(Arc::new(app), world.repository());
    assert_eq!(issues.read(7).await.expect("it is there").summary.title, "of octo/hello");
    let labels = issues.label(7, &["bug".to_owned()]).await.expect("it is labelled");
    assert_eq!((labels, world.github.issues()[1].labels.len()), (vec!["bug".to_owned()], 0));
    let exchanges = world.github.exchanges();
    let asked = exchanges.iter().filter(|exchange| exchange.route == Some(GitHubRoute::Token));
    let asked: Vec<_> = asked.map(|exchange| exchange.body["permissions"].clone()).collect();
    let levels = ["read", "write"].map(|level| json!({ "issues": level, "pull_requests": level }));
    assert_eq!(asked, levels);
}

#[tokio::test]
async fn issues_of_another_repository_are_dropped() {
    let world = world().await;
    let issues = Issues::of(Arc::new(world.credentials()), world.repository());
    let titles = |found: Vec<runner_github::IssueSummary>| -> Vec<_> {
        found.into_iter().map(|issue| issue.title).collect()
    };
    assert_eq!(titles(issues.search("of").await.expect("it is found")), ["of octo/hello"]);
    let listed = issues.list(IssueFilter::All, &[]).await.expect("it is listed");
    assert_eq!(titles(listed), ["of octo/hello"]);
}

#[tokio::test]
async fn a_revoked_token_is_replaced_once() {
    let world = world().await;
    let app = CredentialSource::open(&world.app_settings(), None).expect("the key is valid");
    let issues = Issues::of(Arc::new(app), world.repository());
    world.github.script(GitHubRoute::ReadIssue, [GitHubFault::Away]);
    issues.read(7).await.expect_err("it is away");
    assert!(!world.github.has_fault(GitHubRoute::ReadIssue));
    issues.read(7).await.expect("it is there");
    world.github.revoke_tokens();
    issues.read(7).await.expect("it is there");
    assert_eq!(world.github.count(GitHubRoute::Token), 2);
    let run = "run-1".parse().expect("it is an id");
    let agent = "sandbox:agent".parse().expect("it is an id");
    let text = CommentText::compose("@octocat #7", &RunFooter { run: &run, agent: &agent, account: None });
    assert_eq!(issues.comment(7, &text).await.expect("it is made"), 1);
    assert!(world.github.issues()[0].comments[0].starts_with("> @ octocat # 7\n\n---"), "{text:?}");
}
