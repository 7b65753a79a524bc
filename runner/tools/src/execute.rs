//! execute runs a call: it checks the run and the arguments, and stores what happened.
//!
//! A call that writes is stored before the tool acts. It runs to its end in its own task, whatever becomes of its
//! client and its run. A call that reads ends with its client, or with its run. A call that needs an approval waits for it
//! first, and then runs as one that writes.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use platform_core::{
    connection::ConnectionId,
    host_tools::ToolOutcome,
    id::{AccountId, RunId, ToolName},
    json::{self, Bounds},
};
use platform_runtime::{report, settings::Tools, task};
use runner_store::{NewToolCall, Store, StoredToolCall, ToolCallBegun, ToolCallState};
use serde_json::json;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    approval::{ApprovalWaiter, Approvals},
    arguments::{self, digest},
    caller::{CallingRun, store_unavailable},
    catalog::Catalog,
    catalog_entry::{CatalogEntry, CatalogTool},
    in_flight::{AccountPermit, CallsInFlight, PermitKind, WritingMark},
    record::{CallRecorder, end_of},
    redaction,
    tool::{Effect, Invocation, ToolCode, ToolError, ToolResult},
};

/// Bounds of a stored result.
const RESULT_BOUNDS: Bounds = Bounds::STORED.with_values(Bounds::VALUES);
/// Lists that decide which tools a run may call.
const LISTS: &str = "`host_tools` of its agent, of its account and of its order each have to name it";

/// Call of a tool by a run.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) caller: CallingRun,
    /// Id that the agent chose, or that of the data plane.
    pub(crate) id: String,
    pub(crate) tool: ToolName,
    /// Arguments, as the agent wrote them.
    pub(crate) args: String,
}

/// Outcome of a call.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) result: ToolResult,
    /// Connection that provided the tool's credential.
    pub(crate) connection: Option<ConnectionId>,
}

/// Executor of calls. Clones share what is in flight.
#[derive(Debug, Clone)]
pub(crate) struct Executor {
    catalog: Catalog,
    store: Store,
    in_flight: CallsInFlight,
    approvals: Approvals,
    /// Name of this process, which no other has.
    owner: Arc<str>,
    /// Tasks that go on without a client.
    tasks: TaskTracker,
}

/// Account and run for which an operator tries a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestCaller {
    /// Account for which the tool acts.
    pub account: AccountId,
    /// Run for which the tool acts. Some tools need one.
    pub run_id: Option<RunId>,
}

/// Marks of a call that writes, until it has ended.
struct Held {
    _permit: AccountPermit,
    _mark: WritingMark,
}

/// Call that may run, with everything it holds.
struct Admitted {
    listed: Arc<CatalogTool>,
    invocation: Invocation,
    new: NewToolCall,
    permit: AccountPermit,
}

/// Call that goes on without its client once it has begun.
struct WritingCall {
    listed: Arc<CatalogTool>,
    invocation: Invocation,
    new: NewToolCall,
    /// Wait for an approval, if the call needs one.
    waiter: Option<ApprovalWaiter>,
    _held: Held,
}

impl Executed {
    /// Returns the outcome of the call.
    pub(crate) fn outcome(&self) -> ToolOutcome {
        self.result.as_ref().map_or_else(|error| error.outcome, |_| ToolOutcome::Done)
    }
}

impl From<ToolError> for Executed {
    fn from(error: ToolError) -> Self {
        Self { result: Err(error), connection: None }
    }
}

impl Executor {
    pub(crate) fn new(catalog: Catalog, store: Store, settings: &Tools) -> Self {
        let owner = format!("{:032x}", platform_runtime::random::bits());
        Self {
            catalog,
            store,
            in_flight: CallsInFlight::of(settings),
            approvals: Approvals::of(settings),
            owner: owner.into(),
            tasks: TaskTracker::new(),
        }
    }

    /// Returns the table of all tools.
    pub(crate) const fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Ends the calls that an earlier process left: those that waited for an approval never run, and the outcome of those
    /// that had begun is unknown.
    pub(crate) async fn settle_abandoned(&self) {
        match self.store.settle_abandoned_tool_calls(&self.owner).await {
            Ok(calls) => {
                for StoredToolCall { run_id, call, tool, state, .. } in calls {
                    tracing::warn!(run = %run_id, call, %tool, state = state.word(), "tool call left by an earlier process");
                }
            }
            Err(error) => {
                tracing::warn!(error = report::chain(&error), "tool calls of earlier processes not ended");
            }
        }
    }

