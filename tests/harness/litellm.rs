//! The real LiteLLM in front of the scripted upstream: `scripts/litellm.sh` and `tests/stack/litellm`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use bench::upstream::ScriptedUpstream;
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::{
    agent::Agent,
    bridge::free_port,
    eventually::{eventually, eventually_within},
    failure::{self, end_of},
};

/// LiteLLM is a large Python program: it needs 8 to 16 s to start here.
const START: Duration = Duration::from_secs(60);

/// A LiteLLM. Killed and removed on drop.
#[derive(Debug)]
pub struct LiteLlm {
    /// `http://127.0.0.1:PORT`
    pub base_url: String,
    /// A client without Sluicegate, which has to bring the key itself.
    pub agent: Agent,
    process: Child,
    dir: tempfile::TempDir,
}

impl LiteLlm {
    /// Starts one that takes `key` and forwards to `upstream`.
    ///
    /// # Panics
    /// If it is not installed or does not start, with its log.
    pub async fn in_front_of(upstream: &ScriptedUpstream, key: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("sw-litellm-").tempdir_in("/tmp").unwrap();
        let (address, log) = (free_port(), dir.path().join("log"));
        let output = fs::File::create(&log).unwrap();
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut process = Command::new(repository.join("scripts/litellm.sh"))
            .args(["run", &address.port().to_string()])
            .arg(repository.join("tests/stack/litellm/config.yaml"))
            .env("UPSTREAM_BASE_URL", upstream.openai_base_url())
            .env("UPSTREAM_ORIGIN", upstream.base_url())
            .env("UPSTREAM_API_KEY", "sk-provider")
            .env("LITELLM_MASTER_KEY", key)
            .env("LITELLM_RECORD_FILE", dir.path().join("records"))
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let agent = Agent::over_tcp(address);
        let ready = || {
            let ended = process.try_wait().unwrap();
            assert_eq!(ended, None, "LiteLLM ended: {}", fs::read_to_string(&log).unwrap());
            async { agent.connect().await.map(drop) }
        };
        eventually_within(START, "LiteLLM listens", ready, Result::is_ok).await.unwrap();
        Self { base_url: format!("http://{address}"), agent, process, dir }
    }

    /// LiteLLM's own record of a call, once it has written one.
    pub async fn record_of(&self, call_id: &str) -> Value {
        let find =
            || async { self.records().into_iter().find(|record| record["litellm_call_id"] == call_id) };
        eventually("LiteLLM has recorded the call", find, Option::is_some).await.unwrap()
    }

    /// All records so far.
    #[must_use]
    pub fn records(&self) -> Vec<Value> {
        let records = fs::read_to_string(self.records_file()).unwrap_or_default();
        records.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn records_file(&self) -> PathBuf {
        self.dir.path().join("records")
    }
}

impl Drop for LiteLlm {
    fn drop(&mut self) {
        failure::show(|| {
            let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            format!("LiteLLM has ended: {:?}; its log ends:\n{}", self.process.try_wait(), end_of(&log))
        });
    }
}
