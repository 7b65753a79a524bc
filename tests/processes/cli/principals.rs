//! Tests `sluice principals`: a token is shown once, and lists say who may do what.

use std::fs;

use harness::{Outcome, World, canary};
use serde_json::json;

async fn principals(world: &World, arguments: &[&str]) -> Outcome {
    world.sluice().run(&[&["principals"], arguments].concat()).await
}

/// Adds a principal, or rotates its token, and returns the token.
async fn token(world: &World, arguments: &[&str]) -> String {
    let outcome = principals(world, arguments).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stderr.starts_with("this token is shown only now"), "{outcome:?}");
    let token = outcome.stdout.trim().to_owned();
    assert!(token.starts_with("slp_") && token.len() == 85, "{token}");
    canary::hand_out(&token);
    token
}

#[tokio::test]
async fn a_principals_token_is_shown_once() {
    let world = World::start().await;
    let first = token(&world, &["add", "ci", "--account", "acct-7"]).await;
    let repository = "https://git.example/acme/*";
    let limited =
        ["--role", "viewer", "--agent", "sandbox:agent", "--cost", "0.50", "--repository", repository];
    token(&world, &[&["add", "ann", "--account", "acct-8"][..], &limited].concat()).await;
    let second = token(&world, &["rotate", "ci"]).await;
    assert_ne!(first, second);
    assert_eq!(principals(&world, &["revoke", "ann"]).await.code, Some(0));
    let table = principals(&world, &["ls"]).await.stdout;
    let words: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        words[0],
        ["PRINCIPAL", "ACCOUNT", "ROLE", "AGENTS", "REPOSITORIES", "LAST", "USED", "STATE"],
        "{table}"
    );
    let ann = ["ann", "acct-8", "viewer", "sandbox:agent", repository, "never", "revoked"];
    assert_eq!(words[1][..7], ann, "{table}");
    assert_eq!(words[2], ["ci", "acct-7", "member", "all", "all", "never", "active"], "{table}");
    let listed = principals(&world, &["ls", "--json"]).await.result()["principals"].clone();
    assert_eq!(listed[0]["agents"], json!(["sandbox:agent"]), "{listed}");
    assert_eq!(listed[0]["repositories"], json!([repository]), "{listed}");
    assert_eq!(listed[0]["limits"], json!({ "cost_nanodollars": 500_000_000 }), "{listed}");
    assert_eq!((&listed[1]["role"], &listed[1]["limits"]), (&json!("member"), &json!({})), "{listed}");
    assert!(second.contains(listed[1]["key_id"].as_str().unwrap()), "{listed}");
    // A backup has the hash, and no token: the end of the world searches it.
    let backup = world.path().join("backup.ndjson");
    let backed_up = world.sluice().run(&["backup", backup.to_str().unwrap()]).await;
    assert_eq!(backed_up.code, Some(0), "{backed_up:?}");
    assert!(fs::read_to_string(&backup).unwrap().contains("acct-7"));
}

#[tokio::test]
async fn an_id_is_taken_for_ever() {
    let world = World::start().await;
    token(&world, &["add", "ci", "--account", "acct-7"]).await;
    let ci = ["add", "ci", "--account", "acct-9", "--json"];
    let taken = principals(&world, &ci).await;
    assert_eq!((taken.code, &taken.result()["error"]["code"]), (Some(2), &json!("principal_id_taken")));
    assert!(taken.stderr.contains("sluice principals rotate ci"), "{taken:?}");
    assert_eq!(principals(&world, &["revoke", "ci"]).await.code, Some(0));
    for arguments in [&ci[..], &["rotate", "ci"]] {
        let refused = principals(&world, arguments).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains("ci was revoked"), "{refused:?}");
    }
    for arguments in [["rotate", "bob"], ["revoke", "bob"]] {
        let unknown = principals(&world, &arguments).await;
        assert_eq!(unknown.code, Some(1), "{unknown:?}");
        assert!(unknown.stderr.contains("sluice principals ls"), "{unknown:?}");
    }
    for (arguments, said) in [
        (["add", "no id", "--account", "a"], "not a principal's id"),
        (["add", "bob", "--account", "a b"], "not an account id"),
        (["add", "bob", "--role", "root"], "viewer, member, operator, admin"),
        (["add", "bob", "--repository", "acme/app"], "begins with https://"),
    ] {
        let refused = principals(&world, &arguments).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(said), "{refused:?}");
    }
}
