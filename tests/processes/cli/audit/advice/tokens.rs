//! Follows advice about run tokens on the shared listener.

use std::fs::{self, File};

use harness::{
    Agent, World,
    advice::follow,
    grant, private_file,
    shared::{SECRETS, register_shared, share, token},
};
use platform_core::{name::header::RUN_TOKEN, refusal::Refusal};

use super::advised;

pub(super) const FOLLOWED: &[Refusal] = &[
    Refusal::TokenMissing,
    Refusal::TokenMalformed,
    Refusal::TokenExpired,
    Refusal::TokenInvalid,
    Refusal::RunUnknown,
    Refusal::Unattributed,
];

/// Follows the advice about `refusal`. Commands read `sent` on standard input. Returns the token that one of them printed.
async fn follow_all(world: &World, refusal: Refusal, sent: &str) -> Option<String> {
    let mut minted = None;
    let file = world.path().join("sent");
    for command in advised(world, refusal).await {
        private_file(&file, sent);
        let sluice = world.sluice().stdin(File::open(&file).unwrap());
        let outcome = follow(sluice, &command, &[("RUN", "r1")]).await;
        fs::remove_file(&file).unwrap();
        if command.starts_with("sluice token inspect") {
            // It says of a token that does not hold why.
            let reason = refusal.code();
            assert!(outcome.code == Some(1) && outcome.stdout.contains(reason), "{command}: {outcome:?}");
            continue;
        }
        assert_eq!(outcome.code, Some(0), "{command}: {outcome:?}");
        if command.starts_with("sluice token mint") {
            minted = Some(outcome.stdout.trim().to_owned());
        }
    }
    minted
}

#[tokio::test]
async fn an_advised_token_lets_calls_pass() {
    for (serves, sent, refusal) in [
        ("clients", None, Refusal::TokenMissing),
        ("clients", Some("nonsense".to_owned()), Refusal::TokenMalformed),
        ("clients", Some(token("r1", 0, "new", -3600)), Refusal::TokenExpired),
        ("gateways", None, Refusal::Unattributed),
    ] {
        let mut world = World::start().await;
        share(&mut world, serves).await;
        let address = register_shared(&world, grant("r1", "acct-1")).await;
        let agent = Agent::over_tcp(address);
        let refused = match &sent {
            Some(sent) => agent.with_header(RUN_TOKEN, sent).chat("fake").await,
            None => agent.chat("fake").await,
        };
        assert_ne!(refused.status, 200, "control: {refusal:?}");
        let minted = follow_all(&world, refusal, sent.as_deref().unwrap_or_default()).await.unwrap();
        let answered = Agent::over_tcp(address).with_header(RUN_TOKEN, &minted).chat("fake").await;
        assert_eq!(answered.status, 200, "{refusal:?}: {}", answered.text());
    }
}

/// The file has a secret that the proxy has not read yet.
#[tokio::test]
async fn an_advised_reload_takes_the_new_secret() {
    let mut world = World::start().await;
    share(&mut world, "clients").await;
    let address = register_shared(&world, grant("r1", "acct-1")).await;
    let newest = token("r1", 0, "newest", 3600);
    let agent = Agent::over_tcp(address).with_header(RUN_TOKEN, &newest);
    assert_ne!(agent.chat("fake").await.status, 200, "control");
    follow_all(&world, Refusal::TokenInvalid, &newest).await;
    assert_ne!(agent.chat("fake").await.status, 200, "control: no file has the secret yet");
    private_file(&world.path().join("tokens"), &format!("newest:canary-5d20e8b1-newest\n{SECRETS}"));
    let commands = advised(&world, Refusal::TokenInvalid).await;
    let reload = commands.iter().find(|command| command.ends_with("reload")).unwrap();
    assert_eq!(follow(world.sluice(), reload, &[]).await.code, Some(0));
    assert_eq!(agent.chat("fake").await.status, 200);
}

/// The command lists the runs that a token may be for.
#[tokio::test]
async fn advice_of_an_unknown_run_lists_open_ones() {
    let mut world = World::start().await;
    share(&mut world, "clients").await;
    let address = register_shared(&world, grant("r1", "acct-1")).await;
    let of_run = |run: &str| Agent::over_tcp(address).with_header(RUN_TOKEN, &token(run, 0, "new", 3600));
    assert_ne!(of_run("r2").chat("fake").await.status, 200, "control");
    for command in advised(&world, Refusal::RunUnknown).await {
        let outcome = follow(world.sluice(), &command, &[]).await;
        assert_eq!(outcome.code, Some(0), "{command}: {outcome:?}");
        assert!(outcome.stdout.contains("r1") && !outcome.stdout.contains("r2"), "{outcome:?}");
    }
    assert_eq!(of_run("r1").chat("fake").await.status, 200);
}
