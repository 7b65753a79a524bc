//! Finds the generators of clients, and tests an API with schemathesis. `scripts/clients.sh` installs them.

use std::{fs, path::Path, process::Stdio};

use tokio::process::Command;

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

/// Returns the pinned versions of the packages that applications install.
///
/// # Panics
/// If the script cannot be read.
#[must_use]
pub fn versions() -> Vec<String> {
    let text = fs::read_to_string(repository().join(SCRIPT)).unwrap();
    let pinned = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap().split(' ').next().unwrap().to_owned()
    };
    [
        ("OPENAPI_PYTHON_CLIENT", "version "),
        ("OPENAPI_TYPESCRIPT", "openapi-typescript@"),
        ("OPENAPI_FETCH", "openapi-fetch@"),
        ("TYPESCRIPT", "typescript@"),
        ("TSX", "tsx@"),
        ("TYPES_NODE", "@types/node@"),
    ]
    .map(|(name, package)| format!("{package}{}", pinned(name)))
    .to_vec()
}

/// Runs schemathesis in `directory`, and returns whether it found nothing, with its report.
///
/// # Panics
/// If it is not installed.
pub async fn schemathesis(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = script(&[&["schemathesis"], arguments].concat());
    let output = command.current_dir(directory).stdin(Stdio::null()).output().await.unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(text) } else { Err(text) }
}

fn script(arguments: &[&str]) -> Command {
    let mut command = Command::new(repository().join(SCRIPT));
    command.args(arguments).kill_on_drop(true);
    command
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}
