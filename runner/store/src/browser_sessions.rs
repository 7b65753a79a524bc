//! Keeps browser sessions: a browser acts for a principal without its token, until the session or the token ends.
//!
//! A session names the token with which its person signed in. So it ends with that token, without its own step:
//! when the token is rotated, or its principal revoked.

use std::time::Duration;

use platform_runtime::report;
use runner_model::principal::{BrowserSessionHash, KeyId};
use sqlx::any::AnyRow;

use super::{
    Principal, Store, Tx, UnixMillis,
    error::{Error, failed},
    principals::FIND_BY_KEY,
    row::{number, parsed},
};

/// Time without a request after which a session ends.
pub const BROWSER_SESSION_IDLE_TIMEOUT: Duration = Duration::from_secs(12 * 3600);
/// Time after the sign-in at which a session ends in any case.
pub const MAX_BROWSER_SESSION_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Most sessions of a token. Another one ends the oldest.
const MAX_SESSIONS: i64 = 32;
/// Interval at which the last use of a session is stored.
const USE_INTERVAL: Duration = Duration::from_secs(60);

const ADD: &str = "INSERT INTO browser_sessions (installation, session_hash, key_id, created, used) \
     VALUES ($1, $2, $3, $4, $4) ON CONFLICT (installation, session_hash) DO NOTHING";
const END_OLDEST: &str = "DELETE FROM browser_sessions WHERE installation = $1 AND key_id = $2 AND session_hash NOT IN (\
       SELECT session_hash FROM browser_sessions WHERE installation = $1 AND key_id = $2 \
       ORDER BY created DESC, session_hash LIMIT $3)";
const FIND: &str = "SELECT key_id, used FROM browser_sessions \
     WHERE installation = $1 AND session_hash = $2 AND used > $3 AND created > $4";
const RECORD_USE: &str =
    "UPDATE browser_sessions SET used = $1 WHERE installation = $2 AND session_hash = $3 AND used < $1";
const END: &str = "DELETE FROM browser_sessions WHERE installation = $1 AND session_hash = $2";
const END_EXPIRED: &str = "DELETE FROM browser_sessions WHERE installation = $1 AND (used <= $2 OR created <= $3 \
     OR NOT EXISTS (SELECT 1 FROM principals WHERE principals.installation = browser_sessions.installation \
       AND principals.key_id = browser_sessions.key_id AND principals.revoked IS NULL))";

impl Store {
    /// Stores a session of the token with this key id. If the token has too many, the oldest ends.
    ///
    /// # Errors
    /// If the store serves another host.
    pub async fn add_browser_session(&self, key_id: &KeyId, hash: &BrowserSessionHash) -> Result<(), Error> {
        let action = "add a browser session";
        self.write(async |mut tx| {
            self.insert_browser_session(&mut tx, key_id, hash).await?;
            self.check_host(&mut tx).await?;
            tx.commit(action).await
        })
        .await
    }

    /// Adds a session within `tx`.
    pub(super) async fn insert_browser_session(
        &self,
        tx: &mut Tx,
        key_id: &KeyId,
        hash: &BrowserSessionHash,
    ) -> Result<(), Error> {
        let action = "add a browser session";
        let add = sqlx::query(ADD).bind(self.installation.as_str()).bind(hash.as_str());
        let add = add.bind(key_id.as_str()).bind(tx.now);
        add.execute(tx.connection()).await.map_err(failed(action))?;
        let end = sqlx::query(END_OLDEST).bind(self.installation.as_str()).bind(key_id.as_str());
        end.bind(MAX_SESSIONS).execute(tx.connection()).await.map(drop).map_err(failed(action))
    }

    /// Returns the principal that a browser session acts for; `None` if the session has ended. Stores its use, at most
    /// once a minute.
    pub async fn authenticate_browser(&self, hash: &BrowserSessionHash) -> Result<Option<Principal>, Error> {
        self.read(async |mut tx| {
            let action = "identify a browser session";
            let Some(session) = self.find_browser_session(&mut tx, hash).await? else { return Ok(None) };
            let key_id = parsed(&session, "key_id", KeyId::parse)?;
            let query = sqlx::query(FIND_BY_KEY).bind(self.installation.as_str()).bind(key_id.as_str());
            let principal = query.fetch_optional(tx.connection()).await.map_err(failed(action))?;
            let now = UnixMillis(tx.now);
            tx.commit(action).await?;
            let principal = principal.as_ref().map(Principal::read).transpose()?;
            let used = UnixMillis(number(&session, "used")?);
            if principal.is_some() && used.until(now) >= USE_INTERVAL {
                self.record_browser_use(hash, now).await;
            }
            Ok(principal)
        })
        .await
    }

    async fn find_browser_session(
        &self,
        tx: &mut Tx,
        hash: &BrowserSessionHash,
    ) -> Result<Option<AnyRow>, Error> {
        let query = sqlx::query(FIND).bind(self.installation.as_str()).bind(hash.as_str());
        let query = query.bind(before(tx.now, BROWSER_SESSION_IDLE_TIMEOUT));
        let query = query.bind(before(tx.now, MAX_BROWSER_SESSION_AGE));
        query.fetch_optional(tx.connection()).await.map_err(failed("look for a browser session"))
    }

    /// Stores the use of a session. The request continues without it.
    async fn record_browser_use(&self, hash: &BrowserSessionHash, now: UnixMillis) {
        let query = sqlx::query(RECORD_USE).bind(now.0).bind(self.installation.as_str()).bind(hash.as_str());
        if let Err(error) = query.execute(&self.pool).await {
            tracing::warn!(error = report::chain(&error), "the use of a browser session was not stored");
        }
    }

    /// Returns whether a browser session has not ended, without counting as its use.
    pub async fn is_browser_session_valid(&self, hash: &BrowserSessionHash) -> Result<bool, Error> {
        self.read(async |mut tx| {
            let found = self.find_browser_session(&mut tx, hash).await?.is_some();
            tx.finish("check a browser session", found).await
        })
        .await
    }

    /// Ends a browser session. One that has ended stays so.
    pub async fn end_browser_session(&self, hash: &BrowserSessionHash) -> Result<(), Error> {
        self.retry(async || {
            let query = sqlx::query(END).bind(self.installation.as_str()).bind(hash.as_str());
            query.execute(&self.pool).await.map(drop).map_err(failed("end a browser session"))
        })
        .await
    }

    /// Removes the browser sessions that have ended, by time or with their token. Returns their number.
    pub async fn remove_ended_browser_sessions(&self) -> Result<u64, Error> {
        let action = "remove ended browser sessions";
        self.write(async |mut tx| {
            let query = sqlx::query(END_EXPIRED).bind(self.installation.as_str());
            let query = query.bind(before(tx.now, BROWSER_SESSION_IDLE_TIMEOUT));
            let query = query.bind(before(tx.now, MAX_BROWSER_SESSION_AGE));
            let removed = query.execute(tx.connection()).await.map_err(failed(action))?.rows_affected();
            tx.finish(action, removed).await
        })
        .await
    }
}

/// Returns the time that lies `duration` before `now`, in milliseconds.
pub(super) fn before(now: i64, duration: Duration) -> i64 {
    now.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}
