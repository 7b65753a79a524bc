//! Keeps connections: credentials of accounts at providers. Their secrets are sealed: this crate has no key.

use std::time::Duration;

use platform_core::{
    connection::{ConnectionId, ConnectionKind, ConnectionProvider, ConnectionScope, ConnectionState},
    id::{AccountId, InstallationId},
};
use platform_runtime::report;
use sqlx::any::AnyRow;

use super::{
    AccountScope, Store, Tx, UnixMillis,
    connection_place::{ConnectionPlace, MAX_CONNECTIONS},
    error::{Error, failed},
    row::{count, number, parsed, stored_json, text, time},
};

/// Interval at which the last use of a connection is stored.
const USE_INTERVAL: Duration = Duration::from_secs(60);

/// Secret of a connection, encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedText {
    /// Id of the key that opens it.
    pub key_id: String,
    /// Ciphertext, as base64.
    pub text: String,
}

/// Connection to add.
#[derive(Debug, Clone)]
pub struct NewConnection {
    /// Id of the connection, which no other has.
    pub id: ConnectionId,
    /// Account, provider and scope.
    pub place: ConnectionPlace,
    /// Kind, with all that is not a secret.
    pub kind: ConnectionKind,
    /// Secret.
    pub sealed: SealedText,
    /// End of the credential, if it is known.
    pub expires: Option<UnixMillis>,
}

/// Treatment of a connection that the account has at the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtSamePlace {
    /// The former one stays, and none is added.
    Keep,
    /// The former one is removed.
    Replace,
}

/// Connection, as one row holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredConnection {
    /// Installation that the connection belongs to.
    pub installation: InstallationId,
    /// Id of the connection.
    pub id: ConnectionId,
    /// Account, provider and scope.
    pub place: ConnectionPlace,
    /// Kind, with all that is not a secret.
    pub kind: ConnectionKind,
    /// State.
    pub state: ConnectionState,
    /// Secret.
    pub sealed: SealedText,
    /// Number of changes of the secret.
    pub version: u64,
    /// End of the credential that was got last, if it is known.
    pub expires: Option<UnixMillis>,
    /// Time at which it was added.
    pub created: UnixMillis,
    /// Time of the last refresh.
    pub refreshed: Option<UnixMillis>,
    /// Time at which it was last used, to the minute.
    pub used: Option<UnixMillis>,
    /// Time until which a process refreshes it, if one does.
    pub refresh_until: Option<UnixMillis>,
    /// Time at which the row was read.
    pub read: UnixMillis,
}

/// Columns of a connection.
macro_rules! columns {
    () => {
        "installation, connection, account, provider, scope, kind, state, sealing_key, sealed, version, expires, created, \
         refreshed, used, refresh_until"
    };
}

const ADD: &str = "INSERT INTO connections (installation, connection, account, provider, scope, kind, state, sealing_key, sealed, \
     version, expires, created) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, $11) ON CONFLICT DO NOTHING";
const COUNT: &str = "SELECT count(*) FROM connections WHERE installation = $1 AND account = $2";
const FIND: &str =
    concat!("SELECT ", columns!(), " FROM connections WHERE installation = $1 AND connection = $2");
const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM connections WHERE installation = $1 AND ($2 IS NULL OR account = $2) ORDER BY account, provider, scope"
);
const LIST_AT: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM connections WHERE installation = $1 AND account = $2 AND provider = $3"
);
const CLEAR: &str =
    "DELETE FROM connections WHERE installation = $1 AND account = $2 AND provider = $3 AND scope = $4";
const REMOVE: &str = "DELETE FROM connections WHERE installation = $1 AND connection = $2";
const RESEAL: &str = "UPDATE connections SET sealing_key = $1, sealed = $2, version = version + 1 \
     WHERE installation = $3 AND connection = $4 AND version = $5 AND (refresh_until IS NULL OR refresh_until <= $6)";
const RECORD_USE: &str = "UPDATE connections SET used = $1 WHERE installation = $2 AND connection = $3 \
     AND (used IS NULL OR used <= $4)";

