//! Shows a connection without its secret.

use platform_core::{
    connection::{ConnectionId, ConnectionKind, ConnectionProvider, ConnectionScope, ConnectionState},
    id::AccountId,
};
use runner_store::{StoredConnection, UnixMillis};
use serde::Serialize;

/// Connection, as JSON has it.
#[derive(Serialize)]
pub(super) struct ConnectionView {
    pub(super) id: ConnectionId,
    pub(super) account: AccountId,
    pub(super) provider: ConnectionProvider,
    pub(super) scope: ConnectionScope,
    #[serde(flatten)]
    pub(super) kind: ConnectionKind,
    pub(super) state: ConnectionState,
    /// Id of the key that seals it.
    sealing_key: String,
    #[serde(rename = "expires_ms")]
    pub(super) expires: Option<UnixMillis>,
    #[serde(rename = "created_ms")]
    created: UnixMillis,
    #[serde(rename = "refreshed_ms")]
    refreshed: Option<UnixMillis>,
    #[serde(rename = "used_ms")]
    pub(super) used: Option<UnixMillis>,
}

impl ConnectionView {
    pub(super) fn of(stored: StoredConnection) -> Self {
        Self {
            id: stored.id,
            account: stored.place.account,
            provider: stored.place.provider,
            scope: stored.place.scope,
            kind: stored.kind,
            state: stored.state,
            sealing_key: stored.sealed.key_id,
            expires: stored.expires,
            created: stored.created,
            refreshed: stored.refreshed,
            used: stored.used,
        }
    }

    /// Returns the state for a person, with what to do.
    pub(super) fn state_in_words(&self) -> &'static str {
        match self.state {
            ConnectionState::Active => "active",
            ConnectionState::NeedsAuthorisation => "needs authorisation: add it again with --replace",
        }
    }
}
