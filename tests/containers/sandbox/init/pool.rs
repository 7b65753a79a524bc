//! Tests containers that wait for their start file.

use std::{fs, os::unix::fs::PermissionsExt};

use harness::{World, docker::docker, eventually};
use serde_json::json;

use super::Container;
use harness::init::watches;

/// A container as a pool would have it: sealed, and without a command.
struct Waiting {
    container: Container,
    dir: tempfile::TempDir,
}

impl Waiting {
    async fn start(more: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // inotify needs permission to read the watched file.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let volume = format!("{}:/llm-sock:ro", dir.path().display());
        let sealed = ["--network", "none", "--read-only", "--cap-drop", "ALL", "--volume", &volume];
        let variable = ["--env", "SANDBOX_START_FILE=/llm-sock/start.json"];
        let container = Container::start(&[&sealed[..], &variable, more].concat(), &[]).await;
        let processes = || async { docker(&["top", &container.0, "-o", "pid,comm"]).await };
        let ours = |top: &String| -> Option<u32> {
            let line = top.lines().find(|line| line.ends_with(" sandbox-init"))?;
            line.split_whitespace().next()?.parse().ok()
        };
        let top = eventually("it is there", processes, |top| ours(top).is_some()).await;
        watches(ours(&top).unwrap()).await;
        Self { container, dir }
    }

    fn put(&self, content: &str) {
        let aside = self.dir.path().join(".start.json");
        fs::write(&aside, content).unwrap();
        fs::rename(aside, self.dir.path().join("start.json")).unwrap();
    }
}

fn start(script: &str) -> String {
    json!({ "argv": ["bash", "-c", script], "environment": { "RUN_ID": "r1" }, "working_directory": "/tmp" })
        .to_string()
}

#[tokio::test]
async fn a_waiting_container_runs_its_start_file() {
    for init in [&["--init"][..], &[]] {
        let waiting = Waiting::start(init).await;
        waiting.put(&start("echo $RUN_ID in $PWD as $(id -u); env | grep -c SANDBOX_START_FILE; exit 7"));
        assert_eq!(waiting.container.exit_code().await, 7);
        assert_eq!(waiting.container.output().await, "r1 in /tmp as 1001\n0\n");
    }
    // Control: one without a start file in its settings does not wait.
    let container = Container::start(&["--network", "none"], &[]).await;
    assert_eq!(container.exit_code().await, 64);
}

#[tokio::test]
async fn a_waiting_container_stops_without_a_kill() {
    for init in [&["--init"][..], &[]] {
        let waiting = Waiting::start(init).await;
        docker(&["stop", "--time", "60", &waiting.container.0]).await;
        assert_eq!(waiting.container.exit_code().await, 143);
    }
    // Control: a first process that has no handler does.
    let container = Container::start(&["--entrypoint", "sleep"], &["60"]).await;
    docker(&["stop", "--time", "1", &container.0]).await;
    assert_eq!(container.exit_code().await, 137);
}

#[tokio::test]
async fn an_agent_from_a_start_file_has_its_models() {
    let world = World::start().await;
    let grant = harness::grant("r1", "acct-1");
    let grant = platform_core::grant::RunGrant {
        listener: platform_core::grant::Listener::Unix { peer_uid: 1001 },
        ..grant
    };
    let run = world.run_with(grant).await;
    let socket = format!("{}:/run/llm:ro", run.socket.parent().unwrap().display());
    let more = ["--volume", &socket, "--env", "LLM_PROXY_SOCKET=/run/llm/llm.sock"];
    let waiting = Waiting::start(&more).await;
    let content = json!({
        "argv": ["curl", "-s", "http://localhost:8080/v1/chat/completions", "--json", r#"{"model":"fake"}"#],
        "environment": { "OPENAI_API_BASE": "http://localhost:8080" },
        "working_directory": "/workspace",
    });
    waiting.put(&content.to_string());
    assert_eq!(waiting.container.exit_code().await, 0);
    let output = waiting.container.output().await;
    assert!(output.contains("Hello from the scripted"), "{output}");
    assert_eq!(world.upstream.ledger().last().unwrap().header("x-cogni-run-id"), ["r1"]);
}
