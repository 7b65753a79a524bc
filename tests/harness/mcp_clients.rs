//! Runs the official clients of the Model Context Protocol, and its inspector, in a sandbox's network.
//! `scripts/mcp-clients.sh` installs them.

use std::{path::Path, process::Stdio};

use serde_json::Value;
use tokio::process::Command;

use crate::{docker::docker, sdks::output_of};

/// The server, as an agent sees it.
const SERVER: &str = "http://localhost:8080/mcp";

/// Language of an official client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpClient {
    /// The package `mcp`.
    Python,
    /// The package `@modelcontextprotocol/sdk`.
    TypeScript,
}

/// Calls that a client makes, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct McpCalls<'c> {
    /// Tool that the run may call.
    pub tool: &'c str,
    /// Its arguments, as JSON.
    pub arguments: &'c str,
    /// Tool that the run may not call.
    pub denied: &'c str,
}

impl McpClient {
    /// Makes `calls` from the network of `container`: its `localhost` leads to its run's socket and nowhere else.
    ///
    /// # Panics
    /// If the program fails, with its output.
    pub async fn call_from(self, container: &str, calls: McpCalls<'_>) -> Value {
        let mut program = program_beside(container).await;
        program.args(match self {
            Self::Python => ["python", "tests/sdk/mcp_calls.py"],
            Self::TypeScript => ["node", "tests/sdk/mcp_calls.mjs"],
        });
        program.args([SERVER, calls.tool, calls.arguments, calls.denied]);
        output_of(program).await.remove(0)
    }
}

/// End of one check of the inspector's command line.
#[derive(Debug)]
pub struct Inspection {
    /// Its exit code.
    pub code: Option<i32>,
    /// The JSON that it printed: on standard output, or on standard error if there is nothing.
    pub printed: Value,
}

/// Calls `method` with the inspector's command line from the network of `container`, with more options.
///
/// # Panics
/// If the program cannot be started, or prints no JSON.
pub async fn inspect_from(container: &str, method: &str, options: &[&str]) -> Inspection {
    let mut program = program_beside(container).await;
    program.args(["inspector", SERVER, "--transport", "http", "--method", method]).args(options);
    let output = program.stdin(Stdio::null()).output().await.unwrap();
    let text = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
    let printed = serde_json::from_slice(text).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    Inspection { code: output.status.code(), printed }
}

/// Returns `scripts/mcp-clients.sh` in the network of `container`.
async fn program_beside(container: &str) -> Command {
    let pid = docker(&["inspect", "--format", "{{.State.Pid}}", container]).await;
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut program = Command::new("nsenter");
    program.current_dir(repository).kill_on_drop(true);
    program.arg(format!("--net=/proc/{}/ns/net", pid.trim())).arg("--").arg("scripts/mcp-clients.sh");
    program
}
