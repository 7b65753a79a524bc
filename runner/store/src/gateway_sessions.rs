//! Lists the sessions of a gateway's agent: the conversations that runs had with it, and what they cost.
//!
//! A run names its agent in the transaction that stores its session. So runs of agents that the configuration describes, or
//! that were removed since, are listed as well.

use platform_core::{
    id::{AccountId, ExternalId, RunId},
    money::SignedNanoDollars,
};
use runner_model::lifecycle::State;
use sqlx::{Row, any::AnyRow};

use super::{
    AccountScope, GatewayAgentKey, Store, Tx, UnixMillis,
    error::{Error, failed},
    row::{count, error_code, number, optional, parsed, text},
};

/// Version of the schema in which runs name the agents of gateways.
pub(super) const SINCE: usize = 28;

const ACTION: &str = "list the sessions of a gateway's agent";
const NAME: &str = "UPDATE runs SET gateway_agent = $1 WHERE run = $2";
const UNNAMED: &str = "SELECT run, name FROM resources WHERE kind = 'session'";
const EXISTS: &str = "SELECT count(*) FROM resources JOIN runs ON runs.run = resources.run WHERE resources.kind = 'session' \
     AND resources.name = $1 AND runs.installation = $2 AND ($3 IS NULL OR runs.account = $3)";
/// Last runs and sums are looked up for the listed page alone.
pub(super) const LIST: &str = "SELECT page.*, last.run, last.state, last.error_code, last.question_start, turns.thread, \
     (SELECT CAST(COALESCE(SUM(receipts.nanodollars), 0) AS BIGINT) FROM resources \
     JOIN receipts ON receipts.run = resources.run WHERE resources.kind = 'session' AND resources.name = page.name \
     AND receipts.installation = $1) AS nanodollars FROM \
     (SELECT resources.name, runs.account, COUNT(*) AS runs, MIN(runs.created) AS began, MAX(runs.created) AS changed \
     FROM runs JOIN resources ON resources.run = runs.run AND resources.kind = 'session' \
     WHERE runs.installation = $1 AND runs.gateway_agent = $2 AND ($3 IS NULL OR runs.account = $3) \
     GROUP BY resources.name, runs.account HAVING $4 IS NULL OR MAX(runs.created) < $4 \
     OR (MAX(runs.created) = $4 AND resources.name < $5) \
     ORDER BY MAX(runs.created) DESC, resources.name DESC LIMIT $6) AS page \
     JOIN runs AS last ON last.run = (SELECT MAX(runs.run) FROM resources JOIN runs ON runs.run = resources.run \
     WHERE resources.kind = 'session' AND resources.name = page.name AND runs.created = page.changed \
     AND runs.installation = $1) LEFT JOIN turns ON turns.run = last.run \
     ORDER BY page.changed DESC, page.name DESC";

/// Session of a gateway's agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewaySession {
    /// Its name at the gateway.
    pub name: String,
    /// Account of its runs.
    pub account: AccountId,
    /// Thread that it continues; absent if it has one run alone.
    pub thread: Option<ExternalId>,
    /// Beginning of its last question; absent once the texts of the run were removed.
    pub question: Option<String>,
    /// Number of its runs.
    pub runs: u64,
    /// Cost of their calls, by the receipts.
    pub cost: SignedNanoDollars,
    /// Its last run.
    pub last_run: RunId,
    /// State of that run.
    pub state: State,
    /// Time at which its first run was ordered.
    pub began: UnixMillis,
    /// Time at which its last run was ordered.
    pub changed: UnixMillis,
}

impl GatewaySession {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        let name = text(row, "name")?;
        let code = optional(row, "error_code", error_code)?;
        Ok(Self {
            name: name.split_once('/').map_or(name.as_str(), |(_gateway, name)| name).to_owned(),
            account: parsed(row, "account", |text| AccountId::parse(text).ok())?,
            thread: optional(row, "thread", |text| ExternalId::parse(text).ok())?,
            question: row.try_get("question_start").map_err(failed(ACTION))?,
            runs: count(row, "runs")?,
            cost: SignedNanoDollars(number(row, "nanodollars")?),
            last_run: parsed(row, "run", |text| RunId::parse(text).ok())?,
            state: parsed(row, "state", |text| State::named(text, code))?,
            began: UnixMillis(number(row, "began")?),
            changed: UnixMillis(number(row, "changed")?),
        })
    }
}

impl Store {
    /// Returns at most `most` sessions of the agent `key` within `scope`, the last changed first: those behind the session
    /// `before`, with the time of its last run.
    pub async fn gateway_sessions(
        &self,
        key: &GatewayAgentKey,
        scope: &AccountScope,
        before: Option<&(UnixMillis, String)>,
        most: u32,
    ) -> Result<Vec<GatewaySession>, Error> {
        let account = scope.account().map(AccountId::as_str);
        self.retry(async || {
            let rows = sqlx::query(LIST)
                .bind(self.installation.as_str())
                .bind(key.to_string())
                .bind(account)
                .bind(before.map(|(changed, _)| changed.0))
                .bind(before.map(|(_, name)| format!("{}/{name}", key.gateway)))
                .bind(i64::from(most))
                .fetch_all(&self.pool)
                .await
                .map_err(failed(ACTION))?;
            rows.iter().map(GatewaySession::read).collect()
        })
        .await
    }

    /// Returns whether the gateway of `key` has a session of this name, within `scope` and with the agent `key`.
    pub async fn has_gateway_session(
        &self,
        key: &GatewayAgentKey,
        scope: &AccountScope,
        name: &str,
    ) -> Result<bool, Error> {
        let name = format!("{}/{name}", key.gateway);
        if GatewayAgentKey::of_session(&name).as_ref() != Some(key) {
            return Ok(false);
        }
        self.retry(async || {
            let query = sqlx::query_scalar(EXISTS).bind(&name).bind(self.installation.as_str());
            let query = query.bind(scope.account().map(AccountId::as_str));
            let found: i64 = query.fetch_one(&self.pool).await.map_err(failed(ACTION))?;
            Ok(found > 0)
        })
        .await
    }
}

impl Tx {
    /// Stores the agent of the session `name`, `GATEWAY/agent:AGENT:…`, in its run.
    pub(super) async fn name_gateway_agent(&mut self, run: &str, name: &str) -> Result<(), Error> {
        let Some(key) = GatewayAgentKey::of_session(name) else { return Ok(()) };
        let query = sqlx::query(NAME).bind(key.to_string()).bind(run);
        query.execute(self.connection()).await.map_err(failed("record a session"))?;
        Ok(())
    }

    /// Names the agents of gateways in runs that an older schema has stored.
    pub(super) async fn name_gateway_agents(&mut self) -> Result<(), Error> {
        let rows = sqlx::query(UNNAMED).fetch_all(self.connection()).await.map_err(failed(ACTION))?;
        for row in &rows {
            self.name_gateway_agent(&text(row, "run")?, &text(row, "name")?).await?;
        }
        Ok(())
    }
}
