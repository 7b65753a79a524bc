//! `sluice agents`

use std::io::{self, Write};

use platform_runtime::terminal;
use serde_json::json;

use super::{Context, Error, exit::Exit, table::Table};
use crate::agents::{self, Looked, Obstacle, Places};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice agents ls                        what can run here; and below, what cannot, and why
  sluice agents ls --json | jq -r '.agents[].agentId'
  sluice agents check                     exit 1 if the configuration has an agent that cannot run here,
                                          69 if Docker does not say whether one can")]
pub(super) struct Arguments {
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand, Clone, Copy, Default)]
enum Command {
    /// List them: those that can run here, then the others with what is in their way
    #[default]
    Ls,
    /// Look whether every one of them can run here; say what is in the way, and how to mend it
    ///
    /// Looked at are the configuration, images and volumes on this Docker, and, where the proxy can ask the upstream, models.
    Check,
}

pub(super) async fn agents(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let settings = &context.settings;
    let facts = Places::of(settings).look(&settings.agents).await;
    let looked = agents::judge(&settings.agents, settings.upstream.default_model.as_deref(), &facts);
    let mut out = io::stdout();
    let command = arguments.command.unwrap_or_default();
    match command {
        _ if arguments.json => writeln!(out, "{}", terminal::safe_json(&as_json(&looked).to_string()))?,
        Command::Ls => list(&mut out, &looked)?,
        Command::Check => looked.iter().try_for_each(|agent| check(&mut out, agent))?,
    }
    Ok(match command {
        Command::Ls => Exit::Success,
        Command::Check => verdict(&looked),
    })
}

/// What is known for certain comes first.
fn verdict(looked: &[Looked]) -> Exit {
    let mut obstacles = looked.iter().flat_map(|agent| &agent.obstacles).peekable();
    if obstacles.peek().is_none() {
        Exit::Success
    } else if obstacles.all(Obstacle::is_unknown) {
        Exit::Unavailable
    } else {
        Exit::Failure
    }
}

/// The catalogue, and beside it those that are not in it.
fn as_json(looked: &[Looked]) -> serde_json::Value {
    let reason = |obstacle: &Obstacle| json!({ "code": obstacle.code(), "message": obstacle.to_string() });
    let mut listing = agents::listing(looked);
    let cannot = looked.iter().filter(|agent| !agent.can_run()).map(|agent| {
        let mut entry = agent.to_json();
        entry["reasons"] = agent.obstacles.iter().map(reason).collect();
        entry
    });
    listing["cannotRun"] = cannot.collect();
    listing
}

fn list(out: &mut impl Write, looked: &[Looked]) -> io::Result<()> {
    let mut table = Table::new(["AGENT", "NAME", "IMAGE", "LIMITS"]);
    for Looked { id, agent, .. } in looked.iter().filter(|agent| agent.can_run()) {
        let limits = format!("{}, {}", agent.runtime, agent.memory);
        table.row([id.to_string(), agent.name.clone(), agent.image.to_string(), limits]);
    }
    write!(out, "{table}")?;
    let mut cannot = Table::new(["CANNOT RUN", "WHY, AND HOW TO MEND IT"]);
    for agent in looked {
        for obstacle in &agent.obstacles {
            cannot.row([agent.id.to_string(), obstacle.to_string()]);
        }
    }
    if looked.iter().all(Looked::can_run) { Ok(()) } else { write!(out, "\n{cannot}") }
}

fn check(out: &mut impl Write, agent: &Looked) -> io::Result<()> {
    if agent.can_run() {
        return writeln!(out, "ok          {}", agent.id);
    }
    agent.obstacles.iter().try_for_each(|obstacle| {
        let word = if obstacle.is_unknown() { "not known " } else { "cannot run" };
        writeln!(out, "{word}  {}: {}", agent.id, terminal::safe(&obstacle.to_string()))
    })
}
