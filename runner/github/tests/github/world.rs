//! world sets up a GitHub, secrets and orders.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use platform_core::{
    id::{AgentId, RunId},
    secret::Secret,
};
use platform_runtime::settings::{GitHub, GitHubApp, ServiceUrl};
use runner_git::{BaseBranch, RepoUrl, SandboxBranch, SecretScan};
use runner_github::{
    AgentText, CredentialSource, PullRequestOrder, PullRequestText, PullRequests, RepositoryName, RunFooter,
};

use crate::double::GitHubDouble;

/// Number of the App.
pub(crate) const APP: u64 = 7;

/// A GitHub, and a directory for secrets.
pub(crate) struct World {
    pub(crate) github: GitHubDouble,
    pub(crate) token: String,
    dir: tempfile::TempDir,
}

impl World {
    pub(crate) async fn start() -> Self {
        let token = format!("t0ken-{:032x}", platform_runtime::random::bits());
        let github = GitHubDouble::start(&token).await;
        Self { github, token, dir: tempfile::tempdir().expect("it is made") }
    }

    /// Returns settings without a secret.
    pub(crate) fn settings(&self) -> GitHub {
        settings_at(&self.github.url)
    }

    /// Returns settings with an App and its own key.
    pub(crate) fn app_settings(&self) -> GitHub {
        let key_file = self.key("rsa", &["genrsa", "-traditional", "2048"]);
        GitHub { app: Some(GitHubApp { id: APP, key_file }), ..self.settings() }
    }

    /// Makes a private key with openssl.
    pub(crate) fn key(&self, name: &str, arguments: &[&str]) -> PathBuf {
        self.secret(name, &openssl(arguments))
    }

    /// Writes a private file.
    pub(crate) fn secret(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, content).expect("it is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        path
    }

    /// Returns a source of the token that GitHub accepts.
    pub(crate) fn credentials(&self) -> CredentialSource {
        CredentialSource::open(&self.settings(), Some(secret(&self.token))).expect("the token is valid")
    }

    pub(crate) fn pull_requests(&self) -> PullRequests {
        PullRequests::new(Arc::new(self.credentials()))
    }

    pub(crate) fn repository(&self) -> RepositoryName {
        repository_at(&self.github.url)
    }

    pub(crate) fn order(&self) -> PullRequestOrder {
        order_at(&self.github.url)
    }
}

pub(crate) fn settings_at(url: &str) -> GitHub {
    let address = |text: &str| ServiceUrl::parse(text).expect("it is an address");
    GitHub { url: address(url), api_url: address(&format!("{url}/api/v3")), ..GitHub::default() }
}

pub(crate) fn repository_at(url: &str) -> RepositoryName {
    let url = RepoUrl::parse(&format!("{url}/octo/hello.git")).expect("it is an address");
    RepositoryName::of(&url).expect("it is a repository")
}

pub(crate) fn order_at(url: &str) -> PullRequestOrder {
    let run = RunId::parse("run-1").expect("it is an id");
    let agent = AgentId::parse("sandbox:agent").expect("it is an id");
    let footer = RunFooter { run: &run, agent: &agent, account: None };
    let file = Some("Add a parser\n\nIt reads.\n");
    PullRequestOrder {
        repository: repository_at(url),
        head: SandboxBranch::parse("sandbox/run-1").expect("it is a branch"),
        base: BaseBranch::parse("main").expect("it is a branch"),
        text: PullRequestText::compose(AgentText { file, answer: "" }, &footer, &SecretScan::default())
            .expect("it holds no secret"),
        labels: vec!["agent".to_owned(), "Sandbox".to_owned()],
    }
}

pub(crate) fn secret(text: &str) -> Arc<Secret> {
    Arc::new(Secret::new(text.to_owned()))
}

/// Runs openssl, and returns its output.
pub(crate) fn openssl(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("openssl").args(arguments).output().expect("openssl is installed");
    assert!(output.status.success(), "openssl {arguments:?}: {output:?}");
    output.stdout
}

/// Returns the path as an argument.
pub(crate) fn argument(path: &Path) -> &str {
    path.to_str().expect("it is text")
}
