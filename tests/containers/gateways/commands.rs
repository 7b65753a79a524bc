//! Tests `sluice gateway` without a gateway: it names what is wrong, and makes nothing.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use harness::{
    Outcome, Up, World,
    docker::{containers_of, docker},
    eventually,
    eventually::PATIENCE,
    eventually::eventually_within,
};
use platform_core::name::label;
use platform_runtime::lock::Lock;
use rustix::process::Signal;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};

const IMAGE: &str = "sluicegate/sandbox-runtime:latest";

/// Starts a world with a gateway here, and one elsewhere with a token that every user can read.
async fn world() -> World {
    let world = World::with("[gateways.here]\n").await;
    let token = world.path().join("token");
    fs::write(&token, "a-token\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let there = format!(
        "[gateways.here]\n[gateways.there]\nurl = 'ws://127.0.0.1:9'\ntoken_file = '{}'\n",
        token.display()
    );
    world.reconfigure("[gateways.here]\n", &there);
    world.reconfigure("[proxy]\n", "[proxy]\nlisten = '127.0.0.1:4199'\n");
    world
}

fn codes(outcome: &Outcome, at: usize) -> Vec<String> {
    let all: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"));
    let findings = all["gateways"][at]["findings"].as_array().unwrap().clone();
    findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn gateway_mistakes_are_named_with_their_fix() {
    let world = world().await;
    for (words, code, told) in [
        (&["gateway", "up", "none"][..], 2, "there is no [gateways.none]; there are: here, there"),
        (&["gateway", "check", "none"], 2, "there is no [gateways.none]"),
        (&["gateway", "up", "there"], 2, "does not run here but at ws://127.0.0.1:9"),
        (&["gateway", "down", "there"], 2, "does not run here"),
        (&["gateway", "pair", "there"], 2, "`device_key_file`"),
    ] {
        let outcome = world.sluice().run(words).await;
        assert_eq!(outcome.code, Some(code), "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(told), "{words:?}: {outcome:?}");
    }
    let listed = world.sluice().run(&["gateway", "ls"]).await;
    let rows: Vec<Vec<&str>> = listed.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["here", "down", "here", "any", "8", "trace"], "{listed:?}");
    assert_eq!(rows[2], ["there", "down", "ws://127.0.0.1:9", "any", "8", "trace"], "{listed:?}");

    let checked = world.sluice().run(&["gateway", "check", "--json"]).await;
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert_eq!(codes(&checked, 0), ["gateway_unavailable", "secret_exposed"]);
    assert_eq!(codes(&checked, 1), ["gateway_unavailable", "secret_exposed"]);
    assert!(checked.stdout.contains("chmod o="), "{checked:?}");
    let doctor = world.sluice().run(&["doctor"]).await;
    assert!(doctor.stdout.contains("here is down, there is down"), "{doctor:?}");
    world.assert_nothing_left().await;
}

/// A command that was killed is not waited for.
#[tokio::test]
async fn gateway_commands_wait_for_each_other() {
    let world = world().await;
    let dir = world.path().join("gateways/here");
    fs::create_dir_all(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    let mut other = tokio::process::Command::new("flock");
    let other = other.arg("--no-fork").arg(&dir).args(["sleep", "1000"]).kill_on_drop(true).spawn();
    let mut other = other.unwrap();
    eventually("the other has its lock", async || Lock::attempt(&dir).unwrap().is_none(), |has| *has).await;

    let mut down = world.sluice().spawn(&["gateway", "down", "here", "--purge"]);
    let mut told = BufReader::new(down.stderr.take().unwrap()).lines();
    let line = told.next_line().await.unwrap().unwrap();
    assert!(line.contains("another command is working on gateway here"), "{line}");
    assert_eq!(down.try_wait().unwrap(), None, "it waits");

    other.kill().await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, down.wait()).await.expect("it goes on");
    assert!(ended.unwrap().success(), "{:?}", told.next_line().await);
    assert!(!dir.exists());
    // The control: with no other command at work the command reports none.
    let alone = world.sluice().run(&["gateway", "down", "here", "--purge"]).await;
    assert_eq!((alone.code, alone.stderr.as_str()), (Some(0), ""), "{alone:?}");
}

/// Starts a container that `sluice` takes for the gateway's, which only sleeps.
async fn asleep(world: &World) -> String {
    let name = format!("sluice-{}-gateway-here", world.installation());
    let label = format!("{}={}", label::INSTALLATION, world.installation());
    let rest = ["--network", "none", "--label", &label, "--entrypoint", "sleep", IMAGE, "1000"];
    docker(&[&["run", "--detach", "--name", &name], &rest[..]].concat()).await;
    name
}

/// A gateway writes too much on a file system without a quota; the worker that watches it ends it.
#[tokio::test]
async fn a_gateway_over_its_disk_limit_is_stopped() {
    let mut world = World::with("[gateways.here]\ndisk = '16MiB'\n").await;
    world.reconfigure("[sandbox]\n", "[sandbox]\nworkspaces = 'directory'\n");
    assert!(world.stop_proxy().await);
    let name = asleep(&world).await;
    let gateway = world.path().join("gateways/here");
    let state = gateway.join(format!("disk/{:032x}/tree/state", 0));
    fs::create_dir_all(&state).unwrap();
    fs::set_permissions(&gateway, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(state.join("some"), vec![1; 8 << 20]).unwrap();
    let up = Up::start(world.sluice().log_to(&world.path().join("up.log"))).await;
    let log = || fs::read_to_string(world.path().join("up.log")).unwrap();
    // The control: below the limit the gateway is left alone.
    let checked = world.sluice().run(&["gateway", "check", "here", "--json"]).await;
    assert!(!codes(&checked, 0).contains(&"disk_full".to_owned()), "{checked:?}");
    assert_eq!(docker(&["inspect", "--format", "{{.State.Running}}", &name]).await, "true");

    fs::write(state.join("more"), vec![1; 9 << 20]).unwrap();
    let there = async || containers_of(&world.installation()).await;
    let left = eventually_within(Duration::from_secs(30), "it is ended", there, Vec::is_empty).await;
    assert!(left.is_empty(), "{left:?} {}", log());
    assert!(log().contains("its workspace grew beyond 16 MiB"), "{}", log());
    let checked = world.sluice().run(&["gateway", "check", "here", "--json"]).await;
    assert!(codes(&checked, 0).contains(&"disk_full".to_owned()), "{checked:?}");
    let purged = world.sluice().run(&["gateway", "down", "here", "--purge"]).await;
    assert!(!gateway.exists(), "{purged:?}");
    assert_eq!(up.stop(Signal::TERM).await.0, Some(0));
}
