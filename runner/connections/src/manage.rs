//! manage adds, tests and seals connections again, for people and programs that own them.

use std::time::Duration;

use platform_core::{
    connection::{ConnectionId, ConnectionKind},
    secret::Secret,
};
use platform_runtime::random;
use runner_github::{AccountCredential, CredentialSource};
use runner_store::{AccountScope, AtSamePlace, ConnectionPlace, NewConnection, StoredConnection, UnixMillis};
use tokio::time::Instant;

use crate::{
    broker::{ConnectionBroker, not_expired},
    content::SealedContent,
    error::{AddError, CredentialError},
    github::GITHUB,
    keys::SealingKeys,
    seal::Binding,
    token_answer,
};

/// Largest private key, in PEM.
const MAX_KEY: usize = 16 << 10;

/// Shortest time between two refreshes of a connection that tests ask for.
pub const MIN_TEST_INTERVAL: Duration = Duration::from_secs(30);

/// Way in which a connection was tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestedBy {
    /// The provider was asked.
    Provider,
    /// Opened only: nothing says where a token of another provider is used.
    Opening,
    /// Opened only: the last refresh was within [`MIN_TEST_INTERVAL`].
    FormerRefresh,
}

/// Result of a test of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionTest {
    /// Way of the test.
    pub tested_by: TestedBy,
    /// End of the credential, if it is known.
    pub expires: Option<UnixMillis>,
}

/// Result of sealing connections with the first key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Number of connections that were sealed again.
    pub resealed: u64,
    /// Number of connections that the first key had sealed.
    pub current: u64,
    /// Connections that cannot be opened, or were changed meanwhile.
    pub skipped: Vec<ConnectionId>,
}

/// Connection that a person adds.
#[derive(Debug)]
pub struct WantedConnection {
    /// Account, provider and scope.
    pub place: ConnectionPlace,
    /// Kind, with all that is not a secret.
    pub kind: ConnectionKind,
    /// Token, private key or refresh token.
    pub secret: Secret,
    /// End of the token, if it is known.
    pub expires: Option<UnixMillis>,
}

impl ConnectionBroker {
    /// Adds a connection. Its secret is sealed before it is stored.
    ///
    /// # Errors
    /// If the secret is not of its kind, the provider has no such connections, or the account has one at the same place.
    pub async fn add(
        &self,
        wanted: WantedConnection,
        at_same_place: AtSamePlace,
    ) -> Result<StoredConnection, AddError> {
        let keys = self.keys().map_err(AddError::Keys)?;
        self.check_kind(&wanted)?;
        let WantedConnection { place, kind, secret, expires } = wanted;
        let secret = self.checked(&kind, &secret)?;
        // The cast keeps the lower half, which is as random as all bits.
        #[expect(clippy::cast_possible_truncation, reason = "half of the bits are enough for an id")]
        let id = ConnectionId::from_random(random::bits() as u64);
        let installation = self.store().installation();
        let binding = Binding { installation, id: &id, place: &place, kind: &kind };
        let content = SealedContent { secret, access: None };
        let sealed = keys.seal(binding, &content).map_err(AddError::Seal)?;
        let new = NewConnection { id, place, kind, sealed, expires };
        Ok(self.store().add_connection(&new, at_same_place).await?)
    }

    fn check_kind(&self, wanted: &WantedConnection) -> Result<(), AddError> {
        let provider = &wanted.place.provider;
        let fix = match &wanted.kind {
            ConnectionKind::GitHubApp { .. } if provider.as_str() != GITHUB => {
                "an installation of a GitHub App is at provider `github`".to_owned()
            }
            ConnectionKind::OAuth if !self.settings().providers.contains_key(provider) => {
                format!("the operator has to add [connections.providers.{provider}]")
            }
            _ => return Ok(()),
        };
        Err(AddError::Kind { provider: provider.clone(), kind: wanted.kind.word(), fix })
    }

