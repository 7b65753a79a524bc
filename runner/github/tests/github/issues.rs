//! issues tests how issues are read and written, and with which permissions.

use std::sync::Arc;

use runner_git::SecretScan;
use runner_github::{CommentText, CredentialSource, Error, IssueFilter, Issues, RunFooter};
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
    let footer = RunFooter { run: &run, agent: &agent, account: None };
    let text = CommentText::compose("@octocat #7", &footer, &SecretScan::default()).unwrap();
    assert_eq!(issues.comment(7, &text).await.expect("it is made"), 1);
    assert!(world.github.issues()[0].comments[0].starts_with("> @ octocat # 7\n\n---"), "{text:?}");
}

/// An issue that was transferred is redirected to its new repository, which may be a private one.
#[tokio::test]
async fn a_transferred_issue_is_not_followed() {
    let world = world().await;
    let issues = Issues::of(Arc::new(world.credentials()), world.repository());
    let moved = |code| {
        let location = "/api/v3/repos/other/secret/issues/7".to_owned();
        GitHubFault::Status(code, "Moved", vec![("location", location)])
    };
    world.github.script(GitHubRoute::ReadIssue, [moved(301)]);
    let read = issues.read(7).await.expect_err("it is elsewhere");
    assert!(matches!(read, Error::Redirected { .. }), "{read}");
    world.github.script(GitHubRoute::Label, [moved(307)]);
    let labelled = issues.label(7, &["bug".to_owned()]).await.expect_err("it is elsewhere");
    assert!(matches!(labelled, Error::Redirected { .. }), "{labelled}");
    assert!(world.github.exchanges().iter().all(|exchange| !exchange.path.contains("secret")));
    assert_eq!(issues.read(7).await.expect("the control").summary.title, "of octo/hello");
}
