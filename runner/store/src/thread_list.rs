//! Lists the threads of an account.

use platform_core::id::{AccountId, ExternalId};
use sqlx::any::AnyRow;

use super::{
    Store, UnixMillis,
    error::{Error, failed},
    row::{count, number, parsed, text},
};

/// Thread, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Key of the thread, unique in its account.
    pub key: ExternalId,
    /// Account of the thread.
    pub account: AccountId,
    /// Beginning of its first question.
    pub title: String,
    /// Number of its turns.
    pub turns: u64,
    /// Time of its first turn.
    pub created: UnixMillis,
    /// Time of its last turn.
    pub changed: UnixMillis,
}

/// A thread's title is the beginning of its first question.
const LIST: &str = "SELECT listed.thread, listed.account, listed.turns, listed.created, listed.changed, \
     (SELECT substr(turns.question, 1, 200) FROM turns WHERE turns.installation = $1 AND turns.account = listed.account \
     AND turns.thread = listed.thread ORDER BY turns.number LIMIT 1) AS title \
     FROM (SELECT account, thread, count(*) AS turns, min(created) AS created, max(created) AS changed FROM turns \
     WHERE installation = $1 AND account = $2 GROUP BY account, thread) AS listed \
     WHERE $3 IS NULL OR listed.changed < $3 OR (listed.changed = $3 AND listed.thread < $4) \
     ORDER BY listed.changed DESC, listed.thread DESC LIMIT $5";

impl Store {
    /// Returns at most `most` threads of `account`, the last changed first: those that changed before `before`.
    pub async fn threads(
        &self,
        account: &AccountId,
        before: Option<&(UnixMillis, ExternalId)>,
        most: u32,
    ) -> Result<Vec<Thread>, Error> {
        self.retry(async || {
            let rows = sqlx::query(LIST)
                .bind(self.installation.as_str())
                .bind(account.as_str())
                .bind(before.map(|(changed, _)| changed.0))
                .bind(before.map(|(_, key)| key.as_str()))
                .bind(i64::from(most))
                .fetch_all(&self.pool)
                .await
                .map_err(failed("list threads"))?;
            rows.iter().map(Thread::read).collect()
        })
        .await
    }
}

impl Thread {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        Ok(Self {
            key: parsed(row, "thread", |text| ExternalId::parse(text).ok())?,
            account: parsed(row, "account", |text| AccountId::parse(text).ok())?,
            title: text(row, "title")?,
            turns: count(row, "turns")?,
            created: UnixMillis(number(row, "created")?),
            changed: UnixMillis(number(row, "changed")?),
        })
    }
}
