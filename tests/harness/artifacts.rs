//! Makes the files that users install, as `make dist` does, of the programs under test.

use std::process::Output;

use tokio::process::Command;

use crate::process::binary;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/dist.sh");

/// Runs `scripts/dist.sh`, which compresses little.
///
/// # Panics
/// If it cannot be started.
pub async fn run_dist(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(SCRIPT);
    let quick = [("PROFILE", "dev"), ("COMPRESSION", "none"), ("LEVEL", "1")];
    command.args(arguments).envs(quick).env_remove("SIGNING_KEY");
    command.envs(environment.iter().copied()).output().await.unwrap()
}

/// Runs `scripts/dist.sh`, and returns both its outputs.
///
/// # Panics
/// If it fails.
pub async fn dist(arguments: &[&str], environment: &[(&str, &str)]) -> [String; 2] {
    let output = run_dist(arguments, environment).await;
    assert!(output.status.success(), "{output:?}");
    [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
}

/// Returns the directory of the static programs.
///
/// # Panics
/// If they are not built.
#[must_use]
pub fn static_programs() -> String {
    let programs = binary("sluice");
    let dir = programs.parent().unwrap().with_file_name("images").join("dev");
    assert!(dir.join("sluice").exists(), "no static programs in {}: run `make test-image`", dir.display());
    dir.display().to_string()
}
