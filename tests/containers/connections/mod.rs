//! Tests connections: credentials of accounts, which host tools use and nothing shows.

mod api;
mod commands;

use std::{fs, path::PathBuf};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use harness::{Outcome, World, canary, github::GitHubDouble, oauth::OAuthDouble, private_file};
use platform_runtime::random;

/// Token that the GitHub of a test accepts.
const TOKEN: &str = "ghp_canary7f3a0000000000000000000000000000";
/// Refresh token that the provider of a test accepts.
const REFRESH_TOKEN: &str = "canary-refresh-token-0000000000000000";

/// Providers, and the settings that name them.
struct Providers {
    github: GitHubDouble,
    oauth: OAuthDouble,
    settings: String,
    /// Directory of the keys and secrets.
    dir: PathBuf,
    _dir: tempfile::TempDir,
}

impl Providers {
    async fn start() -> Self {
        for secret in [TOKEN, REFRESH_TOKEN] {
            canary::hand_out(secret);
        }
        let dir = tempfile::tempdir().unwrap();
        let github = GitHubDouble::start(TOKEN).await;
        let oauth = OAuthDouble::start(REFRESH_TOKEN).await;
        let keys = dir.path().join("keys");
        let key = [random::bits().to_ne_bytes(), random::bits().to_ne_bytes()].concat();
        private_file(&keys, &BASE64_STANDARD.encode(key));
        let settings = format!(
            "[github]\nurl = '{0}'\napi_url = '{0}/api/v3'\n[connections]\nkey_file = '{1}'\n\
             [connections.providers.linear]\ntoken_url = '{2}'\nclient_id = 'client'\n",
            github.url,
            keys.display(),
            oauth.url
        );
        Self { github, oauth, settings, dir: dir.path().to_owned(), _dir: dir }
    }

    /// Returns a private file with a secret.
    fn file(&self, secret: &str) -> String {
        let path = self.dir.join("secret");
        private_file(&path, secret);
        path.display().to_string()
    }
}

async fn connections(world: &World, arguments: &[&str]) -> Outcome {
    world.sluice().run(&[&["connections"], arguments].concat()).await
}

/// Adds a connection of `acct-7`; returns its id.
async fn added(world: &World, providers: &Providers, secret: &str, arguments: &[&str]) -> String {
    let file = providers.file(secret);
    let add = [&["add", "--account", "acct-7", "--file", &file][..], arguments].concat();
    let outcome = connections(world, &add).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    fs::remove_file(file).unwrap();
    outcome.stdout.trim().to_owned()
}
