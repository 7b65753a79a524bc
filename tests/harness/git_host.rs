//! Plays a host such as GitHub: repositories over HTTP with a password, and the API for pull requests.

use std::path::Path;

use tempfile::TempDir;

use crate::{
    canary, git_remote::GitRemote, git_server::GitServer, github::GitHubDouble, sluice::Sluice,
    world::private_file,
};

/// Owner of all repositories.
const OWNER: &str = "octo";

/// Host with two servers that take the same token. It is gone at the end of the test.
#[derive(Debug)]
pub struct GitHost {
    /// Server of the repositories.
    pub git: GitServer,
    /// The API.
    pub github: GitHubDouble,
    /// Token for both. It is searched for as all secrets of the harness.
    pub token: String,
    /// Outside of the world, because the world's files are searched for the token.
    dir: TempDir,
}

impl GitHost {
    /// Starts a host without a repository.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start() -> Self {
        let token = format!("ghp_{:032x}", platform_runtime::random::bits());
        canary::hand_out(&token);
        let dir = tempfile::tempdir().unwrap();
        Self {
            git: GitServer::start(dir.path().to_owned(), &token).await,
            github: GitHubDouble::start(&token).await,
            token,
            dir,
        }
    }

    /// Returns the settings of a world with this host as its GitHub.
    #[must_use]
    pub fn settings(&self) -> String {
        format!("[github]\nurl = '{}'\napi_url = '{}/api/v3'\n", self.git.origin, self.github.url)
    }

    /// Returns the same settings, with the token in a file.
    #[must_use]
    pub fn settings_with_token(&self) -> String {
        let file = self.dir.path().join("token");
        private_file(&file, &self.token);
        format!("{}token_file = '{}'\n", self.settings(), file.display())
    }

    /// Makes the repository `name`.
    #[must_use]
    pub fn repository(&self, name: &str) -> GitRemote {
        GitRemote::below(self.dir.path(), &format!("{OWNER}/{name}.git"))
    }

    /// Returns the address of the repository `name`.
    #[must_use]
    pub fn url(&self, name: &str) -> String {
        format!("{}/{OWNER}/{name}", self.git.origin)
    }

    /// Returns the address of a pull request of the repository `name`.
    #[must_use]
    pub fn pull_url(&self, name: &str, number: usize) -> String {
        format!("{}/pull/{number}", self.url(name))
    }

    /// Returns the directory of the repositories.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Gives the token to a command.
    #[must_use]
    pub fn authorize(&self, sluice: Sluice) -> Sluice {
        sluice.env("GITHUB_TOKEN", &self.token)
    }
}
