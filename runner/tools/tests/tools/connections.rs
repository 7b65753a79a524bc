//! connections tests that a tool of GitHub uses the credential of the calling account, if it has one.

use platform_core::{
    connection::{ConnectionKind, ConnectionProvider, ConnectionScope},
    host_tools::header,
    id::AccountId,
    secret::Secret,
};
use runner_connections::WantedConnection;
use runner_store::{AtSamePlace, ConnectionPlace, UnixMillis};
use serde_json::{Value, json};

use crate::{
    double::{GitHubRoute, StoredIssue},
    world::{Answer, RawCall, TOKEN, World},
};

/// Token of account `acct-1`.
const OWN_TOKEN: &str = "ghp-canary-own";

async fn world() -> World {
    let world = World::start().await;
    world.github.add_issue(StoredIssue {
        repository: "octo/hello".to_owned(),
        number: 7,
        title: "a bug".to_owned(),
        ..StoredIssue::default()
    });
    world
}

/// Adds a connection, and returns its id.
async fn add(world: &World, scope: &str, secret: &str) -> String {
    add_until(world, scope, secret, None).await
}

/// Adds a connection with a token that ends at a time.
async fn add_until(world: &World, scope: &str, secret: &str, expires: Option<UnixMillis>) -> String {
    let place = ConnectionPlace {
        account: AccountId::parse("acct-1").unwrap(),
        provider: ConnectionProvider::parse("github").unwrap(),
        scope: ConnectionScope::parse(scope).unwrap(),
    };
    let secret = Secret::new(secret.to_owned());
    let wanted = WantedConnection { place, kind: ConnectionKind::Token, secret, expires };
    world.parts.connections.add(wanted, AtSamePlace::Replace).await.unwrap().id.to_string()
}

async fn read(world: &World, id: &str) -> Answer {
    let answer = world.send(RawCall::exec("github__read_issue", id, &json!({ "number": 7 }))).await;
    assert!(!answer.body.to_string().contains(OWN_TOKEN), "{answer:?}");
    answer
}

/// Returns the token of the last request that read an issue.
fn used(world: &World) -> String {
    let exchanges = world.github.exchanges();
    let last = exchanges.iter().rfind(|exchange| exchange.route == Some(GitHubRoute::ReadIssue)).unwrap();
    last.headers["authorization"].trim_start_matches("Bearer ").to_owned()
}

#[tokio::test]
async fn a_tool_uses_the_accounts_own_credential() {
    let world = world().await;
    assert_eq!(read(&world, "c1").await.body["result"]["title"], json!("a bug"));
    assert_eq!(used(&world), TOKEN, "the control: without a connection, the operator's");
    world.github.accept(OWN_TOKEN);
    add(&world, "other/*", OWN_TOKEN).await;
    let of_operator = read(&world, "c2").await;
    assert_eq!(used(&world), TOKEN, "a connection for other repositories is not used");
    assert_eq!(of_operator.connection(), "", "and no record says so");
    let own = add(&world, "octo/*", OWN_TOKEN).await;
    let of_account = read(&world, "c3").await;
    assert_eq!(of_account.body["result"]["title"], json!("a bug"));
    assert_eq!((used(&world).as_str(), of_account.connection()), (OWN_TOKEN, own.as_str()));
    assert_eq!(world.ended_call("c2").await.connection, None);
    assert_eq!(world.ended_call("c3").await.connection, Some(own));
    world.run("r2", "acct-2").await;
    let body =
        json!({ "runId": "r2", "callId": "c1", "tool": "github__read_issue", "args": { "number": 7 } });
    let call = RawCall::of("/tool/exec", "github__read_issue", body.to_string().into_bytes());
    let call = call.with(header::RUN, "r2").with(header::ACCOUNT, "acct-2");
    assert_eq!(world.send(call).await.status, 200);
    assert_eq!(used(&world), TOKEN, "another account does not get it");
}

#[tokio::test]
async fn a_call_that_is_not_granted_opens_nothing() {
    let world = world().await;
    add(&world, "*", OWN_TOKEN).await;
    let call = RawCall::exec("github__read_issue", "c1", &json!({ "number": 7 }));
    let refused = world.send(call.with(header::GRANTED, "core__get_current_time")).await;
    assert_eq!(refused.code(), "policy_denied", "{refused:?}");
    let stored = world.store.connections(&runner_store::AccountScope::All).await.unwrap();
    assert_eq!(stored[0].used, None);
    world.github.accept(OWN_TOKEN);
    assert_eq!(read(&world, "c2").await.body["ok"], Value::Bool(true), "the control");
    let stored = world.store.connections(&runner_store::AccountScope::All).await.unwrap();
    assert!(stored[0].used.is_some());
}

#[tokio::test]
async fn a_broken_connection_has_no_substitute() {
    let world = world().await;
    add(&world, "*", OWN_TOKEN).await;
    let refused = read(&world, "c1").await;
    assert_eq!(refused.code(), "tool_failed", "GitHub does not take it: {refused:?}");
    assert_eq!(used(&world), OWN_TOKEN);
    add_until(&world, "*", OWN_TOKEN, Some(UnixMillis(1))).await;
    let sent = world.github.exchanges().len();
    let refused = read(&world, "c2").await;
    assert_eq!((refused.code(), refused.outcome()), ("connection_expired", "denied"), "{refused:?}");
    assert_eq!((refused.connection(), world.github.exchanges().len()), ("", sent), "nothing ran");
    let calls = world.store.tool_calls(&crate::world::id("r1")).await.unwrap();
    assert!(!format!("{calls:?}").contains("canary"), "{calls:?}");
}
