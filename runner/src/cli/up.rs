//! `sluice up`

use std::io::{self, IsTerminal, Write};

use platform_runtime::{shutdown, task};
use tokio_util::sync::CancellationToken;

use super::{Context, Error, exit::Exit};
use crate::{
    data_plane::DataPlane,
    supervise::{self, Plan, Proxy},
};

pub(super) async fn up(context: &Context) -> Result<Exit, Error> {
    let settings = &context.settings;
    let plan = Plan {
        program: supervise::program_beside_us(),
        arguments: context.passed_on.clone(),
        environment: supervise::child_environment(&context.environment)?,
        drain: settings.proxy.drain.duration(),
    };
    let data_plane = DataPlane::at(&settings.proxy.control_socket());
    let signalled = shutdown::signalled(shutdown::RunBy::Person)?;
    let cancel = CancellationToken::new();
    let (proxy, health) = supervise::start(&plan, &data_plane).await?;
    let origin = match proxy {
        Proxy::Own(_) => "started",
        Proxy::Adopted => "already running, adopted",
    };
    let mut out = io::stdout();
    writeln!(out, "proxy     {origin}, pid {}", health.pid)?;
    writeln!(out, "upstream  {}", health.upstream)?;
    writeln!(out, "control   {}", settings.proxy.control_socket().display())?;
    writeln!(out, "ready{}", if out.is_terminal() { "; Ctrl-C stops" } else { "" })?;
    let trigger = cancel.clone();
    let waiting = task::spawn("signals", async move {
        signalled.await;
        trigger.cancel();
    });
    supervise::watch_over(proxy, &plan, &data_plane, &cancel).await?;
    waiting.abort();
    writeln!(out, "stopped")?;
    Ok(Exit::Success)
}
