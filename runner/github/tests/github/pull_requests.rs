//! pull_requests orders pull requests, again and again, beside other clients.

use std::sync::Arc;

use platform_runtime::retry::Transient as _;
use runner_github::{CredentialSource, Error, PullRequest, PullRequestFate, PullRequestState, PullRequests};

use crate::{
    double::{GitHubFault, GitHubRoute, PullMark, StoredPull},
    world::{World, order_at, settings_at},
};

async fn ensure(world: &World) -> PullRequest {
    world.pull_requests().ensure(&world.order()).await.expect("it is made")
}

fn pull(head: &str, base: &str, marks: &[PullMark]) -> StoredPull {
    StoredPull {
        head: head.to_owned(),
        base: base.to_owned(),
        marks: marks.to_vec(),
        ..StoredPull::default()
    }
}

#[tokio::test]
async fn a_pull_request_is_made_once() {
    let world = World::start().await;
    let made = ensure(&world).await;
    let url = format!("{}/octo/hello/pull/1", world.github.url);
    assert_eq!(made, PullRequest { number: 1, url, state: PullRequestState::Draft });
    assert_eq!(ensure(&world).await, made);
    let pulls = world.github.pulls();
    let order = world.order();
    let expected = StoredPull {
        head: "sandbox/run-1".to_owned(),
        base: "main".to_owned(),
        title: "Add a parser".to_owned(),
        body: order.text.body().to_owned(),
        labels: order.labels,
        marks: vec![PullMark::Draft],
    };
    assert_eq!(pulls, [expected]);
    let routes: Vec<_> = world.github.exchanges().iter().map(|exchange| exchange.route).collect();
    let [find, make, label] = [GitHubRoute::FindPulls, GitHubRoute::MakePull, GitHubRoute::Label].map(Some);
    assert_eq!(routes, [find, make, label, find], "labels that are there are not added again");
}

/// A branch has one pull request for ever, if its owner wants that.
#[tokio::test]
async fn a_pull_request_that_ended_is_found() {
    let world = World::start().await;
    let pulls = world.pull_requests();
    let order = world.order();
    let made = pulls.ensure_once(&order).await.unwrap();
    let fate = async || pulls.fate(&order.repository, made.number, &order.base).await.unwrap();
    assert_eq!(fate().await, PullRequestFate::Open);
    world.github.close_pulls();
    assert_eq!(fate().await, PullRequestFate::Closed);
    assert_eq!(pulls.ensure_once(&order).await.unwrap(), made);
    world.github.merge_pull(order.head.as_str());
    assert_eq!(fate().await, PullRequestFate::Merged);
    assert_eq!(pulls.ensure_once(&order).await.unwrap(), made);
    assert_eq!(world.github.pulls().len(), 1);
}

#[tokio::test]
async fn requests_say_who_asks_and_which_version() {
    let world = World::start().await;
    ensure(&world).await;
    let exchanges = world.github.exchanges();
    assert_eq!(exchanges[0].query, "state=open&per_page=30&head=octo:sandbox/run-1");
    for exchange in exchanges {
        assert!(exchange.headers["user-agent"].starts_with("sluicegate/"));
        assert_eq!(exchange.headers["x-github-api-version"], "2022-11-28");
        assert_eq!(exchange.headers["accept"], "application/vnd.github+json");
    }
}

#[tokio::test]
async fn without_drafts_it_is_made_ready() {
    let world = World::start().await;
    world.github.refuse_drafts();
    assert_eq!(ensure(&world).await.state, PullRequestState::Ready);
    assert_eq!(world.github.pulls()[0].marks, []);
}

#[tokio::test]
async fn an_open_one_of_the_branch_is_taken() {
    let world = World::start().await;
    for (head, base, marks) in [
        ("sandbox/run-2", "main", &[][..]),
        ("sandbox/run-1", "main", &[PullMark::FromFork][..]),
        ("sandbox/run-1", "main", &[PullMark::Closed][..]),
        ("sandbox/run-1", "next", &[][..]),
        ("sandbox/run-1", "main", &[][..]),
    ] {
        world.github.add_pull(pull(head, base, marks));
    }
    assert_eq!((ensure(&world).await.number, world.github.pulls().len()), (5, 5));
}

