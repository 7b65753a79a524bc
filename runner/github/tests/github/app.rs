//! app gets tokens of a GitHub App, and verifies its claims with openssl.

use std::{sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use platform_runtime::settings::{GitHub, GitHubApp};
use runner_github::{CredentialSource, Error, Permission};
use serde_json::{Value, json};

use crate::{
    double::{GitHubExchange, GitHubFault, GitHubRoute},
    world::{APP, World, argument, openssl},
};

fn open(world: &World) -> CredentialSource {
    CredentialSource::open(&world.app_settings(), None).expect("the key is valid")
}

async fn token(source: &CredentialSource, world: &World, permission: Permission) -> String {
    let credential = source.token_for(&world.repository(), permission).await.expect("it is given");
    credential.expect("an App is configured").token.expose().to_owned()
}

fn bearer(exchange: &GitHubExchange) -> &str {
    exchange.headers["authorization"].strip_prefix("Bearer ").expect("it is a bearer")
}

#[tokio::test]
async fn an_app_gets_a_token_of_one_repository() {
    let world = World::start().await;
    let source = open(&world);
    for permission in [Permission::Fetch, Permission::Push] {
        assert!(token(&source, &world, permission).await.starts_with("ghs_"));
    }
    let exchanges = world.github.exchanges();
    let paths: Vec<&str> = exchanges.iter().map(|exchange| exchange.path.as_str()).collect();
    let [find, mint] = ["/repos/octo/hello/installation", "/app/installations/42/access_tokens"];
    assert_eq!(paths, [find, mint, find, mint]);
    assert_eq!(
        exchanges[1].body,
        json!({ "repositories": ["hello"], "permissions": { "contents": "read" } })
    );
    let push = json!({ "contents": "write", "pull_requests": "write" });
    assert_eq!(exchanges[3].body, json!({ "repositories": ["hello"], "permissions": push }));
}

#[tokio::test]
async fn a_claim_has_a_valid_signature() {
    let world = World::start().await;
    let source = open(&world);
    token(&source, &world, Permission::Fetch).await;
    let exchanges = world.github.exchanges();
    let claim = bearer(&exchanges[0]);
    let (signed, signature) = claim.rsplit_once('.').expect("it has a signature");
    let decode = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).expect("it is base64");
    let parts: Vec<Value> =
        signed.split('.').map(|part| serde_json::from_slice(&decode(part)).expect("it is JSON")).collect();
    assert_eq!(parts[0], json!({ "alg": "RS256", "typ": "JWT" }));
    assert_eq!(parts[1]["iss"], json!(APP.to_string()));
    let [begins, ends] = ["iat", "exp"].map(|name| parts[1][name].as_u64().expect("it is a time"));
    assert_eq!(ends - begins, 600, "GitHub takes ten minutes at most");
    // The key is replaced: the file is read for each claim.
    let key = world.app_settings().app.expect("there is one").key_file;
    token(&source, &world, Permission::Push).await;
    let exchanges = world.github.exchanges();
    let public = world.secret("public", &openssl(&["rsa", "-in", argument(&key), "-pubout"]));
    let verify = |claim: &str| {
        let (signed, signature) = claim.rsplit_once('.').expect("it has a signature");
        let signed = world.secret("signed", signed.as_bytes());
        let signature = world.secret("signature", &decode(signature));
        let mut openssl = std::process::Command::new("openssl");
        openssl.args(["dgst", "-sha256", "-verify", argument(&public)]);
        openssl.args(["-signature", argument(&signature), argument(&signed)]);
        openssl.output().expect("openssl is installed").status.success()
    };
    let last = bearer(exchanges.last().expect("it asked"));
    assert!(verify(last));
    assert!(!verify(claim), "the control: {signature} is of another key");
}

#[tokio::test]
async fn requests_at_once_get_one_token() {
    let world = World::start().await;
    let source = Arc::new(open(&world));
    world.github.script(GitHubRoute::Token, [GitHubFault::Slow(Duration::from_millis(50))]);
    let requests = (0..8).map(|_| {
        let source = Arc::clone(&source);
        let repository = world.repository();
        platform_runtime::task::spawn("request", async move {
            let credential = source.token_for(&repository, Permission::Push).await.expect("it is given");
            credential.expect("an App is configured").token.expose().to_owned()
        })
    });
    let requests: Vec<_> = requests.collect();
    let mut tokens = Vec::new();
    for request in requests {
        tokens.push(request.await.expect("it ends"));
    }
    tokens.dedup();
    assert_eq!((tokens.len(), world.github.count(GitHubRoute::Token)), (1, 1));
    assert_ne!(token(&source, &world, Permission::Fetch).await, tokens[0], "another use has another token");
}

#[tokio::test]
async fn tokens_are_replaced_before_their_end() {
    for (lifetime, minted) in [(301 + 30, 1), (299, 3)] {
        let world = World::start().await;
        let source = open(&world);
        world.github.set_token_lifetime(Duration::from_secs(lifetime));
        for _ in 0..3 {
            token(&source, &world, Permission::Fetch).await;
        }
        assert_eq!(world.github.count(GitHubRoute::Token), minted, "tokens of {lifetime} s");
    }
}

#[tokio::test]
async fn a_failed_request_is_not_kept() {
    let world = World::start().await;
    let source = open(&world);
    let missing = GitHubFault::Status(404, "Not Found", Vec::new());
    world.github.script(GitHubRoute::Installation, [missing]);
    let refused = source.token_for(&world.repository(), Permission::Push).await.expect_err("it is missing");
    assert!(refused.to_string().contains("installed on it"), "{refused}");
    token(&source, &world, Permission::Push).await;
}

#[tokio::test]
async fn keys_in_either_form_are_read() {
    let world = World::start().await;
    let with_key = |key_file| {
        let app = Some(GitHubApp { id: APP, key_file });
        CredentialSource::open(&GitHub { app, ..world.settings() }, None)
    };
    assert!(with_key(world.key("pkcs1", &["genrsa", "-traditional", "2048"])).is_ok());
    assert!(with_key(world.key("pkcs8", &["genpkey", "-algorithm", "RSA"])).is_ok());
    let curve = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];
    for bad in [
        world.key("curve", &curve),
        world.key("short", &["genrsa", "-traditional", "1024"]),
        world.secret("text", b"no key"),
    ] {
        let refused = with_key(bad).expect_err("it is not a key of an App");
        assert!(matches!(refused, Error::BadSecret { setting: "github.app_key_file", .. }), "{refused}");
    }
    let refused = with_key("/nowhere/key".into()).expect_err("it is missing");
    assert!(matches!(refused, Error::SecretFile { .. }), "{refused}");
}
