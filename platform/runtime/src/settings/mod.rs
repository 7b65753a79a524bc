//! All settings there are, of both programs, as one file holds them.
//!
//! Each program uses its own sections, but reads the whole file, so that a mistake anywhere is found by
//! whichever starts first.

mod agents;
mod api;
mod budgets;
mod exposure;
pub mod gateways;
mod journal;
mod part;
mod proxy;
mod runs;
mod sandbox;
mod store;
mod telemetry;
#[cfg(test)]
mod tests;
pub mod token_secrets;
mod upstream;
mod worker;

use std::collections::BTreeMap;

use platform_core::{
    budget::Price,
    id::{AgentId, GatewayId, RunId},
};

pub use self::{
    agents::{
        Agent, DEFAULT_AGENT, Execution, Filling, Image, InvalidImage, InvalidTemplate, Protocol, Stream,
        Template, Volume, WorkspaceSetup,
    },
    api::Api,
    budgets::{Account, Accounts},
    gateways::{Attribution, Gateway, NoGateway, Sealed},
    journal::{Durability, Journal},
    part::{Owner, Part},
    proxy::{Connections, Proxy, Serves},
    runs::StaticRun,
    sandbox::{Sandbox, WorkspaceForm},
    store::Store,
    telemetry::Telemetry,
    upstream::{BaseUrl, Scheme, Upstream},
    worker::Worker,
};
use crate::config::{self, Mistakes, Objection, Section, Sources, Values};

/// The whole configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The model API that calls are forwarded to.
    pub upstream: Upstream,
    /// The data plane.
    pub proxy: Proxy,
    /// The record of every call.
    pub journal: Journal,
    /// Where sandboxes run.
    pub sandbox: Sandbox,
    /// Where runs are kept.
    pub store: Store,
    /// How they are worked on.
    pub worker: Worker,
    /// The HTTP API.
    pub api: Api,
    /// Who is told of traces.
    pub telemetry: Telemetry,
    /// What can run in them.
    pub agents: BTreeMap<AgentId, Agent>,
    /// Where runs may be sessions.
    pub gateways: BTreeMap<GatewayId, Gateway>,
    /// What accounts may use.
    pub accounts: Accounts,
    /// What models cost, by the name they are asked for by; `*` for all others.
    pub prices: BTreeMap<String, Price>,
    /// Runs that the proxy opens by itself.
    pub runs: BTreeMap<RunId, StaticRun>,
}

impl Settings {
    /// Reads them.
    ///
    /// # Errors
    /// All mistakes at once.
    pub fn read(sources: &Sources) -> Result<Self, Mistakes> {
        Self::read_and(sources, |_settings| Ok(())).map(|(settings, _values, ())| settings)
    }

    /// Reads them, together with what each was found to be, and with what `look` finds where they lead to.
    ///
    /// # Errors
    /// All mistakes at once, those that `look` objects to among them.
    pub fn read_and<F>(
        sources: &Sources,
        look: impl FnOnce(&Self) -> Result<F, Vec<Objection>>,
    ) -> Result<(Self, Values, F), Mistakes> {
        config::read(sources, Self::section, |settings| {
            let (mut objections, looked) = (runs::objections(settings), look(settings));
            objections.extend(gateways::objections(settings));
            objections.extend(budgets::objections(settings));
            objections.extend(proxy::objections(settings));
            match looked {
                Ok(found) if objections.is_empty() => return Ok(found),
                Ok(_) => {}
                Err(more) => objections.extend(more),
            }
            Err(objections)
        })
    }

    /// JSON Schema of the file.
    #[must_use]
    pub fn json_schema() -> serde_json::Value {
        config::json_schema("Sluicegate configuration", Self::section)
    }

    /// The gateway of this name, which also lives as long as the settings.
    ///
    /// # Errors
    /// If there is none.
    pub fn gateway(&self, id: &GatewayId) -> Result<(&GatewayId, &Gateway), NoGateway> {
        let found = self.gateways.get_key_value(id);
        found.ok_or_else(|| NoGateway::among(self.gateways.keys(), id.as_str()))
    }

    fn section(root: &Section<'_>) -> Self {
        Self {
            upstream: root.section(
                Part::Upstream.name(),
                "The model API that calls are forwarded to.",
                Upstream::section,
            ),
            proxy: root.section(Part::Proxy.name(), "The data plane, `sluice-proxy`.", Proxy::section),
            journal: root.section(Part::Journal.name(), "The record of every call.", Journal::section),
            sandbox: root.section(Part::Sandbox.name(), "Where sandboxes run.", Sandbox::section),
            store: root.section(
                Part::Store.name(),
                "Where the control plane keeps what it must not forget.",
                Store::section,
            ),
            worker: root.section(Part::Worker.name(), "How `sluice up` works on runs.", Worker::section),
            api: root.section(Part::Api.name(), "The HTTP API of `sluice up`.", Api::section),
            telemetry: root.section(Part::Telemetry.name(), "Who is told of traces.", Telemetry::section),
            agents: agents::read(root),
            gateways: gateways::read(root),
            accounts: budgets::accounts(root),
            prices: budgets::prices(root),
            runs: runs::read(root),
        }
    }
}
