//! refreshes tests that an access token is got once, in time, and is never lost.

use std::time::Duration;

use futures_util::future::join_all;
use platform_core::connection::{ConnectionKind, ConnectionState};
use platform_runtime::retry::Transient as _;
use runner_connections::{CredentialError, SealingKeys, TestedBy};
use serde_json::json;

use crate::{
    oauth_double::OAuthFault,
    world::{REFRESH_TOKEN, World, linear, place},
};

#[tokio::test]
async fn a_hundred_calls_refresh_once() {
    let world = World::start().await;
    world.oauth_connection().await;
    world.oauth.script([OAuthFault::Slow(Duration::from_millis(200))]);
    // Two brokers: two processes share the right to refresh through the store.
    let brokers = [world.broker(), world.broker()];
    let calls = (0..100).map(|call| linear(&brokers[call % 2]));
    let tokens: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert!(tokens.iter().all(|credential| credential.token.expose() == "canary-access-1"), "{tokens:?}");
    assert_eq!(world.oauth.requests().len(), 1);
    assert_eq!(linear(&brokers[0]).await.unwrap().token.expose(), "canary-access-1", "it is kept");
    assert_eq!(world.oauth.requests().len(), 1);
    let request = &world.oauth.requests()[0];
    assert_eq!(
        request.form,
        format!("grant_type=refresh_token&refresh_token={REFRESH_TOKEN}&client_id=client")
    );
}

#[tokio::test]
async fn an_expiring_token_is_refreshed_once() {
    let world = World::start().await;
    world.oauth_connection().await;
    let broker = world.broker();
    world.oauth.set_lifetime(3600);
    assert_eq!(linear(&broker).await.unwrap().token.expose(), "canary-access-1");
    // It ends within `refresh_before`, and is still valid.
    world.sql("UPDATE connections SET expires = expires - 3590000, refreshed = refreshed - 3590000").await;
    let tokens = join_all((0..100).map(|_| linear(&broker))).await;
    assert!(tokens.iter().all(|token| token.as_ref().unwrap().token.expose() == "canary-access-2"));
    assert_eq!(world.oauth.requests().len(), 2);
}

#[tokio::test]
async fn a_new_refresh_token_is_stored_first() {
    let world = World::start().await;
    world.oauth_connection().await;
    let caller = world.broker();
    world.oauth.script([OAuthFault::Slow(Duration::from_millis(300))]);
    // The caller leaves before the answer.
    let left = tokio::time::timeout(Duration::from_millis(100), linear(&caller)).await;
    assert!(left.is_err(), "{left:?}");
    let later = world.broker();
    assert_eq!(linear(&later).await.unwrap().token.expose(), "canary-access-1");
    assert_eq!(world.oauth.requests().len(), 1, "what the provider gave was kept");
    assert_eq!(world.oauth.refresh_token(), "canary-refresh-1");
    world.sql("UPDATE connections SET expires = 1").await;
    assert_eq!(linear(&later).await.unwrap().token.expose(), "canary-access-2", "with the new refresh token");
}

#[tokio::test]
async fn a_kept_refresh_token_is_used_again() {
    let world = World::start().await;
    world.oauth_connection().await;
    world.oauth.keep_refresh_token();
    let broker = world.broker();
    for number in 1..=2 {
        assert_eq!(linear(&broker).await.unwrap().token.expose(), format!("canary-access-{number}"));
        world.sql("UPDATE connections SET expires = 1").await;
    }
}

#[tokio::test]
async fn a_refused_grant_needs_authorisation() {
    let world = World::start().await;
    world.oauth_connection().await;
    world.oauth.revoke();
    let broker = world.broker();
    for requests in [1, 1] {
        let error = linear(&broker).await.unwrap_err();
        assert_eq!(error.tool_code().word(), "connection_needs_authorisation", "{error}");
        assert!(error.to_string().contains("--replace"), "{error}");
        assert_eq!(world.oauth.requests().len(), requests, "it is not asked again");
    }
    assert_eq!(world.stored().await.state, ConnectionState::NeedsAuthorisation);
    let refresh = world.oauth.refresh_token();
    world.add(place("a", "linear", "*"), ConnectionKind::OAuth, &refresh).await;
    assert!(linear(&broker).await.is_ok(), "added again, it is active");
}

#[tokio::test]
async fn a_failed_refresh_leaves_the_connection() {
    let world = World::start().await;
    world.oauth_connection().await;
    let broker = world.broker();
    for (fault, code) in [
        (OAuthFault::Status(503, json!({})), "provider_unavailable"),
        (OAuthFault::Status(401, json!({ "error": "invalid_client" })), "provider_refused"),
    ] {
        world.oauth.script([fault]);
        assert_eq!(linear(&broker).await.unwrap_err().tool_code().word(), code);
        assert_eq!(world.stored().await.state, ConnectionState::Active);
    }
    assert!(linear(&broker).await.is_ok(), "the control");
}

