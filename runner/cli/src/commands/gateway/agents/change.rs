//! Implements `sluice gateway agents set`.

use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use platform_core::id::ModelName;
use runner_control_client::DataPlane;
use runner_model::gateway_agent::{AgentName, AllowedCommand, CommandMode, MAX_ALLOWED_COMMANDS, Switch};
use runner_store::{GatewayAgentChanged, GatewayAgentSettings};

use crate::commands::preflight;

use super::{AgentArguments, AgentError, Context, Error, Exit, found, print_json, wait};

#[derive(clap::Args)]
pub(in crate::commands) struct SetArguments {
    #[command(flatten)]
    agent: AgentArguments,
    /// Name for people; the id stays
    #[arg(long, value_name = "NAME", value_parser = AgentName::parse)]
    name: Option<AgentName>,
    /// Model of its runs, unless an order names another
    #[arg(long, value_name = "MODEL")]
    model: Option<ModelName>,
    /// Commands: off, ask (a person decides about each) or auto
    #[arg(long, value_name = "MODE", value_parser = modes())]
    commands: Option<CommandMode>,
    /// Access to the web: off or on
    #[arg(long, value_name = "STATE", value_parser = states())]
    web: Option<Switch>,
    /// Tools that read and write files: off or on
    #[arg(long, value_name = "STATE", value_parser = states())]
    files: Option<Switch>,
    /// Command that runs without asking, this text and no other; may be repeated
    #[arg(long, value_name = "COMMAND", value_parser = AllowedCommand::parse)]
    allow: Vec<AllowedCommand>,
    /// Command that no longer runs without asking; may be repeated
    #[arg(long, value_name = "COMMAND", value_parser = AllowedCommand::parse)]
    forbid: Vec<AllowedCommand>,
    /// Wait until the gateway has the change
    #[arg(long)]
    wait: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

fn modes() -> impl TypedValueParser<Value = CommandMode> {
    let words = PossibleValuesParser::new(CommandMode::ALL.map(CommandMode::word));
    words.try_map(|word| CommandMode::of_word(&word).ok_or("one of the words"))
}

fn states() -> impl TypedValueParser<Value = Switch> {
    let words = PossibleValuesParser::new([Switch::Off, Switch::On].map(Switch::word));
    words.try_map(|word| Switch::of_word(&word).ok_or("one of the words"))
}

pub(super) async fn set(context: &Context, arguments: SetArguments) -> Result<Exit, Error> {
    let SetArguments { agent, wait, json, name, model, commands, web, files, allow, forbid } = arguments;
    let key = found(context, agent)?;
    if let Some(model) = &model {
        let data_plane = DataPlane::at(&context.settings.proxy.control_socket());
        preflight::check_model(&context.settings, &data_plane, model).await?;
    }
    let store = context.store().await?;
    let stored = store.gateway_agent(&key).await?.filter(|stored| stored.removed.is_none());
    let stored = stored.ok_or_else(|| AgentError::Unknown(key.clone()))?;
    let GatewayAgentSettings { name: old_name, avatar, model: old_model, mut capabilities } =
        stored.agent.settings;
    capabilities.commands = commands.unwrap_or(capabilities.commands);
    capabilities.web = web.unwrap_or(capabilities.web);
    capabilities.files = files.unwrap_or(capabilities.files);
    capabilities.allowed_commands.extend(allow);
    capabilities.allowed_commands.retain(|command| !forbid.contains(command));
    if capabilities.allowed_commands.len() > MAX_ALLOWED_COMMANDS {
        return Err(AgentError::TooManyCommands.into());
    }
    let wanted = GatewayAgentSettings {
        name: name.unwrap_or(old_name),
        avatar,
        model: model.or(old_model),
        capabilities,
    };
    let changed = match store.change_gateway_agent(&key, stored.revision, &wanted).await? {
        GatewayAgentChanged::Changed(changed) => changed,
        GatewayAgentChanged::Conflict(_) => return Err(AgentError::Changed(key).into()),
        GatewayAgentChanged::Unknown => return Err(AgentError::Unknown(key).into()),
    };
    if wait {
        wait::until_applied(&store, &key).await?;
    }
    let changed = store.gateway_agent(&key).await?.unwrap_or(*changed);
    if json {
        return print_json(&changed);
    }
    let line = match changed.is_applied() {
        true => format!("{} is changed, and {} has it", key.agent, key.gateway),
        false => format!("{} is changed; `sluice up` gives it to {}", key.agent, key.gateway),
    };
    writeln!(io::stdout(), "{line}")?;
    Ok(Exit::Success)
}
