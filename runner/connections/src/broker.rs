//! broker resolves the connection of an account to a credential, when a host tool needs it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use platform_core::{
    connection::{ConnectionId, ConnectionKind, ConnectionProvider, ConnectionScope, ConnectionState},
    id::AccountId,
    secret::Secret,
};
use platform_runtime::{
    random, report,
    retry::Transient as _,
    settings::{ConnectionSettings, GitHub, OAuthProvider, Settings},
    sync::Mutex,
};
use runner_model::connection_refresh::RefreshResult;
use runner_store::{ConnectionPlace, Store, StoredConnection, UnixMillis};
use runner_telemetry::metrics::Metrics;
use tokio::time::Instant;

use crate::{
    content::SealedContent,
    error::CredentialError,
    in_flight::{Flight, InstallationSources},
    keys::{KeyFileError, SealingKeys},
};

/// Credential of an account at a provider.
#[derive(Debug, Clone)]
pub struct Credential {
    /// Token of visible ASCII characters, which fits into a header.
    pub token: Arc<Secret>,
    /// Connection that it is of.
    pub connection: ConnectionId,
    /// End of the token, if it is known.
    pub expires: Option<UnixMillis>,
}

/// Source of the credentials of accounts. Clones share what is in flight.
#[derive(Debug, Clone)]
pub struct ConnectionBroker(Arc<BrokerState>);

#[derive(Debug)]
struct BrokerState {
    store: Store,
    settings: ConnectionSettings,
    github: GitHub,
    /// Keys; `None` if no file is configured.
    keys: Option<Result<SealingKeys, Arc<KeyFileError>>>,
    /// Name of this process, which no other has.
    owner: String,
    metrics: Arc<Metrics>,
    flights: Mutex<HashMap<ConnectionId, Flight>>,
    /// Times at which tests began to refresh connections, for as long as they matter.
    tests: Mutex<HashMap<ConnectionId, Instant>>,
    sources: InstallationSources,
}

impl ConnectionBroker {
    /// Creates the broker that `settings` name. Reads the file of keys; if that fails, each use of the broker does.
    #[must_use]
    pub fn of(settings: &Settings, store: Store, metrics: Arc<Metrics>) -> Self {
        let keys = settings.connections.key_file.as_ref();
        Self(Arc::new(BrokerState {
            store,
            settings: settings.connections.clone(),
            github: settings.github.clone(),
            keys: keys.map(|file| SealingKeys::read(file).map_err(Arc::new)),
            owner: format!("{:032x}", random::bits()),
            metrics,
            flights: Mutex::default(),
            tests: Mutex::default(),
            sources: InstallationSources::default(),
        }))
    }

    /// Returns whether there is a file of keys.
    #[must_use]
    pub fn is_configured(&self) -> bool {
        self.0.keys.is_some()
    }

    /// Returns the keys.
    ///
    /// # Errors
    /// If there are none, or they cannot be used.
    pub fn keys(&self) -> Result<&SealingKeys, CredentialError> {
        match &self.0.keys {
            None => Err(CredentialError::NotConfigured),
            Some(Ok(keys)) => Ok(keys),
            Some(Err(error)) => Err(CredentialError::KeyFile(Arc::clone(error))),
        }
    }

    /// Returns the credential of an account at a provider for a scope. Of several connections, that with the longest scope
    /// is used. It is refreshed before it expires, once for all callers. Cancel safe: a refresh goes on without its callers.
    ///
    /// # Errors
    /// If the connection is missing, or gives no credential.
    pub async fn credential(
        &self,
        account: &AccountId,
        provider: &ConnectionProvider,
        scope: &ConnectionScope,
    ) -> Result<Credential, CredentialError> {
        let place =
            ConnectionPlace { account: account.clone(), provider: provider.clone(), scope: scope.clone() };
        let stored = self.find(&place).await?;
        self.resolve(stored).await
    }

    /// Returns the connection that is used for a place.
    pub(crate) async fn find(&self, place: &ConnectionPlace) -> Result<StoredConnection, CredentialError> {
        self.keys()?;
        let found = self.0.store.connection_for(place).await?;
        found.ok_or_else(|| CredentialError::NoConnection {
            account: place.account.clone(),
            provider: place.provider.clone(),
            scope: place.scope.clone(),
        })
    }

    /// Returns the credential of a connection.
    pub(crate) async fn resolve(&self, stored: StoredConnection) -> Result<Credential, CredentialError> {
        let content = self.open(&stored)?;
        let credential = match stored.kind {
            ConnectionKind::Token => {
                not_expired(&stored)?;
                credential_of(&stored, content.secret)
            }
            ConnectionKind::GitHubApp { .. } => self.installation_credential(&stored, content).await?,
            ConnectionKind::OAuth => self.access(&stored, content).await?,
        };
        self.0.store.record_connection_use(&stored).await;
        Ok(credential)
    }

