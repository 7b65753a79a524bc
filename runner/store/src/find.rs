//! Finds runs by a part of their id, and runs within an account.

use platform_core::id::{AccountId, RunId};
use sqlx::Row;

use super::{
    Run, Store,
    error::{Error, failed},
    row::columns,
};

/// Accounts that exist for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountScope {
    /// All accounts.
    All,
    /// This account alone.
    Only(AccountId),
}

impl AccountScope {
    /// Returns the account, if only one exists for the client.
    pub(super) const fn account(&self) -> Option<&AccountId> {
        match self {
            Self::All => None,
            Self::Only(account) => Some(account),
        }
    }
}

/// Ids have no characters that `LIKE` treats specially.
const FIND_BY_PART: &str = "SELECT run FROM runs WHERE installation = $1 AND (run LIKE $2 OR run LIKE $3) \
     ORDER BY created DESC, run DESC LIMIT $4";
const FIND_WHOLE: &str = "SELECT run FROM runs WHERE installation = $1 AND run = $2";
const FIND_WITHIN: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM runs WHERE installation = $1 AND run = $2 AND ($3 IS NULL OR account = $3)"
);

impl Store {
    /// Returns the run `run_id`, if its account is within `scope`.
    ///
    /// # Errors
    /// [`Error::Unknown`] if the run does not exist, or belongs to another account.
    pub async fn run_within(&self, run_id: &RunId, scope: &AccountScope) -> Result<Run, Error> {
        let action = "look for a run";
        let account = scope.account().map(AccountId::as_str);
        self.read(async |mut tx| {
            let found = sqlx::query(FIND_WITHIN)
                .bind(self.installation.as_str())
                .bind(run_id.as_str())
                .bind(account)
                .fetch_optional(tx.connection())
                .await
                .map_err(failed(action))?;
            let now = tx.now;
            tx.commit(action).await?;
            let unknown = || Error::Unknown { run_id: run_id.clone() };
            found.map_or_else(|| Err(unknown()), |row| Run::read(&row, now))
        })
        .await
    }

    /// Returns the runs with ids that begin or end with `part`, the newest first, but at most `max_runs`. If `part` is
    /// a whole id, returns that one alone.
    pub async fn find_by_part(&self, part: &RunId, max_runs: u32) -> Result<Vec<RunId>, Error> {
        self.retry(async || self.find_by_part_once(part, max_runs).await).await
    }

    async fn find_by_part_once(&self, part: &RunId, max_runs: u32) -> Result<Vec<RunId>, Error> {
        let action = "look for a run";
        let mut tx = self.begin_with(self.backend.begin_snapshot()).await?;
        let installation = self.installation.as_str();
        let whole = sqlx::query(FIND_WHOLE).bind(installation).bind(part.as_str());
        if whole.fetch_optional(tx.connection()).await.map_err(failed(action))?.is_some() {
            tx.commit(action).await?;
            return Ok(vec![part.clone()]);
        }
        let rows = sqlx::query(FIND_BY_PART)
            .bind(installation)
            .bind(format!("{part}%"))
            .bind(format!("%{part}"))
            .bind(i64::from(max_runs))
            .fetch_all(tx.connection())
            .await
            .map_err(failed(action))?;
        tx.commit(action).await?;
        let id = |row| {
            let text: String = sqlx::any::AnyRow::try_get(row, "run").map_err(failed(action))?;
            RunId::parse(&text).map_err(|_invalid| Error::Corrupt { what: "run", value: text })
        };
        rows.iter().map(id).collect()
    }
}
