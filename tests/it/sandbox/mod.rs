//! Tests what a sandbox is denied and granted, seen from inside a real container.

mod disk;
mod ends;
mod failures;
mod hostile;
mod init;
mod limits;
mod network;
mod secrets;
mod walls;
mod workspace;

use harness::{Outcome, World};

/// Returns an entry of the registry that runs `script` in a shell, with more settings.
pub(crate) fn shell_agent(script: &str, settings: &str) -> String {
    let script = toml_argument(script);
    let runtime = if settings.contains("run_timeout") { "" } else { "run_timeout = '20s'\n" };
    let image =
        if settings.contains("image = ") { "" } else { "image = 'sluicegate/sandbox-runtime:latest'\n" };
    format!(
        "[agents.'test:sh']\n{image}argv = ['bash', '-c', {script}]\nprotocol = 'text'\n{runtime}{settings}\n"
    )
}

/// Returns `text` as one of the arguments of an entry: a JSON string is a TOML string, and braces are doubled.
pub(crate) fn toml_argument(text: &str) -> String {
    serde_json::json!(text.replace('{', "{{").replace('}', "}}")).to_string()
}

/// Starts a world with an agent that runs `script`.
pub(crate) async fn world_with(script: &str) -> World {
    World::with(&shell_agent(script, "")).await
}

/// Runs the world's shell agent to its end.
pub(crate) async fn run(world: &World) -> Outcome {
    world.sluice().run(&["run", "--agent", "test:sh", "--run-id", "r1", "--json", "q"]).await
}

/// Returns the output of `script` in a sandbox. It must succeed, and leave nothing.
async fn inside(script: &str) -> String {
    let world = world_with(script).await;
    let outcome = run(&world).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    world.assert_nothing_left().await;
    outcome.result()["stdout"]["text"].as_str().unwrap().to_owned()
}