    /// Opens the secrets of a connection that may be used.
    pub(crate) fn open(&self, stored: &StoredConnection) -> Result<SealedContent, CredentialError> {
        let keys = self.keys()?;
        if stored.state == ConnectionState::NeedsAuthorisation {
            return Err(CredentialError::NeedsAuthorisation {
                connection: stored.id.clone(),
                provider: stored.place.provider.clone(),
            });
        }
        keys.open(stored).map_err(|fault| CredentialError::unopened(&stored.id, fault))
    }

    /// Returns the access token, which is refreshed if it ends soon.
    async fn access(
        &self,
        stored: &StoredConnection,
        content: SealedContent,
    ) -> Result<Credential, CredentialError> {
        let held = content.access.filter(|_| not_expired(stored).is_ok());
        if let Some(access) = held {
            if !self.is_due(stored) {
                return Ok(credential_of(stored, access));
            }
            return match self.refresh(stored).await {
                Ok(refreshed) => self.access_of(&refreshed),
                // The held one is valid for a while yet.
                Err(error) if error.is_transient() => {
                    tracing::warn!(
                        connection = %stored.id,
                        error = report::chain(&error),
                        "connection not refreshed: its former token is used"
                    );
                    Ok(credential_of(stored, access))
                }
                Err(error) => Err(error),
            };
        }
        let refreshed = self.refresh(stored).await?;
        self.access_of(&refreshed)
    }

    /// Returns the access token of a connection that was just refreshed.
    pub(crate) fn access_of(&self, refreshed: &StoredConnection) -> Result<Credential, CredentialError> {
        let access = self.open(refreshed)?.access.ok_or_else(|| CredentialError::ProviderUnavailable {
            provider: refreshed.place.provider.clone(),
            problem: "it was authorised anew meanwhile: try again".to_owned(),
        })?;
        Ok(credential_of(refreshed, access))
    }

    /// Returns whether a token ends so soon that it is refreshed: within `refresh_before`, and in the second half of its
    /// life.
    fn is_due(&self, stored: &StoredConnection) -> bool {
        let Some(expires) = stored.expires else { return false };
        let lifetime = stored.refreshed.map_or(Duration::ZERO, |refreshed| refreshed.until(expires));
        let before = self.0.settings.refresh_before.duration().min(lifetime / 2);
        stored.read.until(expires) <= before
    }

    /// Returns the provider at which a connection is refreshed.
    pub(crate) fn provider(&self, stored: &StoredConnection) -> Result<&OAuthProvider, CredentialError> {
        let provider = &stored.place.provider;
        self.0.settings.providers.get(provider).ok_or_else(|| CredentialError::ProviderUnknown {
            connection: stored.id.clone(),
            provider: provider.clone(),
        })
    }

    pub(crate) fn settings(&self) -> &ConnectionSettings {
        &self.0.settings
    }

    pub(crate) fn github(&self) -> &GitHub {
        &self.0.github
    }

    pub(crate) fn sources(&self) -> &InstallationSources {
        &self.0.sources
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn owner(&self) -> &str {
        &self.0.owner
    }

    pub(crate) fn flights(&self) -> &Mutex<HashMap<ConnectionId, Flight>> {
        &self.0.flights
    }

    pub(crate) fn tests(&self) -> &Mutex<HashMap<ConnectionId, Instant>> {
        &self.0.tests
    }

    pub(crate) fn count(&self, result: RefreshResult) {
        self.0.metrics.connection_refreshed(result);
    }

    /// Counts an answer that had a credential in it, and was not passed on.
    pub fn credential_echoed(&self) {
        self.0.metrics.credential_echoed();
    }

    /// Returns the longest wait for a provider.
    pub(crate) fn refresh_timeout(&self) -> Duration {
        self.0.settings.refresh_timeout.duration()
    }
}

pub(crate) fn not_expired(stored: &StoredConnection) -> Result<(), CredentialError> {
    if stored.expires.is_none_or(|expires| stored.read < expires) {
        return Ok(());
    }
    let provider = stored.place.provider.clone();
    Err(CredentialError::Expired { connection: stored.id.clone(), provider })
}

pub(crate) fn credential_of(stored: &StoredConnection, token: Secret) -> Credential {
    Credential { token: Arc::new(token), connection: stored.id.clone(), expires: stored.expires }
}
