//! Tests `sluicegate.yaml`: LiteLLM, its Postgres and the data plane. Images of the same programs, built from Debian's and
//! Python's packages, stand in for those that a host without an image registry cannot pull.

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{
    Agent, FaultProxy, World,
    docker::{docker, host, proxy_image},
    eventually, private_file,
};
use platform_core::{name::env, record::CostSource};
use serde_json::{Value, json};

use super::stack::{PROXY, Stack, proxy_dir, read, texts};

const SERVICES: [&str; 3] = ["postgres", "litellm", "llm-proxy-openclaw"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn text(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap()
}

/// Runs a program of the repository, and returns what it prints.
fn output(command: &mut Command) -> String {
    let output = command.current_dir(repository()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Builds the image that stands in for those of LiteLLM and Postgres. Docker keeps its layers.
fn build_standins() -> String {
    let base = output(Command::new("services/base-image/build.sh").arg("--print"));
    let mut build = Command::new("docker");
    build.args([
        "build",
        "--quiet",
        "--tag",
        "sluicegate/standins",
        "--build-arg",
        &format!("BASE_IMAGE={base}"),
    ]);
    build.arg("tests/clients/compose/standins");
    output(build.env("DOCKER_BUILDKIT", "0"))
}

/// Makes the services of Postgres and LiteLLM run the programs of this machine's cache.
fn use_standins(file: &mut Value) {
    let image = build_standins();
    let cluster = output(Command::new("scripts/litellm.sh").arg("cluster"));
    let cache = Path::new(&cluster).ancestors().nth(3).unwrap().display().to_string();
    for name in ["postgres", "litellm"] {
        let service = &mut file["services"][name];
        service["image"] = image.clone().into();
        let volumes = service["volumes"].as_array_mut().unwrap();
        volumes.push(format!("{cache}/sluicegate:{cache}/sluicegate:ro").into());
        volumes.push(format!("{}:/scripts:ro", repository().join("scripts").display()).into());
        service["environment"]["XDG_CACHE_HOME"] = cache.clone().into();
        service["environment"]["CLUSTER"] = cluster.clone().into();
    }
    file["services"]["postgres"]["command"] = json!(["postgres-standin"]);
}

/// Writes the files that the README lists, with a model of the scripted upstream. Returns the values of variables.
fn write_files(world: &World, upstream: &str) -> Vec<(&'static str, String)> {
    let dir = |name: &str| world.path().join(name);
    for name in ["secrets", "litellm"] {
        fs::create_dir(dir(name)).unwrap();
    }
    for name in ["LITELLM_MASTER_KEY", "LITELLM_SALT_KEY", "POSTGRES_PASSWORD", "OPENAI_API_KEY"] {
        private_file(&dir("secrets").join(name), &format!("sk-{}", name.to_lowercase()));
    }
    for name in ["config.yaml", "start.sh"] {
        fs::copy(repository().join("platform/litellm").join(name), dir("litellm").join(name)).unwrap();
    }
    let model = json!({
        "model": "openai/fake", "api_base": format!("{upstream}/v1"), "api_key": "os.environ/OPENAI_API_KEY",
        "input_cost_per_token": 0.000_001, "output_cost_per_token": 0.000_002,
    });
    let models = json!({ "model_list": [{ "model_name": "fake", "litellm_params": model }] });
    fs::write(dir("litellm/models.yaml"), models.to_string()).unwrap();
    let etc = proxy_dir(&dir("etc"));
    let config = "[upstream]\nbase_url = 'http://overruled'\nkey_file = '/etc/sluicegate/upstream.key'\n\
                  [proxy]\nthreads = 1\n\
                  [runs.run-1]\naccount = 'acct-1'\nsocket = '/run/sluicegate/run-1.sock'\npeer_uid = 0\n";
    fs::write(dir("etc/sluice.toml"), config).unwrap();
    vec![
        ("SLUICE_SECRETS", dir("secrets").display().to_string()),
        ("SLUICE_ETC", etc),
        ("SLUICE_RUN", proxy_dir(&dir("run"))),
        ("SLUICE_STATE", proxy_dir(&dir("proxy-state"))),
    ]
}

#[tokio::test]
async fn the_stack_answers_and_prices_a_call() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let upstream = world.upstream.base_url().trim_start_matches("http://").parse().unwrap();
    let fault_proxy = FaultProxy::at(SocketAddr::new(host().await, 0), upstream).await;
    let variables = write_files(&world, &fault_proxy.base_url());
    let mut file = read("sluicegate.yaml");
    use_standins(&mut file);
    file["services"]["llm-proxy-openclaw"]["image"] = proxy_image().await.into();
    let directories = vec![("../litellm", world.path().join("litellm").display().to_string())];
    let stack = Stack { project: world.installation(), file, directories, variables };
    stack.create_networks().await;
    stack.start(&SERVICES[..2]).await;
    mint_key(&world, &stack).await;
    stack.start(&SERVICES[2..]).await;

    let proxy = stack.name("llm-proxy-openclaw");
    let models = docker(&["exec", &proxy, "/sluice-proxy", "--check-upstream"]).await;
    assert!(models.contains(r#""fake""#), "the health check: {models}");
    let agent = Agent::on(&world.path().join("run/run-1.sock"));
    let connect = || async { agent.connect().await.map(drop) };
    eventually("it serves", connect, Result::is_ok).await.unwrap();
    let answer = agent.chat("fake").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let journal = world.records(1).await;
    let record = &journal[0].record;
    assert_eq!((record.run_id.as_str(), record.account.as_str()), ("run-1", "acct-1"));
    assert_eq!(record.cost_source, CostSource::Upstream, "{record:?}");
    assert!(record.cost_nanodollars.is_some_and(|cost| cost.0 > 0), "{record:?}");
}

/// Mints the proxy's key as the README says, and gives it to the proxy's user.
async fn mint_key(world: &World, stack: &Stack) {
    let network = stack.name("providers");
    let address = format!("{{{{(index .NetworkSettings.Networks {network:?}).IPAddress}}}}");
    let address = docker(&["inspect", "--format", &address, &stack.name("litellm")]).await;
    let key = world.path().join("etc/upstream.key");
    let mut mint = Command::new("platform/litellm/mint-key.sh");
    mint.arg(&key).arg("fake").env("LITELLM_BASE_URL", format!("http://{address}:4000"));
    output(mint.env("LITELLM_MASTER_KEY_FILE", world.path().join("secrets/LITELLM_MASTER_KEY")));
    chown(key, Some(PROXY), Some(PROXY)).unwrap();
}

/// Each name and option of the files is one that the code, the scripts or another file knows.
#[test]
fn names_of_the_files_exist() {
    let file = read("sluicegate.yaml");
    assert_eq!(keys(&file["services"]), SERVICES.into_iter().collect());
    let proxy = &file["services"]["llm-proxy-openclaw"];
    let openclaw = read("openclaw.yaml");
    assert_eq!(
        (&file["name"], &openclaw["name"]),
        (&json!("sluicegate"), &json!("sluicegate")),
        "one project"
    );
    let gateway = &openclaw["services"]["llm-proxy-openclaw"];
    for key in ["image", "networks", "volumes", "read_only", "cap_drop", "security_opt", "restart"] {
        assert_eq!(proxy[key], gateway[key], "both files describe one service: {key}");
    }
    assert_eq!(keys(&proxy["environment"]), [env::LITELLM_BASE_URL].into_iter().collect());
    let settings = platform_runtime::settings::Settings::json_schema();
    for (key, target) in [("state_dir", "/var/lib/sluicegate/proxy"), ("run_dir", "/run/sluicegate")] {
        assert_eq!(settings["properties"]["proxy"]["properties"][key]["default"], target);
        assert!(texts(&proxy["volumes"]).any(|volume| volume.ends_with(&format!(":{target}"))), "{target}");
    }
    let config = text("platform/compose/openclaw/openclaw.json");
    assert!(config.contains("http://llm-proxy-openclaw:8080/v1"), "{config}");
    let version = text("scripts/litellm.sh");
    let version = version.lines().find_map(|line| line.strip_prefix("VERSION=")).unwrap();
    let image = format!("ghcr.io/berriai/litellm-database:v{version}");
    assert_eq!(file["services"]["litellm"]["image"], image, "the version that tests run");
    assert!(keys(&file["secrets"]).contains(env::LITELLM_MASTER_KEY));
    has_the_secrets_that_litellm_reads(&file);
    for network in ["sandbox-internal", "upstream", "ledger"] {
        assert_eq!(file["networks"][network]["internal"], true, "{network}");
    }
    units_let_docker_see_mounts();
}

fn keys(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

fn has_the_secrets_that_litellm_reads(file: &Value) {
    let all = text("platform/litellm/config.yaml") + &text("platform/litellm/models.yaml");
    let read: BTreeSet<_> = all
        .split("os.environ/")
        .skip(1)
        .map(|rest| rest.split(|char: char| !(char.is_ascii_uppercase() || char == '_')).next().unwrap())
        .collect();
    assert!(read.contains(env::LITELLM_MASTER_KEY), "{read:?}");
    let given: BTreeSet<_> = texts(&file["services"]["litellm"]["secrets"]).collect();
    assert!(read.is_subset(&given), "{read:?} of {given:?}");
    assert_eq!(given, keys(&file["secrets"]));
    assert!(text("platform/litellm/start.sh").contains("$POSTGRES_PASSWORD@postgres:5432/litellm"));
}

/// `sluice.service` mounts workspaces that Docker has to see.
fn units_let_docker_see_mounts() {
    let hides = |unit: &str| {
        let lines: Vec<_> = unit.lines().map(str::to_owned).collect();
        [
            "PrivateTmp=",
            "PrivateMounts=",
            "ProtectSystem=",
            "ProtectHome=",
            "ReadOnlyPaths=",
            "PrivateDevices=",
        ]
        .into_iter()
        .filter(|option| lines.iter().any(|line| line.starts_with(option)))
        .count()
    };
    assert_eq!(hides(&text("platform/systemd/sluice.service")), 0);
    assert!(hides(&text("platform/systemd/sluice-proxy.service")) > 0, "control: the proxy mounts nothing");
}
