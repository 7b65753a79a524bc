//! Tests what an agent's entry gives to each of its runs: its prompt, behaviour files, the limits of its model.

use std::{fs, os::unix::fs::symlink};

use harness::{Up, World};
use platform_core::name::SANDBOX_UID;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    recovery::survival::{ended, order},
    sandbox::shell_agent,
};

/// Script that prints what it was given, and changes its copy.
const LOOKS: &str = r#"cat AGENTS.md SOUL.md; stat -c %u:%a SOUL.md; ls *.md | wc -l; jq -c '.[0]' .cogni/messages.json
    echo $COGNI_CONTEXT_WINDOW $COGNI_MAX_TOKENS; echo changed > SOUL.md"#;

/// Returns a world with such an agent; its behaviour directory is in the world's directory.
async fn world(settings: &str) -> World {
    let world = World::start().await;
    let dir = world.path().join("behaviour");
    fs::create_dir(&dir).unwrap();
    for (name, text) in [("AGENTS.md", "Work.\n"), ("SOUL.md", "Be kind.\n"), ("private.md", "no")] {
        fs::write(dir.join(name), text).unwrap();
    }
    let agent =
        shell_agent(LOOKS, &format!("prompt = 'Be brief.'\nbehaviour_dir = '{}'\n{settings}", dir.display()));
    let models = "[models.fake]\ncontext_window = 128000\nmax_output_tokens = 9000\n";
    let config = fs::read_to_string(world.config()).unwrap();
    fs::write(world.config(), format!("{config}\n{agent}{models}")).unwrap();
    world
}

fn expected() -> String {
    let prompt = json!({ "role": "system", "content": "Be brief." });
    // The proxy cuts answers off at 8192 tokens.
    format!("Work.\nBe kind.\n{SANDBOX_UID}:644\n2\n{prompt}\n128000 8192\n")
}

fn same_json(printed: &str) -> String {
    let line =
        |line: &str| serde_json::from_str::<Value>(line).map_or(line.to_owned(), |json| json.to_string());
    printed.lines().map(|text| line(text) + "\n").collect()
}

#[tokio::test]
async fn a_run_has_its_agents_data() {
    let world = world("").await;
    let run = async || world.sluice().run(&["run", "--agent", "test:sh", "q"]).await;
    for _ in 0..2 {
        let outcome = run().await;
        assert_eq!(
            same_json(&outcome.stdout),
            expected(),
            "the run before changed its own copy: {outcome:?}"
        );
    }
    let soul = world.path().join("behaviour/SOUL.md");
    fs::remove_file(&soul).unwrap();
    symlink("/etc/hostname", &soul).unwrap();
    let outcome = run().await;
    assert!(outcome.code == Some(2) && outcome.stderr.contains("SOUL.md is a link"), "{outcome:?}");
    world.assert_nothing_left().await;
}

/// The image of OpenClaw reads this variable.
#[tokio::test]
async fn a_run_has_the_openclaw_agent_it_names() {
    let script = "echo $SANDBOX_OPENCLAW_AGENT";
    let described = "[agents.'test:sh'.openclaw_agents]\nreviewer = { tools = ['read', 'edit'] }\nmute = { tools = [] }\n";
    let world = World::with(&shell_agent(script, described)).await;
    let run = async |arguments: &[&str]| {
        let outcome = world.sluice().run(&[&["run", "--agent", "test:sh"][..], arguments].concat()).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout.trim().to_owned()
    };
    assert_eq!(run(&["q"]).await, "main:exec,process,read,write,edit,apply_patch");
    assert_eq!(run(&["--gateway-agent", "mute", "q"]).await, "mute:");
    let chat = ["--state-key", "chat", "q"];
    assert_eq!(run(&[&["--gateway-agent", "reviewer"][..], &chat].concat()).await, "reviewer:read,edit");
    assert_eq!(run(&chat).await, "reviewer:read,edit", "the thread goes on with it");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_warm_container_gets_its_agents_data() {
    let mut world = world("disk = '64MiB'\nwarm_pool_size = 1\n").await;
    assert!(world.stop_proxy().await);
    let up = Up::start(world.sluice()).await;
    super::warm::until_ready(&world, 1).await;
    order(&world, "r1", "test:sh").await;
    let record = ended(&world, "r1").await;
    assert_eq!(same_json(record["answer"].as_str().unwrap()), expected(), "{record:#}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}