#[tokio::test]
async fn a_closed_one_is_followed_by_another() {
    let world = World::start().await;
    assert_eq!(ensure(&world).await.number, 1);
    world.github.close_pulls();
    assert_eq!(ensure(&world).await.number, 2);
}

#[tokio::test]
async fn one_made_meanwhile_is_taken() {
    let world = World::start().await;
    world.github.script(GitHubRoute::MakePull, [GitHubFault::Raced]);
    assert_eq!((ensure(&world).await.number, world.github.pulls().len()), (1, 1));
    assert_eq!(world.github.count(GitHubRoute::FindPulls), 2);
}

#[tokio::test]
async fn a_lost_answer_makes_no_second_one() {
    let world = World::start().await;
    world.github.script(GitHubRoute::MakePull, [GitHubFault::Lost]);
    let lost = world.pull_requests().ensure(&world.order()).await.expect_err("the answer is lost");
    assert!(matches!(lost, Error::Unreachable { .. }) && lost.is_transient(), "{lost:?}");
    assert_eq!((ensure(&world).await.number, world.github.pulls().len()), (1, 1));
    assert_eq!(world.github.pulls()[0].labels.len(), 2, "the second order adds what the first one could not");
}

#[tokio::test]
async fn labels_that_fail_are_no_failure() {
    let world = World::start().await;
    let refused = GitHubFault::Status(403, "Resource not accessible by integration", Vec::new());
    world.github.script(GitHubRoute::Label, [refused]);
    assert_eq!(ensure(&world).await.number, 1);
    assert_eq!(world.github.pulls()[0].labels, [""; 0]);
}

#[tokio::test]
async fn an_address_elsewhere_is_not_passed_on() {
    let world = World::start().await;
    let own = ensure(&world).await.url;
    let renamed = format!("{}/octo/renamed/pull/1", world.github.url);
    world.github.set_web_address(&renamed);
    assert_eq!(ensure(&world).await.url, renamed, "the control: another address of the host is passed on");
    for elsewhere in [
        "https://evil.example/octo/hello/pull/1".to_owned(),
        "javascript:alert(1)".to_owned(),
        format!("{}@evil.example/pull/1", world.github.url),
        format!("{}.evil.example/pull/1", world.github.url),
        format!("{}/octo/hello/pull/1\u{1b}[2J/1", world.github.url),
        format!("{}/login?to=https://evil.example/1", world.github.url),
        format!("{}/octo/hello/pull/2", world.github.url),
        String::new(),
    ] {
        world.github.set_web_address(&elsewhere);
        assert_eq!(ensure(&world).await.url, own, "{elsewhere}");
    }
}

#[tokio::test]
async fn a_revoked_token_of_an_app_is_replaced() {
    let world = World::start().await;
    let source = CredentialSource::open(&world.app_settings(), None).expect("the key is valid");
    let pull_requests = PullRequests::new(Arc::new(source));
    pull_requests.ensure(&world.order()).await.expect("it is made");
    world.github.revoke_tokens();
    pull_requests.ensure(&world.order()).await.expect("another token is accepted");
    assert_eq!(world.github.count(GitHubRoute::Token), 2);
    let refused = world.pull_requests().ensure(&world.order()).await.expect_err("there is no other token");
    assert!(refused.is_unauthenticated() && !refused.is_transient(), "{refused}");
}

#[tokio::test]
async fn without_a_credential_nothing_is_sent() {
    let world = World::start().await;
    let other = world.pull_requests().ensure(&order_at("https://gitlab.example")).await;
    assert!(matches!(other, Err(Error::OtherHost { .. })), "{other:?}");
    let source = CredentialSource::open(&settings_at(&world.github.url), None).expect("it is valid");
    let none = PullRequests::new(Arc::new(source)).ensure(&world.order()).await;
    assert!(matches!(none, Err(Error::NoCredential { .. })), "{none:?}");
    assert_eq!(world.github.exchanges().len(), 0);
}
