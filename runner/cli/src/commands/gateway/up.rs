//! Implements `sluice gateway up` and `sluice gateway down`.

use std::{
    io::{self, Write},
    pin::pin,
    time::Duration,
};

use platform_core::id::GatewayId;
use runner_gateways::managed::{KeptData, ManagedGateway, StartProgress, StartResult};
use serde_json::json;
use tokio::time::interval;

use super::{Context, Error, Exit, GatewayArgument};
use crate::commands::progress::{ProgressLine, REDRAW_INTERVAL};

#[derive(clap::Args)]
pub(in crate::commands) struct UpArguments {
    #[command(flatten)]
    gateway: GatewayArgument,
    /// Wait until the gateway answers
    #[arg(long)]
    wait: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(in crate::commands) struct DownArguments {
    #[command(flatten)]
    gateway: GatewayArgument,
    /// Also remove its conversations, token and slots
    #[arg(long)]
    purge: bool,
}

pub(super) async fn up(context: &Context, arguments: UpArguments) -> Result<Exit, Error> {
    let id = &arguments.gateway.id;
    let managed = ManagedGateway::open(&context.settings, id).await?;
    let on_progress = |progress: StartProgress<'_>| match progress {
        StartProgress::Waiting => report_waiting(id),
        StartProgress::Stopping(changed, drain_timeout) if !arguments.json => {
            let drain = drain_timeout.as_secs();
            let written = writeln!(
                io::stdout(),
                "{id} differs: {}; stopping it, which may take {drain} s",
                changed.join(", ")
            );
            drop(written);
        }
        StartProgress::Stopping(..) => {}
    };
    let store = context.store().await?;
    let result = managed.up(&store, &on_progress).await?;
    let ready_after = if arguments.wait { Some(until_ready(&managed, id).await?) } else { None };
    let mut out = io::stdout();
    let (word, changed) = match &result {
        StartResult::Started => ("started", &[][..]),
        StartResult::Unchanged => ("unchanged", &[][..]),
        StartResult::Reloaded(changed) => ("reloaded", &changed[..]),
        StartResult::Restarted(changed) => ("restarted", &changed[..]),
    };
    if arguments.json {
        let ready_after_ms = ready_after.map(|duration| duration.as_millis());
        writeln!(
            out,
            "{}",
            json!({ "gateway": id, "is": word, "changed": changed, "ready_after_ms": ready_after_ms })
        )?;
        return Ok(Exit::Success);
    }
    match (&result, ready_after) {
        (StartResult::Reloaded(changed), _) => {
            writeln!(out, "{id} differed, and has it now without a restart: {}", changed.join(", "))?
        }
        (StartResult::Unchanged, _) => writeln!(out, "{id} runs as it is configured")?,
        (_, Some(duration)) => {
            writeln!(out, "{id} {word}, and answers after {:.1} s", duration.as_secs_f64())?
        }
        (_, None) => writeln!(out, "{id} {word}; it does not answer yet (--wait waits for that)")?,
    }
    Ok(Exit::Success)
}

/// Waits until the gateway answers, and returns how long that took. A terminal shows the time meanwhile.
async fn until_ready(managed: &ManagedGateway<'_>, id: &GatewayId) -> Result<Duration, Error> {
    let mut ready = pin!(managed.until_ready());
    let Some(mut progress) = ProgressLine::on_terminal() else { return Ok(ready.await?) };
    let mut ticks = interval(REDRAW_INTERVAL);
    loop {
        tokio::select! {
            result = &mut ready => return Ok(result?),
            _ = ticks.tick() => progress.draw(|_| format!("{id} starts, until it answers")),
        }
    }
}

pub(super) async fn down(context: &Context, arguments: DownArguments) -> Result<Exit, Error> {
    let id = &arguments.gateway.id;
    let kept = if arguments.purge { KeptData::Nothing } else { KeptData::State };
    let on_progress = |progress: StartProgress<'_>| match progress {
        StartProgress::Waiting => report_waiting(id),
        StartProgress::Stopping(..) => {}
    };
    let was_up = ManagedGateway::open(&context.settings, id).await?.down(kept, &on_progress).await?;
    let note = match kept {
        KeptData::State => "its state stays (--purge removes it)",
        KeptData::Nothing => "nothing of it is left",
    };
    let word = if was_up { "is down" } else { "was down" };
    writeln!(io::stdout(), "{id} {word}; {note}")?;
    Ok(Exit::Success)
}

fn report_waiting(id: &GatewayId) {
    // The command waits even if this message cannot be written.
    drop(writeln!(io::stderr(), "sluice: another command is working on gateway {id}: waiting for it"));
}
