//! The command line, as a person or a script meets it.

use harness::{World, advice::quoted, eventually::PATIENCE, process::binary};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

use crate::sandbox::{run, shell_agent};

fn verdicts(doctor: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    doctor["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| (text(&check["name"]), text(&check["verdict"])))
        .collect()
}

#[tokio::test]
async fn doctor_finds_a_good_world_good() {
    let world = World::start().await;
    let outcome = world.sluice().run(&["doctor", "--json"]).await;
    let doctor: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((outcome.code, &doctor["ready"]), (Some(0), &json!(true)), "{outcome:?}");
    assert!(verdicts(&doctor).iter().all(|(_, verdict)| verdict == "ok"), "{doctor}");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn doctor_names_each_problem_and_its_fix() {
    let table = [
        ("sandbox.docker_socket=/no/docker.sock", "docker", "start Docker"),
        ("proxy.run_dir=/tmp/no-proxy-here", "proxy", "sluice up"),
    ];
    for (setting, broken, fix) in table {
        check_doctor(&World::start().await, &["--set", setting], broken, fix).await;
    }
    check_doctor(
        &World::with("[agents.'test:x']\nargv = ['node', '/agent/run.mjs']\nimage = 'no-such-image:1'").await,
        &[],
        "agents",
        "sluice images build",
    )
    .await;
    let nobody = bench::upstream::ScriptedUpstream::start().await.unwrap();
    check_doctor(&World::in_front_of(nobody, "http://127.0.0.1:9", "").await, &[], "upstream", "base_url")
        .await;
}

async fn check_doctor(world: &World, arguments: &[&str], broken: &str, fix: &str) {
    let outcome = world.sluice().run(&[arguments, &["doctor", "--json"]].concat()).await;
    let doctor: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let check = doctor["checks"].as_array().unwrap().iter().find(|check| check["name"] == broken).unwrap();
    assert_eq!((outcome.code, &check["verdict"]), (Some(69), &json!("broken")), "{broken}: {outcome:?}");
    assert!(check["fix"].as_str().unwrap().contains(fix), "{broken}: {check}");
}

#[tokio::test]
async fn agents_are_listed_as_the_catalogue_specifies() {
    let world = World::with("[agents.'team:reviewer']\nargv = ['node', '/agent/run.mjs']\nname = 'Reviewer'\nimage = 'no-such-image:1'").await;
    let entry = |id: &str, name: &str| json!({ "agentId": id, "graphId": id, "name": name, "description": "LLM agent in an isolated container" });
    let mut reviewer = entry("team:reviewer", "Reviewer");
    reviewer["reasons"] = json!([{
        "code": "image_missing",
        "message": "image no-such-image:1 is not on this host: `docker pull no-such-image:1` or build it, or name another one for the agent",
    }]);
    let expected = json!({
        "defaultAgentId": "sandbox:agent",
        "agents": [entry("sandbox:agent", "Sandbox Agent")],
        "cannotRun": [reviewer],
        "notes": [],
    });
    for arguments in [&["agents", "--json"][..], &["agents", "ls", "--json"]] {
        let outcome = world.sluice().run(arguments).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let mut listed = serde_json::from_str::<Value>(&outcome.stdout).unwrap();
        // Whether OpenClaw's image is here, is another test's question.
        for agents in ["agents", "cannotRun", "notes"] {
            listed[agents].as_array_mut().unwrap().retain(|agent| agent["agentId"] != "sandbox:openclaw");
        }
        assert_eq!(listed, expected);
    }
}

#[tokio::test]
async fn the_journal_is_tailed_filtered_and_followed() {
    let world = World::start().await;
    let (one, two) = (world.run("r1", "acct-1").await, world.run("r2", "acct-2").await);
    one.agent.chat("fake").await;
    two.agent.chat("fake").await;
    let all = world.sluice().run(&["audit", "tail"]).await.events();
    assert_eq!(all.iter().map(|line| line["run_id"].as_str().unwrap()).collect::<Vec<_>>(), ["r1", "r2"]);
    assert_eq!(world.sluice().run(&["audit", "tail", "--run", "r2"]).await.events().len(), 1);

    let mut tail = world.sluice().spawn(&["audit", "tail", "--run", "r1", "--follow"]);
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    lines.next_line().await.unwrap();
    one.agent.chat("fake-words3").await;
    let followed = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&followed).unwrap()["model_asked"], "fake-words3");
}

