//! The socket is the only way out.

use harness::{docker::docker, eventually};

use super::{inside, run, shell_agent, world_with};
use harness::World;

/// Prints what of a network can be seen: interfaces, a default route, names, addresses.
const LOOK: &str = r#"
ls /sys/class/net | tr '\n' ' '; echo
ip route show default | grep -q . && echo ROUTE
timeout 3 getent hosts deb.debian.org >/dev/null && echo DNS
timeout 3 bash -c 'echo > /dev/tcp/1.1.1.1/53' 2>/dev/null && echo ADDRESS
timeout 3 curl -s -o /dev/null http://example.com && echo CURL
GATEWAY=$(ip route show default | cut -d' ' -f3); ping_host=${GATEWAY:-172.17.0.1}
timeout 3 bash -c "echo > /dev/tcp/$ping_host/1" 2>&1 | grep -q refused && echo HOST
true"#;

#[tokio::test]
async fn a_sandbox_has_no_network_of_any_kind() {
    let seen = inside(LOOK).await;
    assert_eq!(seen, "lo \n");
    // Control: the same look in a container that has a network sees it.
    let image = "sluicegate/sandbox-runtime:latest";
    let control =
        docker(&["run", "--rm", "--network", "bridge", "--entrypoint", "bash", image, "-c", LOOK]).await;
    assert!(control.contains("eth0") && control.contains("ROUTE") && control.contains("HOST"), "{control}");
}

#[tokio::test]
async fn the_run_answers_on_localhost_and_nothing_does_without_a_grant() {
    let health = "curl -s -m 2 http://localhost:8080/health || echo NOTHING";
    assert_eq!(inside(health).await, r#"{"runId":"r1","status":"ok"}"#);
    let image = "sluicegate/sandbox-runtime:latest";
    let without =
        docker(&["run", "--rm", "--network", "none", "--entrypoint", "bash", image, "-c", health]).await;
    assert_eq!(without, "NOTHING");
}

#[tokio::test]
async fn a_grant_that_is_closed_answers_no_more_while_its_container_lives() {
    let world = World::with(&shell_agent(
        "curl -s -m 2 http://localhost:8080/health; touch /workspace/asked; \
         while [ ! -e /workspace/closed ]; do sleep 0.05; done; \
         curl -s -m 2 http://localhost:8080/health || echo NOTHING",
        "",
    ))
    .await;
    let workspace = world.path().join("workspaces/r1");
    let close = async {
        eventually("the agent has asked", || async { workspace.join("asked").exists() }, |asked| *asked)
            .await;
        world.control.close(&"r1".parse().unwrap(), 0).await.unwrap();
        std::fs::write(workspace.join("closed"), "").unwrap();
    };
    let (outcome, ()) = tokio::join!(run(&world), close);
    assert_eq!(
        outcome.result()["stdout"]["text"],
        "{\"runId\":\"r1\",\"status\":\"ok\"}NOTHING\n",
        "{outcome:?}"
    );
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_request_to_another_host_through_the_bridge_goes_nowhere() {
    let world = world_with(
        "curl -s -m 2 -o /dev/null -w '%{http_code}' -x http://localhost:8080 http://example.com/",
    )
    .await;
    assert_eq!(run(&world).await.result()["stdout"]["text"], "404");
    assert!(world.upstream.ledger().is_empty());
}
