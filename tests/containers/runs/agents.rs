//! Tests the registry of agents: an entry runs as it says, and an entry that cannot run is reported before or instead.

use std::{cell::RefCell, fs};

use harness::{Outcome, Up, World, docker::docker, eventually::eventually_within};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    recovery::survival::{LEASE, PATIENCE, ended, order},
    sandbox::{shell_agent, toml_argument},
};

const IMAGE: &str = "sluicegate/sandbox-runtime:latest";

/// Docker images and volumes that a test makes beside containers. They are removed on drop.
pub(crate) struct Scraps {
    prefix: String,
    /// Ids of the images.
    images: RefCell<Vec<String>>,
}

impl Scraps {
    pub(crate) fn of(world: &World) -> Self {
        Self { prefix: world.installation(), images: RefCell::default() }
    }

    /// Returns the name of a volume, which may exist or not.
    fn volume(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    /// Makes an image like the one that ships, distinguished by a variable.
    pub(crate) async fn image(&self, name: &str, which: &str) -> String {
        self.commit(name, &["--change", &format!("ENV WHICH={which}")]).await
    }

    /// Makes the same image without the command that the commit would give it.
    pub(crate) async fn image_that_waits(&self, name: &str, which: &str) -> String {
        self.commit(name, &["--change", "CMD []", "--change", &format!("ENV WHICH={which}")]).await
    }

    async fn commit(&self, name: &str, changes: &[&str]) -> String {
        let image = format!("sluice-test:{}-{name}", self.prefix);
        let container = docker(&["create", "--network", "none", IMAGE, "true"]).await;
        let id = docker(&[&["commit"], changes, &[&container, &image]].concat()).await;
        self.images.borrow_mut().push(id);
        docker(&["rm", &container]).await;
        image
    }
}

impl Drop for Scraps {
    fn drop(&mut self) {
        let script = format!(
            "docker volume ls --quiet | grep '^{}-' | xargs --no-run-if-empty docker volume rm --force; docker rmi --force {}",
            self.prefix,
            self.images.borrow().join(" ")
        );
        std::process::Command::new("sh").args(["-c", &script]).output().ok();
    }
}

/// Adds `toml` at the end of the world's configuration.
fn append(world: &World, toml: &str) {
    let config = fs::read_to_string(world.config()).unwrap();
    fs::write(world.config(), format!("{config}{toml}\n")).unwrap();
}

async fn run(world: &World, agent: &str, run: &str) -> Outcome {
    world.sluice().run(&["run", "--agent", agent, "--run-id", run, "--json", "q"]).await
}

fn stdout(outcome: &Outcome) -> String {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.result()["stdout"]["text"].as_str().unwrap().to_owned()
}

fn failure(outcome: &Outcome) -> String {
    assert_eq!(outcome.code, Some(70), "{outcome:?}");
    outcome.result()["error"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_agent_is_added_by_adding_an_entry() {
    let world = World::start().await;
    let unknown = run(&world, "team:greeter", "r1").await;
    assert!(unknown.code == Some(2) && unknown.stderr.contains("no agent team:greeter"), "{unknown:?}");

    let scraps = Scraps::of(&world);
    let image = scraps.image("greeter", "greeter").await;
    let script = r#"printf '%s\n' "$@" "$GREETING" "$RUN_ID" "$WHICH"
        [ $(df --output=size --block-size=1M /workspace | tail -n 1) -le 32 ] && echo small
        curl -sS "$API/chat/completions" -H 'content-type: application/json' \
            -d "{\"model\":\"$COGNI_MODEL\",\"messages\":[]}" | jq -r .model"#;
    append(
        &world,
        &format!(
            "[agents.'team:greeter']\nname = 'Greeter'\nimage = '{image}'\nprotocol = 'text'\nmodel = 'fake-words3'\ndisk = '32 MiB'\n\
             argv = ['bash', '-c', {}, 'greeter', '{{run_id}}', '--model={{model}}', '$(id) {{{{x}}}}; `id`']\n\
             environment = {{ GREETING = 'hello {{run_id}}', API = 'http://localhost:8080/v1' }}",
            toml_argument(script)
        ),
    );
    let outcome = run(&world, "team:greeter", "r1").await;
    let expected = "r1\n--model=fake-words3\n$(id) {x}; `id`\nhello r1\nr1\ngreeter\nsmall\nfake-words3\n";
    assert_eq!(stdout(&outcome), expected);
    let record = world.records(1).await.pop().unwrap().record;
    assert_eq!(serde_json::to_value(&record).unwrap()["graph"], "team:greeter");
    world.assert_nothing_left().await;
}

/// The volume is not created, either.
#[tokio::test]
async fn a_missing_volume_fails_the_run() {
    let world = World::with(&shell_agent("ls /data", "")).await;
    let scraps = Scraps::of(&world);
    let typo = scraps.volume("typo");
    append(&world, &format!("volumes = [{{ volume = '{typo}', container_path = '/data' }}]"));
    let told = failure(&run(&world, "test:sh", "r1").await);
    assert!(told.contains(&format!("volume {typo} is not on this host")), "{told}");
    assert!(told.contains(&format!("`docker volume create {typo}`")) && told.contains("`volumes`"), "{told}");
    let known = || docker(&["volume", "ls", "--quiet"]);
    assert!(!known().await.contains(&typo), "nobody has made it");
    world.assert_nothing_left().await;
    // Control: Docker itself would have done that.
    let mount = format!("type=volume,source={typo},target=/data,readonly");
    docker(&["run", "--rm", "--network", "none", "--entrypoint", "true", "--mount", &mount, IMAGE]).await;
    assert!(known().await.contains(&typo));
    // Now it is there, and the same entry runs.
    assert_eq!(stdout(&run(&world, "test:sh", "r2").await), "");
}

#[tokio::test]
async fn volumes_are_read_only_unless_stated() {
    let script = "cat /data/file; touch /data/x 2>&1 | grep -o 'Read-only file system'; echo kept > /cache/file; ls /var/cache | wc -l";
    let world = World::with(&shell_agent(script, "")).await;
    let scraps = Scraps::of(&world);
    let [data, cache, empty, control] = ["data", "cache", "empty", "control"].map(|name| scraps.volume(name));
    for volume in [&data, &cache, &empty, &control] {
        docker(&["volume", "create", volume]).await;
    }
    let bash = ["run", "--rm", "--network", "none", "--user", "0", "--entrypoint", "bash", "--volume"];
    let inside = async |volume: &str, at: &str, script: &str| {
        docker(&[&bash[..], &[&format!("{volume}:{at}"), IMAGE, "-c", script]].concat()).await
    };
    inside(&data, "/v", "echo shared > /v/file").await;
    inside(&cache, "/v", "chown 1001:1001 /v").await;
    append(
        &world,
        &format!(
            "volumes = [{{ volume = '{data}', container_path = '/data' }}, \
             {{ volume = '{cache}', container_path = '/cache', read_only = false }}, \
             {{ volume = '{empty}', container_path = '/var/cache' }}]"
        ),
    );
    // An empty volume stays empty, although Docker would copy the image's files into it.
    assert_eq!(stdout(&run(&world, "test:sh", "r1").await), "shared\nRead-only file system\n0\n");
    assert_ne!(inside(&control, "/var/cache", "ls /var/cache | wc -l").await, "0", "control");
    assert_eq!(inside(&cache, "/v", "cat /v/file").await, "kept", "what is the operator's stays");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_pinned_image_is_exact_or_missing() {
    let id = docker(&["inspect", "--format", "{{.Id}}", IMAGE]).await;
    let world = World::with(&shell_agent("echo here", &format!("image = '{id}'"))).await;
    assert_eq!(stdout(&run(&world, "test:sh", "r1").await), "here\n");
    let digits = "0".repeat(64);
    for pinned in [format!("sha256:{digits}"), format!("sluicegate/sandbox-runtime@sha256:{digits}")] {
        let world = World::with(&shell_agent("true", &format!("image = '{pinned}'"))).await;
        let told = failure(&run(&world, "test:sh", "r1").await);
        assert!(
            told.contains(&format!("image {pinned} is not on this host: pull or load that very image")),
            "{told}"
        );
        world.assert_nothing_left().await;
    }
}

#[tokio::test]
async fn a_moved_tag_does_not_change_a_run() {
    let mut world = World::with(&shell_agent("echo $WHICH", LEASE)).await;
    assert!(world.stop_proxy().await);
    let scraps = Scraps::of(&world);
    let image = scraps.image("moving", "first").await;
    world.reconfigure("image = 'sluicegate/sandbox-runtime:latest'", &format!("image = '{image}'"));
    let mut up = Up::start(world.sluice().env("SLUICE_FAILPOINT", "prepared:kill")).await;
    order(&world, "r1", "test:sh").await;
    assert_eq!(up.death().await, Some(9));
    // The first image no longer has a name; a container that belongs to no run keeps it on the host.
    let keeper = format!("{}-keeper", world.installation());
    docker(&["create", "--name", &keeper, "--network", "none", &image, "true"]).await;
    scraps.image("moving", "second").await;
    let next = Up::start(world.sluice()).await;
    let record = ended(&world, "r1").await;
    order(&world, "r2", "test:sh").await;
    let control = ended(&world, "r2").await;
    docker(&["rm", &keeper]).await;
    assert_eq!((record["answer"].as_str(), record["epoch"].as_u64()), (Some("first"), Some(2)), "{record:#}");
    assert_eq!(control["answer"], "second", "control: {control:#}");
    next.stop(Signal::TERM).await;
    kill_process(Pid::from_raw(up.proxy_pid.cast_signed()).unwrap(), Signal::KILL).ok();
    eventually_within(PATIENCE, "nothing is left", || world.left(), Vec::is_empty).await;
}

/// Returns the lines without those of OpenClaw: its image may be on this host or not.
fn without_openclaw(printed: &str) -> Vec<&str> {
    printed.lines().filter(|line| !line.contains("sandbox:openclaw")).collect()
}

#[tokio::test]
async fn check_says_which_agents_cannot_run_and_why() {
    let world = World::start().await;
    let check =
        async |arguments: &[&str]| world.sluice().run(&[&["agents", "check"], arguments].concat()).await;
    let fine = check(&[]).await;
    assert_eq!(fine.code, Some(0), "without OpenClaw's image, too: {fine:?}");
    assert_eq!(without_openclaw(&fine.stdout), ["ok          sandbox:agent"]);
    append(&world, "[agents.'a:gateway']\nmode = 'gateway'\ngateways = ['g']\n[gateways.g]\n");
    append(
        &world,
        "[agents.'a:image']\nargv = ['node', '/agent/run.mjs']\nimage = 'no-such-image:1'\n\
         [agents.'a:model']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nmodel = 'no-such-model'\n\
         [agents.'a:models']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nmodels = ['fake-words3']\n\
         [agents.'a:volume']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nvolumes = [{ volume = 'no-such-volume', container_path = '/data' }]\n",
    );
    let outcome = check(&[]).await;
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    let lines = without_openclaw(&outcome.stdout);
    for (line, expected) in lines.iter().zip([
        "cannot run  a:gateway: gateway g cannot be reached: cannot read the gateway's token ",
        "cannot run  a:image: image no-such-image:1 is not on this host: `docker pull no-such-image:1` or build it",
        "cannot run  a:model: the upstream does not offer its model no-such-model to the gateway's key: add it there, or set `model` to one of ",
        "cannot run  a:models: its model fake is not among its `models`: add it there, or set `model` to one of fake-words3",
        "cannot run  a:volume: volume no-such-volume is not on this host: `docker volume create no-such-volume`",
        "ok          sandbox:agent",
    ]) {
        assert!(line.starts_with(expected), "{expected}: {line}");
    }
    assert_eq!(lines.len(), 6, "{outcome:?}");
    let json = check(&["--json"]).await;
    let cannot_run = json.result()["cannotRun"].as_array().unwrap().clone();
    let faults = cannot_run.iter().filter(|agent| agent["agentId"] != "sandbox:openclaw");
    assert_eq!((json.code, faults.count()), (Some(1), 5), "{json:?}");
    // `sluice doctor` says the same of them, and checks the rest.
    let doctor = world.sluice().run(&["doctor", "--json"]).await;
    let report = doctor.result();
    let verdict = |name: &str| {
        report["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).unwrap().clone()
    };
    let found = verdict("agents")["found"].as_str().unwrap().to_owned();
    for line in lines.iter().filter_map(|line| line.strip_prefix("cannot run  ")) {
        assert!(found.contains(line), "{line}: {found}");
    }
    assert_eq!(
        (doctor.code, &verdict("socket in a container")["verdict"]),
        (Some(69), &"ok".into()),
        "{doctor:?}"
    );
    let refused = run(&world, "a:gateway", "r1").await;
    assert!(refused.code == Some(70) && refused.stdout.contains("its gateway cannot be used"), "{refused:?}");
    append(
        &world,
        "[agents.'a:mistake']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nmode = 'x'",
    );
    assert_eq!(check(&[]).await.code, Some(2), "mistakes come first");
}

#[tokio::test]
async fn without_docker_agent_checks_are_unknown() {
    let world = World::start().await;
    let away = ["agents", "check", "--set", "sandbox.docker_socket=/nowhere/docker.sock"];
    let outcome = world.sluice().run(&away).await;
    let begin = "not known   sandbox:agent: cannot tell whether it can run: ";
    assert!(outcome.code == Some(69) && outcome.stdout.starts_with(begin), "{outcome:?}");
    // Control: of one that could not run anyway that is known.
    append(&world, "[agents.'a:gateway']\nmode = 'gateway'\ngateways = ['g']\n[gateways.g]\n");
    assert_eq!(world.sluice().run(&away).await.code, Some(1));
}
