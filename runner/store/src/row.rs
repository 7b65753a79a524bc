//! Reads a run from its row.

use platform_core::{
    control::Usage,
    event::RunErrorCode,
    grant::Correlation,
    id::{AccountId, AgentId, InstallationId, RunId},
    json::{self, Bounds},
    priority::Priority,
};
use runner_model::lifecycle::{Detail, Failure, State};
use serde::{Serialize, Serializer, de::DeserializeOwned};
use sqlx::{Row, any::AnyRow};

use super::{
    UnixMillis,
    error::{Error, failed},
};

/// Columns of a run, without its order and its answer, which may be large.
macro_rules! columns {
    () => {
        "run, installation, account, agent, correlation, priority, state, attempt, epoch, lease_owner, \
         lease_until, created, queued, claimed, \
         started, ended, exit_code, error_code, error_message, error_detail, oom_seen, usage, model"
    };
}
pub(super) use columns;

/// Run, as one row holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Run {
    /// Id of the run.
    pub run_id: RunId,
    /// Installation that the run belongs to.
    pub installation: InstallationId,
    /// Account that pays.
    pub account: AccountId,
    /// Agent that runs.
    pub agent: AgentId,
    /// Ids by which the application knows the run.
    pub correlation: Correlation,
    /// Priority in the queue.
    pub priority: Priority,
    /// State of the run.
    #[serde(serialize_with = "state_name")]
    pub state: State,
    /// Number of times that the run was started again.
    pub attempt: u32,
    /// Number of leases that workers got on the run; a restore from a backup adds to it.
    pub epoch: u64,
    /// Lease of the run's worker; absent before a worker claims the run, and once the run has ended.
    pub lease: Option<Lease>,
    /// Time at which the run was ordered.
    #[serde(rename = "created_ms")]
    pub created: UnixMillis,
    /// Time at which the run began to wait for a worker: with its order, or with its restart.
    #[serde(rename = "queued_ms")]
    pub queued: UnixMillis,
    /// Time at which a worker last claimed the run from the queue; absent if the process that ordered the run executed
    /// it.
    #[serde(rename = "claimed_ms")]
    pub claimed: Option<UnixMillis>,
    /// Time at which the agent was started.
    #[serde(rename = "started_ms")]
    pub started: Option<UnixMillis>,
    /// Time at which the run ended.
    #[serde(rename = "ended_ms")]
    pub ended: Option<UnixMillis>,
    /// Exit code of the agent's process.
    pub exit_code: Option<i64>,
    /// True if the kernel killed a process of the agent for lack of memory. Known once the run settles, if its agent
    /// ran.
    pub oom_seen: Option<bool>,
    /// Reason why the run has no answer; known once it settles.
    pub error: Option<Failure>,
    /// Usage of the run's calls; known once the run has ended.
    pub usage: Option<Usage>,
    /// Model that the run was ordered with; unknown of runs of earlier schemas.
    pub model: Option<String>,
}

/// Lease of a worker on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lease {
    /// The worker's process.
    pub owner: String,
    /// Time until which no other worker may take the run over.
    #[serde(rename = "until_ms")]
    pub until: UnixMillis,
    /// True if the lease has expired: the process is gone, or hangs.
    #[serde(rename = "over")]
    pub expired: bool,
}

fn state_name<S: Serializer>(state: &State, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.name())
}

/// Returns the text in a column that is never null.
pub(super) fn text(row: &AnyRow, column: &'static str) -> Result<String, Error> {
    row.try_get(column).map_err(failed("read a row"))
}

/// Returns the number in a column that is never null.
pub(super) fn number(row: &AnyRow, column: &'static str) -> Result<i64, Error> {
    row.try_get(column).map_err(failed("read a row"))
}

/// Returns the number in a column that is never null or negative.
pub(super) fn count<T: TryFrom<i64>>(row: &AnyRow, column: &'static str) -> Result<T, Error> {
    let value = number(row, column)?;
    T::try_from(value).map_err(|_out_of_range| Error::Corrupt { what: column, value: value.to_string() })
}

