//! github makes sources of GitHub's credentials from connections, for the tools that act there.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use platform_core::{
    connection::{ConnectionId, ConnectionKind, ConnectionProvider, ConnectionScope},
    id::AccountId,
};
use platform_runtime::retry::Transient as _;
use runner_github::{
    AccountCredential, CredentialSource, Error as GitHubError, InstallationToken, RepositoryName,
};
use runner_store::{ConnectionPlace, StoredConnection, UnixMillis};

use crate::{
    broker::{ConnectionBroker, Credential, credential_of, not_expired},
    content::SealedContent,
    error::CredentialError,
};

/// Provider of GitHub's credentials.
pub(crate) const GITHUB: &str = "github";
/// Most sources that are kept.
const MAX_SOURCES: usize = 1024;

/// Source of an account's credentials at GitHub.
#[derive(Debug, Clone)]
pub struct AccountSource {
    /// Connection that the credentials are of.
    pub connection: ConnectionId,
    /// The source.
    pub credentials: Arc<CredentialSource>,
}

impl ConnectionBroker {
    /// Returns the source of an account's credentials for a repository at GitHub; `None` if the account has no connection
    /// for it, so that the operator's may be used. A connection that gives no credential is an error: the operator's has
    /// other rights.
    ///
    /// # Errors
    /// If there is a connection, and it gives no credential.
    pub async fn github_source(
        &self,
        account: &AccountId,
        repository: &RepositoryName,
    ) -> Result<Option<AccountSource>, CredentialError> {
        let scope = ConnectionScope::parse(&format!("{}/{}", repository.owner(), repository.name()));
        let Ok(provider) = ConnectionProvider::parse(GITHUB) else { return Ok(None) };
        let Some(scope) = scope.ok().filter(|_| self.is_configured()) else { return Ok(None) };
        let place = ConnectionPlace { account: account.clone(), provider, scope };
        let stored = match self.find(&place).await {
            Ok(stored) => stored,
            Err(CredentialError::NoConnection { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let credentials = match stored.kind {
            ConnectionKind::GitHubApp { .. } => {
                let content = self.open(&stored)?;
                self.store().record_connection_use(&stored).await;
                self.installation_source(&stored, content)?
            }
            ConnectionKind::Token | ConnectionKind::OAuth => {
                let token = self.resolve(stored.clone()).await?.token;
                let source = CredentialSource::of_account(self.github(), AccountCredential::Token(token));
                Arc::new(source.map_err(|error| of_github(&stored, &error))?)
            }
        };
        Ok(Some(AccountSource { connection: stored.id, credentials }))
    }

    /// Returns the credential of an installation, for all that it has.
    pub(crate) async fn installation_credential(
        &self,
        stored: &StoredConnection,
        content: SealedContent,
    ) -> Result<Credential, CredentialError> {
        let source = self.installation_source(stored, content)?;
        let given = source.installation_token().await.map_err(|error| of_github(stored, &error))?;
        let InstallationToken { token, expires } = given;
        Ok(Credential { token, connection: stored.id.clone(), expires: Some(unix_millis(expires)) })
    }

    /// Asks GitHub whether it takes the credential of a connection. Returns its end, if it is known.
    pub(crate) async fn check_github(
        &self,
        stored: &StoredConnection,
    ) -> Result<Option<UnixMillis>, CredentialError> {
        let content = self.open(stored)?;
        let source = match stored.kind {
            ConnectionKind::GitHubApp { .. } => self.installation_source(stored, content)?,
            ConnectionKind::Token | ConnectionKind::OAuth => {
                not_expired(stored)?;
                let token = credential_of(stored, content.access.unwrap_or(content.secret)).token;
                let source = CredentialSource::of_account(self.github(), AccountCredential::Token(token));
                Arc::new(source.map_err(|error| of_github(stored, &error))?)
            }
        };
        let expires = source.check().await.map_err(|error| of_github(stored, &error))?;
        Ok(expires.map(unix_millis).or(stored.expires))
    }

    fn installation_source(
        &self,
        stored: &StoredConnection,
        content: SealedContent,
    ) -> Result<Arc<CredentialSource>, CredentialError> {
        let ConnectionKind::GitHubApp { app_id, installation_id } = stored.kind else {
            return Err(CredentialError::ProviderUnknown {
                connection: stored.id.clone(),
                provider: stored.place.provider.clone(),
            });
        };
        let key = (stored.id.clone(), stored.version);
        let mut sources = self.sources().0.lock();
        if let Some(source) = sources.get(&key) {
            return Ok(Arc::clone(source));
        }
        let credential = AccountCredential::Installation { app_id, installation_id, key: content.secret };
        let source = CredentialSource::of_account(self.github(), credential);
        let source = Arc::new(source.map_err(|error| of_github(stored, &error))?);
        // Tokens are got again after this.
        if sources.len() >= MAX_SOURCES {
            sources.clear();
        }
        sources.insert(key, Arc::clone(&source));
        Ok(source)
    }
}

fn unix_millis(time: SystemTime) -> UnixMillis {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn of_github(stored: &StoredConnection, error: &GitHubError) -> CredentialError {
    let provider = stored.place.provider.clone();
    if error.is_transient() {
        return CredentialError::ProviderUnavailable { provider, problem: error.to_string() };
    }
    CredentialError::ProviderRefused { provider, code: error.to_string() }
}
