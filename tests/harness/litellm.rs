//! The real LiteLLM in front of the scripted upstream: `scripts/litellm.sh` and `tests/clients/litellm`.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use bench::upstream::ScriptedUpstream;
use serde_json::Value;
use tokio::process::Child;

use crate::{
    agent::Agent,
    bridge::free_port,
    eventually::{eventually, eventually_within},
    failure::{self, end_of},
};

/// LiteLLM is a large Python program: it needs 8 to 16 s to start here, 25 s with its database, and a minute on a busy
/// machine.
const START: Duration = Duration::from_secs(120);
/// LiteLLM writes its spend logs in batches, seconds after the calls.
const SPEND_LOGS: Duration = Duration::from_secs(30);

/// A LiteLLM. Killed and removed on drop.
#[derive(Debug)]
pub struct LiteLlm {
    /// `http://127.0.0.1:PORT`
    pub base_url: String,
    /// A client without Sluicegate, which has to bring the key itself.
    pub agent: Agent,
    /// A client without Sluicegate that has the master key.
    pub operator: Agent,
    server: Server,
    process: Child,
    dir: tempfile::TempDir,
    /// Dropped last, after LiteLLM has ended.
    database: Option<test_postgres::Server>,
}

/// Settings of the process, with which it can be started again.
#[derive(Debug)]
struct Server {
    address: SocketAddr,
    master_key: String,
    /// Values of `UPSTREAM_BASE_URL` and `UPSTREAM_ORIGIN`.
    upstream: [String; 2],
    database_url: Option<String>,
    /// Directory of its configuration, its log and its records.
    dir: PathBuf,
}

impl LiteLlm {
    /// Starts one without a database that takes `key` and forwards to `upstream`.
    ///
    /// # Panics
    /// If it is not installed or does not start, with its log.
    pub async fn in_front_of(upstream: &ScriptedUpstream, key: &str) -> Self {
        Self::start(upstream, key, None, StreamCosts::Told).await
    }

    /// Starts one with its database. It keeps spend logs and accepts virtual keys beside `key`, its master key.
    ///
    /// # Panics
    /// If it is not installed or does not start, with its log.
    pub async fn with_database(upstream: &ScriptedUpstream, key: &str) -> Self {
        let database = test_postgres::Server::served_by(script().arg("database")).await;
        Self::start(upstream, key, Some(database), StreamCosts::Told).await
    }

    /// Starts one with its database and streams that tell no cost: only its ledger does.
    ///
    /// # Panics
    /// If it is not installed or does not start, with its log.
    pub async fn with_silent_streams(upstream: &ScriptedUpstream, key: &str) -> Self {
        let database = test_postgres::Server::served_by(script().arg("database")).await;
        Self::start(upstream, key, Some(database), StreamCosts::Left).await
    }

    async fn start(
        upstream: &ScriptedUpstream,
        key: &str,
        database: Option<test_postgres::Server>,
        costs: StreamCosts,
    ) -> Self {
        let dir = tempfile::Builder::new().prefix("sw-litellm-").tempdir_in("/tmp").unwrap();
        write_config(dir.path(), costs);
        let address = free_port();
        let server = Server {
            address,
            master_key: key.to_owned(),
            upstream: [upstream.openai_base_url(), upstream.base_url()],
            database_url: database.as_ref().map(test_postgres::Server::prisma_url),
            dir: dir.path().to_owned(),
        };
        let process = server.start().await;
        let agent = Agent::over_tcp(address);
        let operator = agent.clone().with_header("authorization", &format!("Bearer {key}"));
        Self { base_url: format!("http://{address}"), agent, operator, server, process, dir, database }
    }

