//! manage adds, tests and seals connections again, for people and programs that own them.

use platform_core::{
    connection::{ConnectionId, ConnectionKind},
    secret::Secret,
};
use platform_runtime::random;
use runner_github::{AccountCredential, CredentialSource};
use runner_store::{AccountScope, AtSamePlace, ConnectionPlace, NewConnection, StoredConnection, UnixMillis};

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

/// Result of a test of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionTest {
    /// True if the provider was asked. A token of another provider is only opened: nothing says where it is used.
    pub was_asked: bool,
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
    /// Kind, with all that is no secret.
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
                token.ok_or_else(|| wrong("is no token: it has other characters, or more than 16 KiB"))
            }
            ConnectionKind::GitHubApp { app_id, installation_id } => {
                if text.len() > MAX_KEY {
                    return Err(wrong("is no private key: it has more than 16 KiB"));
                }
                let of = |key| AccountCredential::Installation {
                    app_id: *app_id,
                    installation_id: *installation_id,
                    key,
                };
                let key = || Secret::new(text.to_owned());
                let source = CredentialSource::of_account(self.github(), of(key()));
                source.map(|_source| key()).map_err(|_bad| wrong("is no private RSA key in PEM"))
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
        if stored.kind == ConnectionKind::OAuth {
            let refreshed = self.refresh(stored).await?;
            self.access_of(&refreshed)?;
            let expires = if is_github { self.check_github(&refreshed).await? } else { refreshed.expires };
            return Ok(ConnectionTest { was_asked: true, expires });
        }
        not_expired(stored)?;
        let expires = if is_github { self.check_github(stored).await? } else { stored.expires };
        Ok(ConnectionTest { was_asked: is_github, expires })
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
