//! Runs the newest Codex with its own provider, as on a developer's machine. `scripts/codex.sh` installs it.

use std::{fs, path::Path, process::Stdio, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

/// Longest duration of one program.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Credential that Codex sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodexLogin {
    /// A key of the API, from the environment.
    ApiKey,
    /// Tokens in the form of a login at ChatGPT. Codex then compresses its bodies.
    Account,
}

/// A Codex with its own home.
#[derive(Debug)]
pub struct Codex {
    home: TempDir,
    login: CodexLogin,
}

impl Codex {
    /// Creates the home of a Codex with its provider at `base_url`.
    ///
    /// # Panics
    /// If the files cannot be written.
    #[must_use]
    pub fn new(login: CodexLogin, base_url: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        // Nothing listens at port 9: the pages of ChatGPT besides the model API are none of this test's.
        let config = format!(
            "openai_base_url = '{base_url}'\nchatgpt_base_url = 'http://127.0.0.1:9/'\n\
             check_for_update_on_startup = false\n[analytics]\nenabled = false\n"
        );
        fs::write(home.path().join("config.toml"), config).unwrap();
        if login == CodexLogin::Account {
            fs::write(home.path().join("auth.json"), account().to_string()).unwrap();
        }
        Self { home, login }
    }

    /// Returns the models that its list offers.
    ///
    /// # Panics
    /// If it prints no list.
    pub async fn models(&self) -> Vec<String> {
        let printed = self.run(&["debug", "models"]).await;
        let list: Value = serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"));
        let models = list["models"].as_array().unwrap().iter();
        let offered = models.filter(|model| model["visibility"] == "list");
        offered.map(|model| model["slug"].as_str().unwrap().to_owned()).collect()
    }

    /// Puts `question` to `model`. Returns the events that it prints.
    ///
    /// # Panics
    /// If it prints something else.
    pub async fn ask(&self, model: &str, question: &str) -> Vec<Value> {
        let options = ["exec", "--json", "--ephemeral", "--skip-git-repo-check", "--model", model];
        let printed = self.run(&[&options[..], &[question]].concat()).await;
        printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    async fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/codex.sh"));
        command.arg("run").args(arguments).current_dir(self.home.path());
        command.env("CODEX_HOME", self.home.path()).env_remove("OPENAI_API_KEY").env_remove("CODEX_API_KEY");
        if self.login == CodexLogin::ApiKey {
            command.env("CODEX_API_KEY", "sk-any");
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        let ended = tokio::time::timeout(TIMEOUT, command.output()).await;
        let output = ended.expect("Codex ends").expect("it is installed: run `make setup-clients`");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Returns the credential file of a login, with tokens that nothing has signed.
fn account() -> Value {
    let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let claims = json!({
        "email": "user@example.com", "exp": 4_102_444_800_u64,
        "https://api.openai.com/auth": { "chatgpt_plan_type": "pro", "chatgpt_account_id": "account-1" },
    });
    let token = format!("{}.{}.c2ln", part(&json!({ "alg": "none", "typ": "JWT" })), part(&claims));
    let now = humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string();
    json!({
        "auth_mode": "chatgpt", "OPENAI_API_KEY": null, "last_refresh": now,
        "tokens": { "id_token": token, "access_token": token, "refresh_token": "r", "account_id": "account-1" },
    })
}
