//! Nothing that an agent can read holds a credential.

use harness::{CANARY_KEY, World, docker::docker, eventually};

use super::{inside, run, shell_agent};

/// Looks for a text everywhere an agent can read. The text comes in two halves, so that the search does not
/// find itself.
fn search(halves: (&str, &str)) -> String {
    format!(
        r#"text="{}""{}"
        found=$(grep -rlaF --exclude-dir=sys --exclude-dir=proc -f <(printf '%s' "$text") / 2>/dev/null)
        found="$found $(cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/mounts 2>/dev/null | grep -caF -f <(printf '%s' "$text"))"
        echo "found:" $found"#,
        halves.0, halves.1
    )
}

#[tokio::test]
async fn the_upstreams_key_is_nowhere_an_agent_can_read() {
    let key = CANARY_KEY.split_at(9);
    assert_eq!(inside(&search(key)).await, "found: 0\n");
    // Control: a secret that was planted in the workspace and in the environment of a process is found.
    let planted = format!(
        "echo planted-secret-42 > /tmp/x; SECRET=planted-secret-42 sleep 5 & {}",
        search(("planted-", "secret-42"))
    );
    let found = inside(&planted).await;
    assert!(found.contains("/tmp/x") && !found.ends_with(" 0\n"), "{found}");
}

#[tokio::test]
async fn the_environment_holds_the_public_names_and_no_credential() {
    let environment = inside("env | sort").await;
    for expected in [
        "COGNI_MODEL=fake",
        "LLM_PROXY_SOCKET=/llm-sock/llm.sock",
        "OPENAI_API_BASE=http://localhost:8080",
        "RUN_ID=r1",
    ] {
        assert!(environment.lines().any(|line| line == expected), "{expected} is missing in {environment}");
    }
    for forbidden in ["LITELLM_MASTER_KEY", "OPENAI_API_KEY", "KEY=", "TOKEN", "SECRET"] {
        assert!(!environment.contains(forbidden), "{forbidden} is in {environment}");
    }
}

#[tokio::test]
async fn docker_is_neither_reachable_from_inside_nor_told_the_key() {
    assert_eq!(inside("ls /var/run/docker.sock /run/docker.sock 2>/dev/null | wc -l").await, "0\n");
    let world = World::with(&shell_agent("touch /workspace/up; sleep 10", "")).await;
    let up = world.path().join("workspaces/r1/up");
    let mut child = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", "r1", "q"]);
    eventually("the agent is up", || async { up.exists() }, |up| *up).await;
    let inspected = docker(&["inspect", &format!("sluice-{}-r1", world.installation())]).await;
    assert!(inspected.contains("OPENAI_API_BASE") && !inspected.contains(CANARY_KEY), "{inspected}");
    harness::sluice::interrupt(&child);
    child.wait().await.unwrap();
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn the_key_is_in_no_output_of_a_run() {
    let world = World::with(&shell_agent(
        "curl -s -X POST http://localhost:8080/v1/chat/completions -d '{\"model\":\"fake-status401\"}'",
        "",
    ))
    .await;
    let outcome = run(&world).await;
    assert!(outcome.stdout.contains("upstream_auth"), "{outcome:?}");
    assert!(!(outcome.stdout + &outcome.stderr + &world.log()).contains(CANARY_KEY));
    // Control: the upstream got it.
    assert_eq!(
        world.upstream.ledger().last().unwrap().header("authorization"),
        [format!("Bearer {CANARY_KEY}")]
    );
}
