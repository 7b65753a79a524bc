//! description compares what client and double say with GitHub's own description of its API.

use std::{fs, path::Path, process::Command, sync::Arc};

use runner_github::{CredentialSource, PullRequests};
use serde_json::{Value, json};

use crate::{
    double::{GitHubExchange, GitHubFault, GitHubRoute},
    world::World,
};

/// Returns what contradicts the description, for each exchange.
fn contradictions(exchanges: &[GitHubExchange]) -> Vec<Vec<String>> {
    let file = tempfile::NamedTempFile::new().expect("it is made");
    let lines: String = exchanges.iter().map(GitHubExchange::to_line).collect();
    fs::write(file.path(), lines).expect("it is written");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut check = Command::new(repository.join("scripts/github-openapi.sh"));
    let output = check.arg("check").arg(file.path()).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let lines = String::from_utf8(output.stdout).expect("it is text");
    let found: Vec<Vec<String>> =
        lines.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    assert_eq!(found.len(), exchanges.len(), "each exchange is checked");
    found
}

/// Makes pull requests in every way that the double knows.
async fn exchanges() -> Vec<GitHubExchange> {
    let world = World::start().await;
    let app = CredentialSource::open(&world.app_settings(), None).expect("the key is valid");
    let app = PullRequests::new(Arc::new(app));
    app.ensure(&world.order()).await.expect("it is made");
    world.github.close_pulls();
    world.github.refuse_drafts();
    world.github.script(GitHubRoute::MakePull, [GitHubFault::Raced, GitHubFault::Raced]);
    app.ensure(&world.order()).await.expect("it is found");
    let own = world.pull_requests();
    for status in [401, 403, 404, 422, 429, 500] {
        let fault = GitHubFault::Status(status, "Refused", Vec::new());
        world.github.script(GitHubRoute::FindPulls, [fault]);
        own.ensure(&world.order()).await.expect_err("it is refused");
    }
    world.github.exchanges()
}

#[tokio::test]
async fn all_exchanges_follow_githubs_description() {
    let exchanges = exchanges().await;
    let routes: std::collections::BTreeSet<_> =
        exchanges.iter().filter_map(|exchange| exchange.route).collect();
    assert_eq!(routes.len(), 5, "every route is used");
    let statuses: std::collections::BTreeSet<u16> =
        exchanges.iter().map(|exchange| exchange.status).collect();
    assert_eq!(statuses, [200, 201, 401, 403, 404, 422, 429, 500].into());
    let found = contradictions(&exchanges);
    for (exchange, problems) in exchanges.iter().zip(&found) {
        assert_eq!(problems, &[""; 0], "{} {} {}", exchange.method, exchange.path, exchange.status);
    }
}

#[tokio::test]
async fn a_wrong_exchange_contradicts_it() {
    type Spoil = fn(&mut GitHubExchange);
    let spoils: [(GitHubRoute, Spoil); 10] = [
        (GitHubRoute::FindPulls, |exchange| exchange.query.push_str("&branch=x")),
        (GitHubRoute::FindPulls, |exchange| exchange.query = "state=opened".to_owned()),
        (GitHubRoute::FindPulls, |exchange| exchange.path.push_str("/open")),
        (GitHubRoute::FindPulls, |exchange| exchange.answer = json!({ "items": [] })),
        (GitHubRoute::MakePull, |exchange| exchange.body["head"] = Value::Null),
        (GitHubRoute::MakePull, |exchange| exchange.body["labels"] = json!(["a"])),
        (GitHubRoute::MakePull, |exchange| exchange.answer["number"] = json!("1")),
        (GitHubRoute::MakePull, |exchange| exchange.status = 200),
        (GitHubRoute::Token, |exchange| exchange.body["permissions"]["contents"] = json!("all")),
        (GitHubRoute::Label, |exchange| exchange.body = json!({ "names": ["a"] })),
    ];
    let exchanges = exchanges().await;
    let spoiled = spoils.map(|(route, spoil)| {
        let is_good = |exchange: &&GitHubExchange| exchange.route == Some(route) && exchange.status < 300;
        let mut exchange = exchanges.iter().find(is_good).expect("the route is used").clone();
        spoil(&mut exchange);
        exchange
    });
    for (at, problems) in contradictions(&spoiled).iter().enumerate() {
        assert!(!problems.is_empty(), "{at}: {}", spoiled[at].to_line());
    }
}
