//! Tests that nothing of a run stays behind, whenever and however it ends, and that nothing of others is removed.

use std::{fs, path::PathBuf};

use harness::{Outcome, World, docker::docker, eventually, sluice};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::sandbox::{run, shell_agent, world_with};

/// Script that reports that it runs, then goes on until it is ended.
const LINGER: &str = "touch up; sleep 60";

/// Starts a run `r1`; returns its process and its workspace.
async fn begin(world: &World) -> (Child, PathBuf) {
    let child = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", "r1", "--json", "q"]);
    let workspace = world.workspace("r1").await;
    let up = || async { workspace.join("up").exists() };
    eventually("the agent runs", up, |up| *up).await;
    (child, workspace)
}

async fn end(child: Child) -> Outcome {
    child.wait_with_output().await.unwrap().into()
}

/// Asserts that all that [`World::assert_nothing_left`] looks at exists while a run lives, so that its search could
/// find it.
async fn assert_all_there(world: &World) {
    let containers = harness::docker::containers_of(&world.installation()).await;
    let entries = |dir: &str| fs::read_dir(world.path().join(dir)).unwrap().count();
    assert_eq!((containers.len(), entries("run/runs"), entries("workspaces")), (1, 1, 1), "{containers:?}");
}

#[tokio::test]
async fn an_interrupted_run_leaves_nothing() {
    let world = world_with(LINGER).await;
    let (child, _) = begin(&world).await;
    assert_all_there(&world).await;
    sluice::interrupt(&child);
    let outcome = end(child).await;
    let result = outcome.result();
    assert_eq!((outcome.code, &result["error"]["code"]), (Some(130), &"cancelled".into()), "{outcome:?}");
    assert_eq!(result["killed_by"], "cancel");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn impatience_does_not_disturb_the_clean_up() {
    let world = world_with(LINGER).await;
    let (child, _) = begin(&world).await;
    for _ in 0..3 {
        sluice::interrupt(&child);
        sluice::terminate(&child);
    }
    assert_eq!(end(child).await.code, Some(130));
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_run_is_cancelled_in_every_phase() {
    for phase in ["preparing", "starting", "running", "settling"] {
        let world = world_with("sleep 0.3").await;
        let mut child = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", "r1", "--json", "q"]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(&format!("\"{phase}\"")) {
                sluice::interrupt(&child);
                break;
            }
        }
        while lines.next_line().await.unwrap().is_some() {}
        // Once the agent has ended by itself there is nothing left to cancel.
        let expected = if phase == "settling" { 0 } else { 130 };
        assert_eq!(child.wait().await.unwrap().code(), Some(expected), "{phase}");
        world.assert_nothing_left().await;
    }
}

