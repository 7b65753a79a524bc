//! Keeps top-ups: the credits that accounts were given. They are added and never changed.

use platform_core::{
    credits::Credits,
    id::{AccountId, ExternalId, TopUpNote},
};
use serde::Serialize;
use sqlx::{Row, any::AnyRow};

use super::{
    Store, Tx, UnixMillis,
    error::{Error, failed},
    row::{number, parsed},
};

const ACTION: &str = "store a top-up";
const ADD: &str = "INSERT INTO top_ups (installation, idempotency_key, account, credits, note, author, created) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (installation, idempotency_key) DO NOTHING";
const FIND: &str = "SELECT * FROM top_ups WHERE installation = $1 AND idempotency_key = $2";

/// Top-up to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewTopUp {
    /// Key of the top-up: of two with the same key, the second changes nothing.
    pub key: ExternalId,
    /// Account that gets the credits.
    pub account: AccountId,
    /// Number of credits; negative to take some back.
    pub credits: Credits,
    /// Note of its author.
    pub note: Option<TopUpNote>,
    /// Principal or user that adds it.
    pub author: ExternalId,
}

/// Top-up, as it was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopUp {
    /// The top-up.
    #[serde(flatten)]
    pub top_up: NewTopUp,
    /// Time at which it was stored.
    #[serde(rename = "created_ms")]
    pub created: UnixMillis,
}

/// Effect of adding a top-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopUpAdded {
    /// Top-up that was stored now. The balance has moved.
    New(TopUp),
    /// Top-up that was stored before.
    Before(TopUp),
}

impl TopUp {
    pub(super) fn read(row: &AnyRow) -> Result<Self, Error> {
        let note: Option<String> = row.try_get("note").map_err(failed("read a top-up"))?;
        let note = note.map(|text| {
            TopUpNote::parse(&text).map_err(|_invalid| Error::Corrupt { what: "note", value: text })
        });
        let top_up = NewTopUp {
            key: parsed(row, "idempotency_key", |text| ExternalId::parse(text).ok())?,
            account: parsed(row, "account", |text| AccountId::parse(text).ok())?,
            credits: Credits(number(row, "credits")?),
            note: note.transpose()?,
            author: parsed(row, "author", |text| ExternalId::parse(text).ok())?,
        };
        Ok(Self { top_up, created: UnixMillis(number(row, "created")?) })
    }
}

impl Store {
    /// Adds a top-up, and moves the balance of its account in the same transaction. One with the same key is returned as
    /// it was stored.
    ///
    /// # Errors
    /// [`Error::TopUpExists`] if the key belongs to a top-up of other credits or another account.
    pub async fn add_top_up(&self, new: &NewTopUp) -> Result<TopUpAdded, Error> {
        self.write(async |mut tx| {
            let is_new = tx.insert_top_up(self.installation.as_str(), new).await?;
            let stored = tx.find_top_up(self.installation.as_str(), &new.key).await?;
            let NewTopUp { account, credits, .. } = &stored.top_up;
            if (account, credits) != (&new.account, &new.credits) {
                return Err(Error::TopUpExists {
                    key: new.key.clone(),
                    account: account.clone(),
                    credits: *credits,
                });
            }
            if !is_new {
                return Ok(TopUpAdded::Before(stored));
            }
            tx.move_balance(&self.installation, account, *credits).await?;
            tx.finish(ACTION, TopUpAdded::New(stored)).await
        })
        .await
    }
}

impl Tx {
    /// Inserts a top-up, unless its key is taken. Returns whether it did.
    async fn insert_top_up(&mut self, installation: &str, new: &NewTopUp) -> Result<bool, Error> {
        let added = sqlx::query(ADD)
            .bind(installation)
            .bind(new.key.as_str())
            .bind(new.account.as_str())
            .bind(new.credits.0)
            .bind(new.note.as_ref().map(TopUpNote::as_str))
            .bind(new.author.as_str())
            .bind(self.now)
            .execute(self.connection())
            .await
            .map_err(failed(ACTION))?;
        Ok(added.rows_affected() > 0)
    }

    async fn find_top_up(&mut self, installation: &str, key: &ExternalId) -> Result<TopUp, Error> {
        let row = sqlx::query(FIND).bind(installation).bind(key.as_str()).fetch_one(self.connection()).await;
        TopUp::read(&row.map_err(failed(ACTION))?)
    }
}
