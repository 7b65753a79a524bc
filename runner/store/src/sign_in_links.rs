//! Keeps links with which a person's browser signs in once, without the token of its principal.
//!
//! A link names the token of its principal, as a session does. So it ends with that token: when the token is rotated, or
//! its principal revoked.

use std::time::Duration;

use runner_model::principal::{BrowserSessionHash, KeyId, SignInCodeHash};
use sqlx::any::AnyRow;

use super::{
    Principal, Store, Tx,
    browser_sessions::before,
    error::{Error, failed},
    principals::FIND_BY_KEY,
    row::parsed,
};

/// Time after which a link signs in no longer.
pub const MAX_SIGN_IN_LINK_AGE: Duration = Duration::from_secs(120);
/// Most links of a token. Another one ends the oldest.
const MAX_LINKS: i64 = 8;

const ADD: &str = "INSERT INTO sign_in_links (installation, code_hash, key_id, created) \
     VALUES ($1, $2, $3, $4) ON CONFLICT (installation, code_hash) DO NOTHING";
const END_OLDEST: &str = "DELETE FROM sign_in_links WHERE installation = $1 AND key_id = $2 AND code_hash NOT IN (\
       SELECT code_hash FROM sign_in_links WHERE installation = $1 AND key_id = $2 \
       ORDER BY created DESC, code_hash LIMIT $3)";
const END_EXPIRED: &str = "DELETE FROM sign_in_links WHERE installation = $1 AND created <= $2";
const TAKE: &str = "DELETE FROM sign_in_links WHERE installation = $1 AND code_hash = $2 RETURNING key_id";
const SESSION: &str = "SELECT key_id FROM browser_sessions WHERE installation = $1 AND session_hash = $2";

impl Store {
    /// Stores a link for the token with this key id. Removes links that have ended.
    ///
    /// # Errors
    /// If the store serves another host.
    pub async fn add_sign_in_link(&self, key_id: &KeyId, hash: &SignInCodeHash) -> Result<(), Error> {
        let action = "add a link to sign in";
        self.write(async |mut tx| {
            self.end_expired_links(&mut tx).await?;
            let add = sqlx::query(ADD).bind(self.installation.as_str()).bind(hash.as_str());
            let add = add.bind(key_id.as_str()).bind(tx.now);
            add.execute(tx.connection()).await.map_err(failed(action))?;
            let end = sqlx::query(END_OLDEST).bind(self.installation.as_str()).bind(key_id.as_str());
            end.bind(MAX_LINKS).execute(tx.connection()).await.map_err(failed(action))?;
            self.check_host(&mut tx).await?;
            tx.commit(action).await
        })
        .await
    }

    /// Begins the session `session` with a link, which ends by that. Returns its principal; `None` if the link was used,
    /// is too old or never was, or if its token has ended.
    ///
    /// # Errors
    /// If the store serves another host.
    pub async fn redeem_sign_in_link(
        &self,
        code: &SignInCodeHash,
        session: &BrowserSessionHash,
    ) -> Result<Option<Principal>, Error> {
        let action = "sign in with a link";
        self.write(async |mut tx| {
            self.end_expired_links(&mut tx).await?;
            let began = match self.take_link(&mut tx, code).await? {
                Some(row) => Some(row),
                // An earlier try may have been committed without an answer. No other caller knows the session.
                None => self.session_row(&mut tx, session).await?,
            };
            let principal = match began {
                Some(row) => self.principal_of(&mut tx, &row).await?,
                None => None,
            };
            if let Some(principal) = &principal {
                self.insert_browser_session(&mut tx, &principal.key_id, session).await?;
            }
            self.check_host(&mut tx).await?;
            tx.finish(action, principal).await
        })
        .await
    }

    async fn end_expired_links(&self, tx: &mut Tx) -> Result<(), Error> {
        let query = sqlx::query(END_EXPIRED).bind(self.installation.as_str());
        let query = query.bind(before(tx.now, MAX_SIGN_IN_LINK_AGE));
        query.execute(tx.connection()).await.map(drop).map_err(failed("remove links to sign in"))
    }

    /// Removes the link, and returns its row.
    async fn take_link(&self, tx: &mut Tx, code: &SignInCodeHash) -> Result<Option<AnyRow>, Error> {
        let query = sqlx::query(TAKE).bind(self.installation.as_str()).bind(code.as_str());
        query.fetch_optional(tx.connection()).await.map_err(failed("take a link to sign in"))
    }

    async fn session_row(&self, tx: &mut Tx, session: &BrowserSessionHash) -> Result<Option<AnyRow>, Error> {
        let query = sqlx::query(SESSION).bind(self.installation.as_str()).bind(session.as_str());
        query.fetch_optional(tx.connection()).await.map_err(failed("look for a browser session"))
    }

    /// Returns the principal with the token that a row names; `None` if the token has ended.
    async fn principal_of(&self, tx: &mut Tx, row: &AnyRow) -> Result<Option<Principal>, Error> {
        let key_id = parsed(row, "key_id", KeyId::parse)?;
        let query = sqlx::query(FIND_BY_KEY).bind(self.installation.as_str()).bind(key_id.as_str());
        let row = query.fetch_optional(tx.connection()).await.map_err(failed("identify a principal"))?;
        row.as_ref().map(Principal::read).transpose()
    }
}
