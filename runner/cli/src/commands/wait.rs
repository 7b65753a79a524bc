//! Waits until a run that another process works on has ended, and shows its answer.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use platform_core::{event::AgentEvent, id::RunId};
use runner_engine::{request::Subject, run::RunResult};
use runner_model::lifecycle::State;
use runner_store::{Record, Run, Store};
use tokio_util::sync::CancellationToken;

use super::{Error, exit::Exit, run::OutputArguments, show::Show};

/// Interval between two reads of the run's state.
const STATE_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Waits until the run has ended, and shows its answer like that of any other run. `stop` ends the waiting, not the run.
pub(super) async fn wait(
    store: &Store,
    run_id: &RunId,
    output: OutputArguments,
    stop: &CancellationToken,
) -> Result<Exit, Error> {
    let Some(record) = ended(store, run_id, stop).await? else { return Ok(Exit::Cancelled) };
    let run = record.run.clone();
    let subject = Subject { run_id: &run.run_id, agent_id: &run.agent, account: &run.account };
    let kept = record.answer.as_ref().map_or(0, |answer| answer.len() as u64);
    let cut_bytes =
        record.answer_bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(kept).saturating_sub(kept);
    let finished = RunResult::from_record(record);
    let mut show = Show::new(output);
    if let Ok(content) = &finished.answer {
        show.event(&AgentEvent::AssistantFinal { content: content.clone(), cut_bytes })?;
    }
    show.result(&subject, &finished)?;
    Ok(finished.answer.map_or_else(|failure| failure.code.into(), |_| Exit::Success))
}

/// Waits until the run has ended, and returns it; `None` if `stop` is triggered before.
pub(super) async fn ended(
    store: &Store,
    run_id: &RunId,
    stop: &CancellationToken,
) -> Result<Option<Record>, Error> {
    let mut shown = None;
    loop {
        let now = store.run(run_id).await?;
        if now.state.is_final() {
            return Ok(Some(store.record(run_id).await?));
        }
        if shown != Some(now.state) {
            shown = Some(now.state);
            progress(&now)?;
        }
        tokio::select! {
            () = tokio::time::sleep(STATE_POLL_INTERVAL) => {}
            () = stop.cancelled() => return Ok(None),
        }
    }
}

/// Prints the run's state for a person.
fn progress(run: &Run) -> io::Result<()> {
    let mut err = io::stderr();
    if !err.is_terminal() {
        return Ok(());
    }
    let hint = if run.state == State::Queued { "; is `sluice up` running?" } else { "" };
    writeln!(err, "\x1b[2m· {} is {}{hint}\x1b[0m", run.run_id, run.state)
}
