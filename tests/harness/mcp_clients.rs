//! Runs the official clients of the Model Context Protocol in a sandbox's network. `scripts/mcp-clients.sh` installs them.

use std::path::Path;

use serde_json::Value;
use tokio::process::Command;

use crate::{docker::docker, sdks::output_of};

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
    /// Makes `calls` from the network of `container`, whose `localhost` leads to its run's socket and nowhere else.
    ///
    /// # Panics
    /// If the program fails, with its output.
    pub async fn call_from(self, container: &str, calls: McpCalls<'_>) -> Value {
        let pid = docker(&["inspect", "--format", "{{.State.Pid}}", container]).await;
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut program = Command::new("nsenter");
        program.current_dir(repository).kill_on_drop(true);
        program.arg(format!("--net=/proc/{}/ns/net", pid.trim())).arg("--").arg("scripts/mcp-clients.sh");
        program.args(match self {
            Self::Python => ["python", "tests/sdk/mcp_calls.py"],
            Self::TypeScript => ["node", "tests/sdk/mcp_calls.mjs"],
        });
        program.args(["http://localhost:8080/mcp", calls.tool, calls.arguments, calls.denied]);
        output_of(program).await.remove(0)
    }
}
