//! error defines the reasons why a credential is unavailable, and why a connection was not added. None shows a secret.

use std::{sync::Arc, time::Duration};

use platform_core::{
    code::{Code, Coded},
    connection::{ConnectionId, ConnectionProvider, ConnectionScope},
    host_tools::ToolCode,
    id::AccountId,
};
use platform_runtime::retry::Transient;
use runner_store::Error as StoreError;

use crate::keys::KeyFileError;

/// Reason why a secret cannot be sealed or opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealFault {
    /// The key that sealed it is gone.
    #[error(
        "it is sealed with key {key_id}, which connections.key_file does not have: put that key back as a further line, or add the connection again"
    )]
    KeyMissing {
        /// Id of the key.
        key_id: String,
    },
    /// The row is not as it was sealed.
    #[error("its row in the store was altered, or moved from another connection: remove it and add it again")]
    Altered,
    /// The system refused to seal.
    #[error("it cannot be sealed")]
    Refused,
}

/// Reason why a credential is unavailable.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CredentialError {
    /// The key to seal connections with is missing.
    #[error("there are no connections: set connections.key_file to a file from `sluice connections keygen`")]
    NotConfigured,
    /// The keys cannot be read.
    #[error("connections cannot be opened")]
    KeyFile(#[source] Arc<KeyFileError>),
    /// The account has no connection.
    #[error(
        "account {account} has no connection at {provider} for {scope}: add one with `sluice connections add --account {account} --provider {provider}`"
    )]
    NoConnection {
        /// The account.
        account: AccountId,
        /// The provider.
        provider: ConnectionProvider,
        /// Scope that is wanted.
        scope: ConnectionScope,
    },
    /// The provider takes the refresh token no longer.
    #[error(
        "connection {connection} needs a new authorisation: {provider} takes its refresh token no longer; add it again with `--replace`"
    )]
    NeedsAuthorisation {
        /// The connection.
        connection: ConnectionId,
        /// The provider.
        provider: ConnectionProvider,
    },
    /// The token has ended.
    #[error("the token of connection {connection} at {provider} has expired: add a new one with `--replace`")]
    Expired {
        /// The connection.
        connection: ConnectionId,
        /// The provider.
        provider: ConnectionProvider,
    },
    /// The secret cannot be opened.
    #[error("connection {connection} cannot be opened: {fault}")]
    Unopened {
        /// The connection.
        connection: ConnectionId,
        /// Cause of the failure.
        fault: SealFault,
    },
    /// The provider did not answer, or not as it should.
    #[error("{provider} gives no credential now: {problem}")]
    ProviderUnavailable {
        /// The provider.
        provider: ConnectionProvider,
        /// Problem, in words of this program.
        problem: String,
    },
    /// The provider refuses, for another reason than the refresh token.
    #[error("{provider} refuses the credential: {code}")]
    ProviderRefused {
        /// The provider.
        provider: ConnectionProvider,
        /// Code of OAuth, or the reason, safe to print.
        code: String,
    },
    /// The settings have no such provider.
    #[error(
        "connection {connection} is refreshed at {provider}, which the settings do not have: add [connections.providers.{provider}]"
    )]
    ProviderUnknown {
        /// The connection.
        connection: ConnectionId,
        /// The provider.
        provider: ConnectionProvider,
    },
    /// The store failed.
    #[error("connections cannot be read")]
    Store(#[source] Arc<StoreError>),
}

impl Coded for CredentialError {
    fn code(&self) -> Code {
        match self {
            Self::NotConfigured => Code::ConnectionsOff,
            Self::KeyFile(_) => Code::ConnectionKeysUnusable,
            Self::NoConnection { .. } => Code::ConnectionMissing,
            Self::ProviderUnavailable { .. } => Code::ProviderUnavailable,
            Self::ProviderUnknown { .. } => Code::ProviderUnknown,
            Self::NeedsAuthorisation { .. }
            | Self::Expired { .. }
            | Self::Unopened { .. }
            | Self::ProviderRefused { .. } => Code::ConnectionUnusable,
            Self::Store(error) => error.code(),
        }
    }

    fn word(&self) -> &str {
        self.tool_code().word()
    }
}

/// Reason why a connection was not added.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The key to seal it with is missing.
    #[error(transparent)]
    Keys(CredentialError),
    /// The secret is not of its kind.
    #[error("the secret {problem}")]
    Secret {
        /// Problem of the secret, as a verb and its object.
        problem: String,
    },
    /// The provider has no connections of this kind.
    #[error("{provider} has no connections of kind {kind}: {fix}")]
    Kind {
        /// The provider.
        provider: ConnectionProvider,
        /// Name of the kind.
        kind: &'static str,
        /// Way to do it.
        fix: String,
    },
    /// The secret cannot be sealed.
    #[error("the secret cannot be sealed")]
    Seal(#[source] SealFault),
    /// The store failed, or has a connection at the same place.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Coded for AddError {
    fn code(&self) -> Code {
        match self {
            Self::Keys(error) => error.code(),
            Self::Secret { .. } => Code::ConnectionSecretInvalid,
            Self::Kind { .. } => Code::ConnectionKindUnknown,
            Self::Seal(_) => Code::ConnectionUnsealed,
            Self::Store(error) => error.code(),
        }
    }

    fn word(&self) -> &str {
        match self {
            Self::Keys(error) => error.word(),
            error => error.code().word(),
        }
    }
}

impl CredentialError {
    /// Returns the code of a call that needs the credential.
    #[must_use]
    pub const fn tool_code(&self) -> ToolCode {
        match self {
            Self::NotConfigured => ToolCode::ConnectionNotConfigured,
            Self::KeyFile(_) | Self::Unopened { .. } => ToolCode::ConnectionUnopened,
            Self::NoConnection { .. } => ToolCode::ConnectionMissing,
            Self::NeedsAuthorisation { .. } => ToolCode::ConnectionNeedsAuthorisation,
            Self::Expired { .. } => ToolCode::ConnectionExpired,
            Self::ProviderUnavailable { .. } => ToolCode::ProviderUnavailable,
            Self::ProviderRefused { .. } => ToolCode::ProviderRefused,
            Self::ProviderUnknown { .. } => ToolCode::ProviderUnknown,
            Self::Store(_) => ToolCode::StoreUnavailable,
        }
    }

    /// Returns a description for an agent: what is missing, and nothing about the host.
    #[must_use]
    pub fn message_for_agent(&self) -> String {
        let text = match self {
            Self::NotConfigured | Self::NoConnection { .. } => "the account has no connection for this tool",
            Self::NeedsAuthorisation { .. } | Self::Expired { .. } => {
                "the account's connection has expired: a person has to renew it"
            }
            Self::KeyFile(_)
            | Self::Unopened { .. }
            | Self::ProviderUnknown { .. }
            | Self::ProviderRefused { .. } => {
                "the account's connection cannot be used: an operator has to look at it"
            }
            Self::ProviderUnavailable { .. } => "the provider gives no credential now: try again later",
            Self::Store(_) => "the store is not available: try again later",
        };
        text.to_owned()
    }

    pub(crate) fn unopened(connection: &ConnectionId, fault: SealFault) -> Self {
        Self::Unopened { connection: connection.clone(), fault }
    }
}

impl From<StoreError> for CredentialError {
    fn from(error: StoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

impl Transient for CredentialError {
    const RETRY_TIMEOUT: Duration = Duration::from_secs(30);

    fn is_transient(&self) -> bool {
        match self {
            Self::ProviderUnavailable { .. } => true,
            Self::Store(error) => error.is_transient(),
            _ => false,
        }
    }
}
