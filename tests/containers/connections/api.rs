//! Tests `/api/v1/connections`: a principal has those of its account alone, and never their secrets.

use harness::{Agent, canary, served::Served};
use http::Method;
use serde_json::{Value, json};

use super::{Providers, REFRESH_TOKEN, TOKEN};

const PATH: &str = "/api/v1/connections";

async fn add(caller: &Agent, body: &Value) -> (u16, Value) {
    let answer = caller.request(Method::POST, PATH, body.to_string().into()).await.unwrap();
    (answer.status.as_u16(), answer.json())
}

async fn send(caller: &Agent, method: Method, path: &str) -> u16 {
    caller.request(method, path, String::new().into()).await.unwrap().status.as_u16()
}

#[tokio::test]
async fn a_principal_manages_its_accounts_connections() {
    let providers = Providers::start().await;
    let there = Served::with(&format!("\n{}", providers.settings)).await;
    let owner = there.of_role("owner", "acct-7", "member").await;
    let stranger = there.of_role("stranger", "acct-8", "member").await;
    let viewer = there.of_role("viewer", "acct-7", "viewer").await;
    let operator = there.of_role("boss", "acct-9", "operator").await;
    let body = json!({ "provider": "github", "scope": "acme/*", "secret": TOKEN });
    let (status, connection) = add(&owner, &body).await;
    assert_eq!((status, &connection["account"]), (201, &json!("acct-7")), "{connection}");
    let id = connection["id"].as_str().unwrap();
    let [one, test] = [format!("{PATH}/{id}"), format!("{PATH}/{id}/test")];
    for (caller, listed) in [(&owner, 1), (&stranger, 0), (&operator, 1)] {
        let list = caller.get(PATH).await.json()["connections"].as_array().unwrap().len();
        assert_eq!(list, listed);
    }
    assert_eq!(send(&viewer, Method::GET, PATH).await, 403, "a viewer has none of it");
    for (method, path) in [(Method::POST, &test), (Method::DELETE, &one)] {
        assert_eq!(send(&stranger, method, path).await, 404, "{path}");
    }
    assert_eq!(send(&owner, Method::POST, &test).await, 200);
    providers.github.revoke_tokens();
    let refused = owner.request(Method::POST, &test, String::new().into()).await.unwrap();
    assert_eq!((refused.status.as_u16(), &refused.json()["code"]), (409, &json!("connection_unusable")));
    let (status, taken) = add(&owner, &body).await;
    assert_eq!((status, &taken["code"]), (409, &json!("connection_exists")));
    let (status, foreign) =
        add(&stranger, &json!({ "account": "acct-7", "provider": "x", "secret": "t" })).await;
    assert_eq!((status, &foreign["code"]), (403, &json!("account_forbidden")), "{foreign}");
    let (status, replaced) =
        add(&owner, &json!({ "provider": "github", "scope": "acme/*", "secret": TOKEN, "replace": true }))
            .await;
    assert_eq!(status, 201, "{replaced}");
    assert_eq!(send(&owner, Method::DELETE, &one).await, 404, "the former one is gone");
    let one = format!("{PATH}/{}", replaced["id"].as_str().unwrap());
    let bound =
        there.token(&["bound", "--account", "acct-7", "--repository", "https://git.example/a/*"]).await;
    let bound = there.authorized(&bound);
    let (status, refused) =
        add(&bound, &json!({ "provider": "github", "scope": "acme/*", "secret": "t", "replace": true }))
            .await;
    assert_eq!((status, &refused["code"]), (403, &json!("forbidden")), "{refused}");
    assert_eq!(send(&bound, Method::DELETE, &one).await, 403);
    assert_eq!(send(&owner, Method::DELETE, &one).await, 204, "the control");
    there.end().await;
}

#[tokio::test]
async fn a_refresh_token_is_tested_over_the_api() {
    let providers = Providers::start().await;
    let there = Served::with(&format!("\n{}", providers.settings)).await;
    let owner = there.of_role("owner", "acct-7", "member").await;
    let test_of = async |scope: &str| {
        let oauth = json!({ "provider": "linear", "kind": "oauth", "scope": scope, "secret": REFRESH_TOKEN });
        let (status, connection) = add(&owner, &oauth).await;
        assert_eq!(status, 201, "{connection}");
        format!("{PATH}/{}/test", connection["id"].as_str().unwrap())
    };
    let [first, second] = [test_of("a").await, test_of("b").await];
    let test = async |path: &str| owner.request(Method::POST, path, String::new().into()).await.unwrap();
    providers.oauth.script([harness::oauth::OAuthFault::Status(503, json!({}))]);
    for _ in 0..2 {
        let away = test(&first).await;
        assert_eq!((away.status.as_u16(), &away.json()["code"]), (502, &json!("provider_unavailable")));
    }
    for was_asked in [true, false] {
        let tested = test(&second).await;
        assert_eq!((tested.status.as_u16(), &tested.json()["asked"]), (200, &json!(was_asked)));
        assert!(tested.json()["expiresAt"].is_string(), "{}", tested.text());
    }
    assert_eq!(providers.oauth.requests().len(), 2, "each is refreshed once");
    let metrics = there.api.get("/metrics").await.text();
    for line in [
        "sluice_connection_refreshes_total{outcome=\"refreshed\"} 1",
        "sluice_connection_refreshes_total{outcome=\"unavailable\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    there.end().await;
}

#[tokio::test]
async fn a_bad_connection_shows_no_secret() {
    let providers = Providers::start().await;
    let there = Served::with(&format!("\n{}", providers.settings)).await;
    let owner = there.of_role("owner", "acct-7", "member").await;
    let secret = "canary-of-a-refused-secret";
    canary::hand_out(secret);
    for (status, body) in [
        (400, json!({ "provider": "github", "secret": format!("{secret}\r\nx-evil: 1") })),
        (400, json!({ "provider": "github", "secret": format!("{secret} b") })),
        (400, json!({ "provider": "github", "secret": "" })),
        (400, json!({ "provider": "github", "secret": [secret] })),
        (400, json!({ "provider": "github", "secret": { "a": secret } })),
        (400, json!({ "provider": "github", "kind": "github_app", "secret": secret })),
        (400, json!({ "provider": "github", "secret": secret, "appId": 1 })),
        (400, json!({ "provider": "GitHub", "secret": "t" })),
        (400, json!({ "provider": "github", "secret": "t", "scope": "a*b" })),
        (400, json!({ "provider": "github", "secret": "t", "tokenUrl": "https://evil.example" })),
        (409, json!({ "provider": "elsewhere", "kind": "oauth", "secret": secret })),
        (413, json!({ "provider": "github", "secret": "a".repeat(70_000) })),
    ] {
        let (found, problem) = add(&owner, &body).await;
        assert_eq!(found, status, "{problem}");
        assert!(!problem.to_string().contains(secret), "{problem}");
    }
    let (status, _connection) = add(&owner, &json!({ "provider": "github", "secret": secret })).await;
    assert_eq!(status, 201, "the control");
    there.end().await;
}
