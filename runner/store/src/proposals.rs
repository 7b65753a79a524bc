//! Keeps proposals for the repository of the configuration: what was ordered, and how far each is.
//!
//! Each change names the version that it builds on, and a change of an older version is refused. A proposal that is due may
//! be continued by any process; one that is due at no time has ended.

use platform_core::{
    id::{AccountId, ExternalId, ProposalId},
    limit::Millis,
};
use sqlx::any::AnyRow;

use super::{
    AccountScope, Store, Tx, UnixMillis,
    error::{Error, failed},
    row::{count, number, parsed, storable, text, time},
};

/// Most proposals of an account that have not ended.
pub const MAX_OPEN_PROPOSALS: u32 = 20;
/// Number of proposals of an account that are kept after their end. Older ones go when another is added.
const KEPT_PROPOSALS: u32 = 200;
const ACTION: &str = "store a proposal";
const READ: &str = "read proposals";

const ADD: &str = "INSERT INTO proposals (installation, proposal, account, principal, content, state, document, due, version, created, changed) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 1, $8, $8) ON CONFLICT (installation, proposal) DO NOTHING";
const COUNT: &str =
    "SELECT count(*) FROM proposals WHERE installation = $1 AND account = $2 AND due IS NOT NULL";
const FIND: &str = "SELECT * FROM proposals WHERE installation = $1 AND proposal = $2";
const LIST: &str = "SELECT * FROM proposals WHERE installation = $1 AND ($2 IS NULL OR account = $2) \
     AND ($3 IS NULL OR created < $3 OR (created = $3 AND proposal < $4)) ORDER BY created DESC, proposal DESC LIMIT $5";
const CHANGE: &str = "UPDATE proposals SET state = $1, document = $2, due = $3, version = version + 1, changed = $4 \
     WHERE installation = $5 AND proposal = $6 AND version = $7";
const HURRY: &str =
    "UPDATE proposals SET due = $1 WHERE installation = $2 AND proposal = $3 AND due > $1 AND changed <= $4";
const DUE: &str =
    "SELECT proposal FROM proposals WHERE installation = $1 AND due <= $2 ORDER BY due LIMIT $3";
const FORGET: &str = "DELETE FROM proposals WHERE installation = $1 AND account = $2 AND due IS NULL AND proposal NOT IN \
     (SELECT proposal FROM proposals WHERE installation = $1 AND account = $2 AND due IS NULL \
      ORDER BY created DESC, proposal DESC LIMIT $3)";

/// Proposal to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProposal {
    /// Id of the proposal.
    pub id: ProposalId,
    /// Account that it belongs to.
    pub account: AccountId,
    /// Principal who asked for it.
    pub principal: ExternalId,
    /// Content, in a form that the store does not read.
    pub content: String,
    /// Progress of the proposal. It is due at once.
    pub progress: ProposalProgress,
}

/// Progress of a proposal, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposalProgress {
    /// Name of the state.
    pub state: &'static str,
    /// The progress, in a form that the store does not read.
    pub document: String,
    /// Time from now until the proposal is to be continued; never if absent, because it has ended.
    pub due_in: Option<Millis>,
}

/// Proposal, as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProposal {
    /// Id of the proposal.
    pub id: ProposalId,
    /// Account that it belongs to.
    pub account: AccountId,
    /// Principal who asked for it.
    pub principal: ExternalId,
    /// Content, in a form that the store does not read.
    pub content: String,
    /// Name of the state.
    pub state: String,
    /// The progress, in a form that the store does not read.
    pub document: String,
    /// Time at which any process may continue it; absent if it has ended.
    pub due: Option<UnixMillis>,
    /// Time at which it was added.
    pub created: UnixMillis,
    /// Time of the last change.
    pub changed: UnixMillis,
    /// Number of changes, which the next one names.
    version: u64,
}

/// Outcome of adding a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProposalAdded {
    /// The proposal is stored.
    New(Box<StoredProposal>),
    /// A proposal of this id was stored before.
    Before(Box<StoredProposal>),
    /// The account has as many open proposals as it may have.
    TooMany,
}

/// Place of a proposal in lists: the time at which it was added, and its id.
pub type ProposalPlace = (UnixMillis, ProposalId);

impl StoredProposal {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        Ok(Self {
            id: parsed(row, "proposal", |text| ProposalId::parse(text).ok())?,
            account: parsed(row, "account", |text| AccountId::parse(text).ok())?,
            principal: parsed(row, "principal", |text| ExternalId::parse(text).ok())?,
            content: text(row, "content")?,
            state: text(row, "state")?,
            document: text(row, "document")?,
            due: time(row, "due")?,
            created: UnixMillis(number(row, "created")?),
            changed: UnixMillis(number(row, "changed")?),
            version: count(row, "version")?,
        })
    }
}

