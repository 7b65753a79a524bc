//! `sluice gateway up` and `down`

use std::io::{self, Write};

use platform_core::id::GatewayId;
use runner_gateways::managed::{KeptData, ManagedGateway, StartProgress, StartResult};
use serde_json::json;

use super::{Context, Error, Exit, GatewayArgument};

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
    let on_event = |event: StartProgress<'_>| match event {
        StartProgress::Waiting => waiting(id),
        StartProgress::Stopping(changed, drain) if !arguments.json => {
            let drain = drain.as_secs();
            let written = writeln!(
                io::stdout(),
                "{id} differs: {}; stopping it, which may take {drain} s",
                changed.join(", ")
            );
            drop(written);
        }
        StartProgress::Stopping(..) => {}
    };
    let done = managed.up(&on_event).await?;
    let took = if arguments.wait { Some(managed.until_ready().await?) } else { None };
    let mut out = io::stdout();
    let (word, changed) = match &done {
        StartResult::Started => ("started", &[][..]),
        StartResult::Unchanged => ("unchanged", &[][..]),
        StartResult::Restarted(changed) => ("restarted", &changed[..]),
    };
    if arguments.json {
        let ready_after = took.map(|took| took.as_millis());
        writeln!(
            out,
            "{}",
            json!({ "gateway": id, "is": word, "changed": changed, "ready_after_ms": ready_after })
        )?;
        return Ok(Exit::Success);
    }
    match (&done, took) {
        (StartResult::Unchanged, _) => writeln!(out, "{id} runs as it is configured")?,
        (_, Some(took)) => writeln!(out, "{id} {word}, and answers after {:.1} s", took.as_secs_f64())?,
        (_, None) => writeln!(out, "{id} {word}; it does not answer yet (--wait waits for that)")?,
    }
    Ok(Exit::Success)
}

pub(super) async fn down(context: &Context, arguments: DownArguments) -> Result<Exit, Error> {
    let id = &arguments.gateway.id;
    let kept = if arguments.purge { KeptData::Nothing } else { KeptData::State };
    let on_event = |event: StartProgress<'_>| match event {
        StartProgress::Waiting => waiting(id),
        StartProgress::Stopping(..) => {}
    };
    let was_there = ManagedGateway::open(&context.settings, id).await?.down(kept, &on_event).await?;
    let left = match kept {
        KeptData::State => "its state stays (--purge removes it)",
        KeptData::Nothing => "nothing of it is left",
    };
    let word = if was_there { "is down" } else { "was down" };
    writeln!(io::stdout(), "{id} {word}; {left}")?;
    Ok(Exit::Success)
}

fn waiting(id: &GatewayId) {
    // The command waits all the same if the message cannot be written.
    drop(writeln!(io::stderr(), "sluice: another command is working on gateway {id}: waiting for it"));
}