impl StoredConnection {
    fn read(row: &AnyRow, now: i64) -> Result<Self, Error> {
        Ok(Self {
            installation: parsed(row, "installation", |text| InstallationId::parse(text).ok())?,
            id: parsed(row, "connection", |text| ConnectionId::parse(text).ok())?,
            place: ConnectionPlace {
                account: parsed(row, "account", |text| AccountId::parse(text).ok())?,
                provider: parsed(row, "provider", |text| ConnectionProvider::parse(text).ok())?,
                scope: parsed(row, "scope", |text| ConnectionScope::parse(text).ok())?,
            },
            kind: parsed(row, "kind", stored_json)?,
            state: parsed(row, "state", ConnectionState::parse)?,
            sealed: SealedText { key_id: text(row, "sealing_key")?, text: text(row, "sealed")? },
            version: count(row, "version")?,
            expires: time(row, "expires")?,
            created: UnixMillis(number(row, "created")?),
            refreshed: time(row, "refreshed")?,
            used: time(row, "used")?,
            refresh_until: time(row, "refresh_until")?,
            read: UnixMillis(now),
        })
    }
}

impl Store {
    /// Returns the installation that this store is of.
    #[must_use]
    pub const fn installation(&self) -> &InstallationId {
        &self.installation
    }

    /// Adds a connection.
    ///
    /// # Errors
    /// [`Error::ConnectionExists`] if the account has one at the same place that is to be kept, and
    /// [`Error::ConnectionLimit`] if it has as many as it may have.
    pub async fn add_connection(
        &self,
        new: &NewConnection,
        at_same_place: AtSamePlace,
    ) -> Result<StoredConnection, Error> {
        let action = "add a connection";
        let kind = serde_json::to_string(&new.kind).unwrap_or_default();
        self.write(async |mut tx| {
            // An earlier try may have been committed without an answer.
            if let Some(added) = self.find_connection(&mut tx, &new.id).await? {
                return Ok(added);
            }
            let ConnectionPlace { account, provider, scope } = &new.place;
            if at_same_place == AtSamePlace::Replace {
                let clear = sqlx::query(CLEAR).bind(self.installation.as_str()).bind(account.as_str());
                let clear = clear.bind(provider.as_str()).bind(scope.as_str());
                clear.execute(tx.connection()).await.map_err(failed(action))?;
            }
            sqlx::query(ADD)
                .bind(self.installation.as_str())
                .bind(new.id.as_str())
                .bind(account.as_str())
                .bind(provider.as_str())
                .bind(scope.as_str())
                .bind(&kind)
                .bind(ConnectionState::Active.word())
                .bind(&new.sealed.key_id)
                .bind(&new.sealed.text)
                .bind(new.expires.map(|expires| expires.0))
                .bind(tx.now)
                .execute(tx.connection())
                .await
                .map_err(failed(action))?;
            let added = self.find_connection(&mut tx, &new.id).await?;
            let added = added.ok_or_else(|| Error::ConnectionExists { place: new.place.clone() })?;
            self.check_count(&mut tx, account).await?;
            self.check_host(&mut tx).await?;
            tx.finish(action, added).await
        })
        .await
    }

    /// Returns the connections of the accounts within `scope`, by account, provider and scope.
    pub async fn connections(&self, scope: &AccountScope) -> Result<Vec<StoredConnection>, Error> {
        let account = match scope {
            AccountScope::All => None,
            AccountScope::Only(account) => Some(account.as_str()),
        };
        self.read(async |mut tx| {
            let query = sqlx::query(LIST).bind(self.installation.as_str()).bind(account);
            let rows = query.fetch_all(tx.connection()).await.map_err(failed("list connections"))?;
            let now = tx.now;
            tx.commit("list connections").await?;
            rows.iter().map(|row| StoredConnection::read(row, now)).collect()
        })
        .await
    }

    /// Returns the connection `id`, if its account is within `scope`.
    ///
    /// # Errors
    /// [`Error::NoConnection`] if it does not exist, or belongs to another account.
    pub async fn connection_within(
        &self,
        id: &ConnectionId,
        scope: &AccountScope,
    ) -> Result<StoredConnection, Error> {
        let found = self
            .read(async |mut tx| {
                let found = self.find_connection(&mut tx, id).await?;
                tx.finish("look for a connection", found).await
            })
            .await?;
        let is_within = |found: &StoredConnection| match scope {
            AccountScope::All => true,
            AccountScope::Only(account) => *account == found.place.account,
        };
        found.filter(is_within).ok_or_else(|| Error::NoConnection { connection: id.clone() })
    }

