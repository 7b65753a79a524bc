//! Tests that the socket is the only way out.

use std::{
    net::SocketAddr,
    os::{linux::net::SocketAddrExt, unix::net},
};

use bench::upstream::ScriptedUpstream;
use harness::{World, docker::docker, eventually};

use super::{inside, run, shell_agent, world_with};

const IMAGE: &str = "sluicegate/sandbox-runtime:latest";

/// Returns attempts that succeed in a container with a network. `host` is an HTTP server on this host, as a container
/// on Docker's bridge reaches it.
fn probes(host: SocketAddr) -> [(&'static str, String); 8] {
    let (ip, port) = (host.ip(), host.port());
    [
        ("a name resolves", "getent ahosts dns.test".to_owned()),
        ("a name server listens", "timeout 2 bash -c '</dev/tcp/127.0.0.11/53'".to_owned()),
        (
            "curl reaches a name",
            format!("curl --silent --fail --max-time 2 http://host.test:{port}/v1/models"),
        ),
        (
            "curl reaches an address",
            format!("curl --silent --fail --max-time 2 http://{ip}:{port}/v1/models"),
        ),
        ("an address accepts a connection", format!("timeout 2 bash -c '</dev/tcp/{ip}/{port}'")),
        ("there is a default route", "ip route show default | grep .".to_owned()),
        (
            "there is an interface besides lo",
            "ls /sys/class/net | grep --invert-match --line-regexp lo".to_owned(),
        ),
        ("there is an address besides loopback", "ip -oneline address show scope global | grep .".to_owned()),
    ]
}

/// Returns a script that prints the names of the probes that succeed.
fn script(probes: &[(&str, String)]) -> String {
    probes
        .iter()
        .map(|(name, probe)| format!("({probe}) >/dev/null 2>&1 && echo '{name}'\n"))
        .collect::<String>()
        + "true"
}

/// Returns the output of `script` in a container of the same image that has a network with a name server.
async fn on_a_network(network: &str, script: &str) -> String {
    docker(&["network", "create", network]).await;
    let names = ["--network-alias", "dns.test", "--add-host", "host.test:host-gateway"];
    let with_network = ["run", "--rm", "--network", network, names[0], names[1], names[2], names[3]];
    let seen = docker(&[&with_network[..], &[IMAGE, "bash", "-c", script]].concat()).await;
    docker(&["network", "rm", network]).await;
    seen
}

#[tokio::test]
async fn a_sandbox_has_no_network_of_any_kind() {
    // Asked of a container: `network inspect` names no gateway until the engine has been started a second time.
    let hosts =
        ["run", "--rm", "--add-host", "host.test:host-gateway", IMAGE, "getent", "hosts", "host.test"];
    let gateway = docker(&hosts).await.split_whitespace().next().unwrap().parse().unwrap();
    let host = ScriptedUpstream::start_on(SocketAddr::new(gateway, 0)).await.unwrap();
    let probes = probes(host.address());
    let script = script(&probes);
    let world = World::with(&shell_agent(&script, "")).await;
    let outcome = run(&world).await;
    assert_eq!((outcome.code, &outcome.result()["text"]), (Some(0), &"".into()), "{outcome:?}");
    assert!(host.ledger().is_empty());
    // Control: each of these succeeds where there is a network.
    let seen = on_a_network(&world.installation(), &script).await;
    assert_eq!(seen.lines().collect::<Vec<_>>(), probes.map(|(name, _)| name));
}

#[tokio::test]
async fn abstract_sockets_of_the_host_are_out_of_reach() {
    // They have no path, so that no mount keeps them apart: only the network namespace does (CVE-2020-15257).
    let name = format!("sluice-test-{}", std::process::id());
    let address = net::SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = net::UnixListener::bind_addr(&address).unwrap();
    let connect = format!(
        "socat -u OPEN:/dev/null ABSTRACT-CONNECT:{name} 2>/dev/null && echo reached || echo refused"
    );
    assert_eq!(inside(&connect).await, "refused\n");
    // Control: a container that shares the host's network reaches it.
    assert_eq!(docker(&["run", "--rm", "--network", "host", IMAGE, "bash", "-c", &connect]).await, "reached");
}

#[tokio::test]
async fn localhost_answers_only_with_a_grant() {
    let health = "curl -s -m 2 http://localhost:8080/health || echo NOTHING";
    assert_eq!(inside(health).await, r#"{"runId":"r1","status":"ok"}"#);
    let without = docker(&["run", "--rm", "--network", "none", IMAGE, "bash", "-c", health]).await;
    assert_eq!(without, "NOTHING");
}

#[tokio::test]
async fn a_closed_grant_stops_answering() {
    let world = World::with(&shell_agent(
        "curl -s -m 2 http://localhost:8080/health; touch /workspace/asked; \
         while [ ! -e /workspace/closed ]; do sleep 0.05; done; \
         curl -s -m 2 http://localhost:8080/health || echo NOTHING",
        "",
    ))
    .await;
    let close = async {
        let workspace = world.workspace("r1").await;
        eventually("the agent has asked", || async { workspace.join("asked").exists() }, |asked| *asked)
            .await;
        world.control.close_in(1, &"r1".parse().unwrap(), 0).await.unwrap();
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
async fn a_request_to_another_host_goes_nowhere() {
    let world = world_with(
        "curl -s -m 2 -o /dev/null -w '%{http_code}' -x http://localhost:8080 http://example.com/",
    )
    .await;
    assert_eq!(run(&world).await.result()["stdout"]["text"], "404");
    assert!(world.upstream.ledger().is_empty());
}
