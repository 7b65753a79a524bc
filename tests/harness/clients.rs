//! Finds the generators of clients, runs Temporal's SDK, and tests an API with schemathesis. `scripts/clients.sh` installs
//! them.

use std::{fs, path::Path, process::Stdio};

use serde_json::Value;
use tokio::process::Command;

use crate::{chat_clients::ChatClients, sdks::output_of};

const SCRIPT: &str = "scripts/clients.sh";

/// Returns the directory in which the generators are installed.
///
/// # Panics
/// If they are not installed.
pub async fn folder() -> String {
    let output = script(&["folder"]).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns packages with their pinned versions, as a page writes them. Each is the name of a version in the script, with
/// the text before it on the page.
///
/// # Panics
/// If the script cannot be read.
#[must_use]
pub fn versions(packages: &[(&str, &str)]) -> Vec<String> {
    let text = fs::read_to_string(repository().join(SCRIPT)).unwrap();
    let pinned = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap().split(' ').next().unwrap().to_owned()
    };
    packages.iter().map(|(name, package)| format!("{package}{}", pinned(name))).collect()
}

/// Runs schemathesis in `directory`, and returns its report.
///
/// # Panics
/// If it is not installed, or finds something: with the report.
pub async fn schemathesis(directory: &Path, arguments: &[&str]) -> String {
    let mut command = script(&[&["schemathesis"], arguments].concat());
    let output = command.current_dir(directory).stdin(Stdio::null()).output().await.unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

/// Runs the files of the Temporal example, which are in `directory`, against the API. Returns what it printed, line by line.
///
/// # Panics
/// If the program fails, with its output.
pub async fn temporal(directory: &str, api: &ChatClients, wrong_token: &str) -> Vec<Value> {
    let mut command = script(&["temporal", "tests/sdk/temporal.py", directory, &api.url]);
    command.env("TOKEN", &api.token).env("WRONG_TOKEN", wrong_token).current_dir(repository());
    output_of(command).await
}

fn script(arguments: &[&str]) -> Command {
    let mut command = Command::new(repository().join(SCRIPT));
    command.args(arguments).kill_on_drop(true);
    command
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