#[tokio::test]
async fn a_closed_pipe_does_not_stop_the_cleanup() {
    let world = world_with("touch up; until [ -e go ]; do sleep 0.02; done; seq 10000").await;
    let (mut child, workspace) = begin(&world).await;
    drop((child.stdout.take(), child.stderr.take()));
    fs::write(workspace.join("go"), "").unwrap();
    child.wait().await.unwrap();
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_terminal_that_is_closed_ends_its_run() {
    let world = world_with(LINGER).await;
    let (child, _) = begin(&world).await;
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    end(child).await;
    world.assert_nothing_left().await;
}

/// Makes an image in which no sandbox can start: it has a file where the socket goes.
async fn unstartable_image(world: &World) -> String {
    let (image, archive) = (format!("sluice-test:{}", world.installation()), world.path().join("image.tar"));
    fs::write(world.path().join("llm-sock"), "").unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(world.path()).arg("-cf").arg(&archive).arg("llm-sock");
    assert!(tar.status().await.unwrap().success());
    docker(&["import", archive.to_str().unwrap(), &image]).await;
    image
}

#[tokio::test]
async fn a_container_that_fails_leaves_nothing() {
    let world = World::with(&shell_agent("true", "milli_cpu = 4000000")).await;
    let image = unstartable_image(&world).await;
    let unmakable = run(&world).await;
    let unstartable = world.sluice().run(&["run", "--json", "--image", &image, "q"]).await;
    docker(&["rmi", &image]).await;
    for (outcome, action) in [(unmakable, "Docker cannot create"), (unstartable, "Docker cannot start")] {
        let result = outcome.result();
        assert_eq!(
            (outcome.code, &result["error"]["code"]),
            (Some(70), &"docker_failed".into()),
            "{outcome:?}"
        );
        assert!(result["error"]["message"].as_str().unwrap().contains(action), "{result}");
    }
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_run_without_docker_or_proxy_leaves_nothing() {
    let mut world = World::start().await;
    let outcome =
        world.sluice().run(&["run", "--set", "sandbox.docker_socket=/nowhere/docker.sock", "q"]).await;
    assert_eq!(outcome.code, Some(69), "{outcome:?}");
    assert!(outcome.stderr.contains("/nowhere/docker.sock"), "{}", outcome.stderr);
    world.assert_nothing_left().await;
    world.stop_proxy().await;
    let outcome = world.sluice().run(&["run", "q"]).await;
    assert_eq!(outcome.code, Some(69), "{outcome:?}");
    assert!(outcome.stderr.contains("sluice up"), "{}", outcome.stderr);
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_run_without_its_proxy_cleans_up_the_rest() {
    let mut world = world_with("touch up; until [ -e go ]; do sleep 0.02; done; echo done").await;
    let (child, workspace) = begin(&world).await;
    world.stop_proxy().await;
    fs::write(workspace.join("go"), "").unwrap();
    let outcome = end(child).await;
    assert_eq!((outcome.code, &outcome.result()["text"]), (Some(0), &"done".into()), "{outcome:?}");
    assert_eq!(harness::docker::containers_of(&world.installation()).await, [""; 0]);
    assert!(!workspace.exists());
    // The socket's directory stays for a proxy that registers the run again; no client can connect through it.
    for dir in fs::read_dir(world.path().join("run/runs")).unwrap() {
        assert_eq!(fs::read_dir(dir.unwrap().path()).unwrap().count(), 0);
    }
}

#[tokio::test]
async fn a_second_run_of_a_name_spares_the_first() {
    let script = "touch up; until [ -e go ]; do sleep 0.02; done; curl --silent http://localhost:8080/health";
    let world = world_with(script).await;
    let (first, workspace) = begin(&world).await;
    // A store that knows of the first run refuses the second; this store does not know of it.
    let elsewhere = format!("store.url=sqlite://{}/elsewhere/sluice.db", world.path().display());
    let arguments = ["run", "--agent", "test:sh", "--run-id", "r1", "--json", "--set", &elsewhere, "q"];
    let second = world.sluice().run(&arguments).await;
    assert_eq!(
        (second.code, &second.result()["error"]["code"]),
        (Some(70), &"data_plane_failed".into()),
        "{second:?}"
    );
    assert_all_there(&world).await;
    fs::write(workspace.join("go"), "").unwrap();
    let first = end(first).await;
    assert_eq!(first.result()["text"], r#"{"runId":"r1","status":"ok"}"#, "{first:?}");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_workspace_is_removed_whatever_is_in_it() {
    let script = "mkdir -p a/b; chmod 000 a/b; mkfifo pipe; ln -s /etc/passwd link; ln -s / a/root; \
                  chmod 555 .; touch -- -rf \"$(printf 'new\\nline')\" 2>/dev/null; mkdir \"$(head -c 200 /dev/zero | tr '\\0' d)\"; true";
    let world = World::with(&shell_agent(script, "")).await;
    assert_eq!(run(&world).await.code, Some(0));
    assert!(fs::exists("/etc/passwd").unwrap());
    world.assert_nothing_left().await;
}
