//! keys tests what a store without its keys shows, and that keys are replaced.

use std::fs;

use platform_core::connection::ConnectionKind;
use runner_connections::SealingKeys;
use runner_store::Onto;

use crate::world::{World, account, linear, place, provider, scope};

/// Returns the files of the store that contain `text`.
fn files_with(world: &World, text: &str) -> Vec<String> {
    let files = fs::read_dir(world.path().join("private")).unwrap().map(|entry| entry.unwrap().path());
    let with = |path: &std::path::PathBuf| {
        let bytes = fs::read(path).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    files.filter(with).map(|path| path.display().to_string()).collect()
}

#[tokio::test]
async fn a_stolen_store_reveals_nothing() {
    let world = World::start().await;
    world.oauth_connection().await;
    world.add(place("a", "github", "*"), ConnectionKind::Token, "canary-of-a-token").await;
    assert_eq!(linear(&world.broker()).await.unwrap().token.expose(), "canary-access-1");
    let backup = world.path().join("private/backup.ndjson");
    world.store.backup(&backup).await.unwrap();
    assert!(!files_with(&world, "linear").is_empty(), "the control: the search finds what is there");
    assert!(fs::read_to_string(&backup).unwrap().contains("linear"), "the control");
    assert_eq!(files_with(&world, "canary"), [""; 0]);
    // With other keys, nothing opens.
    world.write_keys(&[&SealingKeys::generate()]);
    let error = linear(&world.broker()).await.unwrap_err();
    assert_eq!(error.tool_code().word(), "connection_unopened");
    assert!(error.to_string().contains("connections.key_file"), "{error}");
}

#[tokio::test]
async fn a_restored_store_opens_with_its_keys() {
    let world = World::start().await;
    world.add(place("a", "github", "*"), ConnectionKind::Token, "canary-of-a-token").await;
    let backup = world.path().join("backup.ndjson");
    world.store.backup(&backup).await.unwrap();
    world.store.restore(&backup, Onto::Anything).await.unwrap();
    let credential =
        world.broker().credential(&account("a"), &provider("github"), &scope("o/r")).await.unwrap();
    assert_eq!(credential.token.expose(), "canary-of-a-token");
}

#[tokio::test]
async fn keys_are_replaced_without_a_gap() {
    let world = World::start().await;
    let [old, new] = [SealingKeys::generate(), SealingKeys::generate()];
    world.write_keys(&[&old]);
    world.oauth_connection().await;
    world.add(place("b", "github", "*"), ConnectionKind::Token, "canary-of-a-token").await;
    let before = world.store.connections(&runner_store::AccountScope::All).await.unwrap();
    world.write_keys(&[&new, &old]);
    let broker = world.broker();
    assert!(linear(&broker).await.is_ok(), "the former key opens");
    let done = broker.reseal().await.unwrap();
    // The refresh has sealed one with the new key.
    assert_eq!((done.resealed, done.current, done.skipped.len()), (1, 1, 0));
    let after = world.store.connections(&runner_store::AccountScope::All).await.unwrap();
    assert!(before.iter().zip(&after).all(|(before, after)| before.sealed.key_id != after.sealed.key_id));
    assert_eq!(broker.reseal().await.unwrap().current, 2, "done once, it is done");
    world.write_keys(&[&new]);
    let broker = world.broker();
    assert!(linear(&broker).await.is_ok(), "the former key is not needed");
    world.write_keys(&[&old]);
    let done = world.broker().reseal().await.unwrap();
    assert_eq!(done.skipped.len(), 2, "the control: what does not open is named");
}

#[tokio::test]
async fn a_broker_without_keys_says_so() {
    let world = World::start().await;
    world.oauth_connection().await;
    fs::remove_file(world.key_file()).unwrap();
    let broker = world.broker();
    let error = linear(&broker).await.unwrap_err();
    assert_eq!(error.tool_code().word(), "connection_unopened");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("connections.key_file") && cause.contains("keygen"), "{cause}");
}
