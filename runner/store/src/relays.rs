//! Keeps relays: the way of each attempt's commits from its workspace to a branch of their repository.
//!
//! A relay continues after its run has ended, so it belongs to no lease. Each change names the version that it builds
//! on, and a change of an older version is refused. A branch belongs to the account that used it first.

use platform_core::{
    id::{AccountId, RunId},
    limit::Millis,
};
use sqlx::any::AnyRow;

use super::{
    Store, Tx, UnixMillis,
    error::{Error, failed},
    row::{count, number, parsed, storable, text, time},
};

const ACTION: &str = "store a relay";
const READ: &str = "read relays";

const ADD: &str = "INSERT INTO relays (run, attempt, installation, account, url, branch, stage, document, due, version, changed) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL, 1, $9) ON CONFLICT (run, attempt) DO NOTHING";
const OTHER_OWNER: &str = "SELECT count(*) AS others FROM relays \
     WHERE installation = $1 AND url = $2 AND branch = $3 AND account <> $4";
const CHANGE: &str = "UPDATE relays SET stage = $1, document = $2, due = $3, version = version + 1, changed = $4 \
     WHERE run = $5 AND attempt = $6 AND version = $7";
const OF_RUN: &str =
    "SELECT * FROM relays WHERE run = $1 AND installation = $2 ORDER BY attempt DESC LIMIT 1";
const OF_ATTEMPT: &str = "SELECT * FROM relays WHERE run = $1 AND attempt = $2 AND installation = $3";
const DUE: &str =
    "SELECT * FROM relays WHERE installation = $1 AND due IS NOT NULL AND due <= $2 ORDER BY due LIMIT $3";

/// Relay to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRelay {
    /// Id of the run.
    pub run_id: RunId,
    /// Attempt of the run.
    pub attempt: u32,
    /// Account that pays for the run, and owns the branch.
    pub account: AccountId,
    /// Repository, by one text for all spellings of its address.
    pub url: String,
    /// Branch that the commits go to.
    pub branch: String,
    /// Progress of the relay.
    pub progress: RelayProgress,
}

/// Progress of a relay, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayProgress {
    /// Name of the stage.
    pub stage: &'static str,
    /// The relay, in a form that the store does not read.
    pub document: String,
    /// Time from now until the relay is to be continued by any process; never if absent.
    pub due_in: Option<Millis>,
}

/// Relay, as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRelay {
    /// Id of the run.
    pub run_id: RunId,
    /// Attempt of the run.
    pub attempt: u32,
    /// Account that pays for the run.
    pub account: AccountId,
    /// Repository, by one text for all spellings of its address.
    pub url: String,
    /// Name of the stage.
    pub stage: String,
    /// The relay, in a form that the store does not read. Empty once the texts of the run were removed.
    pub document: String,
    /// Time at which any process may continue the relay.
    pub due: Option<UnixMillis>,
    /// Time of the last change.
    pub changed: UnixMillis,
    /// Number of changes, which the next one names.
    version: u64,
}

impl StoredRelay {
    pub(super) fn read(row: &AnyRow) -> Result<Self, Error> {
        Ok(Self {
            run_id: parsed(row, "run", |text| RunId::parse(text).ok())?,
            attempt: count(row, "attempt")?,
            account: parsed(row, "account", |text| AccountId::parse(text).ok())?,
            url: text(row, "url")?,
            stage: text(row, "stage")?,
            document: text(row, "document")?,
            due: time(row, "due")?,
            changed: UnixMillis(number(row, "changed")?),
            version: count(row, "version")?,
        })
    }
}

impl Store {
    /// Adds a relay, unless its attempt has one. Returns the one that is stored.
    ///
    /// # Errors
    /// [`Error::BranchTaken`] if another account has used the branch. Then nothing is stored.
    pub async fn add_relay(&self, new: &NewRelay) -> Result<StoredRelay, Error> {
        self.write(async |mut tx| {
            self.lock_orders(&mut tx).await?;
            tx.check_owner(self.installation.as_str(), new).await?;
            tx.insert_relay(self.installation.as_str(), new).await?;
            let stored = tx.find_relay(self.installation.as_str(), &new.run_id, new.attempt).await?;
            tx.commit(ACTION).await?;
            stored.ok_or_else(|| Error::RelayChanged { run_id: new.run_id.clone() })
        })
        .await
    }

