//! Defines the place of a connection, which errors name, too.

use platform_core::{
    connection::{ConnectionProvider, ConnectionScope},
    id::AccountId,
};

/// Most connections of an account. Two processes that add one at the same time may exceed it by one.
pub const MAX_CONNECTIONS: u64 = 200;

/// Place of a connection: an account has one for each provider and scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConnectionPlace {
    /// Account that the credential belongs to.
    pub account: AccountId,
    /// Provider of the credential.
    pub provider: ConnectionProvider,
    /// Scope for which the credential is used.
    pub scope: ConnectionScope,
}
