//! `sluice doctor`

use std::io::{self, Write};

use platform_core::{
    grant::Correlation,
    id::{AccountId, AgentId},
};
use platform_runtime::{
    settings::{Agent, DEFAULT_AGENT, Protocol},
    terminal,
};

use super::{
    Context, Error,
    exit::Exit,
    run::{cancelled_by_signals, new_run_id},
};
use crate::{
    doctor::{self, Check, Verdict},
    run::{Keep, Order, Wanted},
};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Print JSON instead of a list
    #[arg(long)]
    json: bool,
}

pub(super) async fn doctor(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let agent_id = AgentId::parse(DEFAULT_AGENT)?;
    // The image's entrypoint waits for an answer of /health through the socket, then does nothing.
    let default = context.settings.agents[&agent_id].clone();
    let probe = Order {
        run_id: new_run_id()?,
        account: AccountId::parse("doctor")?,
        correlation: Correlation::default(),
        agent_id,
        wanted: Wanted {
            agent: Agent { argv: vec!["true".to_owned()], protocol: Protocol::Text, ..default },
            model: String::new(),
            messages: vec![],
            keep: Keep::Nothing,
        },
    };
    let store = context.store().await;
    let checks = doctor::examine(&context.settings, store, probe, &cancelled_by_signals()?).await;
    let ready = checks.iter().all(Check::is_ok);
    let mut out = io::stdout();
    if arguments.json {
        writeln!(out, "{}", serde_json::json!({ "ready": ready, "checks": checks }))?;
    } else {
        checks.iter().try_for_each(|check| print(&mut out, check))?;
    }
    Ok(if ready { Exit::Success } else { Exit::Unavailable })
}

fn print(out: &mut impl Write, check: &Check) -> io::Result<()> {
    let name = check.name;
    match &check.verdict {
        Verdict::Ok { found } => writeln!(out, "ok       {name}: {found}"),
        Verdict::Broken { found, mend } => {
            writeln!(out, "broken   {name}: {}\n         mend: {mend}", terminal::safe(found))
        }
        Verdict::Unknown { needs } => writeln!(out, "unknown  {name}: needs {needs}"),
    }
}