    /// Returns the longest time that a call may go on without its client; none if no call does.
    pub(crate) async fn longest_write(&self) -> Duration {
        if self.tasks.is_empty() {
            return Duration::ZERO;
        }
        let entries = self.catalog.entries().await;
        let goes_on =
            |entry: &&CatalogEntry| entry.effect == Effect::Writes || self.approvals.are_needed(&entry.name);
        entries.iter().filter(goes_on).map(|entry| entry.timeout.duration()).max().unwrap_or_default()
    }

    /// Denies the calls that wait for an approval.
    pub(crate) fn stop_waiting(&self) {
        self.approvals.stop();
    }

    /// Waits until all tasks have ended. No call may begin meanwhile.
    pub(crate) async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Executes a call of a run. A client that leaves drops the future.
    pub(crate) async fn execute(&self, call: Call) -> Executed {
        // It is older than the check of the run: no end of the run is missed in between.
        let mut watcher = self.store.watch_states();
        let admitted = match self.admit(&call).await {
            Ok(admitted) => admitted,
            Err(error) => return error.into(),
        };
        if self.approvals.are_needed(&call.tool) {
            let left = CancellationToken::new();
            let _guard = left.clone().drop_guard();
            let schema = &admitted.listed.tool.spec().schema;
            let Some(shown) = redaction::for_person(schema, &admitted.invocation.args) else {
                let message = "a person must approve the call, and its arguments are too long to show: make them shorter";
                return ToolError::new(ToolCode::ArgumentsTooLong, message).into();
            };
            let waiter = self.approvals.waiter(call.caller, watcher, shown, left);
            return self.write(admitted, Some(waiter)).await;
        }
        match admitted.listed.tool.spec().effect {
            Effect::Writes => self.write(admitted, None).await,
            Effect::Reads => {
                let ended = call.caller.ended(&self.store, &mut watcher);
                let reading = self.read(admitted);
                tokio::select! {
                    executed = reading => executed,
                    error = ended => error.into(),
                }
            }
        }
    }

    /// Runs a tool for an operator. No run has to exist, and nothing is stored.
    pub(crate) async fn try_out(&self, tool: &ToolName, args: &str, caller: &TestCaller) -> ToolResult {
        let listed = self.catalog.get(tool).await?;
        let args = arguments::read(args)?;
        listed.schema.check(&args)?;
        let TestCaller { account, run_id } = caller.clone();
        run(&listed, &Invocation::new(account, run_id, args)).await
    }

    /// Checks that a call may run.
    async fn admit(&self, call: &Call) -> Result<Admitted, ToolError> {
        let Call { caller, id, tool, args } = call;
        if caller.tool.as_ref() != Some(tool) {
            return Err(ToolError::new(
                ToolCode::ToolMismatch,
                format!("{tool} is not the tool that was allowed"),
            ));
        }
        if !caller.granted.contains(tool) {
            let message = format!("the run may not call {tool}: {LISTS}");
            return Err(ToolError::new(ToolCode::PolicyDenied, message));
        }
        let listed = self.catalog.get(tool).await?;
        caller.check(&self.store).await?;
        let kind = match self.approvals.are_needed(tool) {
            true => PermitKind::Approval,
            false => PermitKind::Immediate,
        };
        let permit = self.in_flight.enter(&caller.account, kind);
        let permit = permit.map_err(|many| ToolError::new(ToolCode::TooManyCalls, many.to_string()))?;
        let args = arguments::read(args)?;
        listed.schema.check(&args)?;
        let new = NewToolCall {
            run_id: caller.run_id.clone(),
            attempt: caller.attempt,
            id: id.clone(),
            call: caller.call.clone(),
            account: caller.account.clone(),
            tool: tool.clone(),
            effect: listed.tool.spec().effect.word(),
            args_digest: digest(tool.as_str(), &args),
            args_shown: redaction::in_short(&listed.tool.spec().schema, &args),
            owner: self.owner.to_string(),
            gateway: None,
        };
        let invocation = Invocation::new(caller.account.clone(), Some(caller.run_id.clone()), args);
        Ok(Admitted { listed, invocation, new, permit })
    }

    async fn read(&self, admitted: Admitted) -> Executed {
        let Admitted { listed, invocation, new, permit: _permit } = admitted;
        match self.store.tool_call(&new.run_id, new.attempt, &new.id).await {
            Ok(Some(stored)) if !is_same(&stored, &new) => return reused(&new.id).into(),
            Ok(_) => {}
            Err(error) => return store_unavailable(&error).into(),
        }
        let recorder = CallRecorder::new(self.store.clone(), self.tasks.clone(), new);
        let result = run(&listed, &invocation).await;
        let connection = invocation.connection().cloned();
        recorder.finish(end_of(&result, connection.as_ref()));
        Executed { result, connection }
    }

