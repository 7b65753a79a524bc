//! Tests what a sandbox is denied and granted, seen from inside a real container.

mod disk;
mod ends;
mod extraction;
mod failures;
mod hostile;
mod init;
mod limits;
mod network;
mod places;
mod secrets;
mod walls;
mod workspace;

pub(crate) use harness::shell_agents::{run, shell_agent, toml_argument, world_with};

/// Returns the output of `script` in a sandbox. It must succeed, and leave nothing.
async fn inside(script: &str) -> String {
    let world = world_with(script).await;
    let outcome = run(&world).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    world.assert_nothing_left().await;
    outcome.result()["stdout"]["text"].as_str().unwrap().to_owned()
}
