//! Runs the programs of `tests/sdk` with the official SDKs, and aimock. `scripts/sdks.sh` installs both.

use std::{collections::BTreeMap, fs, path::Path, process::Stdio};

use serde_json::Value;
use tokio::process::{Child, Command};

use crate::{agent::Agent, bridge::free_port, eventually::eventually};

/// Language of the official SDKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sdk {
    /// The packages `openai` and `anthropic`.
    Python,
    /// The packages `openai` and `@anthropic-ai/sdk`.
    Node,
}

impl Sdk {
    /// Makes `count` calls of `url`, one after the other, and returns how each ended.
    ///
    /// # Panics
    /// If the program fails, with its output.
    pub async fn calls(self, url: &str, count: usize) -> Vec<Value> {
        let mut program = sdks();
        program.args(match self {
            Self::Python => ["python", "tests/sdk/restarts.py"],
            Self::Node => ["node", "tests/sdk/restarts.mjs"],
        });
        program.args([url, &count.to_string()]);
        output_of(program).await
    }

    /// Runs every case against each of `targets` and returns what it printed, line by line.
    ///
    /// # Panics
    /// If the program fails, with its output.
    pub async fn conform(self, targets: &[Value]) -> Vec<Value> {
        let mut program = sdks();
        program.args(match self {
            Self::Python => ["python", "tests/sdk/conform.py"],
            Self::Node => ["node", "tests/sdk/conform.mjs"],
        });
        program.args(targets.iter().map(Value::to_string));
        output_of(program).await
    }
}

/// Returns the fields that the SDKs document for the body of each route, by its path.
///
/// # Panics
/// If the SDKs are not installed.
pub async fn documented_fields() -> BTreeMap<String, Vec<String>> {
    let mut program = sdks();
    program.args(["python", "tests/sdk/documented.py"]);
    serde_json::from_value(output_of(program).await.remove(0)).unwrap()
}

/// Runs a program; returns the JSON lines that it printed.
pub(crate) async fn output_of(mut program: Command) -> Vec<Value> {
    let output = program.stdin(Stdio::null()).output().await.unwrap();
    assert!(output.status.success(), "{program:?}: {output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A running aimock with the fixtures of `tests/sdk`, killed and removed on drop.
#[derive(Debug)]
pub struct AiMock {
    /// URL `http://127.0.0.1:PORT`.
    pub base_url: String,
    _process: Child,
    _dir: tempfile::TempDir,
}

impl AiMock {
    /// Starts aimock on a free port.
    ///
    /// # Panics
    /// If it is not installed or does not start, with its log.
    pub async fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("sw-aimock-").tempdir_in("/tmp").unwrap();
        let (address, log) = (free_port(), dir.path().join("log"));
        let output = fs::File::create(&log).unwrap();
        let mut process = sdks()
            .args(["aimock", "--port", &address.port().to_string(), "--fixtures", "tests/sdk/aimock.json"])
            .args(["--strict", "--validate-on-load"])
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let agent = Agent::over_tcp(address);
        let ready = || {
            assert_eq!(
                process.try_wait().unwrap(),
                None,
                "aimock ended: {}",
                fs::read_to_string(&log).unwrap()
            );
            async { agent.connect().await.map(drop) }
        };
        eventually("aimock listens", ready, Result::is_ok).await.unwrap();
        Self { base_url: format!("http://{address}"), _process: process, _dir: dir }
    }
}

fn sdks() -> Command {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut command = Command::new(repository.join("scripts/sdks.sh"));
    command.current_dir(repository).kill_on_drop(true);
    command
}
