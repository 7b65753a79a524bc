//! Tests `sluice connections`.

use std::fs;

use harness::{World, private_file};
use serde_json::json;

use super::{Providers, REFRESH_TOKEN, TOKEN, added, connections};

#[tokio::test]
async fn a_connection_is_added_tested_and_removed() {
    let providers = Providers::start().await;
    let world = World::with(&providers.settings).await;
    let id = added(&world, &providers, TOKEN, &["--provider", "github", "--scope", "acme/*"]).await;
    let listed = connections(&world, &["ls", "--json"]).await.result()["connections"][0].clone();
    assert_eq!((&listed["id"], &listed["state"]), (&json!(id), &json!("active")), "{listed}");
    assert_eq!((&listed["kind"], &listed["scope"]), (&json!("token"), &json!("acme/*")), "{listed}");
    let tested = connections(&world, &["test", &id]).await;
    assert_eq!(tested.code, Some(0), "{tested:?}");
    assert!(tested.stdout.contains("github takes it"), "{tested:?}");
    providers.github.revoke_tokens();
    let refused = connections(&world, &["test", &id, "--json"]).await;
    assert_eq!((refused.code, &refused.result()["error"]["code"]), (Some(1), &json!("provider_refused")));
    let table = connections(&world, &["ls", "--account", "acct-7"]).await.stdout;
    assert!(table.contains(&id) && table.contains("acme/*"), "{table}");
    let other = connections(&world, &["ls", "--account", "acct-8"]).await.stdout;
    assert!(!other.contains(&id), "{other}");
    assert_eq!(connections(&world, &["rm", &id]).await.code, Some(0));
    let gone = connections(&world, &["rm", &id]).await;
    assert_eq!(gone.code, Some(1), "{gone:?}");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_refresh_token_is_used_and_renewed() {
    let providers = Providers::start().await;
    let world = World::with(&providers.settings).await;
    let add = ["--provider", "linear", "--kind", "oauth"];
    let id = added(&world, &providers, REFRESH_TOKEN, &add).await;
    let tested = connections(&world, &["test", &id, "--json"]).await;
    assert_eq!(tested.code, Some(0), "{tested:?}");
    assert!(tested.result()["expires_ms"].is_i64(), "{tested:?}");
    let again = connections(&world, &["test", &id]).await;
    assert!(again.stdout.contains("refreshed less than 30 s ago"), "{again:?}");
    assert_eq!(providers.oauth.requests().len(), 1);
    assert_eq!(connections(&world, &["rm", &id]).await.code, Some(0));
    let id = added(&world, &providers, &providers.oauth.refresh_token(), &add).await;
    providers.oauth.revoke();
    let refused = connections(&world, &["test", &id]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let table = connections(&world, &["ls"]).await.stdout;
    assert!(table.contains("needs authorisation: add it again with --replace"), "{table}");
    let again = [&add[..], &["--replace"]].concat();
    let renewed = added(&world, &providers, "revoked", &again).await;
    assert_eq!(connections(&world, &["test", &renewed]).await.code, Some(0), "the control");
    world.assert_nothing_left().await;
}

/// A command that asks a server uses a connection that was never refreshed, and says why it cannot.
#[tokio::test]
async fn tools_are_reviewed_with_a_new_connection() {
    let providers = Providers::start().await;
    // No server listens there: what counts is the credential for it.
    let server = "[tools.servers.linear]\nurl = 'https://127.0.0.1:1/mcp'\ntools = ['search']\nconnection = 'linear'\n";
    let world = World::with(&format!("{}{server}", providers.settings)).await;
    added(&world, &providers, REFRESH_TOKEN, &["--provider", "linear", "--kind", "oauth"]).await;
    for command in [&["ls"][..], &["accept", "linear"]] {
        let shown = world.sluice().run(&[&["tools"], command, &["--account", "acct-7"]].concat()).await;
        assert!(!format!("{shown:?}").contains("store"), "{shown:?}");
    }
    assert_eq!(providers.oauth.requests().len(), 1, "the connection was refreshed");
    let nothing = world.sluice().run(&["tools", "accept", "linear", "--account", "acct-8"]).await;
    let said = "account acct-8 has no connection at linear for *: add one with";
    assert!(nothing.stdout.contains(said), "an operator sees the cause: {nothing:?}");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn keys_are_replaced_and_seal_again() {
    let providers = Providers::start().await;
    let world = World::with(&providers.settings).await;
    let id = added(&world, &providers, TOKEN, &["--provider", "github"]).await;
    let keys = providers.dir.join("keys");
    let old = fs::read_to_string(&keys).unwrap();
    let new = connections(&world, &["keygen"]).await.stdout;
    private_file(&keys, &format!("{}\n{old}", new.trim()));
    let resealed = connections(&world, &["reseal", "--json"]).await;
    assert_eq!(resealed.result(), json!({ "resealed": 1, "current": 0, "skipped": [] }), "{resealed:?}");
    private_file(&keys, new.trim());
    assert_eq!(connections(&world, &["test", &id]).await.code, Some(0), "the former key is not needed");
    private_file(&keys, old.trim());
    let shut = connections(&world, &["test", &id]).await;
    assert_eq!(shut.code, Some(1), "{shut:?}");
    assert!(shut.stderr.contains("connections.key_file does not have"), "{shut:?}");
    assert_eq!(connections(&world, &["reseal"]).await.code, Some(1));
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn wrong_uses_of_connections_name_the_fix() {
    let providers = Providers::start().await;
    let world = World::with(&providers.settings).await;
    let file = providers.file(TOKEN);
    let add = |more: &[&'static str]| {
        let all = ["add", "--account", "acct-7", "--provider", "github", "--file"].map(str::to_owned);
        let more = more.iter().map(|word| (*word).to_owned());
        all.into_iter().chain([file.clone()]).chain(more).collect::<Vec<_>>()
    };
    let run = async |world: &World, arguments: &[String]| {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        connections(world, &arguments).await
    };
    assert_eq!(run(&world, &add(&[])).await.code, Some(0), "the control");
    let cases: [(&[&'static str], &str); 7] = [
        (&[], "already"),
        (&["--kind", "github-app"], "--app-id and --installation-id"),
        (&["--kind", "oauth"], "[connections.providers.github]"),
        (&["--app-id", "1", "--installation-id", "2", "--replace"], "not a private RSA key"),
        (&["--kind", "oauth", "--expires", "2030-01-01T00:00:00Z"], "--expires is for tokens"),
        (&["--expires", "soon"], "2027-01-31"),
        (&["--scope", "a*b"], "a scope"),
    ];
    for (more, said) in cases {
        let refused = run(&world, &add(more)).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
    }
    let keys = providers.dir.join("keys");
    private_file(&keys, "no key");
    let bad = connections(&world, &["reseal"]).await;
    assert_eq!(bad.code, Some(2), "{bad:?}");
    assert!(bad.stderr.contains("connections.key_file") && bad.stderr.contains("keygen"), "{bad:?}");
    world.reconfigure("[connections]\nkey_file = '", "[connections]\nrefresh_before = '1m' # '");
    let off = connections(&world, &["reseal"]).await;
    assert_eq!(off.code, Some(2), "{off:?}");
    assert!(off.stderr.contains("set connections.key_file"), "{off:?}");
    world.assert_nothing_left().await;
}
