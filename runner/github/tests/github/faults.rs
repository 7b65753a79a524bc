//! faults lets GitHub refuse, fail, redirect, hang and be away.

use std::{sync::Arc, time::Duration};

use platform_runtime::{report, retry::Transient as _};
use runner_github::{CredentialSource, Error, PullRequests};
use tokio::net::TcpListener;

use crate::{
    double::{GitHubDouble, GitHubFault, GitHubRoute},
    world::{World, order_at, secret, settings_at},
};

/// Longest time for a request to a GitHub that is slow.
const SHORT_TIMEOUT: Duration = Duration::from_millis(200);
/// Larger than any answer.
const TOO_LONG: usize = 9 << 20;

fn status(status: u16, message: &'static str, headers: &[(&'static str, &str)]) -> GitHubFault {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    GitHubFault::Status(status, message, headers)
}

/// Orders a pull request with a fault on `route`, and shows that the next order succeeds.
async fn failure(route: GitHubRoute, fault: GitHubFault) -> Error {
    let world = World::start().await;
    world.github.script(route, [fault]);
    let pull_requests = world.pull_requests();
    let failure = pull_requests.ensure(&world.order()).await.expect_err("the fault is met");
    pull_requests.ensure(&world.order()).await.expect("the control: without the fault it is made");
    assert_eq!(world.github.pulls().len(), 1);
    failure
}

#[tokio::test]
async fn each_answer_says_whether_to_try_again() {
    let second = Duration::from_secs;
    let limited = "You have exceeded a secondary rate limit";
    for (fault, is_transient, after, advice) in [
        (status(401, "Bad credentials", &[]), false, None, "renew the token"),
        (status(403, "Resource not accessible by integration", &[]), false, None, "read and write contents"),
        (status(404, "Not Found", &[]), false, None, "check the repository's name"),
        (status(410, "Gone", &[]), false, None, "github.api_url"),
        (status(422, "Validation Failed", &[]), false, None, "both branches"),
        (status(429, "Too many", &[("retry-after", "7")]), true, Some(second(7)), "again"),
        (status(403, limited, &[("retry-after", "60")]), true, Some(second(60)), "again"),
        (status(403, limited, &[]), true, Some(second(60)), "again"),
        (status(500, "Server Error", &[]), true, None, "again"),
        (status(502, "", &[]), true, None, "again"),
        (status(503, "", &[("retry-after", "2")]), true, Some(second(2)), "again"),
    ] {
        for route in [GitHubRoute::FindPulls, GitHubRoute::MakePull] {
            let failure = failure(route, fault.clone()).await;
            assert_eq!((failure.is_transient(), failure.retry_after()), (is_transient, after), "{failure}");
            assert!(failure.to_string().contains(advice), "{failure}");
        }
    }
}

#[tokio::test]
async fn a_slow_github_is_given_up() {
    let world = World::start().await;
    let hurried = |source: CredentialSource| source.with_answer_timeout(SHORT_TIMEOUT);
    let hurried = PullRequests::new(Arc::new(hurried(world.credentials())));
    world.github.script(GitHubRoute::FindPulls, [GitHubFault::Slow(10 * SHORT_TIMEOUT)]);
    let failure = hurried.ensure(&world.order()).await.expect_err("it is slow");
    assert!(matches!(failure, Error::Slow { .. }) && failure.is_transient(), "{failure}");
    world.github.script(GitHubRoute::FindPulls, [GitHubFault::Slow(SHORT_TIMEOUT)]);
    world.pull_requests().ensure(&world.order()).await.expect("the control: it may be slow for a while");
}

#[tokio::test]
async fn a_broken_connection_may_be_tried_again() {
    let failure = failure(GitHubRoute::MakePull, GitHubFault::Away).await;
    assert!(matches!(failure, Error::Unreachable { .. }) && failure.is_transient(), "{failure}");
}

#[tokio::test]
async fn a_github_that_is_away_may_come_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it has an address"));
    drop(listener);
    let source = CredentialSource::open(&settings_at(&url), Some(secret("t0ken"))).expect("it is valid");
    let failure = PullRequests::new(Arc::new(source)).ensure(&order_at(&url)).await;
    let failure = failure.expect_err("no server listens");
    assert!(matches!(failure, Error::Unreachable { .. }) && failure.is_transient(), "{failure}");
    assert!(report::chain(&failure).contains("refused"), "{}", report::chain(&failure));
}

#[tokio::test]
async fn an_answer_in_another_form_is_refused() {
    let long = Box::leak("x".repeat(TOO_LONG).into_boxed_str());
    for fault in [GitHubFault::Garbage, status(200, "not a list", &[]), status(500, long, &[])] {
        let failure = failure(GitHubRoute::FindPulls, fault).await;
        assert!(matches!(failure, Error::Unexpected { .. }) && !failure.is_transient(), "{failure}");
    }
}

#[tokio::test]
async fn no_redirect_leads_a_token_elsewhere() {
    let elsewhere = GitHubDouble::start("t0ken").await;
    let place = elsewhere.url.trim_start_matches("http:");
    let pulls = "/api/v3/repos/octo/hello/pulls?state=open";
    for location in [
        format!("{}{pulls}", elsewhere.url),
        format!("{place}{pulls}"),
        "https://evil.example/".to_owned(),
        "repos/relative".to_owned(),
        String::new(),
    ] {
        for code in [301, 302, 303, 307, 308] {
            let fault = status(code, "Moved", &[("location", &location)]);
            let failure = failure(GitHubRoute::FindPulls, fault).await;
            assert!(matches!(failure, Error::Redirected { .. }) && !failure.is_transient(), "{failure}");
        }
    }
    assert_eq!(elsewhere.exchanges().len(), 0);
}

#[tokio::test]
async fn a_redirect_within_the_host_is_followed() {
    let world = World::start().await;
    let order = world.order();
    let pulls = "/api/v3/repos/octo/renamed/pulls";
    let moved = |location: &str| status(301, "Moved", &[("location", location)]);
    world.github.script(GitHubRoute::FindPulls, [moved(&format!("{}{pulls}", world.github.url))]);
    world.github.script(GitHubRoute::MakePull, [status(307, "Moved", &[("location", pulls)])]);
    world.pull_requests().ensure(&order).await.expect("it is made");
    let paths = world.github.exchanges().iter().map(|exchange| exchange.path.clone()).collect::<Vec<_>>();
    let [old, new] = ["octo/hello", "octo/renamed"].map(|name| format!("/repos/{name}/pulls"));
    assert_eq!(paths[..4], [old.clone(), new.clone(), old, new]);
    assert_eq!(world.github.exchanges()[3].body["title"], "Add a parser", "the body is sent again");
    let forever = (0..9).map(|_| moved(pulls));
    world.github.script(GitHubRoute::FindPulls, forever);
    let circle = world.pull_requests().ensure(&order).await;
    assert!(matches!(circle, Err(Error::Redirected { .. })), "{circle:?}");
}
