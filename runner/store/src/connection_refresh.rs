//! Gives one process at a time the right to refresh a connection, and stores how that ended.
//!
//! A provider may replace a refresh token with each use. Two processes that use the same one lose the connection.

use std::time::Duration;

use platform_core::connection::ConnectionState;

use super::{
    Store, StoredConnection, UnixMillis,
    connections::SealedText,
    error::{Error, failed},
};

/// Answer to a process that wants to refresh a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefreshClaim {
    /// This process may refresh the connection, which is as given here.
    Granted(StoredConnection),
    /// Another process refreshes it.
    Busy,
    /// Its secret has changed since it was read: it is as given here.
    Changed(StoredConnection),
    /// The connection was removed.
    Gone,
}

/// Right of a process to refresh a connection.
#[derive(Debug, Clone)]
pub struct RefreshLease<'l> {
    /// Process, by a name that no other has.
    pub owner: &'l str,
    /// Time after which another process may refresh the connection.
    pub duration: Duration,
}

/// End of a refresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefreshEnd {
    /// The provider gave a credential.
    Refreshed {
        /// The secret from now on.
        sealed: SealedText,
        /// End of the credential, if it is known.
        expires: Option<UnixMillis>,
    },
    /// The provider takes the refresh token no longer.
    NeedsAuthorisation,
    /// The refresh failed. The connection stays as it is.
    Failed,
}

const CLAIM: &str = "UPDATE connections SET refresh_owner = $1, refresh_until = $2 \
     WHERE installation = $3 AND connection = $4 AND version = $5 \
     AND (refresh_owner = $1 OR refresh_until IS NULL OR refresh_until <= $6)";
const REFRESHED: &str = "UPDATE connections SET sealing_key = $1, sealed = $2, expires = $3, refreshed = $4, \
     version = version + 1, state = $5, refresh_owner = NULL, refresh_until = NULL \
     WHERE installation = $6 AND connection = $7 AND version = $8 AND refresh_owner = $9";
const ENDED: &str = "UPDATE connections SET state = $1, refresh_owner = NULL, refresh_until = NULL \
     WHERE installation = $2 AND connection = $3 AND version = $4 AND refresh_owner = $5";

impl Store {
    /// Asks for the right to refresh a connection as it was read.
    pub async fn claim_refresh(
        &self,
        read: &StoredConnection,
        lease: &RefreshLease<'_>,
    ) -> Result<RefreshClaim, Error> {
        let action = "begin to refresh a connection";
        let duration = i64::try_from(lease.duration.as_millis()).unwrap_or(i64::MAX);
        self.write(async |mut tx| {
            let claimed = sqlx::query(CLAIM)
                .bind(lease.owner)
                .bind(tx.now.saturating_add(duration))
                .bind(self.installation.as_str())
                .bind(read.id.as_str())
                .bind(signed(read.version))
                .bind(tx.now)
                .execute(tx.connection())
                .await
                .map_err(failed(action))?;
            let Some(found) = self.find_connection(&mut tx, &read.id).await? else {
                return Ok(RefreshClaim::Gone);
            };
            if claimed.rows_affected() > 0 {
                self.check_host(&mut tx).await?;
                tx.commit(action).await?;
                return Ok(RefreshClaim::Granted(found));
            }
            Ok(if found.version == read.version { RefreshClaim::Busy } else { RefreshClaim::Changed(found) })
        })
        .await
    }

    /// Stores the end of a refresh, and gives up the right to it. Returns the connection; `None` if it was removed, or
    /// the right was lost.
    pub async fn end_refresh(
        &self,
        granted: &StoredConnection,
        owner: &str,
        end: &RefreshEnd,
    ) -> Result<Option<StoredConnection>, Error> {
        let action = "store the refresh of a connection";
        self.write(async |mut tx| {
            let installation = self.installation.as_str();
            let query = match end {
                RefreshEnd::Refreshed { sealed, expires } => sqlx::query(REFRESHED)
                    .bind(&sealed.key_id)
                    .bind(&sealed.text)
                    .bind(expires.map(|expires| expires.0))
                    .bind(tx.now)
                    .bind(ConnectionState::Active.word()),
                RefreshEnd::NeedsAuthorisation => {
                    sqlx::query(ENDED).bind(ConnectionState::NeedsAuthorisation.word())
                }
                RefreshEnd::Failed => sqlx::query(ENDED).bind(granted.state.word()),
            };
            let query = query.bind(installation).bind(granted.id.as_str());
            let query = query.bind(signed(granted.version)).bind(owner);
            let ended = query.execute(tx.connection()).await.map_err(failed(action))?;
            let found = self.find_connection(&mut tx, &granted.id).await?;
            tx.commit(action).await?;
            // An earlier try may have been committed without an answer: the secret is the one that was to be stored.
            let is_stored = |found: &StoredConnection| {
                ended.rows_affected() > 0
                    || matches!(end, RefreshEnd::Refreshed { sealed, .. } if found.sealed == *sealed)
            };
            Ok(found.filter(is_stored))
        })
        .await
    }
}

fn signed(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}
