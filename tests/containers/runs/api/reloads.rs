//! Tests how a running `sluice up` gets a changed configuration: by `sluice agents add`, and by SIGHUP on a terminal.

use std::{fs, os::unix::fs::PermissionsExt};

use harness::{World, eventually, grant, process::has_ended, served::served};
use http::Method;
use platform_core::{grant::RunGrant, id::AgentId};
use rustix::process::Signal;

use super::{ids, list};

/// The API lists it, and sandboxes are told its model, without a restart of anything.
#[tokio::test]
async fn an_added_agent_is_served_at_once() {
    let (world, up, api) = served("", "").await;
    let graph = AgentId::parse("sandbox:claude-code").unwrap();
    let run = world.run_with(RunGrant { graph, ..grant("r1", "acct-1") }).await;
    let models =
        async || run.agent.request(Method::GET, "/v1/models", String::new().into()).await.unwrap().text();
    assert!(!models().await.contains("fake-words50"), "control");
    assert_eq!(ids(&list(&api).await), ["sandbox:agent"], "control");

    // It has every image, and builds at once.
    let programs = world.path().join("programs");
    fs::create_dir(&programs).unwrap();
    fs::write(programs.join("docker"), "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(programs.join("docker"), fs::Permissions::from_mode(0o755)).unwrap();
    let sluice = world.sluice().env("PATH", &format!("{}:/usr/bin:/bin", programs.display()));
    let image = ["--image", "sluicegate/sandbox-runtime:latest", "--model", "fake-words50"];
    let added = sluice.run(&[&["agents", "add", "claude-code"], image.as_slice()].concat()).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(added.stdout.contains("it has the entry within moments"), "{added:?}");
    assert!(models().await.contains("fake-words50"), "the proxy has read it");
    let listed = || async { ids(&list(&api).await).join(" ") };
    eventually("it is listed", listed, |ids| ids == "sandbox:agent sandbox:claude-code").await;
    assert_eq!(up.stop(Signal::TERM).await.0, Some(0));
}

#[tokio::test]
async fn sighup_on_a_terminal_reloads() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let mut seat = world.sluice().env("SLUICE_LOG", "info").seated(&["up"]);
    seat.sees("it is ready", |screen| screen.contains("\nready")).await;
    let added = "[agents.'team:new']\nimage = 'team:1'\nargv = ['true']\n";
    fs::write(world.config(), fs::read_to_string(world.config()).unwrap() + added).unwrap();
    seat.signal(Signal::HUP);
    seat.sees("it has reloaded", |screen| screen.contains("team:new added")).await;
    seat.signal(Signal::INT);
    let left = seat.left().await;
    assert_eq!((left.code, left.text.contains("stopped")), (0, true), "{}", left.text);

    // Control: without its terminal it stops, and its proxy with it.
    let mut seat = world.sluice().seated(&["up"]);
    let screen = seat.sees("it is ready", |screen| screen.contains("\nready")).await;
    let pid_after = |mark: &str| -> u32 {
        let rest = screen.split_once(mark).unwrap().1;
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    let processes = [pid_after("process "), pid_after(", pid ")];
    drop(seat);
    let ended = || async { processes.map(has_ended) };
    eventually("both have ended", ended, |ended| *ended == [true, true]).await;
}
