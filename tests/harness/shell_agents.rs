//! Writes entries of agents that are shell scripts.

use serde_json::{Value, json};

use crate::{sluice::Outcome, world::World};

/// Script of an agent that answers with the conversation that it was given.
pub const RECALLS: &str =
    r#"jq -j '[.[] | .role + ":" + .content] | join("|")' /workspace/.cogni/messages.json"#;

/// Returns an entry of the registry that runs `script` in a shell, with more settings.
#[must_use]
pub fn shell_agent(script: &str, settings: &str) -> String {
    let script = toml_argument(script);
    let runtime = if settings.contains("run_timeout") { "" } else { "run_timeout = '60s'\n" };
    let image =
        if settings.contains("image = ") { "" } else { "image = 'sluicegate/sandbox-runtime:latest'\n" };
    format!(
        "[agents.'test:sh']\n{image}argv = ['bash', '-c', {script}]\nprotocol = 'text'\n{runtime}{settings}\n"
    )
}

/// Returns `text` as one of the arguments of an entry: a JSON string is a TOML string, and braces are doubled.
#[must_use]
pub fn toml_argument(text: &str) -> String {
    json!(text.replace('{', "{{").replace('}', "}}")).to_string()
}

/// Returns an entry of an agent that runs `script`; its lines are events.
#[must_use]
pub fn reporting_agent(script: &str, settings: &str) -> String {
    shell_agent(script, settings).replace("protocol = 'text'", "protocol = 'events'")
}

/// Returns a script that prints `lines`.
#[must_use]
pub fn prints(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("echo '{line}'; ")).collect()
}

/// Starts a world with an agent that runs `script`.
pub async fn world_with(script: &str) -> World {
    World::with(&shell_agent(script, "")).await
}

/// Runs the world's shell agent to its end.
pub async fn run(world: &World) -> Outcome {
    world.sluice().run(&["run", "--agent", "test:sh", "--run-id", "r1", "--json", "q"]).await
}
