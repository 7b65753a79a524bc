//! Configuration as the commands meet it: every mistake at once, and a schema that says what there is.

use std::fs;

use harness::World;

/// A file with a mistake on every line that has a number.
const MISTAKEN: &str = "\
[upstream]
base_url = 'ftp://litellm' # 2
colour = 'blue' # 3
[proxy]
drain_timeout = 'soon' # 5
threads = 'many' # 6
[sandbox]
installation = 7 # 8
[agents.'team:reviewer']
argv = 'review --all' # 10
protocol = 'xml' # 11
memory = '1 GB' # 12
image = 'reviewer:1'
[colours] # 14
";

#[tokio::test]
async fn mistakes_are_reported_with_file_and_line() {
    let world = World::start().await;
    fs::write(world.config(), MISTAKEN).unwrap();
    let sluice = || world.sluice().env("SLUICE_PROXY_DRIAN", "1s");
    let flags = ["--set", "proxy.colour=red", "--set", "nonsense"];
    let outcome = sluice().run(&[&["config", "check"], &flags[..]].concat()).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(2), ""), "{outcome:?}");
    let numbers = MISTAKEN.lines().filter_map(|line| line.split_once(" # "));
    for (line, number) in numbers {
        let place = format!("\n  {}:{number}: ", world.config().display());
        assert_eq!(outcome.stderr.matches(&place).count(), 1, "{line} in {}", outcome.stderr);
    }
    for words in [
        "has 12 errors",
        "upstream.colour: unknown key; known here: ",
        "proxy.drain_timeout: ",
        "environment variable SLUICE_PROXY_DRIAN: ",
        "--set proxy.colour=red: ",
        "--set nonsense: ",
    ] {
        assert!(outcome.stderr.contains(words), "{words} is not in {}", outcome.stderr);
    }
    let ran = world.sluice().run(&["run", "Hello?"]).await;
    assert_eq!(ran.code, Some(2), "no command works with half a configuration: {ran:?}");
}

#[tokio::test]
async fn a_bad_agent_id_is_reported_with_its_line() {
    let world = World::start().await;
    let good = fs::read_to_string(world.config()).unwrap();
    fs::write(world.config(), format!("{good}[agents.'team:reviewer']\n[agents.reviewer]\n")).unwrap();
    let outcome = world.sluice().run(&["config", "check"]).await;
    let line = good.lines().count() + 2;
    let place =
        format!("{}:{line}: agents.reviewer: `reviewer` is not an agent id", world.config().display());
    assert!(outcome.stderr.contains(&place), "{place} is not in {}", outcome.stderr);
}

#[tokio::test]
async fn a_correct_configuration_is_valid() {
    let world = World::start().await;
    let outcome = world.sluice().run(&["config", "check"]).await;
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    let read = format!("the configuration is valid, 2 agents, from {}\n", world.config().display());
    assert_eq!(outcome.stdout, read);
    let missing = world.sluice().run(&["config", "check", "--config", "/nowhere/sluice.toml"]).await;
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.stderr.contains("/nowhere/sluice.toml"), "{}", missing.stderr);
}

#[tokio::test]
async fn flags_override_environment_overrides_file() {
    let world = World::start().await;
    let docker = async |sluice: harness::sluice::Sluice, flags: &[&str]| {
        sluice.run(&[&["run", "--json"], flags, &["q"]].concat()).await.stderr
    };
    let by_environment = || world.sluice().env("SLUICE_SANDBOX_DOCKER_SOCKET", "/by/environment");
    let complaint = docker(by_environment(), &[]).await;
    assert!(complaint.contains("Docker does not answer on /by/environment"), "{complaint}");
    let complaint = docker(by_environment(), &["--set", "sandbox.docker_socket=/by/flag"]).await;
    assert!(complaint.contains("Docker does not answer on /by/flag"), "{complaint}");
}

#[tokio::test]
async fn the_published_schema_is_up_to_date() {
    // Also where the configuration is broken: an editor needs the schema then most.
    let world = World::start().await;
    fs::write(world.config(), MISTAKEN).unwrap();
    let outcome = world.sluice().run(&["config", "schema"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let schema: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(schema["properties"]["proxy"]["additionalProperties"], false, "{schema:#}");
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../platform/config/sluice.schema.json");
    assert_eq!(outcome.stdout, fs::read_to_string(published).unwrap(), "run `sluice config schema`");
}
