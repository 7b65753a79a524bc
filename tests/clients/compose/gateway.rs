//! Tests `openclaw.yaml`: a gateway has its own network with the data plane, and runs are its sessions.

use std::{fs, net::SocketAddr, os::unix::fs::chown};

use harness::{
    Agent, FaultProxy, World,
    docker::{docker, host, proxy_image},
    eventually::eventually_within,
    openclaw::START,
    private_file,
};
use http::Method;

use super::stack::{PROXY, Stack, proxy_dir, read};

const TOKEN: &str = "a-token-of-this-test";

/// Writes the files that the README lists: the data plane's configuration and key, and the gateway's models. Returns
/// the values of the variables. `sluice` reads the world's own configuration.
fn write_files(world: &World, upstream: &str) -> Vec<(&'static str, String)> {
    let dir = |name: &str| world.path().join(name);
    let etc = proxy_dir(&dir("etc"));
    private_file(&dir("etc/key"), harness::CANARY_KEY);
    chown(dir("etc/key"), Some(PROXY), Some(PROXY)).unwrap();
    let serves = "listen = '0.0.0.0:8080'\nlisten_plaintext = true\nlisten_serves = 'gateways'\n";
    let config = format!(
        "[upstream]\nbase_url = '{upstream}'\nkey_file = '/etc/sluicegate/key'\n[proxy]\nthreads = 1\n{serves}"
    );
    fs::write(dir("etc/sluice.toml"), config).unwrap();
    world.reconfigure("threads = 2\n", &format!("threads = 2\n{serves}"));
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../platform/compose/openclaw/openclaw.json");
    fs::create_dir(dir("openclaw")).unwrap();
    fs::write(
        dir("openclaw/openclaw.json"),
        fs::read_to_string(models).unwrap().replace("gpt-4o", "fake-echo"),
    )
    .unwrap();
    vec![
        ("SLUICE_ETC", etc),
        ("SLUICE_RUN", proxy_dir(&dir("run"))),
        ("SLUICE_STATE", proxy_dir(&dir("proxy-state"))),
        ("OPENCLAW_GATEWAY_TOKEN", TOKEN.to_owned()),
    ]
}

#[tokio::test]
async fn the_compose_files_gateway_serves_a_run() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let upstream = world.upstream.base_url().trim_start_matches("http://").parse().unwrap();
    let fault_proxy = FaultProxy::at(SocketAddr::new(host().await, 0), upstream).await;
    let variables = write_files(&world, &fault_proxy.base_url());
    let mut file = read("openclaw.yaml");
    // The image of these sources in place of the operators', which takes minutes to build.
    let image = &mut file["services"]["llm-proxy-openclaw"]["image"];
    assert_eq!(image, "sluicegate/proxy");
    *image = proxy_image().await.into();
    let config = world.path().join("openclaw").display().to_string();
    let directories = vec![("./openclaw", config)];
    let stack = Stack { project: world.installation(), file, directories, variables };
    stack.create_networks().await;
    stack.start(&["llm-proxy-openclaw", "openclaw-gateway"]).await;

    let gateway = stack.name("openclaw-gateway");
    let address = "{{range $name, $network := .NetworkSettings.Networks}}{{$network.IPAddress}}{{end}}";
    let address = docker(&["inspect", "--format", address, &gateway]).await;
    let agent = Agent::over_tcp(format!("{address}:18789").parse().unwrap());
    let ready = || async {
        agent
            .request(Method::GET, "/readyz", bytes::Bytes::new())
            .await
            .is_ok_and(|answer| answer.status == 200)
    };
    eventually_within(START, "the gateway is ready", ready, |ready| *ready).await;

    private_file(&world.path().join("there.token"), TOKEN);
    let root = world.path().display();
    let entries = format!(
        "[gateways.there]\nurl = 'ws://{address}:18789'\ntoken_file = '{root}/there.token'\ndevice_key_file = '{root}/there.key'\n\
         [agents.'sandbox:openclaw-gateway']\nmode = 'gateway'\ngateways = ['there']\nmodel = 'fake-echo'\nrun_timeout = '90s'\n"
    );
    let config = fs::read_to_string(world.config()).unwrap();
    fs::write(world.config(), config + &entries).unwrap();
    pair(&world, &gateway).await;
    let arguments = [
        "run",
        "--agent",
        "sandbox:openclaw-gateway",
        "--run-id",
        "r1",
        "--account",
        "acct-1",
        "Say that it works",
    ];
    let done = world.sluice().run(&arguments).await;
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("it works"), "{done:?}");
    let journal = world.journal().await;
    let own =
        journal.iter().find(|line| line.record.run_id.as_str() == "r1").expect("its calls went through here");
    assert_eq!(own.record.account.as_str(), "acct-1");

    reaches_the_data_plane_alone(&stack, &gateway).await;
}

/// Pairs `sluice` with the gateway in the container `gateway`, as its operator does.
async fn pair(world: &World, gateway: &str) {
    let pairing = world.sluice().run(&["gateway", "pair", "there", "--wait", "0"]).await;
    let request = pairing
        .stdout
        .split("devices approve ")
        .nth(1)
        .unwrap_or_else(|| panic!("{pairing:?}"))
        .lines()
        .next();
    let openclaw = "/opt/openclaw/node_modules/openclaw/openclaw.mjs";
    docker(&["exec", gateway, "node", openclaw, "devices", "approve", request.unwrap()]).await;
    for words in [&["gateway", "pair", "there", "--wait", "30"][..], &["gateway", "check", "there"]] {
        let done = world.sluice().run(words).await;
        assert_eq!(done.code, Some(0), "{done:?}");
    }
}

/// Checks that the gateway reaches only the data plane among other containers: no network of Docker's isolates it from
/// this host's own addresses.
async fn reaches_the_data_plane_alone(stack: &Stack, gateway: &str) {
    const ASK: &str = "fetch(process.argv[1], { signal: AbortSignal.timeout(3000) })\
        .then((answer) => console.log(answer.status), (error) => console.log(error.name))";
    let ask = async |url: String| docker(&["exec", gateway, "node", "-e", ASK, &url]).await;
    let network = stack.name("upstream");
    let address = format!("{{{{(index .NetworkSettings.Networks {network:?}).IPAddress}}}}");
    let address = docker(&["inspect", "--format", &address, &stack.name("llm-proxy-openclaw")]).await;
    assert_eq!(ask(format!("http://{address}:8080/health")).await, "TimeoutError", "by its other network");
    assert_eq!(ask("http://llm-proxy-openclaw:8080/health".to_owned()).await, "200", "the control");
}