    /// Stores the progress of `relay`, which was read before. Returns it as it is stored now.
    ///
    /// # Errors
    /// [`Error::RelayChanged`] if another process has changed it since. Then nothing is stored.
    pub async fn change_relay(
        &self,
        relay: &StoredRelay,
        progress: &RelayProgress,
    ) -> Result<StoredRelay, Error> {
        self.write(async |mut tx| {
            let due = progress.due_in.map(|due_in| tx.now.saturating_add_unsigned(due_in.0));
            let changed = sqlx::query(CHANGE)
                .bind(progress.stage)
                .bind(storable(&progress.document))
                .bind(due)
                .bind(tx.now)
                .bind(relay.run_id.as_str())
                .bind(i64::from(relay.attempt))
                .bind(i64::try_from(relay.version).unwrap_or(i64::MAX))
                .execute(tx.connection())
                .await
                .map_err(failed(ACTION))?;
            let stored = tx.find_relay(self.installation.as_str(), &relay.run_id, relay.attempt).await?;
            // An earlier try that got no answer has stored the same.
            let is_stored = changed.rows_affected() > 0
                || stored.as_ref().is_some_and(|stored| {
                    stored.version == relay.version + 1 && stored.document == storable(&progress.document)
                });
            let stored = stored.filter(|_| is_stored);
            let stored = stored.ok_or_else(|| Error::RelayChanged { run_id: relay.run_id.clone() })?;
            tx.finish(ACTION, stored).await
        })
        .await
    }

    /// Returns the relay of the last attempt of `run_id` that has one.
    pub async fn relay(&self, run_id: &RunId) -> Result<Option<StoredRelay>, Error> {
        self.retry(async || {
            let query = sqlx::query(OF_RUN).bind(run_id.as_str()).bind(self.installation.as_str());
            let row = query.fetch_optional(&self.pool).await.map_err(failed(READ))?;
            row.map(|row| StoredRelay::read(&row)).transpose()
        })
        .await
    }

    /// Returns the relay of the attempt `attempt` of `run_id`.
    pub async fn relay_of(&self, run_id: &RunId, attempt: u32) -> Result<Option<StoredRelay>, Error> {
        self.read(async |mut tx| {
            let stored = tx.find_relay(self.installation.as_str(), run_id, attempt).await?;
            tx.finish(READ, stored).await
        })
        .await
    }

    /// Returns at most `max_relays` that any process may continue now, those that have waited longest first.
    pub async fn due_relays(&self, max_relays: u32) -> Result<Vec<StoredRelay>, Error> {
        self.read(async |mut tx| {
            let query =
                sqlx::query(DUE).bind(self.installation.as_str()).bind(tx.now).bind(i64::from(max_relays));
            let rows = query.fetch_all(tx.connection()).await.map_err(failed(READ))?;
            tx.commit(READ).await?;
            rows.iter().map(StoredRelay::read).collect()
        })
        .await
    }
}

impl Tx {
    async fn find_relay(
        &mut self,
        installation: &str,
        run_id: &RunId,
        attempt: u32,
    ) -> Result<Option<StoredRelay>, Error> {
        let query = sqlx::query(OF_ATTEMPT).bind(run_id.as_str()).bind(i64::from(attempt)).bind(installation);
        let row = query.fetch_optional(self.connection()).await.map_err(failed(READ))?;
        row.map(|row| StoredRelay::read(&row)).transpose()
    }

    /// Refuses the branch of `new` if another account has used it.
    async fn check_owner(&mut self, installation: &str, new: &NewRelay) -> Result<(), Error> {
        let query = sqlx::query(OTHER_OWNER).bind(installation).bind(&new.url);
        let query = query.bind(&new.branch).bind(new.account.as_str());
        let row = query.fetch_one(self.connection()).await.map_err(failed(ACTION))?;
        if number(&row, "others")? > 0 {
            return Err(Error::BranchTaken { url: new.url.clone(), branch: new.branch.clone() });
        }
        Ok(())
    }

    async fn insert_relay(&mut self, installation: &str, new: &NewRelay) -> Result<(), Error> {
        let added = sqlx::query(ADD)
            .bind(new.run_id.as_str())
            .bind(i64::from(new.attempt))
            .bind(installation)
            .bind(new.account.as_str())
            .bind(&new.url)
            .bind(&new.branch)
            .bind(new.progress.stage)
            .bind(storable(&new.progress.document))
            .bind(self.now)
            .execute(self.connection())
            .await;
        added.map_err(failed(ACTION))?;
        Ok(())
    }
}
