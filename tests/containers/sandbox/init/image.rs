//! Tests `sandbox-init` as the first process of containers of our image, and the entrypoint that images of others have
//! instead.

use std::process::Stdio;

use harness::{World, docker::docker, eventually, init::outcome};
use platform_core::grant::{Listener, RunGrant};
use tokio::{io::AsyncWriteExt, process::Command};

use super::{Container, IMAGE};
use crate::sandbox::{run, shell_agent};

/// With Docker's own init before ours, and without.
const INITS: [&[&str]; 2] = [&["--init"], &[]];

/// Script that answers SIGTERM in its own way.
const POLITE: &str = "trap 'echo last words; exit 7' TERM; echo up; while :; do sleep 0.01; done";

#[tokio::test]
async fn it_is_the_first_process_of_our_image() {
    assert_eq!(docker(&["run", "--rm", IMAGE, "cat", "/proc/1/comm"]).await, "sandbox-init");
    assert_eq!(docker(&["run", "--rm", "--init", IMAGE, "cat", "/proc/1/comm"]).await, "docker-init");
}

#[tokio::test]
async fn a_stop_reaches_the_agent() {
    for init in INITS {
        let container = Container::start(init, &["bash", "-c", POLITE]).await;
        eventually("it is up", || container.output(), |output| output == "up\n").await;
        docker(&["stop", "--time", "60", &container.0]).await;
        assert_eq!(container.exit_code().await, 7);
        assert_eq!(container.output().await, "up\nlast words\n");
        // Control: one that ignores it is killed.
        let container = Container::start(init, &["bash", "-c", "trap '' TERM; echo up; sleep 60"]).await;
        eventually("it is up", || container.output(), |output| output == "up\n").await;
        docker(&["stop", "--time", "1", &container.0]).await;
        assert_eq!(container.exit_code().await, 137);
    }
}

#[tokio::test]
async fn leftover_processes_do_not_keep_a_container() {
    // The kernel ends all processes together with the first one; that they receive SIGTERM before is `sandbox-init`'s
    // doing.
    let left = "(trap 'echo last words; exit' TERM; touch /tmp/up; while :; do sleep 0.01; done) & \
                (trap '' TERM; sleep 600) & setsid sleep 600 & until [ -e /tmp/up ]; do sleep 0.01; done; exit 3";
    for init in INITS {
        let container = Container::start(init, &["bash", "-c", left]).await;
        assert_eq!(container.exit_code().await, 3);
        assert_eq!(container.output().await, "last words\n");
    }
    // Control: a first process that asks no other process to end.
    let container = Container::start(&["--entrypoint", "bash"], &["-c", left]).await;
    assert_eq!((container.exit_code().await, container.output().await.as_str()), (3, ""));
}

#[tokio::test]
async fn an_agent_that_attacks_init_harms_itself() {
    // As the first process it is out of reach: the kernel lets no process of the same namespace kill or stop it.
    let attack = "for signal in KILL STOP SEGV ABRT; do kill -$signal 1; done; sleep 0.1; echo there; exit 5";
    let container = Container::start(&[], &["bash", "-c", attack]).await;
    assert_eq!(container.exit_code().await, 5);
    assert_eq!(container.output().await, "there\n");
    // Below Docker's it is one process of the same user as another: the container ends with it,
    let container = Container::start(&["--init"], &["bash", "-c", "kill -KILL $PPID; sleep 600"]).await;
    assert_eq!(container.exit_code().await, 137);
    // or the agent has taken its own way out. The host's SIGKILL needs no process inside.
    let container =
        Container::start(&["--init"], &["bash", "-c", "echo up; kill -STOP $PPID; sleep 600"]).await;
    eventually("it is up", || container.output(), |output| output == "up\n").await;
    docker(&["stop", "--time", "1", &container.0]).await;
    assert_eq!(container.exit_code().await, 137);
}

#[tokio::test]
async fn the_terminal_is_the_agents() {
    let run = format!("docker run --rm -it {IMAGE} bash -c 'read word; echo heard $word'");
    let mut terminal = Command::new("script")
        .args(["--quiet", "--return", "--command", &run, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    terminal.stdin.take().unwrap().write_all(b"a word\n").await.unwrap();
    let heard = outcome(terminal).await;
    assert!(heard.code == Some(0) && heard.stdout.contains("heard a word"), "{heard:?}");
}

/// A model call by curl.
const CALL: &str = "curl --silent http://localhost:8080/v1/chat/completions --json '{\"model\":\"fake\"}'";

#[tokio::test]
async fn an_image_with_the_old_entrypoint_works() {
    let old = "/usr/local/bin/sandbox-entrypoint.sh";
    let world = World::start().await;
    let grant = RunGrant { listener: Listener::Unix { peer_uid: 1001 }, ..harness::grant("r0", "acct-1") };
    let run_by_hand = world.run_with(grant).await;
    let volume = format!("{}:/llm-sock:ro", run_by_hand.socket.parent().unwrap().display());
    let sealed = ["--network", "none", "--volume", &volume];
    let container =
        Container::start(&[&sealed[..], &["--entrypoint", old]].concat(), &["bash", "-c", CALL]).await;
    assert_eq!(container.exit_code().await, 0);
    assert!(container.output().await.contains("Hello from the scripted"));
    // As an argument of ours, which already is at port 8080.
    let variable = ["--env", "LLM_PROXY_PORT=8081"];
    let twice = format!("LLM_PROXY_PORT=8080 {old} {CALL}");
    let container = Container::start(&[&sealed[..], &variable].concat(), &["bash", "-c", &twice]).await;
    assert_eq!(container.exit_code().await, 0);
    assert!(container.output().await.contains("Hello from the scripted"));

    // A whole run in an image that was made before there was another entrypoint.
    let made = Container::start(&[], &["true"]).await;
    let image = format!("sluicegate/test-{}", world.installation().to_lowercase());
    let change = format!("ENTRYPOINT [\"{old}\"]");
    docker(&["commit", "--change", &change, &made.0, &image]).await;
    let script = format!("{CALL}; pgrep -c socat; pgrep -c sandbox-init");
    let world = World::with(&shell_agent(&script, &format!("image = '{image}'"))).await;
    let outcome = run(&world).await;
    docker(&["rmi", &image]).await;
    let text = outcome.result()["stdout"]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("Hello from the scripted") && text.ends_with("\n0\n"), "{outcome:?}");
    assert_eq!(world.upstream.ledger().last().unwrap().header("x-cogni-run-id"), ["r1"]);
    world.assert_nothing_left().await;
}
