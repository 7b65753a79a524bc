//! attacks tests that no row, no answer and no account gets a credential that it should not.

use platform_core::connection::ConnectionKind;
use runner_connections::{CredentialError, SealFault};
use serde_json::json;

use crate::{
    oauth_double::{OAuthDouble, OAuthFault},
    world::{World, account, linear, place, provider, scope},
};

async fn of_github(world: &World, name: &str) -> Result<String, CredentialError> {
    let broker = world.broker();
    let credential = broker.credential(&account(name), &provider("github"), &scope("o/r")).await;
    credential.map(|credential| credential.token.expose().to_owned())
}

#[tokio::test]
async fn a_secret_moved_to_another_account_stays_shut() {
    let world = World::start().await;
    world.add(place("victim", "github", "*"), ConnectionKind::Token, "of-victim").await;
    world.add(place("thief", "github", "*"), ConnectionKind::Token, "of-thief").await;
    for theft in [
        "UPDATE connections SET sealed = (SELECT sealed FROM connections WHERE account = 'victim') WHERE account = 'thief'",
        "DELETE FROM connections WHERE account = 'thief'; UPDATE connections SET account = 'thief' WHERE account = 'victim'",
    ] {
        world.sql(theft).await;
        let error = of_github(&world, "thief").await.unwrap_err();
        assert!(matches!(error, CredentialError::Unopened { fault: SealFault::Altered, .. }), "{error}");
    }
    world.sql("UPDATE connections SET account = 'victim'").await;
    assert_eq!(of_github(&world, "victim").await.unwrap(), "of-victim", "the control");
}

#[tokio::test]
async fn an_altered_row_stays_shut() {
    let world = World::start().await;
    world.add(place("a", "github", "o/r"), ConnectionKind::Token, "secret").await;
    for change in [
        "SET sealed = substr(sealed, 1, 20)",
        "SET sealed = ''",
        "SET sealed = 'no base64'",
        "SET scope = '*'",
        "SET provider = 'github', kind = '{\"kind\":\"oauth\"}'",
    ] {
        world.sql("CREATE TABLE kept AS SELECT * FROM connections").await;
        world.sql(&format!("UPDATE connections {change}")).await;
        let error = of_github(&world, "a").await.unwrap_err();
        assert!(matches!(error, CredentialError::Unopened { .. }), "{change}: {error}");
        world
            .sql("DELETE FROM connections; INSERT INTO connections SELECT * FROM kept; DROP TABLE kept")
            .await;
        assert_eq!(of_github(&world, "a").await.unwrap(), "secret", "the control");
    }
}

#[tokio::test]
async fn no_redirect_leads_a_refresh_token_away() {
    let world = World::start().await;
    world.oauth_connection().await;
    let elsewhere = OAuthDouble::start("any").await;
    world.oauth.script([OAuthFault::Redirect(elsewhere.url.clone())]);
    let error = linear(&world.broker()).await.unwrap_err();
    assert!(error.to_string().contains("redirects"), "{error}");
    assert!(elsewhere.requests().is_empty());
    assert!(linear(&world.broker()).await.is_ok(), "the control");
}

#[tokio::test]
async fn an_endless_answer_is_not_read() {
    let world = World::start().await;
    world.oauth_connection().await;
    world.oauth.script([OAuthFault::Huge(100 << 20)]);
    let error = linear(&world.broker()).await.unwrap_err();
    assert!(error.to_string().contains("more than 64 KiB"), "{error}");
    assert!(linear(&world.broker()).await.is_ok(), "the control");
}

#[tokio::test]
async fn a_token_cannot_add_a_header() {
    let world = World::start().await;
    world.oauth_connection().await;
    world.oauth.keep_refresh_token();
    world.oauth.script([OAuthFault::Token("canary\r\nx-evil: 1")]);
    let error = linear(&world.broker()).await.unwrap_err();
    assert_eq!(error.tool_code().word(), "provider_unavailable", "{error}");
    assert!(!format!("{error} {error:?}").contains("canary"));
    assert!(linear(&world.broker()).await.is_ok(), "the control");
}

#[tokio::test]
async fn no_error_repeats_a_providers_words() {
    let world = World::start().await;
    world.oauth_connection().await;
    let broker = world.broker();
    for (status, body) in [
        (400, json!({ "error": "canary<script>", "error_description": "canary" })),
        (400, json!("canary")),
        (500, json!({ "message": "canary-refresh-0" })),
        (200, json!({ "access_token": ["canary"] })),
    ] {
        world.oauth.script([OAuthFault::Status(status, body)]);
        let error = linear(&broker).await.unwrap_err();
        let said = format!("{error} {error:?} {}", error.message_for_agent());
        assert!(!said.contains("canary"), "{said}");
    }
}

#[tokio::test]
async fn no_word_of_an_agent_chooses_an_account() {
    let world = World::start().await;
    world.add(place("victim", "github", "*"), ConnectionKind::Token, "of-victim").await;
    for name in ["Victim", "victim/", "victi", "victim.", "*"] {
        let Ok(account) = platform_core::id::AccountId::parse(name) else { continue };
        let credential = world.broker().credential(&account, &provider("github"), &scope("o/r")).await;
        assert_eq!(credential.unwrap_err().tool_code().word(), "connection_missing", "{name}");
    }
    assert_eq!(of_github(&world, "victim").await.unwrap(), "of-victim", "the control");
}

#[tokio::test]
async fn an_answer_with_a_credential_is_counted() {
    let world = World::start().await;
    let metrics = std::sync::Arc::<runner_telemetry::metrics::Metrics>::default();
    let broker = world.broker_that_counts(std::sync::Arc::clone(&metrics));
    for count in 0..2 {
        let rendered = metrics.render().await;
        assert!(rendered.contains(&format!("\nsluice_credential_echoes_total {count}\n")), "{rendered}");
        broker.credential_echoed();
    }
}
