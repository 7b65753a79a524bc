//! Stores the position up to which each consumer has read the journal.

use platform_core::control::Cursor;
use sqlx::any::AnyRow;

use super::{
    Store, Tx, UnixMillis,
    error::{Error, failed},
    row::{count, number, text},
};

/// Position up to which a consumer has acknowledged a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerCursor {
    /// The consumer.
    pub consumer: String,
    /// Position of the last acknowledged record.
    pub cursor: Cursor,
    /// Time of the acknowledgement.
    pub changed: UnixMillis,
}

const ACTION: &str = "store a cursor";
const READ: &str = "SELECT consumer, journal, seq, hash, changed FROM cursors \
     WHERE consumer = $1 AND ($2 IS NULL OR journal = $2) ORDER BY changed DESC, journal";
/// Sets the cursor in one statement, so that the later position of two concurrent ones wins.
const SET: &str = "INSERT INTO cursors (consumer, journal, seq, hash, changed) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (consumer, journal) DO UPDATE SET seq = $3, hash = $4, changed = $5 WHERE cursors.seq <= $3";

impl ConsumerCursor {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        let cursor =
            Cursor { journal: text(row, "journal")?, seq: count(row, "seq")?, hash: text(row, "hash")? };
        Ok(Self { consumer: text(row, "consumer")?, cursor, changed: UnixMillis(number(row, "changed")?) })
    }
}

impl Store {
    /// Returns the cursors of `consumer`, one for each journal, the last changed first.
    pub async fn cursors(&self, consumer: &str) -> Result<Vec<ConsumerCursor>, Error> {
        self.retry(async || {
            let rows = sqlx::query(READ).bind(consumer).bind(None::<&str>).fetch_all(&self.pool).await;
            rows.map_err(failed("read a cursor"))?.iter().map(ConsumerCursor::read).collect()
        })
        .await
    }

    /// Records the position up to which `consumer` has read a journal.
    ///
    /// # Errors
    /// [`Error::Backwards`] if the stored cursor is at a later position.
    pub async fn acknowledge(&self, consumer: &str, cursor: &Cursor) -> Result<(), Error> {
        self.retry(async || self.acknowledge_once(consumer, cursor).await).await
    }

    async fn acknowledge_once(&self, consumer: &str, cursor: &Cursor) -> Result<(), Error> {
        let mut tx = self.begin().await?;
        tx.set_cursor(consumer, cursor).await?;
        tx.commit(ACTION).await
    }
}

impl Tx {
    /// Sets the cursor of `consumer` in a journal.
    ///
    /// # Errors
    /// [`Error::Backwards`] if the stored cursor is at a later position.
    pub(super) async fn set_cursor(&mut self, consumer: &str, cursor: &Cursor) -> Result<(), Error> {
        let set = sqlx::query(SET)
            .bind(consumer)
            .bind(&cursor.journal)
            .bind(i64::try_from(cursor.seq).unwrap_or(i64::MAX))
            .bind(&cursor.hash)
            .bind(self.now)
            .execute(self.connection())
            .await
            .map_err(failed(ACTION))?;
        if set.rows_affected() > 0 {
            return Ok(());
        }
        let row = sqlx::query(READ).bind(consumer).bind(&cursor.journal).fetch_one(self.connection()).await;
        let stored = ConsumerCursor::read(&row.map_err(failed(ACTION))?)?;
        Err(Error::Backwards {
            consumer: stored.consumer,
            acknowledged: stored.cursor.seq,
            given: cursor.seq,
        })
    }
}
