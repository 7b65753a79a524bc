//! Records the workspaces of threads: which workspace the runs of a thread and an agent share, and which run has it.
//!
//! The workspace is a resource of one run at a time. A run claims it in the step in which it begins to prepare. The
//! row here then names this run. The resource of the run before counts as removed. So a workspace is never two runs',
//! whatever a worker that was delayed does. A workspace leaves the table before it is removed from the disk.

use platform_core::id::{AccountId, AgentId, ExternalId, RunId, WorkspaceId};

use super::{
    ResourceState, Store, Tx,
    error::{Error, failed},
    resource::state_of,
    row::parsed,
};

const FIND: &str = "SELECT held.workspace, held.run, resources.state FROM thread_workspaces AS held \
     LEFT JOIN resources ON resources.run = held.run AND resources.kind = 'workspace' AND resources.name = held.workspace \
     WHERE held.installation = $1 AND held.account = $2 AND held.thread = $3 AND held.agent = $4";
const ADD: &str = "INSERT INTO thread_workspaces (installation, account, thread, agent, workspace, run, changed) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (installation, account, thread, agent) DO NOTHING";
/// Gives the row to another run, unless the run before has the workspace still. A run may claim its own again.
const MOVE: &str = "UPDATE thread_workspaces SET workspace = $5, run = $6, changed = $7 \
     WHERE installation = $1 AND account = $2 AND thread = $3 AND agent = $4 AND workspace = $8 AND run = $9 \
     AND ($9 = $6 OR NOT EXISTS (SELECT 1 FROM resources JOIN runs ON runs.run = resources.run \
     WHERE resources.run = $9 AND resources.kind = 'workspace' AND resources.name = $8 \
     AND resources.state IN ('wanted', 'made') AND runs.ended IS NULL))";
const IS_CLAIMED: &str = "SELECT count(*) FROM thread_workspaces WHERE installation = $1 AND account = $2 AND thread = $3 \
     AND agent = $4 AND workspace = $5 AND run = $6";
const LEAVE: &str = "UPDATE resources SET state = 'removed', changed = $1 \
     WHERE run = $2 AND kind = 'workspace' AND name = $3 AND state = 'kept'";
/// Waits for a step or a restart of the run, and prevents another one until the transaction ends.
const LOCK_ENDED: &str =
    "UPDATE runs SET changed = changed WHERE run = $1 AND installation = $2 AND ended IS NOT NULL";
const RETIRE: &str = "DELETE FROM thread_workspaces WHERE installation = $1 AND workspace = $2 AND run = $3";
const IS_HELD: &str = "SELECT count(*) FROM thread_workspaces WHERE installation = $1 AND workspace = $2";
/// Selects the rows of a run's thread, if the run is its last turn.
macro_rules! of_left_thread {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM thread_workspaces AS held JOIN turns ON turns.installation = held.installation \
             AND turns.account = held.account AND turns.thread = held.thread WHERE turns.run = $1 \
             AND NOT EXISTS (SELECT 1 FROM turns AS other WHERE other.installation = turns.installation \
             AND other.account = turns.account AND other.thread = turns.thread AND other.run <> turns.run)"
        )
    };
}
/// A workspace that is not kept any more goes with the next pass of the reaper.
const UNKEEP: &str = concat!(
    "UPDATE resources SET state = 'made' WHERE kind = 'workspace' AND state = 'kept' AND (run, name) IN (",
    of_left_thread!("held.run, held.workspace"),
    ")"
);
const FORGET: &str = concat!(
    "DELETE FROM thread_workspaces WHERE (installation, account, thread, agent) IN (",
    of_left_thread!("held.installation, held.account, held.thread, held.agent"),
    ")"
);

/// Key of the workspace that the runs of a thread and an agent share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadWorkspaceKey {
    /// Account of the thread.
    pub account: AccountId,
    /// Thread of the account.
    pub thread: ExternalId,
    /// Agent of the runs.
    pub agent: AgentId,
}

/// Workspace of a thread, as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadWorkspace {
    /// Id of the workspace.
    pub workspace: WorkspaceId,
    /// Run that has it now, or had it last.
    pub run_id: RunId,
    /// State of the workspace as a resource of that run.
    pub stage: Option<ResourceState>,
}

/// Claim of a run on the workspace of its thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadClaim {
    /// Key of the workspace.
    pub key: ThreadWorkspaceKey,
    /// Workspace that the run is to have: the one before, or a new one.
    pub workspace: WorkspaceId,
    /// Workspace of the thread when it was read.
    pub previous: Option<ThreadWorkspace>,
}

impl ThreadWorkspace {
    /// Returns whether `run_id` may continue in the workspace: the run before has left it, or the run itself has it.
    #[must_use]
    pub fn is_open_to(&self, run_id: &RunId) -> bool {
        match self.stage {
            Some(ResourceState::Kept) => true,
            Some(ResourceState::Made) => self.run_id == *run_id,
            Some(ResourceState::Wanted | ResourceState::Removed) | None => false,
        }
    }
}

