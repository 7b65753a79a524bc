//! Implements `sluice gateway explain`.

use std::io::{self, Write};

use platform_core::{
    code::{Code, Coded},
    id::{GatewayAgentId, GatewayId},
};
use platform_runtime::{report::ErrorText, terminal};
use runner_gateways::{
    Explanation, explain as explain_agent,
    managed::{self, ConfigSource, ReadConfig},
};
use serde_json::json;

use super::{Context, Error, Exit};
use crate::commands::table::Table;

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Id of the agent in its gateway
    #[arg(value_name = "AGENT")]
    agent: GatewayAgentId,
    /// The gateway [default: the only one that is configured]
    #[arg(long, value_name = "GATEWAY")]
    gateway: Option<GatewayId>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// Reason why an agent is not explained.
#[derive(Debug, thiserror::Error)]
enum NotExplained {
    /// Several gateways are configured, or none.
    #[error("there are {0} gateways: name one with --gateway")]
    Ambiguous(usize),
    /// The gateway's configuration cannot be read.
    #[error("gateway {id} cannot be asked: {why}")]
    Unread {
        /// The gateway.
        id: GatewayId,
        /// Reason.
        why: String,
    },
    /// The gateway has no such agent.
    #[error("{gateway} has no agent `{agent}`: `sluice gateway agents ls` lists those that were made here")]
    Unknown {
        /// The gateway.
        gateway: GatewayId,
        /// The agent.
        agent: GatewayAgentId,
    },
}

impl Coded for NotExplained {
    fn code(&self) -> Code {
        match self {
            Self::Ambiguous(_) => Code::Usage,
            Self::Unread { .. } => Code::GatewayUnavailable,
            Self::Unknown { .. } => Code::GatewayAgentUnknown,
        }
    }
}

pub(super) async fn explain(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let settings = &context.settings;
    let id = match (&arguments.gateway, settings.gateways.keys().next()) {
        (Some(id), _) => id,
        (None, Some(only)) if settings.gateways.len() == 1 => only,
        (None, _) => return Err(NotExplained::Ambiguous(settings.gateways.len()).into()),
    };
    let (id, gateway) = settings.gateway(id)?;
    let read = managed::read_config(settings, id, gateway).await;
    let read: ReadConfig = read.map_err(|ErrorText(why)| NotExplained::Unread { id: id.clone(), why })?;
    let agent = arguments.agent;
    let explained = explain_agent(id.as_str(), gateway, &read, &agent);
    let explained =
        explained.ok_or_else(|| NotExplained::Unknown { gateway: id.clone(), agent: agent.clone() })?;
    let source = match read.source {
        ConfigSource::Gateway => "gateway",
        ConfigSource::File => "file",
    };
    let mut out = io::stdout();
    if arguments.json {
        let shown = to_json(&explained, source);
        writeln!(out, "{}", terminal::safe_json(&shown.to_string()))?;
        return Ok(Exit::Success);
    }
    writeln!(out, "agent      {agent} of {id}, by the configuration in its {source}")?;
    writeln!(out, "workspace  {}", terminal::safe(&explained.workspace))?;
    writeln!(out, "sandbox    {}\n", explained.sandbox.words())?;
    let mut table = Table::new(["TOOL", "MAY", "LAYER", "WHY", "SETTING"]);
    for tool in &explained.tools {
        table.row([
            tool.tool.to_owned(),
            tool.verdict.word().to_owned(),
            tool.layer.name().to_owned(),
            terminal::safe(&tool.reason).to_string(),
            tool.setting.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    write!(out, "{table}")?;
    Ok(Exit::Success)
}

fn to_json(explained: &Explanation, source: &str) -> serde_json::Value {
    let tools = explained.tools.iter().map(|tool| {
        json!({
            "tool": tool.tool,
            "verdict": tool.verdict.word(),
            "layer": tool.layer.name(),
            "reason": tool.reason,
            "setting": tool.setting,
        })
    });
    json!({
        "workspace": explained.workspace,
        "sandboxed": explained.sandbox.is_on(),
        "sandbox": explained.sandbox.words(),
        "source": source,
        "tools": tools.collect::<Vec<_>>(),
    })
}
