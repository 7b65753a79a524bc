//! caller reads from the headers of a request which run calls, and checks that it is running.

use std::{collections::BTreeSet, time::Duration};

use http::{HeaderMap, StatusCode};
use platform_core::{
    host_tools::{TOOL_PROTOCOL, header},
    id::{AccountId, RunId, ToolName},
};
use platform_runtime::report;
use runner_model::lifecycle::State;
use runner_store::{Error as StoreError, StateChanges, StateWatcher, Store};
use tokio::time::{Instant, timeout_at};

use crate::tool::{ToolCode, ToolError};

/// Longest time between two looks at a run that calls. Changes by other processes are not always reported.
const RUN_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Most bytes of a call id of the data plane.
const MAX_CALL_ID: usize = 128;

/// Run that calls, as the data plane says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallingRun {
    pub(crate) run_id: RunId,
    pub(crate) attempt: u32,
    pub(crate) account: AccountId,
    /// Tools that the run may call.
    pub(crate) granted: BTreeSet<ToolName>,
    /// Call id of the data plane.
    pub(crate) call: String,
    /// Tool that the data plane has allowed, if the request executes one.
    pub(crate) tool: Option<ToolName>,
}

/// Error for a request that does not follow the protocol of the tool socket.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolError {
    /// The data plane speaks another version.
    #[error(
        "this program speaks version {TOOL_PROTOCOL} of the tool protocol, not {found}: use one release of both"
    )]
    Version { found: String },
    /// A header is missing or has another form.
    #[error("header {name} {problem}")]
    Header { name: &'static str, problem: String },
}

impl ProtocolError {
    /// Returns the status of the answer.
    pub(crate) const fn status(&self) -> StatusCode {
        match self {
            Self::Version { .. } => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::Header { .. } => StatusCode::BAD_REQUEST,
        }
    }
}

impl CallingRun {
    /// Reads the headers of a request.
    ///
    /// # Errors
    /// [`ProtocolError`], which names the header.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, ProtocolError> {
        let version = required(headers, header::PROTOCOL)?;
        if version != TOOL_PROTOCOL.to_string() {
            return Err(ProtocolError::Version { found: version.escape_default().to_string() });
        }
        let call = required(headers, header::CALL)?;
        let is_plain = call.len() <= MAX_CALL_ID && call.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain || call.is_empty() {
            return Err(invalid(header::CALL, "is not a call id"));
        }
        let granted = required(headers, header::GRANTED)?;
        let granted = granted.split(',').map(str::trim).filter(|name| !name.is_empty());
        let granted = granted.map(|name| parsed(header::GRANTED, ToolName::parse(name)));
        Ok(Self {
            run_id: parsed(header::RUN, RunId::parse(required(headers, header::RUN)?))?,
            attempt: parsed(header::ATTEMPT, required(headers, header::ATTEMPT)?.parse())?,
            account: parsed(header::ACCOUNT, AccountId::parse(required(headers, header::ACCOUNT)?))?,
            granted: granted.collect::<Result<_, _>>()?,
            call: call.to_owned(),
            tool: optional(headers, header::TOOL)?
                .map(|tool| parsed(header::TOOL, ToolName::parse(tool)))
                .transpose()?,
        })
    }

    /// Checks that the run exists, is the caller's and is running.
    ///
    /// # Errors
    /// A refusal.
    pub(crate) async fn check(&self, store: &Store) -> Result<(), ToolError> {
        let run = match store.run(&self.run_id).await {
            Ok(run) => run,
            Err(StoreError::Unknown { .. }) => {
                return Err(ToolError::new(ToolCode::RunUnknown, format!("there is no run {}", self.run_id)));
            }
            Err(error) => return Err(store_unavailable(&error)),
        };
        if run.account != self.account {
            return Err(ToolError::new(ToolCode::RunUnknown, "the run is of another account"));
        }
        // An agent may be faster than the worker that stores that it runs.
        if run.attempt != self.attempt || !matches!(run.state, State::Starting | State::Running) {
            let message = format!("run {} does not run, or not this attempt of it", self.run_id);
            return Err(ToolError::new(ToolCode::RunEnded, message));
        }
        Ok(())
    }

    /// Waits until the run stops running, and returns the refusal. `watcher` is older than the last check. Cancel safe.
    pub(crate) async fn ended(&self, store: &Store, watcher: &mut StateWatcher) -> ToolError {
        let mut next_look = Instant::now() + RUN_POLL_INTERVAL;
        loop {
            match timeout_at(next_look, watcher.changed()).await {
                Ok(Ok(StateChanges::Of(run_ids))) if !run_ids.contains(&self.run_id) => continue,
                _ => next_look = Instant::now() + RUN_POLL_INTERVAL,
            }
            match self.check(store).await {
                Err(error) if error.code != ToolCode::StoreUnavailable.word() => return error,
                _ => {}
            }
        }
    }
}

/// Returns the refusal of a call without a store.
pub(crate) fn store_unavailable(error: &StoreError) -> ToolError {
    tracing::warn!(error = report::chain(error), "tool call refused: the store fails");
    ToolError::new(ToolCode::StoreUnavailable, "the control plane cannot reach its store: try again later")
}

fn optional<'h>(headers: &'h HeaderMap, name: &'static str) -> Result<Option<&'h str>, ProtocolError> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(invalid(name, "occurs twice"));
    }
    first.map(|value| value.to_str().map_err(|_error| invalid(name, "is not text"))).transpose()
}

fn required<'h>(headers: &'h HeaderMap, name: &'static str) -> Result<&'h str, ProtocolError> {
    optional(headers, name)?.ok_or_else(|| invalid(name, "is missing"))
}

fn parsed<T, E: std::fmt::Display>(name: &'static str, value: Result<T, E>) -> Result<T, ProtocolError> {
    value.map_err(|error| ProtocolError::Header { name, problem: format!("is wrong: {error}") })
}

fn invalid(name: &'static str, problem: &str) -> ProtocolError {
    ProtocolError::Header { name, problem: problem.to_owned() }
}
