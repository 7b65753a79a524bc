//! `sluice up`

use std::io::{self, IsTerminal, Write};

use platform_runtime::{
    report,
    shutdown::{Asked, RunBy, Signals},
    task,
};
use tokio_util::sync::CancellationToken;

use super::{Context, Error, exit::Exit};
use crate::{
    data_plane::DataPlane,
    supervise::{self, Plan, Proxy},
    worker::{self, AtEnd},
};

pub(super) async fn up(context: &Context) -> Result<Exit, Error> {
    let settings = &context.settings;
    let takes_tokens = settings.proxy.listen.is_some() && settings.proxy.token_secrets_file.is_none();
    if takes_tokens && context.token_secret.is_some() {
        return Err(Box::new(supervise::Error::HoldsTokenSecret));
    }
    let plan = Plan {
        program: supervise::program_beside_us(),
        arguments: context.passed_on.clone(),
        environment: supervise::child_environment(&context.environment)?,
        longest_stop: settings.proxy.longest_stop().duration(),
    };
    let data_plane = DataPlane::at(&settings.proxy.control_socket());
    let mut out = io::stdout();
    // A terminal that is closed ends what runs in it. Without one, SIGHUP is what it is to any service.
    let by = if out.is_terminal() { RunBy::Person } else { RunBy::Service };
    let mut signals = Signals::install(by)?;
    let (cancel, proxy_stop) = (CancellationToken::new(), CancellationToken::new());
    let (proxy, health) = supervise::start(&plan, &data_plane).await?;
    let origin = match proxy {
        Proxy::Own(_) => "started",
        Proxy::Adopted => "already running, adopted",
    };
    writeln!(out, "proxy     {origin}, pid {}", health.pid)?;
    writeln!(out, "upstream  {}", health.upstream)?;
    writeln!(out, "control   {}", settings.proxy.control_socket().display())?;
    writeln!(
        out,
        "ready{}",
        if out.is_terminal() { "; Ctrl-C stops and cancels runs, twice leaves them" } else { "" }
    )?;
    let (leave, reloaded) = (CancellationToken::new(), data_plane.clone());
    let stops = [cancel.clone(), leave.clone()];
    let waiting = task::spawn("signals", async move {
        for stop in stops {
            while signals.next().await == Asked::Reload {
                reload(&reloaded).await;
            }
            stop.cancel();
        }
    });
    let watched = async {
        let ended = supervise::watch_over(proxy, &plan, &data_plane, &proxy_stop).await;
        // Nobody could register a run any more.
        cancel.cancel();
        ended
    };
    let worked = async {
        let at_end = if by == RunBy::Person { AtEnd::Cancel(leave) } else { AtEnd::Leave };
        if let Some(host) = worker::surroundings(settings, async || context.store().await, &cancel).await {
            Box::pin(worker::work(&host, settings, &cancel, at_end)).await;
        }
        // The proxy last: runs that are cancelled are closed there.
        proxy_stop.cancel();
    };
    let (watched, ()) = tokio::join!(watched, worked);
    waiting.abort();
    watched?;
    writeln!(out, "stopped")?;
    Ok(Exit::Success)
}

/// Has the proxy read its configuration again. Without one, the next one will.
async fn reload(data_plane: &DataPlane) {
    match data_plane.reload().await {
        Ok(reloaded) => tracing::info!(?reloaded, "the proxy has read its configuration again"),
        Err(error) => tracing::error!(error = %report::chain(&error), "the proxy did not reload"),
    }
}
