//! Follows advice about an upstream that does not answer: it names commands that find the cause and its fix.

use std::path::Path;

use bench::upstream::ScriptedUpstream;
use harness::{
    Agent, KeyRejectingUpstream, World,
    advice::{follow, quoted},
    eventually, grant,
    shared::{register_shared, share, token},
};
use platform_core::{name::header::RUN_TOKEN, refusal::Refusal};

use super::advised;

pub(super) const FOLLOWED: &[Refusal] = &[
    Refusal::UpstreamUnreachable,
    Refusal::UpstreamUnavailable,
    Refusal::UpstreamReset,
    Refusal::UpstreamFailed,
    Refusal::UpstreamBusy,
    Refusal::UpstreamAuth,
];

/// Follows the advice about `refusal`, and returns all that the commands print. `sluice doctor` starts no container: this
/// Docker does not answer.
async fn look(world: &World, refusal: Refusal) -> String {
    let mut said = String::new();
    for command in advised(world, refusal).await {
        let outcome = follow(world.sluice(), &command, &[]).await;
        said += &format!("$ {command}\n{}{}", outcome.stdout, outcome.stderr);
    }
    said
}

/// The fix that `sluice doctor` prints is "start it".
#[tokio::test]
async fn an_upstream_that_is_down_is_found_and_started() {
    let down = ScriptedUpstream::start().await.unwrap();
    let (address, base_url) = (down.address(), down.base_url());
    down.stop().await;
    let world = World::in_front_of(ScriptedUpstream::start().await.unwrap(), &base_url, "").await;
    world.use_docker_on(Path::new("/nowhere/docker.sock"));
    let run = world.run("r1", "acct-1").await;
    let code = async || run.agent.chat("fake").await.json()["error"]["code"].clone();
    assert_eq!(code().await, Refusal::UpstreamUnreachable.code(), "control");
    let said = look(&world, Refusal::UpstreamUnreachable).await;
    assert!(said.contains("broken   upstream: ") && said.contains("fix: start it, or set"), "{said}");
    let refused_at_once = || async { code().await == Refusal::UpstreamUnavailable.code() };
    eventually("the proxy tries it no more", refused_at_once, |refused| *refused).await;
    let said = look(&world, Refusal::UpstreamUnavailable).await;
    assert!(said.contains("broken   upstream: ") && said.contains("fix: start it, or set"), "{said}");
    let _started = ScriptedUpstream::start_on(address).await.unwrap();
    let status = || async { run.agent.chat("fake").await.status.as_u16() };
    eventually("calls pass", status, |status| *status == 200).await;
}

/// No command of an operator mends a single call: the advice shows that the upstream answers others. Only a gateway is told
/// that the upstream is busy; other agents receive the upstream's own words.
#[tokio::test]
async fn a_single_failure_is_told_from_an_outage() {
    let mut world = World::start().await;
    share(&mut world, "gateways").await;
    world.use_docker_on(Path::new("/nowhere/docker.sock"));
    let address = register_shared(&world, grant("r1", "acct-1")).await;
    let agent = Agent::over_tcp(address).with_header(RUN_TOKEN, &token("r1", 0, "new", 3600));
    for (model, refusal) in [
        ("fake-cut0", Refusal::UpstreamReset),
        ("fake-status302", Refusal::UpstreamFailed),
        ("fake-status503", Refusal::UpstreamBusy),
    ] {
        drop(agent.stream(model).await.until_break().await);
        let said = look(&world, refusal).await;
        assert!(said.contains("ok       upstream: "), "{model}: {said}");
    }
}

/// The upstream takes no key, so the last step alone is missing: a key that it takes.
#[tokio::test]
async fn a_refused_key_is_found_and_read_again() {
    let rejecting = KeyRejectingUpstream::start().await;
    let world = World::in_front_of(ScriptedUpstream::start().await.unwrap(), &rejecting.base_url(), "").await;
    world.use_docker_on(Path::new("/nowhere/docker.sock"));
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 502, "control");
    let said = look(&world, Refusal::UpstreamAuth).await;
    let key_file = world.path().join("key").display().to_string();
    assert_eq!(said.matches(&format!("refuses the key in {key_file}")).count(), 2, "{said}");
    let fixes: String = said.lines().filter(|line| line.contains("write the right key")).collect();
    let commands = quoted(&fixes, "sluice");
    assert_eq!(commands.len(), 2, "{said}");
    for command in commands {
        let outcome = follow(world.sluice(), &command, &[]).await;
        assert_eq!(outcome.code, Some(0), "{command}: {outcome:?}");
    }
}