#[tokio::test]
async fn a_valid_token_outlasts_a_failed_refresh() {
    let world = World::start().await;
    world.oauth_connection().await;
    let broker = world.broker();
    assert!(linear(&broker).await.is_ok());
    world.sql("UPDATE connections SET expires = expires - 3590000, refreshed = refreshed - 3590000").await;
    world.oauth.script([OAuthFault::Status(503, json!({}))]);
    assert_eq!(linear(&broker).await.unwrap().token.expose(), "canary-access-1");
    world.sql("UPDATE connections SET expires = 1").await;
    world.oauth.script([OAuthFault::Status(503, json!({}))]);
    assert!(linear(&broker).await.unwrap_err().is_transient(), "an expired one does not");
}

#[tokio::test]
async fn a_silent_provider_is_left_in_time() {
    let mut world = World::start().await;
    world.more = "refresh_timeout = '1s'".to_owned();
    world.oauth_connection().await;
    let broker = world.broker();
    world.oauth.script([OAuthFault::Slow(Duration::from_secs(60))]);
    let errors = join_all((0..20).map(|_| linear(&broker))).await;
    for error in errors {
        let error = error.unwrap_err();
        assert!(
            matches!(&error, CredentialError::ProviderUnavailable { problem, .. } if problem.contains("1 s")),
            "{error}"
        );
    }
    assert_eq!(world.oauth.requests().len(), 1, "they waited for one refresh");
    assert!(linear(&broker).await.is_ok(), "the control");
}

#[tokio::test]
async fn the_right_outlasts_what_is_done_with_it() {
    let mut world = World::start().await;
    world.more = "refresh_timeout = '5s'".to_owned();
    world.oauth_connection().await;
    world.oauth.script([OAuthFault::Slow(Duration::from_secs(1))]);
    let broker = world.broker();
    let (refreshed, during) = tokio::join!(linear(&broker), async {
        let asked = async {
            while world.oauth.requests().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), asked).await.expect("the provider is asked");
        world.stored().await
    });
    assert!(refreshed.is_ok(), "{refreshed:?}");
    let left = during.read.until(during.refresh_until.unwrap());
    // The provider has five seconds, and two minutes are for a store that is away.
    assert!(left > Duration::from_secs(125), "{left:?}");
}

#[tokio::test]
async fn a_refresh_beside_a_reseal_gives_a_new_token() {
    let world = World::start().await;
    let old = SealingKeys::generate();
    world.write_keys(&[&old]);
    world.oauth_connection().await;
    assert!(linear(&world.broker()).await.is_ok());
    world.sql("UPDATE connections SET expires = 1").await;
    let read = world.stored().await;
    // Between the reading of the row and the claim, the row is sealed with another key.
    world.write_keys(&[&SealingKeys::generate(), &old]);
    let broker = world.broker();
    assert_eq!(broker.reseal().await.unwrap().resealed, 1);
    let tested = broker.test(&read).await.unwrap();
    assert_eq!((tested.tested_by, world.oauth.requests().len()), (TestedBy::Provider, 2));
    assert!(tested.expires.unwrap() > read.read, "it has not expired: {tested:?}");
    assert_eq!(linear(&broker).await.unwrap().token.expose(), "canary-access-2");
}

#[tokio::test]
async fn tests_refresh_once_in_a_while() {
    let world = World::start().await;
    let stored = world.oauth_connection().await;
    let broker = world.broker();
    world.oauth.script([OAuthFault::Status(503, json!({}))]);
    assert!(broker.test(&stored).await.is_err());
    let early = broker.test(&stored).await.unwrap_err();
    assert!(early.is_transient() && early.to_string().contains("less than 30 s ago"), "{early}");
    assert_eq!(world.oauth.requests().len(), 1, "it is not asked again");
    let other = world.broker();
    assert_eq!(other.test(&stored).await.unwrap().tested_by, TestedBy::Provider, "the control");
    for broker in [&broker, &other] {
        let tested = broker.test(&world.stored().await).await.unwrap();
        assert_eq!((tested.tested_by, world.oauth.requests().len()), (TestedBy::FormerRefresh, 2));
    }
    // Later, it is asked again.
    world.sql("UPDATE connections SET refreshed = refreshed - 60000").await;
    assert_eq!(world.broker().test(&world.stored().await).await.unwrap().tested_by, TestedBy::Provider);
    assert_eq!(world.oauth.requests().len(), 3);
}

#[tokio::test]
async fn a_dead_process_gives_up_its_right() {
    let world = World::start().await;
    world.oauth_connection().await;
    world.sql("UPDATE connections SET refresh_owner = 'dead', refresh_until = 1").await;
    assert!(linear(&world.broker()).await.is_ok());
    let mut slow = World::start().await;
    slow.more = "refresh_timeout = '1s'".to_owned();
    slow.oauth_connection().await;
    slow.sql("UPDATE connections SET refresh_owner = 'other', refresh_until = 99999999999999").await;
    assert!(linear(&slow.broker()).await.unwrap_err().is_transient(), "the right of a live one holds");
    assert_eq!(slow.oauth.requests().len(), 0);
}