impl Store {
    /// Returns the workspace of a thread and an agent; `None` if it has none.
    pub async fn thread_workspace(&self, key: &ThreadWorkspaceKey) -> Result<Option<ThreadWorkspace>, Error> {
        let action = "look for the workspace of a thread";
        self.retry(async || {
            let query = sqlx::query(FIND).bind(self.installation.as_str()).bind(key.account.as_str());
            let query = query.bind(key.thread.as_str()).bind(key.agent.as_str());
            let row = query.fetch_optional(&self.pool).await.map_err(failed(action))?;
            row.map(|row| {
                Ok(ThreadWorkspace {
                    workspace: parsed(&row, "workspace", |text| WorkspaceId::parse(text).ok())?,
                    run_id: parsed(&row, "run", |text| RunId::parse(text).ok())?,
                    stage: state_of(&row)?,
                })
            })
            .transpose()
        })
        .await
    }

    /// Takes `workspace` from its thread, if it is one's and its last run `run_id` has ended. Returns whether it may be
    /// removed from the disk: no thread has it, and none gets it again.
    pub async fn retire_workspace(
        &self,
        workspace: &WorkspaceId,
        run_id: Option<&RunId>,
    ) -> Result<bool, Error> {
        let action = "take a workspace from its thread";
        let installation = self.installation.as_str();
        self.write(async |mut tx| {
            if let Some(run_id) = run_id {
                let lock = sqlx::query(LOCK_ENDED).bind(run_id.as_str()).bind(installation);
                let locked = lock.execute(tx.connection()).await.map_err(failed(action))?;
                if locked.rows_affected() == 0 {
                    return Ok(false);
                }
                let retire = sqlx::query(RETIRE).bind(installation).bind(workspace.as_str());
                let retire = retire.bind(run_id.as_str());
                retire.execute(tx.connection()).await.map_err(failed(action))?;
            }
            let held = sqlx::query_scalar(IS_HELD).bind(installation).bind(workspace.as_str());
            let held: i64 = held.fetch_one(tx.connection()).await.map_err(failed(action))?;
            self.check_host(&mut tx).await?;
            tx.finish(action, held == 0).await
        })
        .await
    }
}

impl Tx {
    /// Gives the workspace of a thread to `run_id`.
    ///
    /// # Errors
    /// [`Error::ThreadWorkspaceTaken`] if another run has got it since, or has it still.
    pub(super) async fn claim_thread_workspace(
        &mut self,
        installation: &str,
        run_id: &RunId,
        claim: &ThreadClaim,
    ) -> Result<(), Error> {
        let action = "claim the workspace of a thread";
        let ThreadClaim { key, workspace, previous } = claim;
        let query = sqlx::query(if previous.is_some() { MOVE } else { ADD }).bind(installation);
        let query = query.bind(key.account.as_str()).bind(key.thread.as_str()).bind(key.agent.as_str());
        let query = query.bind(workspace.as_str()).bind(run_id.as_str()).bind(self.now);
        let query = match previous {
            Some(previous) => query.bind(previous.workspace.as_str()).bind(previous.run_id.as_str()),
            None => query,
        };
        let claimed = query.execute(self.connection()).await.map_err(failed(action))?.rows_affected() > 0;
        if !claimed && !self.has_thread_workspace(installation, run_id, claim).await? {
            return Err(Error::ThreadWorkspaceTaken { run_id: run_id.clone() });
        }
        if let Some(previous) = previous.as_ref().filter(|previous| previous.run_id != *run_id) {
            let leave = sqlx::query(LEAVE).bind(self.now).bind(previous.run_id.as_str());
            let leave = leave.bind(previous.workspace.as_str());
            leave.execute(self.connection()).await.map_err(failed(action))?;
        }
        Ok(())
    }

    /// Returns whether the row is as `claim` would make it: an earlier try was stored.
    async fn has_thread_workspace(
        &mut self,
        installation: &str,
        run_id: &RunId,
        claim: &ThreadClaim,
    ) -> Result<bool, Error> {
        let ThreadClaim { key, workspace, .. } = claim;
        let query = sqlx::query_scalar(IS_CLAIMED).bind(installation).bind(key.account.as_str());
        let query = query.bind(key.thread.as_str()).bind(key.agent.as_str());
        let query = query.bind(workspace.as_str()).bind(run_id.as_str());
        let count: i64 =
            query.fetch_one(self.connection()).await.map_err(failed("claim the workspace of a thread"))?;
        Ok(count > 0)
    }

    /// Lets the workspaces of a thread be removed, if the ended run `run_id` is its only turn left.
    pub(super) async fn forget_thread_workspaces(&mut self, run_id: &RunId) -> Result<(), Error> {
        for statement in [UNKEEP, FORGET] {
            let query = sqlx::query(statement).bind(run_id.as_str());
            query.execute(self.connection()).await.map_err(failed("forget the workspace of a thread"))?;
        }
        Ok(())
    }
}
