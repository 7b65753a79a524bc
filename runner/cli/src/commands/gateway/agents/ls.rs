//! Implements `sluice gateway agents ls`.

use std::io::{self, Write};

use platform_core::id::GatewayId;
use platform_runtime::{settings::Gateway, terminal};
use runner_gateways::EffectiveCapabilities;
use runner_model::gateway_agent::Capabilities;
use runner_store::{GatewayAgent, Store};
use serde_json::{Value, json};

use super::{Context, Error, Exit, agent_json};
use crate::commands::table::Table;

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Only this gateway
    #[arg(value_name = "GATEWAY")]
    gateway: Option<GatewayId>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Agents of one gateway.
struct GatewayAgents<'s> {
    id: &'s GatewayId,
    gateway: &'s Gateway,
    made: Vec<GatewayAgent>,
}

pub(super) async fn ls(context: &Context, arguments: &Arguments) -> Result<Exit, Error> {
    if let Some(id) = &arguments.gateway {
        context.settings.gateway(id)?;
    }
    let store = context.store().await?;
    let listed = read(context, &store, arguments.gateway.as_ref()).await?;
    let mut out = io::stdout();
    if arguments.json {
        let agents: Vec<Value> = listed.iter().flat_map(GatewayAgents::to_json).collect();
        writeln!(out, "{}", terminal::safe_json(&json!({ "agents": agents }).to_string()))?;
        return Ok(Exit::Success);
    }
    let mut table = Table::new(["GATEWAY", "AGENT", "NAME", "COMMANDS", "WEB", "FILES", "STATE"]);
    listed.iter().for_each(|listed| listed.add_rows(&mut table));
    write!(out, "{table}")?;
    for stored in listed.iter().flat_map(|listed| &listed.made) {
        if let Some(problem) = &stored.problem {
            writeln!(io::stderr(), "{}: {}", stored.agent.key, terminal::safe(problem))?;
        }
    }
    Ok(Exit::Success)
}

async fn read<'s>(
    context: &'s Context,
    store: &Store,
    only: Option<&GatewayId>,
) -> Result<Vec<GatewayAgents<'s>>, Error> {
    let mut listed = Vec::new();
    for (id, gateway) in
        context.settings.gateways.iter().filter(|(id, _)| only.is_none_or(|only| only == *id))
    {
        listed.push(GatewayAgents { id, gateway, made: store.gateway_agents(id).await? });
    }
    Ok(listed)
}

impl GatewayAgents<'_> {
    fn to_json(&self) -> Vec<Value> {
        let fixed = self.gateway.fixed_agents().iter().map(
            |agent| json!({ "gateway": self.id, "id": agent, "source": "configuration", "state": "applied" }),
        );
        let made = self.made.iter().map(|stored| {
            let mut shown = agent_json(stored);
            shown["source"] = "stored".into();
            shown
        });
        fixed.chain(made).collect()
    }

    fn add_rows(&self, table: &mut Table<7>) {
        for agent in self.gateway.fixed_agents() {
            let [commands, web, files] = self.effective(&Capabilities::default());
            let row = [self.id.to_string(), agent.clone(), "-".to_owned(), commands, web, files];
            let [gateway, id, name, commands, web, files] = row;
            table.row([gateway, id, name, commands, web, files, "configured".to_owned()]);
        }
        for stored in &self.made {
            let [commands, web, files] = self.effective(&stored.agent.settings.capabilities);
            table.row([
                self.id.to_string(),
                stored.agent.key.agent.to_string(),
                terminal::safe(stored.agent.settings.name.as_str()).to_string(),
                commands,
                web,
                files,
                stored.state_word().to_owned(),
            ]);
        }
    }

    /// Returns what an agent may do in fact.
    fn effective(&self, wanted: &Capabilities) -> [String; 3] {
        let EffectiveCapabilities { commands, web, files } =
            EffectiveCapabilities::of(self.id.as_str(), self.gateway, wanted);
        [commands.value.word(), web.value.word(), files.value.word()].map(str::to_owned)
    }
}
