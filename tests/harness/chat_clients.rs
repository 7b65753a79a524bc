//! Runs the programs of `tests/sdk` that use the HTTP API as applications do. `scripts/chat-clients.sh` installs their
//! packages.

use std::path::Path;

use serde_json::Value;
use tokio::process::Command;

use crate::sdks::{Sdk, output_of};

/// API that the programs use, with the token of a principal.
#[derive(Debug)]
pub struct ChatClients {
    /// URL `http://HOST:PORT`.
    pub url: String,
    /// Token of a principal.
    pub token: String,
}

impl ChatClients {
    /// Holds the conversations of every version of Vercel's AI SDK. Returns what it printed, line by line.
    ///
    /// # Panics
    /// If the program fails, with its output.
    pub async fn ai_sdk(&self) -> Vec<Value> {
        self.lines("node", "tests/sdk/ai_chat.mjs").await
    }

    /// Uses agents as models, through OpenAI's SDK and LangChain. Returns what it printed, line by line.
    ///
    /// # Panics
    /// If the program fails, with its output.
    pub async fn facade(&self, language: Sdk) -> Vec<Value> {
        match language {
            Sdk::Python => self.lines("python", "tests/sdk/facade.py").await,
            Sdk::Node => self.lines("node", "tests/sdk/facade.mjs").await,
        }
    }

    async fn lines(&self, interpreter: &str, program: &str) -> Vec<Value> {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut command = Command::new(repository.join("scripts/chat-clients.sh"));
        command.args([interpreter, program, &self.url]).env("TOKEN", &self.token);
        command.current_dir(repository).kill_on_drop(true);
        output_of(command).await
    }
}
