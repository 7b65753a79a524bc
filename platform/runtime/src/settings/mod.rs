//! Reads all settings of both programs from one file.
//!
//! Each program uses its own sections but reads the whole file. So the first program that starts reports an error in
//! any section.

mod agents;
mod agents_repository;
mod api;
mod billing;
mod budgets;
mod connections;
mod exposure;
mod gateway_volumes;
pub mod gateways;
mod github;
mod journal;
mod models;
mod network;
mod origin;
mod prices;
mod proxy;
mod query_template;
mod query_tokens;
mod relay;
mod runs;
mod sandbox;
mod section_name;
mod store;
mod telemetry;
#[cfg(test)]
mod tests;
pub mod token_secrets;
mod tool_metrics;
mod tool_servers;
mod tools;
mod upstream;
mod worker;

use std::collections::BTreeMap;

use platform_core::{
    id::{AgentId, GatewayId, ModelName, RunId},
    tariff::{ANY_MODEL, Tariff},
};

pub use self::{
    agents::{
        Agent, DEFAULT_AGENT, Execution, Filling, Image, InvalidImage, InvalidTemplate, OpenclawAgent,
        OpenclawTool, Protocol, Stream, Template, Volume, WorkspaceSetup, is_optional,
    },
    agents_repository::AgentsRepository,
    api::{Api, ApiTls},
    billing::Billing,
    budgets::{Account, Accounts},
    connections::{ClientAuthentication, ConnectionSettings, KeyFile, OAuthProvider},
    gateways::{Attribution, Gateway, ManagedSettings, NoGateway},
    github::{GitHub, GitHubApp, ServiceUrl},
    journal::{Durability, Journal},
    models::ModelLimits,
    network::{InvalidNetwork, IpNetwork},
    origin::{InvalidOrigin, WebOrigin},
    proxy::{Connections, Proxy, Serves},
    query_template::{ParameterKind, QueryTemplate, RenderError},
    relay::Relay,
    runs::StaticRun,
    sandbox::{Sandbox, WorkspaceBounds, WorkspaceForm},
    section_name::{OwningProgram, SectionName},
    store::Store,
    telemetry::Telemetry,
    tool_metrics::{MetricTemplate, ToolMetrics},
    tool_servers::{ServerTransport, StdioServer, ToolServer},
    tools::Tools,
    upstream::{BaseUrl, Scheme, Upstream},
    worker::Worker,
};
use crate::config::{self, ConfigErrors, EffectiveSetting, Sources, ValidationError, Values, settings};

settings! {
    /// The whole configuration.
    #[derive(Debug, Clone)]
    pub struct Settings section from root {
        /// The model API that calls are forwarded to.
        pub upstream: Upstream => table(Upstream::section),
        /// The data plane, `sluice-proxy`.
        pub proxy: Proxy => table(Proxy::section),
        /// The record of every call.
        pub journal: Journal => table(Journal::read),
        /// Sandboxes on this host.
        pub sandbox: Sandbox => table(Sandbox::section),
        /// Storage of runs.
        pub store: Store => table(Store::section),
        /// Limits and intervals of `sluice up`.
        pub worker: Worker => table(Worker::read),
        /// The HTTP API of `sluice up`.
        pub api: Api => table(Api::section),
        /// Receipts of calls.
        pub billing: Billing => table(Billing::read),
        /// Relay of agents' commits to branches of their repositories.
        pub relay: Relay => table(Relay::read),
        /// Credentials and pull requests of the relay.
        pub github: GitHub => table(GitHub::section),
        /// Repository of the configuration, which proposals of agents go to.
        pub agents_repository: Option<AgentsRepository> => table(AgentsRepository::section),
        /// Export of traces.
        pub telemetry: Telemetry => table(Telemetry::section),
        /// Host tools, which run on the host for agents.
        pub tools: Tools => table(Tools::read),
        /// Credentials of accounts at providers.
        pub connections: ConnectionSettings = ConnectionSettings::read(root),
        /// Agents that can run in sandboxes and gateways.
        pub agents: BTreeMap<AgentId, Agent> = agents::read(root),
        /// Gateways in which runs can be sessions.
        pub gateways: BTreeMap<GatewayId, Gateway> = gateways::read(root),
        /// Limits of accounts.
        pub accounts: Accounts = budgets::accounts(root),
        /// Prices of models, by the name in the request; `*` for all others.
        pub prices: BTreeMap<String, Tariff> = prices::read(root),
        /// Tokens that models take and give, by the name in the request.
        pub models: BTreeMap<String, ModelLimits> = models::read(root),
        /// Runs that the proxy opens on its own.
        pub runs: BTreeMap<RunId, StaticRun> = runs::read(root),
    }
}

impl Settings {
    /// Returns the models that the configuration names, some of them more than once.
    pub fn named_models(&self) -> impl Iterator<Item = &str> {
        let agents = self.agents.values();
        let of_agents =
            agents.flat_map(|agent| agent.models.iter().map(ModelName::as_str).chain(agent.model.as_deref()));
        let priced = self.prices.keys().map(String::as_str).filter(|name| *name != ANY_MODEL);
        let free = self.billing.free_models.iter().map(ModelName::as_str);
        let limited = self.models.keys().map(String::as_str);
        of_agents.chain(priced).chain(free).chain(limited).chain(self.upstream.default_model.as_deref())
    }

    /// Reads the settings.
    ///
    /// # Errors
    /// All errors together.
    pub fn read(sources: &Sources) -> Result<Self, ConfigErrors> {
        Self::read_and(sources, |_settings| Ok(())).map(|(settings, _values, ())| settings)
    }

    /// Reads the settings. Also returns the value of each one, and the result of `check`, which checks the files and
    /// addresses that they name.
    ///
    /// # Errors
    /// All errors together, those that `check` reports among them.
    pub fn read_and<T>(
        sources: &Sources,
        check: impl FnOnce(&Self) -> Result<T, Vec<ValidationError>>,
    ) -> Result<(Self, Values, T), ConfigErrors> {
        config::read(sources, Self::section, |settings| {
            let checked = check(settings);
            let mut errors = runs::errors(settings);
            errors.extend(gateways::errors(settings));
            errors.extend(gateway_volumes::errors(settings));
            errors.extend(budgets::errors(settings));
            errors.extend(billing::errors(settings));
            errors.extend(proxy::errors(settings));
            match checked {
                Ok(result) if errors.is_empty() => return Ok(result),
                Ok(_) => {}
                Err(more) => errors.extend(more),
            }
            Err(errors)
        })
    }

    /// Returns the value and the source of every setting in `sources`, which have to be valid.
    #[must_use]
    pub fn explain(sources: &Sources) -> Vec<EffectiveSetting> {
        config::explain(sources, Self::section)
    }

    /// Returns the JSON Schema of the file.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        config::json_schema("Sluicegate configuration", Self::section)
    }

    /// Returns the gateway of this name and its id, both borrowed from the settings.
    ///
    /// # Errors
    /// If no gateway has this name.
    pub fn gateway(&self, id: &GatewayId) -> Result<(&GatewayId, &Gateway), NoGateway> {
        let found = self.gateways.get_key_value(id);
        found.ok_or_else(|| NoGateway::among(self.gateways.keys(), id.as_str()))
    }

    /// Returns the volumes that a managed gateway mounts: those of all agents that are sessions in it, each once.
    #[must_use]
    pub fn gateway_volumes(&self, id: &GatewayId) -> Vec<Volume> {
        gateway_volumes::of(self, id).into_iter().map(|(_agent, volume)| volume.clone()).collect()
    }
}
