//! Reads the turns of a thread that belong to one session of a gateway's agent. Others of the thread used another agent.
//!
//! A run that has not begun names its session alone. Other gateways have sessions of the same name, so a reader of such a
//! turn looks into its order.

use platform_core::id::{AccountId, ExternalId, RunId};
use sqlx::{Any, any::AnyArguments, query::Query};

use super::{
    Run, Store, ThreadTurn,
    error::{Error, failed},
    gateway_agents::GatewayAgentKey,
    row::columns,
    threads::turns,
};

const OF_SESSION: &str = turns!(
    "WITH found (run, rank) AS (SELECT turns.run, turns.number FROM turns JOIN runs ON runs.run = turns.run \
     WHERE turns.installation = $1 AND turns.account = $2 AND turns.thread = $3 AND runs.session = $4 \
     AND (runs.gateway_agent IS NULL OR runs.gateway_agent = $5) \
     AND ($6 IS NULL OR turns.number < (SELECT seen.number FROM turns AS seen WHERE seen.run = $6)) \
     ORDER BY turns.number DESC LIMIT $7)",
    "rank DESC"
);
const ACTIVE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM runs WHERE run IN (SELECT turns.run FROM turns WHERE turns.installation = $1 AND turns.account = $2 \
     AND turns.thread = $3) AND session = $4 AND (gateway_agent IS NULL OR gateway_agent = $5) AND ended IS NULL \
     ORDER BY (SELECT turns.number FROM turns WHERE turns.run = runs.run) LIMIT $6"
);

/// Thread of an account, as the session of a gateway's agent.
#[derive(Debug, Clone, Copy)]
pub struct SessionThread<'t> {
    /// The agent.
    pub agent: &'t GatewayAgentKey,
    /// Account of the thread.
    pub account: &'t AccountId,
    /// Key of the thread.
    pub thread: &'t ExternalId,
    /// Name of the session at the gateway.
    pub session: &'t str,
}

impl Store {
    /// Returns a query with the five values that name a session.
    fn query_of_session(&self, sql: &'static str, of: SessionThread<'_>) -> Query<'_, Any, AnyArguments> {
        sqlx::query(sql)
            .bind(self.installation.as_str())
            .bind(of.account.as_str().to_owned())
            .bind(of.thread.as_str().to_owned())
            .bind(of.session.to_owned())
            .bind(of.agent.to_string())
    }

    /// Returns the last `most` turns of a session before that of the run `before`, the newest first.
    pub async fn session_turns(
        &self,
        of: SessionThread<'_>,
        before: Option<&RunId>,
        most: u32,
    ) -> Result<Vec<ThreadTurn>, Error> {
        let action = "read a session's turns";
        self.read(async |mut tx| {
            let rows = self
                .query_of_session(OF_SESSION, of)
                .bind(before.map(RunId::as_str))
                .bind(i64::from(most))
                .fetch_all(tx.connection())
                .await
                .map_err(failed(action))?;
            let now = tx.now;
            tx.commit(action).await?;
            rows.iter().map(|row| ThreadTurn::read(row, now)).collect()
        })
        .await
    }

    /// Returns the runs of a session that have not ended, without their texts: the first `most`, the oldest first.
    pub async fn active_session_runs(&self, of: SessionThread<'_>, most: u32) -> Result<Vec<Run>, Error> {
        let action = "read a session's active runs";
        self.read(async |mut tx| {
            let rows = self
                .query_of_session(ACTIVE, of)
                .bind(i64::from(most))
                .fetch_all(tx.connection())
                .await
                .map_err(failed(action))?;
            let now = tx.now;
            tx.commit(action).await?;
            rows.iter().map(|row| Run::read(row, now)).collect()
        })
        .await
    }
}
