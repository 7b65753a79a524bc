//! Tests `platform/compose`, started as its README says, but without `docker compose` itself. A gateway has its own
//! network with the data plane, and runs are its sessions.

use std::{
    fs,
    net::SocketAddr,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{
    Agent, FaultProxy, World,
    docker::{docker, host, proxy_image},
    eventually::eventually_within,
    openclaw::START,
    private_file,
};
use http::Method;
use serde_json::Value;

/// Uid of the proxy's image.
const PROXY: u32 = 65532;
const TOKEN: &str = "a-token-of-this-test";

/// The containers and networks of the file, started under names of this test's own. Removed on drop.
struct Stack {
    project: String,
    file: Value,
    /// Directory that replaces the one beside the file.
    config: PathBuf,
    /// Values of the file's variables `${NAME…}`.
    variables: Vec<(&'static str, String)>,
}

/// Returns the file as JSON. LiteLLM's Python parses the YAML.
fn read() -> Value {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../platform/compose/openclaw.yaml");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/litellm.sh");
    let output = Command::new(script).args(["json", file]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the texts of a list.
fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap())
}

impl Stack {
    fn name(&self, what: &str) -> String {
        format!("{}-{what}", self.project)
    }

    /// Returns `text` with its variables filled in.
    fn filled(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (name, value) in &self.variables {
            while let Some(at) = filled.find(&format!("${{{name}")) {
                let end = at + filled[at..].find('}').unwrap() + 1;
                filled.replace_range(at..end, value);
            }
        }
        assert!(!filled.contains("${"), "{filled}");
        filled
    }

    /// Creates networks and containers, dependencies first, and starts the containers.
    async fn start(&self) {
        for (name, network) in self.file["networks"].as_object().unwrap() {
            let internal = (network["internal"] == true).then_some("--internal");
            let name = self.name(name);
            docker(&["network", "create"].into_iter().chain(internal).chain([&*name]).collect::<Vec<_>>())
                .await;
        }
        for service in ["llm-proxy-openclaw", "openclaw-gateway"] {
            let (first, others, arguments) = self.arguments(service);
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            docker(&[&["create", "--network", &first, "--network-alias", service], &arguments[..]].concat())
                .await;
            for network in others {
                docker(&["network", "connect", &network, &self.name(service)]).await;
            }
            docker(&["start", &self.name(service)]).await;
        }
    }

    /// Returns the first network of `service`, its other networks, and the arguments for `docker create`.
    fn arguments(&self, service: &str) -> (String, Vec<String>, Vec<String>) {
        let settings = self.file["services"][service].as_object().unwrap();
        let label = format!("sluicegate.installation={}", self.project);
        let mut all = vec!["--name".to_owned(), self.name(service), "--label".to_owned(), label];
        let (mut networks, mut after) = (Vec::new(), Vec::new());
        for (key, value) in settings {
            let one = |option: &str| {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                vec![option.to_owned(), self.filled(&value)]
            };
            let each = |option: &str| {
                texts(value).flat_map(|text| [option.to_owned(), self.filled(text)]).collect::<Vec<_>>()
            };
            all.extend(match key.as_str() {
                "restart" => one("--restart"),
                "hostname" => one("--hostname"),
                "working_dir" => one("--workdir"),
                "mem_limit" => one("--memory"),
                "pids_limit" => one("--pids-limit"),
                "cap_drop" => each("--cap-drop"),
                "security_opt" => each("--security-opt"),
                "tmpfs" => each("--tmpfs"),
                "init" => vec!["--init".to_owned()],
                "read_only" => vec!["--read-only".to_owned()],
                "stop_grace_period" => {
                    vec![
                        "--stop-timeout".to_owned(),
                        value.as_str().unwrap().trim_end_matches('s').to_owned(),
                    ]
                }
                "volumes" => texts(value)
                    .flat_map(|volume| ["--volume".to_owned(), self.volume(&self.filled(volume))])
                    .collect(),
                "environment" => value
                    .as_object()
                    .unwrap()
                    .iter()
                    .flat_map(|(name, value)| {
                        ["--env".to_owned(), format!("{name}={}", self.filled(value.as_str().unwrap()))]
                    })
                    .collect(),
                "networks" => {
                    networks = texts(value).map(|network| self.name(network)).collect();
                    Vec::new()
                }
                "image" => {
                    after.insert(0, value.as_str().unwrap().to_owned());
                    Vec::new()
                }
                "command" => {
                    after.extend(texts(value).map(str::to_owned));
                    Vec::new()
                }
                "depends_on" => Vec::new(),
                other => panic!("this test does not know what `{other}` of {service} is"),
            });
        }
        all.extend(after);
        let first = networks.remove(0);
        (first, networks, all)
    }

    /// Returns `volume` with a name of this test's own, or with the replaced directory.
    fn volume(&self, volume: &str) -> String {
        let (source, target) = volume.split_once(':').unwrap();
        if self.file["volumes"].get(source).is_some() {
            return format!("{}:{target}", self.name(source));
        }
        match source {
            "./openclaw" => format!("{}:{target}", self.config.display()),
            _ => volume.to_owned(),
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let of = |kind: &str| {
            self.file[kind]
                .as_object()
                .unwrap()
                .keys()
                .map(|name| self.name(name))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let script = format!(
            "docker rm --force {}; docker network rm {}; docker volume rm {}",
            of("services"),
            of("networks"),
            of("volumes")
        );
        Command::new("sh").args(["-c", &script]).output().ok();
    }
}

/// Creates an empty directory that belongs to the proxy's user, and returns its path.
fn proxy_dir(path: &Path) -> String {
    fs::remove_dir_all(path).ok();
    fs::create_dir_all(path).unwrap();
    chown(path, Some(PROXY), Some(PROXY)).unwrap();
    path.display().to_string()
}

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
    let mut file = read();
    // The image of these sources in place of the operators', whose build takes minutes.
    let image = &mut file["services"]["llm-proxy-openclaw"]["image"];
    assert_eq!(image, "sluicegate/proxy");
    *image = proxy_image().await.into();
    let stack =
        Stack { project: world.installation(), file, config: world.path().join("openclaw"), variables };
    stack.start().await;

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
