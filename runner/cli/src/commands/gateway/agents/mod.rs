//! Implements `sluice gateway agents`: agents that people make in gateways.
//!
//! The commands store what is wanted. `sluice up` gives it to the gateway.

mod change;
mod error;
mod ls;
mod sessions;
mod wait;

use std::{
    io::{self, Write},
    path::PathBuf,
};

use platform_core::id::{GatewayAgentId, GatewayId};
use platform_runtime::{settings::Gateway, terminal};
use runner_model::{
    behaviour::{self, BehaviourFile},
    gateway_agent::{AgentName, AvatarSeed},
};
use runner_store::{
    BehaviourFileStored, GatewayAgent, GatewayAgentAdded, GatewayAgentKey, MAX_GATEWAY_AGENTS,
};
use serde_json::{Value, json};

use self::error::AgentError;
use super::{Context, Error, Exit};

#[derive(clap::Subcommand)]
pub(in crate::commands) enum Command {
    /// List the agents of gateways: what each may do, and whether its gateway has it
    #[command(
        after_help = "Example:\n  sluice gateway agents ls --json | jq -r '.agents[] | select(.state != \"applied\").problem'"
    )]
    Ls(ls::Arguments),
    /// Make an agent in a gateway
    ///
    /// It may run commands, reach the web and use files, as far as its gateway's policy allows. `sluice up` gives it to
    /// the gateway within seconds.
    #[command(after_help = "\
Examples:
  sluice gateway agents add coding 'Research Bot' --wait
  sluice run --agent sandbox:openclaw-gateway --gateway-agent research-bot 'Say hello'")]
    Add(MakeArguments),
    /// Change what an agent may do
    #[command(after_help = "\
Examples:
  sluice gateway agents set coding research-bot --commands ask
  sluice gateway agents set coding research-bot --allow 'make test' --forbid 'make deploy'")]
    Set(change::SetArguments),
    /// Write a behaviour file of an agent: AGENTS.md, SOUL.md, USER.md or MEMORY.md
    #[command(
        after_help = "Example:\n  sluice gateway agents write coding research-bot AGENTS.md --from notes.md"
    )]
    Write(WriteArguments),
    /// List the sessions of an agent, the last first: what each was about, and what it cost
    #[command(after_help = "\
Examples:
  sluice gateway agents sessions coding research-bot
  sluice gateway agents sessions coding main --json | jq '[.sessions[].nanodollars] | add / 1e9'")]
    Sessions(sessions::SessionsArguments),
    /// Remove an agent from its gateway; its files stay there
    #[command(after_help = "Example:\n  sluice gateway agents rm coding research-bot")]
    Rm(RmArguments),
}

/// Agent that a command applies to.
#[derive(clap::Args)]
struct AgentArguments {
    /// Name of the gateway, as in [gateways.NAME]
    #[arg(value_name = "GATEWAY")]
    gateway: GatewayId,
    /// Id of the agent, as `sluice gateway agents ls` lists it
    #[arg(value_name = "AGENT")]
    agent: GatewayAgentId,
}

#[derive(clap::Args)]
pub(in crate::commands) struct MakeArguments {
    /// Name of the gateway, as in [gateways.NAME]
    #[arg(value_name = "GATEWAY")]
    gateway: GatewayId,
    /// Name for people; its letters and digits become the id
    #[arg(value_name = "NAME", value_parser = AgentName::parse)]
    name: AgentName,
    /// Text from which its picture is drawn [default: its name]
    #[arg(long, value_name = "TEXT", value_parser = AvatarSeed::parse)]
    avatar: Option<AvatarSeed>,
    /// Wait until the gateway has the agent
    #[arg(long)]
    wait: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(in crate::commands) struct WriteArguments {
    #[command(flatten)]
    agent: AgentArguments,
    /// Name of the file
    #[arg(value_name = "FILE")]
    file: String,
    /// File to read the text from; an empty one takes the text away
    #[arg(long, value_name = "PATH")]
    from: PathBuf,
    /// Wait until the gateway has the file
    #[arg(long)]
    wait: bool,
}

#[derive(clap::Args)]
pub(in crate::commands) struct RmArguments {
    #[command(flatten)]
    agent: AgentArguments,
    /// Wait until the gateway has lost the agent
    #[arg(long)]
    wait: bool,
}

pub(in crate::commands) async fn agents(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Ls(arguments) => ls::ls(context, &arguments).await,
        Command::Add(arguments) => add(context, arguments).await,
        Command::Set(arguments) => change::set(context, arguments).await,
        Command::Write(arguments) => write(context, arguments).await,
        Command::Sessions(arguments) => sessions::sessions(context, arguments).await,
        Command::Rm(arguments) => rm(context, arguments).await,
    }
}

