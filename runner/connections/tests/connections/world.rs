//! world sets up a store, keys, an OAuth provider and a GitHub.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc};

use platform_core::{
    connection::{ConnectionKind, ConnectionProvider, ConnectionScope},
    id::{AccountId, InstallationId},
    secret::Secret,
};
use platform_runtime::{config::Sources, settings::Settings};
use runner_connections::{ConnectionBroker, Credential, CredentialError, SealingKeys, WantedConnection};
use runner_store::{
    AccountScope, Address, AtSamePlace, ConnectionPlace, HostId, HostIdentity, Store, StoredConnection,
};
use runner_telemetry::metrics::Metrics;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};
use tempfile::TempDir;

use crate::{github_double::GitHubDouble, oauth_double::OAuthDouble};

/// Token that the GitHub of a test accepts.
pub(crate) const GITHUB_TOKEN: &str = "ghp-canary-7f3a";
/// First refresh token that the provider accepts.
pub(crate) const REFRESH_TOKEN: &str = "canary-refresh-0";

/// Store with its keys and providers.
pub(crate) struct World {
    pub(crate) oauth: OAuthDouble,
    pub(crate) github: GitHubDouble,
    pub(crate) store: Store,
    /// Settings beside those of every test.
    pub(crate) more: String,
    dir: TempDir,
}

pub(crate) fn account(text: &str) -> AccountId {
    AccountId::parse(text).unwrap()
}

pub(crate) fn provider(text: &str) -> ConnectionProvider {
    ConnectionProvider::parse(text).unwrap()
}

pub(crate) fn scope(text: &str) -> ConnectionScope {
    ConnectionScope::parse(text).unwrap()
}

pub(crate) fn place(account_text: &str, provider_text: &str, scope_text: &str) -> ConnectionPlace {
    ConnectionPlace {
        account: account(account_text),
        provider: provider(provider_text),
        scope: scope(scope_text),
    }
}

impl World {
    pub(crate) async fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("sluice-connections-").tempdir_in("/tmp").unwrap();
        let address = Address::parse(&format!("sqlite://{}/private/s.db", dir.path().display()), None);
        let store = Store::open(&address.unwrap(), InstallationId::parse("here").unwrap()).await.unwrap();
        let host = HostIdentity { id: HostId::from_random(1), name: "host".to_owned() };
        let world = Self {
            oauth: OAuthDouble::start(REFRESH_TOKEN).await,
            github: GitHubDouble::start(GITHUB_TOKEN).await,
            store: store.serving(host).await.unwrap(),
            more: String::new(),
            dir,
        };
        world.write_keys(&[&SealingKeys::generate()]);
        world
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.path().join("keys")
    }

    /// Writes the file of keys.
    pub(crate) fn write_keys(&self, keys: &[&Secret]) {
        let text: Vec<_> = keys.iter().map(|key| key.expose()).collect();
        fs::write(self.key_file(), text.join("\n")).unwrap();
        fs::set_permissions(self.key_file(), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// Returns a broker, as another process would have it.
    pub(crate) fn broker(&self) -> ConnectionBroker {
        self.broker_that_counts(Arc::default())
    }

    /// Returns a broker that counts in `metrics`.
    pub(crate) fn broker_that_counts(&self, metrics: Arc<Metrics>) -> ConnectionBroker {
        let text = format!(
            "[github]\nurl = '{github}'\napi_url = '{github}/api/v3'\n[connections]\nkey_file = '{keys}'\n{more}\n\
             [connections.providers.linear]\ntoken_url = '{oauth}'\nclient_id = 'client'\n",
            github = self.github.url,
            keys = self.key_file().display(),
            oauth = self.oauth.url,
            more = self.more,
        );
        let sources = Sources { file: Some(("s.toml".into(), text)), ..Sources::default() };
        let settings = Settings::read(&sources).unwrap();
        ConnectionBroker::of(&settings, self.store.clone(), metrics)
    }

    /// Adds a connection, or replaces that at the same place.
    pub(crate) async fn add(
        &self,
        place: ConnectionPlace,
        kind: ConnectionKind,
        secret: &str,
    ) -> StoredConnection {
        let wanted = WantedConnection { place, kind, secret: Secret::new(secret.to_owned()), expires: None };
        self.broker().add(wanted, AtSamePlace::Replace).await.unwrap()
    }

    /// Adds the OAuth connection of account `a`.
    pub(crate) async fn oauth_connection(&self) -> StoredConnection {
        self.add(place("a", "linear", "*"), ConnectionKind::OAuth, REFRESH_TOKEN).await
    }

    /// Returns the only connection.
    pub(crate) async fn stored(&self) -> StoredConnection {
        let mut all = self.store.connections(&AccountScope::All).await.unwrap();
        assert_eq!(all.len(), 1);
        all.remove(0)
    }

    /// Changes rows of the store behind its back.
    pub(crate) async fn sql(&self, statement: &str) {
        sqlx::any::install_default_drivers();
        let url = format!("sqlite://{}/private/s.db", self.dir.path().display());
        let mut connection = AnyConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
}

/// Asks for the credential of account `a` at the OAuth provider.
pub(crate) async fn linear(broker: &ConnectionBroker) -> Result<Credential, CredentialError> {
    broker.credential(&account("a"), &provider("linear"), &scope("x")).await
}