    /// Returns the connection of an account with the longest scope that covers the scope of `wanted`, if there is one.
    pub async fn connection_for(&self, wanted: &ConnectionPlace) -> Result<Option<StoredConnection>, Error> {
        let action = "look for a connection";
        self.read(async |mut tx| {
            let query = sqlx::query(LIST_AT).bind(self.installation.as_str());
            let query = query.bind(wanted.account.as_str()).bind(wanted.provider.as_str());
            let rows = query.fetch_all(tx.connection()).await.map_err(failed(action))?;
            let now = tx.now;
            tx.commit(action).await?;
            let rows = rows.iter().map(|row| StoredConnection::read(row, now));
            let mut held: Vec<_> = rows.collect::<Result<_, _>>()?;
            held.retain(|held| held.place.scope.covers(&wanted.scope));
            // `acme/app` and `acme/app*` are of different length, too: the one without a star is exact.
            let rank = |held: &StoredConnection| {
                let scope = held.place.scope.as_str();
                (!scope.ends_with('*'), scope.len())
            };
            Ok(held.into_iter().max_by_key(rank))
        })
        .await
    }

    /// Removes a connection. Returns whether there was one.
    pub async fn remove_connection(&self, id: &ConnectionId) -> Result<bool, Error> {
        let action = "remove a connection";
        self.write(async |mut tx| {
            let query = sqlx::query(REMOVE).bind(self.installation.as_str()).bind(id.as_str());
            let removed = query.execute(tx.connection()).await.map_err(failed(action))?;
            self.check_host(&mut tx).await?;
            tx.finish(action, removed.rows_affected() > 0).await
        })
        .await
    }

    /// Replaces the secret of a connection by the same one under another key, unless it has changed since it was read,
    /// or is being refreshed. Returns whether it was replaced.
    pub async fn reseal_connection(
        &self,
        read: &StoredConnection,
        sealed: &SealedText,
    ) -> Result<bool, Error> {
        let action = "seal a connection again";
        self.write(async |mut tx| {
            let query = sqlx::query(RESEAL).bind(&sealed.key_id).bind(&sealed.text);
            let query = query.bind(self.installation.as_str()).bind(read.id.as_str());
            let query = query.bind(i64::try_from(read.version).unwrap_or(i64::MAX)).bind(tx.now);
            let resealed = query.execute(tx.connection()).await.map_err(failed(action))?;
            self.check_host(&mut tx).await?;
            tx.finish(action, resealed.rows_affected() > 0).await
        })
        .await
    }

    /// Stores the use of a connection, at most once a minute. The caller continues without it.
    pub async fn record_connection_use(&self, read: &StoredConnection) {
        if read.used.is_some_and(|used| used.until(read.read) < USE_INTERVAL) {
            return;
        }
        let before = read.read.0 - i64::try_from(USE_INTERVAL.as_millis()).unwrap_or(i64::MAX);
        let query = sqlx::query(RECORD_USE).bind(read.read.0).bind(self.installation.as_str());
        let query = query.bind(read.id.as_str()).bind(before);
        if let Err(error) = query.execute(&self.pool).await {
            tracing::warn!(
                error = report::chain(&error),
                connection = %read.id,
                "the use of a connection was not stored"
            );
        }
    }

    /// Checks that an account has not too many connections.
    async fn check_count(&self, tx: &mut Tx, account: &AccountId) -> Result<(), Error> {
        let query = sqlx::query_scalar::<_, i64>(COUNT).bind(self.installation.as_str());
        let count = query.bind(account.as_str()).fetch_one(tx.connection()).await;
        let count = count.map_err(failed("count connections"))?;
        if count.unsigned_abs() > MAX_CONNECTIONS {
            return Err(Error::ConnectionLimit(account.clone()));
        }
        Ok(())
    }

    pub(super) async fn find_connection(
        &self,
        tx: &mut Tx,
        id: &ConnectionId,
    ) -> Result<Option<StoredConnection>, Error> {
        let query = sqlx::query(FIND).bind(self.installation.as_str()).bind(id.as_str());
        let row = query.fetch_optional(tx.connection()).await.map_err(failed("look for a connection"))?;
        let now = tx.now;
        row.map(|row| StoredConnection::read(&row, now)).transpose()
    }
}
