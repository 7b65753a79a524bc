//! Waits until a run of another process has ended, and shows its answer.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use platform_core::{event::AgentEvent, id::RunId};
use platform_runtime::settings::Sandbox;
use runner_engine::{relay::RelayRecord, run::RunResult, run_request::Subject};
use runner_model::lifecycle::State;
use runner_store::{Run, RunRecord, Store};
use tokio_util::sync::CancellationToken;

use super::{
    Error,
    exit::Exit,
    git,
    left::Left,
    show::{OutputArguments, Show},
};

/// Interval between two reads of the run's state.
const STATE_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Waits until the run has ended, and shows its answer as `sluice run` does. `stop` ends the wait, not the run.
pub(super) async fn wait(
    store: &Store,
    sandbox: &Sandbox,
    run_id: &RunId,
    output: OutputArguments,
    stop: &CancellationToken,
) -> Result<Exit, Error> {
    let Some(record) = until_ended(store, run_id, stop).await? else { return Ok(Exit::Cancelled) };
    let run = record.run.clone();
    let subject = Subject { run_id: &run.run_id, agent_id: &run.agent, account: &run.account };
    let stored_bytes = record.answer.as_ref().map_or(0, |answer| answer.len() as u64);
    let cut_bytes = record
        .answer_bytes
        .and_then(|bytes| u64::try_from(bytes).ok())
        .unwrap_or(stored_bytes)
        .saturating_sub(stored_bytes);
    let result = RunResult::from_record(record);
    let mut show = Show::new(output);
    if let Ok(content) = &result.answer {
        show.event(&AgentEvent::AssistantFinal { content: content.clone(), cut_bytes })?;
    }
    let left = Left::of(store, sandbox, run_id).await?;
    show.result(&subject, &result, &left)?;
    Ok(exit_of(&result, left.relay.as_ref()))
}

/// Waits until the run has ended, and returns its record. Returns `None` if `stop` is triggered first.
pub(super) async fn until_ended(
    store: &Store,
    run_id: &RunId,
    stop: &CancellationToken,
) -> Result<Option<RunRecord>, Error> {
    let mut shown_state = None;
    loop {
        let run = store.run(run_id).await?;
        if run.state.is_final() {
            return Ok(Some(store.record(run_id).await?));
        }
        if shown_state != Some(run.state) {
            shown_state = Some(run.state);
            print_state(&run)?;
        }
        tokio::select! {
            () = tokio::time::sleep(STATE_POLL_INTERVAL) => {}
            () = stop.cancelled() => return Ok(None),
        }
    }
}

/// Prints the run's state, if a person watches.
fn print_state(run: &Run) -> io::Result<()> {
    let mut err = io::stderr();
    if !err.is_terminal() {
        return Ok(());
    }
    let hint = if run.state == State::Queued { "; is `sluice up` running?" } else { "" };
    writeln!(err, "\x1b[2m· {} is {}{hint}\x1b[0m", run.run_id, run.state)
}

/// Returns the exit code of a run with this result, and of its commits.
pub(super) fn exit_of(result: &RunResult, relay: Option<&RelayRecord>) -> Exit {
    match &result.answer {
        Err(failure) => failure.code.into(),
        Ok(_) => relay.map_or(Exit::Success, git::exit_after_run),
    }
}
