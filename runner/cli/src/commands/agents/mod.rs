//! Implements `sluice agents`.

mod add;
mod available;
mod proposals;
mod propose;

use std::io::{self, Write};

use platform_runtime::{settings::WorkspaceSetup, terminal};
use runner_api::{AgentListView, AgentView, BlockReasonView};
use runner_engine::agents::{self, AgentStatus, BlockReason, Probes};
use serde_json::{Value, json};

use self::add::Style;
use super::{Context, Error, exit::Exit, table::Table};
use crate::reload::Purpose;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice agents ls                        list agents that can run here, then the others
  sluice agents ls --json | jq -r '.agents[].agentId'
  sluice agents check                     check every agent of the configuration
  sluice agents ls --available            list the coding agents that ship
  sluice agents add claude-code           build the image of Claude Code, and add its entry
  sluice agents propose skill greet SKILL.md  propose a skill as a pull request

Exit codes of `check`: 1 a configured agent cannot run here, 69 Docker does not say whether one can")]
pub(super) struct Arguments {
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List agents: those that can run here, then the others with reasons
    Ls {
        /// List the coding agents that ship instead: version, package, and whether they are added
        #[arg(long)]
        available: bool,
    },
    /// Check that every agent can run here; report each obstacle and its fix
    ///
    /// Checks the configuration, images and volumes on this Docker, and models if the proxy can ask the upstream.
    Check,
    /// Build the image of a coding agent that ships, and add its entry to the configuration
    ///
    /// Docker downloads the pinned package while it builds. Other bytes of the configuration file stay as they are.
    #[command(after_help = "\
Examples:
  sluice agents add claude-code           then: sluice run --agent claude-code \"Hi\"
  sluice agents add codex --model gpt-5.5
  sluice agents add codex --packages golang,sqlite3 --force  build again, with these
  sluice agents add aider --print         print the entry, change and build nothing")]
    Add(add::AddArguments),
    /// Propose an agent or a skill as a pull request of `[agents_repository]`
    ///
    /// `sluice up` commits it on the newest base, pushes a new branch and makes the pull request. This host's
    /// configuration stays as it is: merged, the proposal takes effect with the next deployment or `sluice reload`.
    #[command(after_help = "\
Examples:
  sluice agents propose agent team:reviewer --setting image=team/reviewer:1 --setting 'argv=[\"node\",\"/run.mjs\"]'
  sluice agents propose gateway-agent team:bot --setting 'gateways=[\"main\"]' --setting gateway_agent=bot
  sluice agents propose skill greet SKILL.md

Exit codes: 2 it cannot be proposed, or `[agents_repository]` is not set")]
    Propose(propose::ProposeArguments),
    /// List proposals, or show one with its difference
    #[command(after_help = "\
Examples:
  sluice agents proposals
  sluice agents proposals ap-00c0ffee00c0ffee --json | jq -r '.pullRequest.url'

Exit codes of one proposal: 1 it was refused or failed, or there is none, 75 its next step is pending")]
    Proposals(proposals::ProposalsArguments),
}

impl Arguments {
    /// Returns the purpose for which the command reads the configuration.
    pub(super) const fn purpose(&self) -> Purpose {
        match &self.command {
            Some(Command::Add(_)) => Purpose::Extend,
            _ => Purpose::Inspect,
        }
    }
}

pub(super) async fn agents(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let style = if arguments.json { Style::Json } else { Style::Text };
    let command = match arguments.command {
        Some(Command::Add(add)) => return add::add(context, add, style).await,
        Some(Command::Propose(order)) => return propose::propose(context, order, style).await,
        Some(Command::Proposals(which)) => return proposals::proposals(context, which, style).await,
        Some(Command::Ls { available: true }) => return available::list(context, &arguments).await,
        command => command,
    };
    let is_check = matches!(command, Some(Command::Check));
    let settings = &context.settings;
    let facts = Probes::of(settings).probe(&settings.agents).await;
    let statuses = agents::judge(&settings.agents, settings.upstream.default_model.as_deref(), &facts);
    let mut out = io::stdout();
    if arguments.json {
        writeln!(out, "{}", terminal::safe_json(&as_json(&statuses).to_string()))?;
    } else if is_check {
        statuses.iter().try_for_each(|agent| check(&mut out, agent))?;
    } else {
        list(&mut out, &statuses)?;
    }
    Ok(if is_check { exit_of_check(&statuses) } else { Exit::Success })
}

/// Returns the exit code of `check`. Confirmed reasons take precedence over unknown ones.
fn exit_of_check(statuses: &[AgentStatus]) -> Exit {
    let reasons = statuses.iter().flat_map(|agent| &agent.block_reasons);
    let mut reasons = reasons.filter(|reason| reason.is_fault()).peekable();
    if reasons.peek().is_none() {
        Exit::Success
    } else if reasons.all(BlockReason::is_unknown) {
        Exit::Unavailable
    } else {
        Exit::Failure
    }
}

/// Returns the catalogue. Adds the agents that cannot run, and the notes on those that can.
fn as_json(statuses: &[AgentStatus]) -> Value {
    let mut listing = json!(AgentListView::of(statuses));
    let with_reasons = |agent: &AgentStatus| {
        let mut entry = json!(AgentView::of(agent));
        entry["reasons"] = json!(BlockReasonView::all(agent));
        entry
    };
    listing["cannotRun"] = statuses.iter().filter(|agent| !agent.can_run()).map(with_reasons).collect();
    let has_notes = |agent: &&AgentStatus| agent.can_run() && !agent.block_reasons.is_empty();
    listing["notes"] = statuses.iter().filter(has_notes).map(with_reasons).collect();
    listing
}

fn list(out: &mut impl Write, statuses: &[AgentStatus]) -> io::Result<()> {
    let mut table = Table::new(["AGENT", "NAME", "IMAGE", "LIMITS"]);
    for AgentStatus { id, agent, .. } in statuses.iter().filter(|agent| agent.can_run()) {
        let kept = match agent.workspace {
            WorkspaceSetup::Conversation => "",
            WorkspaceSetup::Thread => ", one workspace for each thread",
        };
        let limits = format!("{}, {}{kept}", agent.run_timeout, agent.memory);
        table.row([id.to_string(), agent.name.clone(), agent.image.to_string(), limits]);
    }
    write!(out, "{table}")?;
    let (can, cannot): (Vec<_>, Vec<_>) = statuses.iter().partition(|agent| agent.can_run());
    for (agents, title) in [(cannot, "CANNOT RUN"), (can, "NOTE")] {
        let mut table = Table::new([title, "REASON AND FIX"]);
        let mut rows = agents
            .iter()
            .flat_map(|agent| agent.block_reasons.iter().map(move |reason| (agent, reason)))
            .peekable();
        if rows.peek().is_none() {
            continue;
        }
        for (agent, reason) in rows {
            table.row([agent.id.to_string(), reason.to_string()]);
        }
        write!(out, "\n{table}")?;
    }
    Ok(())
}

fn check(out: &mut impl Write, agent: &AgentStatus) -> io::Result<()> {
    if agent.can_run() {
        writeln!(out, "ok          {}", agent.id)?;
    }
    agent.block_reasons.iter().try_for_each(|reason| {
        let word = match reason {
            reason if !reason.is_fault() => "note      ",
            reason if reason.is_unknown() => "not known ",
            _ => "cannot run",
        };
        writeln!(out, "{word}  {}: {}", agent.id, terminal::safe(&reason.to_string()))
    })
}
