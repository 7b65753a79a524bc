//! `sluice agents`

use std::io::{self, Write};

use platform_runtime::settings::DEFAULT_AGENT;
use serde_json::json;

use super::{Context, Error, exit::Exit, table::Table};
use crate::sandbox::docker::Docker;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

pub(super) async fn agents(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let agents = &context.settings.agents;
    let mut out = io::stdout();
    if arguments.json {
        let list: Vec<_> = agents
            .iter()
            .map(|(id, agent)| json!({ "agentId": id, "graphId": id, "name": agent.name, "description": agent.description }))
            .collect();
        writeln!(out, "{}", json!({ "agents": list, "defaultAgentId": DEFAULT_AGENT }))?;
        return Ok(Exit::Success);
    }
    let docker = Docker::connect(&context.settings.sandbox.docker_socket).await.ok();
    let mut table = Table::new(["AGENT", "NAME", "IMAGE", "CAN RUN", "LIMITS"]);
    for (id, agent) in agents {
        let can_run = match &docker {
            Some(docker) => match docker.has_image(&agent.image).await {
                Ok(true) => "yes",
                Ok(false) => "no: image is not on this host",
                Err(_) => "unknown: Docker failed",
            },
            None => "no: Docker does not answer",
        };
        let limits = format!("{}, {}", agent.runtime, agent.memory);
        table.row([id.to_string(), agent.name.clone(), agent.image.clone(), can_run.to_owned(), limits]);
    }
    write!(out, "{table}")?;
    Ok(Exit::Success)
}