    /// Kills it, so that rows are lost that it has not written to its database, and starts it again.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn kill_and_restart(&mut self) {
        self.process.kill().await.unwrap();
        self.process = self.server.start().await;
    }

    /// Mints a key for all models and writes it to `file`, as operators do.
    ///
    /// # Panics
    /// If LiteLLM makes none.
    pub async fn mint_key(&self, file: &Path) {
        let mut mint = tokio::process::Command::new(repository().join("platform/litellm/mint-key.sh"));
        mint.arg(file).args(["all-proxy-models"]).env("LITELLM_BASE_URL", &self.base_url);
        let minted = mint.env("LITELLM_MASTER_KEY", &self.server.master_key).output().await.unwrap();
        assert!(minted.status.success(), "{minted:?}");
    }

    /// Returns all that LiteLLM's database holds of calls, as text.
    ///
    /// # Panics
    /// If it has no database.
    #[must_use]
    pub fn stored_calls(&self) -> String {
        let database = self.database.as_ref().expect("a LiteLLM with a database");
        database.query(r#"SELECT row_to_json(logs) FROM "LiteLLM_SpendLogs" logs"#)
            + &database.query(r#"SELECT row_to_json(logs) FROM "LiteLLM_ErrorLogs" logs"#)
    }

    /// Returns all rows of LiteLLM's ledger.
    ///
    /// # Panics
    /// If it has no database.
    #[must_use]
    pub fn ledger(&self) -> Vec<Value> {
        let database = self.database.as_ref().expect("a LiteLLM with a database");
        let rows = database.query(r#"SELECT row_to_json(logs) FROM "LiteLLM_SpendLogs" logs"#);
        rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect()
    }

    /// Returns the rows that LiteLLM's spend logs have for an account, newest first, once there are `count`.
    ///
    /// # Panics
    /// If it has no database, or not so many rows in time.
    pub async fn spend_logs(&self, account: &str, count: usize) -> Vec<Value> {
        assert!(self.database.is_some(), "only a LiteLLM with a database keeps spend logs");
        // Rows of any day: the range is part of the query, and the test is about the account's rows.
        let path = format!(
            "/spend/logs/v2?end_user={account}&start_date=2000-01-01&end_date=2100-01-01&page=1&page_size=1000"
        );
        let ask = || async {
            let answer = self.operator.get(&path).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.json()["data"].as_array().unwrap().clone()
        };
        eventually_within(SPEND_LOGS, "LiteLLM has written its spend logs", ask, |rows| rows.len() >= count)
            .await
    }

    /// LiteLLM's own record of a call, once it has written one.
    pub async fn record_of(&self, call_id: &str) -> Value {
        let find =
            || async { self.records().into_iter().find(|record| record["litellm_call_id"] == call_id) };
        eventually("LiteLLM has recorded the call", find, Option::is_some).await.unwrap()
    }

    /// All records so far. A line without its end is a record that LiteLLM is still writing.
    #[must_use]
    pub fn records(&self) -> Vec<Value> {
        let records = fs::read_to_string(self.records_file()).unwrap_or_default();
        let (complete, _writing) = records.rsplit_once('\n').unwrap_or_default();
        complete.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn records_file(&self) -> PathBuf {
        self.dir.path().join("records")
    }
}

impl Server {
    /// Starts the process, and waits until it listens.
    async fn start(&self) -> Child {
        let log = self.dir.join("log");
        let output = fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let [base_url, origin] = &self.upstream;
        let mut command = script();
        command
            .args(["run", &self.address.port().to_string()])
            .arg(self.dir.join("config.yaml"))
            .env("UPSTREAM_BASE_URL", base_url)
            .env("UPSTREAM_ORIGIN", origin)
            .env("UPSTREAM_API_KEY", "sk-provider")
            .env("LITELLM_MASTER_KEY", &self.master_key)
            .env("LITELLM_RECORD_FILE", self.dir.join("records"))
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output);
        if let Some(database) = &self.database_url {
            command
                .env("DATABASE_URL", database)
                .env("LITELLM_SALT_KEY", "sk-salt")
                .env("PROXY_BATCH_WRITE_AT", "1"); // seconds between batches, instead of 10
        }
        let mut process = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
        let agent = Agent::over_tcp(self.address);
        let ready = || {
            let ended = process.try_wait().unwrap();
            assert_eq!(ended, None, "LiteLLM ended: {}", fs::read_to_string(&log).unwrap());
            async { agent.connect().await.map(drop) }
        };
        eventually_within(START, "LiteLLM listens", ready, Result::is_ok).await.unwrap();
        process
    }
}

/// Costs in the usage of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamCosts {
    /// Each stream tells its own, as with the configuration for operators.
    Told,
    /// No stream tells one, as without that setting.
    Left,
}

/// Writes the configuration that operators use into `dir`, with the models and the recorder of tests.
fn write_config(dir: &Path, costs: StreamCosts) {
    let shipped = fs::read_to_string(repository().join("platform/litellm/config.yaml")).unwrap();
    let section = "\nlitellm_settings:\n";
    assert!(shipped.contains(section), "{shipped}");
    let mut config = shipped.replace(section, &format!("{section}  callbacks: [recorder.recorder]\n"));
    if costs == StreamCosts::Left {
        let setting = "  include_cost_in_streaming_usage: true\n";
        assert!(config.contains(setting), "{config}");
        config = config.replace(setting, "");
    }
    for name in ["models.yaml", "recorder.py", "garbage.py"] {
        fs::copy(repository().join("tests/clients/litellm").join(name), dir.join(name)).unwrap();
    }
    fs::write(dir.join("config.yaml"), config).unwrap();
}

/// Returns the command `scripts/litellm.sh`.
fn script() -> Command {
    Command::new(repository().join("scripts/litellm.sh"))
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

impl Drop for LiteLlm {
    fn drop(&mut self) {
        failure::show(|| {
            let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            format!("LiteLLM has ended: {:?}; its log ends:\n{}", self.process.try_wait(), end_of(&log))
        });
    }
}