    async fn write(&self, admitted: Admitted, waiter: Option<ApprovalWaiter>) -> Executed {
        let Admitted { listed, invocation, new, permit } = admitted;
        let key = (new.run_id.clone(), new.attempt, new.id.clone());
        let Some(mark) = self.in_flight.write(key) else {
            let message = "the call is being executed: ask for its result later, with the same id";
            return ToolError::new(ToolCode::CallInProgress, message).into();
        };
        // From here on the call goes on without its client.
        let executor = self.clone();
        let writing =
            WritingCall { listed, invocation, new, waiter, _held: Held { _permit: permit, _mark: mark } };
        let writing = self.tasks.track_future(executor.write_to_end(writing));
        let unknown = |_panicked| ToolError::unknown("the tool broke, and may have had its effect").into();
        task::spawn("writing tool call", writing).await.unwrap_or_else(unknown)
    }

    async fn write_to_end(self, writing: WritingCall) -> Executed {
        let WritingCall { listed, invocation, new, waiter, _held } = writing;
        let begun = match waiter {
            Some(waiter) => waiter.begin(&self.store, &new).await,
            None => self.store.begin_tool_call(&new).await.map_err(|error| store_unavailable(&error)),
        };
        match begun {
            Ok(ToolCallBegun::New) => {}
            Ok(ToolCallBegun::Existing(stored)) => return stored_answer(&stored, &new),
            Err(error) => return error.into(),
        }
        let started = Instant::now();
        let result = run(&listed, &invocation).await;
        let connection = invocation.connection().cloned();
        if let Err(error) = self.store.end_tool_call(&new, &end_of(&result, connection.as_ref())).await {
            // A repeated call is answered with an unknown outcome, and runs no second time.
            tracing::error!(
                run = %new.run_id,
                tool = %new.tool,
                call = new.call,
                seconds = started.elapsed().as_secs_f32(),
                error = report::chain(&error),
                "end of a writing tool call not stored"
            );
        }
        Executed { result, connection }
    }
}

/// Runs a tool within its limits of time and size.
async fn run(listed: &CatalogTool, invocation: &Invocation) -> ToolResult {
    let spec = listed.tool.spec();
    let result = match timeout(spec.timeout, listed.tool.run(invocation)).await {
        Ok(result) => result?,
        Err(_elapsed) => {
            let message = format!("{} did not end within {} s", spec.name, spec.timeout.as_secs_f32());
            return Err(match spec.effect {
                Effect::Reads => ToolError::new(ToolCode::TimedOut, message),
                Effect::Writes => ToolError::unknown(format!("{message}, and may have had its effect")),
            });
        }
    };
    let bytes = result.to_string().len() as u64;
    if bytes <= spec.max_result.0 {
        return Ok(result);
    }
    let message = format!("the result has {bytes} bytes, at most {} are passed on", spec.max_result.0);
    match spec.effect {
        Effect::Reads => Err(ToolError::new(ToolCode::ResultTooLarge, message)),
        // A failure would be tried again, and the effect would be there twice.
        Effect::Writes => {
            Ok(json!({ "_omitted": format!("the call was done, do not repeat it: {message}") }))
        }
    }
}

fn is_same(stored: &StoredToolCall, new: &NewToolCall) -> bool {
    stored.args_digest == new.args_digest && stored.tool == new.tool
}

fn reused(id: &str) -> ToolError {
    let message = format!("call id `{id}` belongs to an earlier call with another tool or other arguments");
    ToolError::new(ToolCode::CallIdReused, message)
}

/// Returns the answer to a call that was stored before. It used no credential now.
fn stored_answer(stored: &StoredToolCall, new: &NewToolCall) -> Executed {
    if !is_same(stored, new) {
        return reused(&new.id).into();
    }
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    // An earlier version may have had other codes.
    let stored_error =
        |outcome| ToolError { outcome, code: text(&stored.code), message: text(&stored.message) };
    let result = match stored.state {
        ToolCallState::Done => json::from_str(&text(&stored.result), RESULT_BOUNDS).map_err(|_unreadable| {
            let message = "the call was done, and its result was removed, or cannot be read";
            ToolError::new(ToolCode::ResultRemoved, message)
        }),
        ToolCallState::Failed => Err(stored_error(ToolOutcome::Failed)),
        ToolCallState::Denied => Err(stored_error(ToolOutcome::Denied)),
        ToolCallState::Waiting | ToolCallState::Approved => Err(ToolError::new(
            ToolCode::ApprovalAbandoned,
            "the call waited for an approval, and nothing ran: make a new call",
        )),
        ToolCallState::Executing | ToolCallState::Unknown => Err(ToolError::unknown(
            "the call began, and how it ended is unknown: look at its effect before you repeat it with another id",
        )),
    };
    Executed { result, connection: None }
}