async fn add(context: &Context, arguments: MakeArguments) -> Result<Exit, Error> {
    let MakeArguments { gateway: id, name, avatar, wait, json } = arguments;
    let (id, gateway) = context.settings.gateway(&id)?;
    let key = changeable(gateway, GatewayAgentKey { gateway: id.clone(), agent: name.id() })?;
    let new = runner_gateways::new_agent(gateway, key, name, avatar);
    let store = context.store().await?;
    let added = match store.add_gateway_agent(&new).await? {
        GatewayAgentAdded::New(added) => added,
        GatewayAgentAdded::Exists(existing) => return Err(AgentError::Exists(existing).into()),
        GatewayAgentAdded::TooMany => return Err(AgentError::TooMany(MAX_GATEWAY_AGENTS).into()),
    };
    if wait {
        wait::until_applied(&store, &added.agent.key).await?;
    }
    if json {
        let now = store.gateway_agent(&added.agent.key).await?;
        return print_json(&now.unwrap_or(*added));
    }
    let GatewayAgentKey { gateway, agent } = &added.agent.key;
    if wait {
        writeln!(io::stdout(), "{agent} is made, and {gateway} has it")?;
        return Ok(Exit::Success);
    }
    writeln!(io::stdout(), "{agent} is made; `sluice up` gives it to {gateway}")?;
    writeln!(io::stderr(), "next: sluice gateway agents ls {gateway}")?;
    Ok(Exit::Success)
}

async fn write(context: &Context, arguments: WriteArguments) -> Result<Exit, Error> {
    let WriteArguments { agent, file, from, wait } = arguments;
    let key = found(context, agent)?;
    let behaviour =
        BehaviourFile::of_gateway_agent(&file).ok_or_else(|| AgentError::NoSuchFile(file.clone()))?;
    let unreadable = |source| AgentError::Unreadable { path: from.clone(), source };
    let text = std::fs::read_to_string(&from).map_err(unreadable)?;
    behaviour::check_text(&text).map_err(|fault| AgentError::Text { path: from.clone(), fault })?;
    let store = context.store().await?;
    if store.put_behaviour_file(&key, behaviour, &text, None).await? == BehaviourFileStored::Unknown {
        return Err(AgentError::Unknown(key).into());
    }
    if wait {
        wait::until_applied(&store, &key).await?;
        writeln!(io::stdout(), "{file} of {} is stored, and {} has it", key.agent, key.gateway)?;
        return Ok(Exit::Success);
    }
    writeln!(io::stdout(), "{file} of {} is stored; `sluice up` gives it to {}", key.agent, key.gateway)?;
    Ok(Exit::Success)
}

async fn rm(context: &Context, arguments: RmArguments) -> Result<Exit, Error> {
    let key = found(context, arguments.agent)?;
    let store = context.store().await?;
    if store.remove_gateway_agent(&key).await?.is_none() {
        return Err(AgentError::Unknown(key).into());
    }
    if arguments.wait {
        wait::until_applied(&store, &key).await?;
        writeln!(io::stdout(), "{} is removed from {}", key.agent, key.gateway)?;
        return Ok(Exit::Success);
    }
    writeln!(io::stdout(), "{} is being removed; `sluice up` takes it from {}", key.agent, key.gateway)?;
    Ok(Exit::Success)
}

/// Returns the key of an agent that people may change, in a gateway that is configured.
fn found(context: &Context, arguments: AgentArguments) -> Result<GatewayAgentKey, Error> {
    let (id, gateway) = context.settings.gateway(&arguments.gateway)?;
    Ok(changeable(gateway, GatewayAgentKey { gateway: id.clone(), agent: arguments.agent })?)
}

/// Returns `key`, unless the configuration describes the agent.
fn changeable(gateway: &Gateway, key: GatewayAgentKey) -> Result<GatewayAgentKey, AgentError> {
    if gateway.has_fixed_agent(key.agent.as_str()) { Err(AgentError::Fixed(key)) } else { Ok(key) }
}

fn print_json(stored: &GatewayAgent) -> Result<Exit, Error> {
    writeln!(io::stdout(), "{}", terminal::safe_json(&agent_json(stored).to_string()))?;
    Ok(Exit::Success)
}

/// Returns an agent as commands print it.
fn agent_json(stored: &GatewayAgent) -> Value {
    let agent = &stored.agent;
    let mut shown = json!({
        "gateway": agent.key.gateway,
        "id": agent.key.agent,
        "account": agent.account,
        "workspace": agent.workspace,
        "revision": stored.revision,
        "state": stored.state_word(),
        "step": stored.step,
        "problem": stored.problem,
        "created_ms": stored.created,
        "changed_ms": stored.changed,
    });
    if let (Value::Object(shown), Ok(Value::Object(settings))) =
        (&mut shown, serde_json::to_value(&agent.settings))
    {
        shown.extend(settings);
    }
    shown
}