/// Returns the parsed text of a column that is never null.
pub(super) fn parsed<T>(
    row: &AnyRow,
    column: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, Error> {
    let value = text(row, column)?;
    parse(&value).ok_or(Error::Corrupt { what: column, value })
}

/// Returns the value that the text of a column describes as JSON; `None` if it describes another one.
pub(super) fn stored_json<T: DeserializeOwned>(text: &str) -> Option<T> {
    json::from_str(text, Bounds::STORED).ok()
}

/// Returns the parsed text of a column that may be null.
pub(super) fn optional<T>(
    row: &AnyRow,
    column: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Error> {
    let value: Option<String> = row.try_get(column).map_err(failed("read a row"))?;
    value
        .map(|value| parse(&value).ok_or_else(|| Error::Corrupt { what: column, value: value.clone() }))
        .transpose()
}

/// Returns the time in a column that may be null.
pub(super) fn time(row: &AnyRow, column: &'static str) -> Result<Option<UnixMillis>, Error> {
    let value: Option<i64> = row.try_get(column).map_err(failed("read a row"))?;
    Ok(value.map(UnixMillis))
}

impl Run {
    /// Reads a run from a row with `columns!()`, as of `now`.
    pub(super) fn read(row: &AnyRow, now: i64) -> Result<Self, Error> {
        let code = optional(row, "error_code", error_code)?;
        let message: Option<String> = row.try_get("error_message").map_err(failed("read a row"))?;
        let detail: Option<String> = row.try_get("error_detail").map_err(failed("read a row"))?;
        let oom_seen: Option<i64> = row.try_get("oom_seen").map_err(failed("read a row"))?;
        let owner: Option<String> = row.try_get("lease_owner").map_err(failed("read a row"))?;
        let lease = owner.zip(time(row, "lease_until")?).map(|(owner, until)| Lease {
            owner,
            until,
            expired: until.0 < now,
        });
        Ok(Self {
            run_id: parsed(row, "run", |text| RunId::parse(text).ok())?,
            installation: parsed(row, "installation", |text| InstallationId::parse(text).ok())?,
            account: parsed(row, "account", |text| AccountId::parse(text).ok())?,
            agent: parsed(row, "agent", |text| AgentId::parse(text).ok())?,
            correlation: parsed(row, "correlation", stored_json)?,
            priority: priority(row)?,
            state: parsed(row, "state", |text| State::named(text, code))?,
            attempt: count(row, "attempt")?,
            epoch: count(row, "epoch")?,
            lease,
            created: UnixMillis(number(row, "created")?),
            queued: UnixMillis(number(row, "queued")?),
            claimed: time(row, "claimed")?,
            started: time(row, "started")?,
            ended: time(row, "ended")?,
            exit_code: row.try_get("exit_code").map_err(failed("read a row"))?,
            oom_seen: oom_seen.map(|seen| seen != 0),
            error: code.map(|code| Failure {
                code,
                message: message.unwrap_or_default(),
                detail: detail.map(Detail::new),
            }),
            usage: optional(row, "usage", stored_json)?,
            model: row.try_get("model").map_err(failed("read a row"))?,
        })
    }
}

/// Returns the stored number of a priority: a more urgent one is greater.
pub(super) const fn rank(priority: Priority) -> i64 {
    match priority {
        Priority::Low => 0,
        Priority::Normal => 1,
        Priority::High => 2,
    }
}

fn priority(row: &AnyRow) -> Result<Priority, Error> {
    let stored = number(row, "priority")?;
    let known = Priority::ALL.into_iter().find(|priority| rank(*priority) == stored);
    known.ok_or_else(|| Error::Corrupt { what: "priority", value: stored.to_string() })
}

pub(super) fn error_code(text: &str) -> Option<RunErrorCode> {
    serde_json::from_value(serde_json::Value::String(text.to_owned())).ok()
}

/// Returns `text` with zero characters replaced: Postgres cannot store them.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
