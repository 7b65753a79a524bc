//! kinds tests each kind of connection, and the choice among several.

use std::process::Command;

use platform_core::{connection::ConnectionKind, secret::Secret};
use runner_connections::{AddError, TestedBy, WantedConnection};
use runner_store::{AtSamePlace, Error as StoreError, UnixMillis};

use crate::{
    github_double::GitHubRoute,
    world::{GITHUB_TOKEN, REFRESH_TOKEN, World, account, linear, place, provider, scope},
};

/// Returns a private key in PEM.
fn app_key() -> String {
    let output = Command::new("openssl").args(["genrsa", "2048"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

async fn token(world: &World, account_text: &str, scope_text: &str) -> Result<String, &'static str> {
    let broker = world.broker();
    let credential = broker.credential(&account(account_text), &provider("github"), &scope(scope_text)).await;
    credential
        .map(|credential| credential.token.expose().to_owned())
        .map_err(|error| error.tool_code().word())
}

#[tokio::test]
async fn the_longest_scope_is_used() {
    let world = World::start().await;
    for (scope, secret) in
        [("*", "all"), ("acme/*", "of-acme"), ("acme/app", "of-app"), ("acme/app*", "star")]
    {
        world.add(place("a", "github", scope), ConnectionKind::Token, secret).await;
    }
    for (scope, expected) in
        [("acme/app", "of-app"), ("acme/apple", "star"), ("acme/web", "of-acme"), ("other/app", "all")]
    {
        assert_eq!(token(&world, "a", scope).await.as_deref(), Ok(expected), "{scope}");
    }
    assert_eq!(token(&world, "b", "acme/app").await, Err("connection_missing"), "another account has none");
}

#[tokio::test]
async fn a_token_that_has_ended_is_not_used() {
    let world = World::start().await;
    let add = async |expires: i64| {
        let wanted = WantedConnection {
            place: place("a", "github", "*"),
            kind: ConnectionKind::Token,
            secret: Secret::new("t".to_owned()),
            expires: Some(UnixMillis(expires)),
        };
        world.broker().add(wanted, AtSamePlace::Replace).await.unwrap();
    };
    add(1).await;
    assert_eq!(token(&world, "a", "x").await, Err("connection_expired"));
    add(i64::MAX).await;
    assert_eq!(token(&world, "a", "x").await.as_deref(), Ok("t"), "the control");
}

#[tokio::test]
async fn an_installation_gives_tokens() {
    let world = World::start().await;
    let kind = ConnectionKind::GitHubApp { app_id: 7, installation_id: 42 };
    let stored = world.add(place("a", "github", "*"), kind, &app_key()).await;
    let first = token(&world, "a", "octo/hello").await.unwrap();
    assert!(first.starts_with("ghs_"), "{first}");
    let tested = world.broker().test(&stored).await.unwrap();
    assert!(tested.tested_by == TestedBy::Provider && tested.expires.is_some());
    assert_eq!(world.github.count(GitHubRoute::Installation), 0, "the installation is known");
    let kind = ConnectionKind::GitHubApp { app_id: 7, installation_id: 43 };
    world.add(place("a", "github", "*"), kind, &app_key()).await;
    assert_eq!(token(&world, "a", "octo/hello").await, Err("provider_refused"), "another installation");
}

#[tokio::test]
async fn a_test_asks_the_provider() {
    let world = World::start().await;
    let github = world.add(place("a", "github", "*"), ConnectionKind::Token, GITHUB_TOKEN).await;
    let broker = world.broker();
    assert_eq!(broker.test(&github).await.unwrap().tested_by, TestedBy::Provider);
    assert_eq!(world.github.count(GitHubRoute::RateLimit), 1);
    world.github.revoke_tokens();
    let error = broker.test(&github).await.unwrap_err();
    assert_eq!(error.tool_code().word(), "provider_refused");
    assert!(!format!("{error} {error:?}").contains(GITHUB_TOKEN), "{error}");
    let oauth = world.oauth_connection().await;
    let tested = broker.test(&oauth).await.unwrap();
    assert!(tested.tested_by == TestedBy::Provider && tested.expires.is_some());
    assert_eq!(world.oauth.requests().len(), 1);
    assert!(linear(&broker).await.is_ok());
    assert_eq!(world.oauth.requests().len(), 1, "the test's token is used");
    let other = world.add(place("a", "elsewhere", "*"), ConnectionKind::Token, "t").await;
    assert_eq!(broker.test(&other).await.unwrap().tested_by, TestedBy::Opening);
}

#[tokio::test]
async fn only_a_secret_of_its_kind_is_added() {
    let world = World::start().await;
    let app = ConnectionKind::GitHubApp { app_id: 7, installation_id: 42 };
    let long = "a".repeat(20_000);
    for (provider_name, kind, secret, said) in [
        ("github", ConnectionKind::Token, " \n", "is empty"),
        ("github", ConnectionKind::Token, "canary\nx-evil: 1", "is not a token"),
        ("github", ConnectionKind::Token, "canary token", "is not a token"),
        ("github", ConnectionKind::Token, long.as_str(), "is not a token"),
        ("github", app.clone(), "canary", "not a private RSA key"),
        ("linear", app.clone(), "canary", "is at provider `github`"),
        ("elsewhere", ConnectionKind::OAuth, "canary", "[connections.providers.elsewhere]"),
    ] {
        let wanted = WantedConnection {
            place: place("a", provider_name, "*"),
            kind,
            secret: Secret::new(secret.to_owned()),
            expires: None,
        };
        let error = world.broker().add(wanted, AtSamePlace::Keep).await.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    }
    world.add(place("a", "linear", "*"), ConnectionKind::OAuth, &format!(" {REFRESH_TOKEN}\n")).await;
    assert!(linear(&world.broker()).await.is_ok(), "the control: blanks around it are not part of it");
}

#[tokio::test]
async fn an_account_has_one_connection_at_a_place() {
    let world = World::start().await;
    world.add(place("a", "github", "*"), ConnectionKind::Token, "first").await;
    let wanted = || WantedConnection {
        place: place("a", "github", "*"),
        kind: ConnectionKind::Token,
        secret: Secret::new("second".to_owned()),
        expires: None,
    };
    let error = world.broker().add(wanted(), AtSamePlace::Keep).await.unwrap_err();
    assert!(matches!(error, AddError::Store(StoreError::ConnectionExists { .. })), "{error}");
    assert_eq!(token(&world, "a", "x").await.as_deref(), Ok("first"));
    world.broker().add(wanted(), AtSamePlace::Replace).await.unwrap();
    assert_eq!(token(&world, "a", "x").await.as_deref(), Ok("second"));
    let stored = world.stored().await;
    assert!(world.store.remove_connection(&stored.id).await.unwrap());
    assert_eq!(token(&world, "a", "x").await, Err("connection_missing"), "a removed one is used no longer");
}