#[tokio::test]
async fn all_configuration_mistakes_come_at_once() {
    let world = World::start().await;
    let config = world.config();
    let good = std::fs::read_to_string(&config).unwrap();
    assert_eq!(world.sluice().run(&["config", "check"]).await.code, Some(0));
    std::fs::write(&config, good + "\n[agents.'test:x']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nmemroy = '1 GiB'\nrun_timeout = 'soon'\n[proxi]\n")
        .unwrap();
    let outcome = world.sluice().env("SLUICE_PROXY_THREADS", "many").run(&["config", "check"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    for mistake in [
        "4 errors",
        "agents.test:x.memroy: unknown key",
        "agents.test:x.run_timeout: `soon`",
        "proxi: unknown key",
        "SLUICE_PROXY_THREADS",
    ] {
        assert!(outcome.stderr.contains(mistake), "{mistake} is missing in {}", outcome.stderr);
    }
    assert!(outcome.stderr.contains("sluice.toml:"), "{}", outcome.stderr);
}

/// Escapes pass only with `--raw`.
#[tokio::test]
async fn agent_output_cannot_drive_the_terminal() {
    let world = World::with(&shell_agent(
        r"printf '\033]0;title\007plain\033[31mred\342\200\256'; printf '\033[2Jgone' >&2",
        "",
    ))
    .await;
    let outcome = world.sluice().run(&["run", "--agent", "test:sh", "q"]).await;
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("plainred\n", "gone"));
    let raw = world.sluice().run(&["run", "--agent", "test:sh", "--raw", "q"]).await;
    assert!(raw.stdout.contains("\x1b]0;title\x07") && raw.stderr.contains("\x1b[2J"), "{raw:?}");
}

#[tokio::test]
async fn misuse_is_told_what_would_be_right() {
    let mut world = World::start().await;
    let unknown = world.sluice().run(&["run", "--agent", "no:agent", "q"]).await;
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("no agent no:agent; there are: sandbox:agent"), "{}", unknown.stderr);
    assert_eq!(world.sluice().run(&["run", "--account", "a b", "q"]).await.code, Some(2));
    assert!(world.sluice().run(&["--help"]).await.stdout.contains("Examples:"));
    assert!(world.sluice().run(&["completions", "bash"]).await.stdout.contains("complete -F _sluice"));
    assert!(world.stop_proxy().await);
    let no_proxy = world.sluice().run(&["run", "q"]).await;
    assert_eq!(no_proxy.code, Some(69));
    assert!(no_proxy.stderr.contains("start one with `sluice up`"), "{}", no_proxy.stderr);
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn each_program_says_its_name_and_version() {
    for name in ["sluice", "sluice-proxy"] {
        let output = Command::new(binary(name)).arg("--version").output().await.unwrap();
        let expected = format!("{name} {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}

#[tokio::test]
async fn a_run_without_a_model_lists_the_models() {
    let world = World::start().await;
    let config = std::fs::read_to_string(world.config()).unwrap().replace("default_model = 'fake'\n", "");
    std::fs::write(world.config(), config).unwrap();
    let outcome = world.sluice().run(&["run", "q"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("the upstream offers: fake"), "{outcome:?}");
    let [option] = &quoted(&outcome.stderr, "--model")[..] else { panic!("{outcome:?}") };
    let followed: Vec<_> = ["run", "q"].into_iter().chain(option.split(' ')).collect();
    let answered = world.sluice().run(&followed).await;
    assert_eq!(answered.code, Some(0), "{answered:?}");
}

#[tokio::test]
async fn two_runs_at_once_have_their_own_answers() {
    let world = World::with(&shell_agent("sleep 0.3; echo $RUN_ID", "")).await;
    let one = world.sluice().run(&["run", "--agent", "test:sh", "--run-id", "one", "q"]);
    let (one, two) =
        tokio::join!(one, world.sluice().run(&["run", "--agent", "test:sh", "--run-id", "two", "q"]));
    assert_eq!((one.stdout.as_str(), two.stdout.as_str()), ("one\n", "two\n"));
    let again = run(&world).await;
    assert_eq!(again.code, Some(0), "{again:?}");
    // A store that knows nothing of the first one does not make its id good again: the proxy remembers, too.
    let elsewhere = format!("store.url=sqlite://{}/elsewhere/sluice.db", world.path().display());
    let arguments = ["run", "--agent", "test:sh", "--run-id", "r1", "--json", "--set", &elsewhere, "q"];
    let reused = world.sluice().run(&arguments).await;
    assert!(
        reused.result()["error"]["detail"].as_str().unwrap().contains("a closed run is not opened again"),
        "{reused:?}"
    );
    world.assert_nothing_left().await;
}