    /// Returns a secret without the blanks around it, if it is of its kind.
    fn checked(&self, kind: &ConnectionKind, secret: &Secret) -> Result<Secret, AddError> {
        let text = secret.expose().trim();
        let wrong = |problem: &str| AddError::Secret { problem: problem.to_owned() };
        if text.is_empty() {
            return Err(wrong("is empty"));
        }
        match kind {
            ConnectionKind::Token | ConnectionKind::OAuth => {
                let token = token_answer::token(text.to_owned());
                token.ok_or_else(|| wrong("is not a token: it has other characters, or more than 16 KiB"))
            }
            ConnectionKind::GitHubApp { app_id, installation_id } => {
                if text.len() > MAX_KEY {
                    return Err(wrong("is not a private key: it has more than 16 KiB"));
                }
                let of = |key| AccountCredential::Installation {
                    app_id: *app_id,
                    installation_id: *installation_id,
                    key,
                };
                let key = || Secret::new(text.to_owned());
                let source = CredentialSource::of_account(self.github(), of(key()));
                source.map(|_source| key()).map_err(|_bad| wrong("is not a private RSA key in PEM"))
            }
        }
    }

    /// Uses a connection: refreshes it, or asks the provider whether it takes the credential.
    ///
    /// # Errors
    /// If it gives no credential that the provider takes.
    pub async fn test(&self, stored: &StoredConnection) -> Result<ConnectionTest, CredentialError> {
        self.open(stored)?;
        let is_github = stored.place.provider.as_str() == GITHUB;
        let (refreshed, tested_by) = match stored.kind {
            ConnectionKind::OAuth => self.refresh_for_test(stored).await?,
            _ => (stored.clone(), TestedBy::Opening),
        };
        not_expired(&refreshed)?;
        if is_github {
            let expires = self.check_github(&refreshed).await?;
            return Ok(ConnectionTest { tested_by: TestedBy::Provider, expires });
        }
        Ok(ConnectionTest { tested_by, expires: refreshed.expires })
    }

    /// Refreshes a connection, unless that was done or tried a moment ago. A provider refuses a client that asks all the
    /// time, and then for the tools, too.
    async fn refresh_for_test(
        &self,
        stored: &StoredConnection,
    ) -> Result<(StoredConnection, TestedBy), CredentialError> {
        let is_fresh = stored.refreshed.is_some_and(|at| at.until(stored.read) < MIN_TEST_INTERVAL);
        if is_fresh && not_expired(stored).is_ok() && self.access_of(stored).is_ok() {
            return Ok((stored.clone(), TestedBy::FormerRefresh));
        }
        if !self.begins_test(&stored.id) {
            return Err(CredentialError::ProviderUnavailable {
                provider: stored.place.provider.clone(),
                problem: format!(
                    "it was asked less than {} s ago: test it later",
                    MIN_TEST_INTERVAL.as_secs()
                ),
            });
        }
        let refreshed = self.refresh(stored).await?;
        self.access_of(&refreshed)?;
        Ok((refreshed, TestedBy::Provider))
    }

    /// Returns whether this process has not begun to refresh the connection for a test a moment ago.
    fn begins_test(&self, id: &ConnectionId) -> bool {
        let mut tests = self.tests().lock();
        tests.retain(|_id, begun| begun.elapsed() < MIN_TEST_INTERVAL);
        if tests.contains_key(id) {
            return false;
        }
        tests.insert(id.clone(), Instant::now());
        true
    }

    /// Seals all connections with the first key that other keys have sealed.
    ///
    /// # Errors
    /// If there are no keys, or the store fails.
    pub async fn reseal(&self) -> Result<Resealed, CredentialError> {
        let keys = self.keys()?;
        let mut done = Resealed::default();
        for stored in self.store().connections(&AccountScope::All).await? {
            if keys.is_current(&stored) {
                done.current += 1;
            } else if self.reseal_one(keys, &stored).await? {
                done.resealed += 1;
            } else {
                done.skipped.push(stored.id);
            }
        }
        Ok(done)
    }

    async fn reseal_one(
        &self,
        keys: &SealingKeys,
        stored: &StoredConnection,
    ) -> Result<bool, CredentialError> {
        let sealed = keys.open(stored).and_then(|content| keys.seal(Binding::of(stored), &content));
        match sealed {
            Ok(sealed) => Ok(self.store().reseal_connection(stored, &sealed).await?),
            Err(fault) => {
                tracing::warn!(connection = %stored.id, %fault, "connection not sealed again");
                Ok(false)
            }
        }
    }
}
