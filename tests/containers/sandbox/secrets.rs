//! Tests that nothing that an agent can read holds a credential.

use std::collections::BTreeMap;

use harness::{CANARY_KEY, World, docker::docker, eventually};

use super::{inside, run, shell_agent, world_with};

const IMAGE: &str = "sluicegate/sandbox-runtime:latest";

/// Lists where an agent can read the upstream's key, after `first`. The key comes in two halves, so that the
/// search does not find itself.
fn search(first: &str) -> String {
    let (one, other) = CANARY_KEY.split_at(9);
    format!(
        r#"key="{one}""{other}"
        {first}
        grep -rlaF --exclude-dir=sys --exclude-dir=proc -f <(printf '%s' "$key") / 2>/dev/null
        cd /proc; grep -laF -f <(printf '%s' "$key") [0-9]*/environ [0-9]*/cmdline [0-9]*/mountinfo net/unix 2>/dev/null | tr -d 0-9
        true"#
    )
}

#[tokio::test]
async fn no_agent_can_read_the_upstreams_key() {
    // The key is in use meanwhile, and the answers are searched too.
    let ask = "for model in fake fake-status401 fake-status500 fake-errmid1; do
            curl --silent --include http://localhost:8080/v1/chat/completions --json '{\"model\":\"'$model'\"}'
        done > /tmp/answers; grep -o HTTP/1.1 /tmp/answers | wc -l";
    assert_eq!(inside(&search(ask)).await, "4\n");
    // Control: the same search finds a key in the question, in an environment and in arguments.
    let plant =
        "PLANTED=$key sleep 10 & bash -c 'sleep 10; true' $key & until [ -e /proc/$!/cwd ]; do :; done";
    let mut world = world_with(&search(plant)).await;
    world.has_planted(".cogni/");
    // Questions are kept where runs are.
    world.has_planted("store/");
    let outcome = world.sluice().run(&["run", "--agent", "test:sh", CANARY_KEY]).await;
    let mut found: Vec<_> = outcome.stdout.lines().collect();
    found.sort_unstable();
    let question =
        ["conversation.md", "messages.json", "prompt.txt"].map(|file| format!("/workspace/.cogni/{file}"));
    assert_eq!(found[..2], ["/cmdline", "/environ"], "{outcome:?}");
    assert_eq!(found[2..], question, "{outcome:?}");
}

/// The names are those of the image and those of a run.
#[tokio::test]
async fn the_environment_holds_only_public_names() {
    let world = world_with("tr '\\0' '\\n' < /proc/1/environ").await;
    // A caller of `sluice run` may well have keys of their own in the environment.
    let sluice = world.sluice().env("LITELLM_MASTER_KEY", CANARY_KEY).env("OPENAI_API_KEY", CANARY_KEY);
    let outcome = sluice.run(&["run", "--agent", "test:sh", "--run-id", "r1", "q"]).await;
    let variables: BTreeMap<_, _> = outcome.stdout.lines().filter_map(|line| line.split_once('=')).collect();
    let images =
        docker(&["image", "inspect", "--format", "{{range .Config.Env}}{{println .}}{{end}}", IMAGE]).await;
    let images = images.lines().filter_map(|line| line.split_once('='));
    let given = [
        ("ANTHROPIC_API_KEY", "sluicegate"),
        ("ANTHROPIC_BASE_URL", "http://localhost:8080"),
        ("COGNI_GATEWAY_URL", "http://localhost:8080"),
        ("COGNI_MAX_TOKENS", "8192"),
        ("COGNI_MODEL", "fake"),
        ("LLM_PROXY_PORT", "8080"),
        ("LLM_PROXY_SOCKET", "/llm-sock/llm.sock"),
        ("OPENAI_API_BASE", "http://localhost:8080"),
        ("OPENAI_API_KEY", "sluicegate"),
        ("OPENAI_BASE_URL", "http://localhost:8080/v1"),
        ("RUN_ID", "r1"),
    ];
    // Docker's own.
    let machine = [("HOSTNAME", variables["HOSTNAME"])];
    assert_eq!(variables, images.chain(given).chain(machine).collect(), "{outcome:?}");
}

#[tokio::test]
async fn docker_is_unreachable_and_has_no_key() {
    assert_eq!(inside("ls /var/run/docker.sock /run/docker.sock 2>/dev/null | wc -l").await, "0\n");
    let world = World::with(&shell_agent("touch /workspace/up; sleep 10", "")).await;
    let mut child = world.sluice().spawn(&["run", "--agent", "test:sh", "--run-id", "r1", "q"]);
    let up = world.workspace("r1").await.join("up");
    eventually("the agent is up", || async { up.exists() }, |up| *up).await;
    let inspected = docker(&["inspect", &format!("sluice-{}-r1.1", world.installation())]).await;
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