impl Store {
    /// Stores a new proposal, unless one has its id. An account has at most [`MAX_OPEN_PROPOSALS`] that have not ended.
    pub async fn add_proposal(&self, new: &NewProposal) -> Result<ProposalAdded, Error> {
        self.write(async |mut tx| {
            self.lock_orders(&mut tx).await?;
            if let Some(existing) = self.find_proposal(&mut tx, &new.id).await? {
                return tx.finish(ACTION, ProposalAdded::Before(Box::new(existing))).await;
            }
            let query = sqlx::query_scalar(COUNT).bind(self.installation.as_str());
            let query = query.bind(new.account.as_str());
            let open: i64 = query.fetch_one(tx.connection()).await.map_err(failed(READ))?;
            if open >= i64::from(MAX_OPEN_PROPOSALS) {
                return tx.finish(ACTION, ProposalAdded::TooMany).await;
            }
            let forgetting = sqlx::query(FORGET).bind(self.installation.as_str());
            let forgetting = forgetting.bind(new.account.as_str()).bind(i64::from(KEPT_PROPOSALS));
            forgetting.execute(tx.connection()).await.map_err(failed(ACTION))?;
            let adding = sqlx::query(ADD)
                .bind(self.installation.as_str())
                .bind(new.id.as_str())
                .bind(new.account.as_str())
                .bind(new.principal.as_str())
                .bind(storable(&new.content))
                .bind(new.progress.state)
                .bind(storable(&new.progress.document))
                .bind(tx.now);
            adding.execute(tx.connection()).await.map_err(failed(ACTION))?;
            let missing = || Error::Corrupt { what: "proposal", value: format!("{} is gone", new.id) };
            let stored = self.find_proposal(&mut tx, &new.id).await?.ok_or_else(missing)?;
            tx.finish(ACTION, ProposalAdded::New(Box::new(stored))).await
        })
        .await
    }

    /// Stores the progress of `proposal`, which was read before. Returns it as it is stored now; `None` if another process
    /// has changed it since, and nothing is stored.
    pub async fn change_proposal(
        &self,
        proposal: &StoredProposal,
        progress: &ProposalProgress,
    ) -> Result<Option<StoredProposal>, Error> {
        self.write(async |mut tx| {
            let due = progress.due_in.map(|due_in| tx.now.saturating_add_unsigned(due_in.0));
            let changing = sqlx::query(CHANGE)
                .bind(progress.state)
                .bind(storable(&progress.document))
                .bind(due)
                .bind(tx.now)
                .bind(self.installation.as_str())
                .bind(proposal.id.as_str())
                .bind(i64::try_from(proposal.version).unwrap_or(i64::MAX));
            let changed = changing.execute(tx.connection()).await.map_err(failed(ACTION))?;
            let stored = self.find_proposal(&mut tx, &proposal.id).await?;
            // An earlier try that got no answer has stored the same.
            let is_own = |stored: &StoredProposal| {
                changed.rows_affected() > 0
                    || (stored.version == proposal.version + 1
                        && stored.document == storable(&progress.document))
            };
            tx.finish(ACTION, stored.filter(is_own)).await
        })
        .await
    }

    /// Returns a proposal, if its account is within `scope`.
    pub async fn proposal(
        &self,
        id: &ProposalId,
        scope: &AccountScope,
    ) -> Result<Option<StoredProposal>, Error> {
        self.read(async |mut tx| {
            let stored = self.find_proposal(&mut tx, id).await?;
            let is_within =
                |stored: &StoredProposal| scope.account().is_none_or(|account| *account == stored.account);
            tx.finish(READ, stored.filter(is_within)).await
        })
        .await
    }

    /// Returns at most `most` proposals within `scope` that were added before `before`, the newest first.
    pub async fn proposals(
        &self,
        scope: &AccountScope,
        before: Option<&ProposalPlace>,
        most: u32,
    ) -> Result<Vec<StoredProposal>, Error> {
        self.retry(async || {
            let query = sqlx::query(LIST)
                .bind(self.installation.as_str())
                .bind(scope.account().map(AccountId::as_str))
                .bind(before.map(|(created, _)| created.0))
                .bind(before.map(|(_, id)| id.as_str()))
                .bind(i64::from(most));
            let rows = query.fetch_all(&self.pool).await.map_err(failed(READ))?;
            rows.iter().map(StoredProposal::read).collect()
        })
        .await
    }

    /// Makes those of some proposals due that were not changed within `interval`, because a client looks at them.
    pub async fn hurry_proposals(&self, ids: &[ProposalId], interval: Millis) -> Result<(), Error> {
        if ids.is_empty() {
            return Ok(());
        }
        self.write(async |mut tx| {
            let latest = UnixMillis(tx.now).before(interval).0;
            for id in ids {
                let hurrying = sqlx::query(HURRY).bind(tx.now).bind(self.installation.as_str());
                let hurrying = hurrying.bind(id.as_str()).bind(latest);
                hurrying.execute(tx.connection()).await.map_err(failed(ACTION))?;
            }
            tx.commit(ACTION).await
        })
        .await
    }

    /// Returns the ids of at most `most` proposals that any process may continue now, those that have waited longest first.
    pub async fn due_proposals(&self, most: u32) -> Result<Vec<ProposalId>, Error> {
        self.read(async |mut tx| {
            let query = sqlx::query(DUE).bind(self.installation.as_str()).bind(tx.now).bind(i64::from(most));
            let rows = query.fetch_all(tx.connection()).await.map_err(failed(READ))?;
            tx.commit(READ).await?;
            rows.iter().map(|row| parsed(row, "proposal", |text| ProposalId::parse(text).ok())).collect()
        })
        .await
    }

    async fn find_proposal(&self, tx: &mut Tx, id: &ProposalId) -> Result<Option<StoredProposal>, Error> {
        let query = sqlx::query(FIND).bind(self.installation.as_str()).bind(id.as_str());
        let row = query.fetch_optional(tx.connection()).await.map_err(failed(READ))?;
        row.map(|row| StoredProposal::read(&row)).transpose()
    }
}
