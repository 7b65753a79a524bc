//! Reads the settings of OpenClaw gateways. Runs of agents with `mode = "gateway"` are sessions in them.

use std::{collections::BTreeMap, path::PathBuf};

use platform_core::{
    code::{Code, Coded},
    id::{AccountId, GatewayAgentId, GatewayId, GatewayProvider},
    limit::{self, ByteSize, Millis},
};
use serde::{Deserialize, Serialize};

use super::{
    Agent, Execution, Image, SectionName, Serves, Settings, agents::image, sandbox::MIN_FILE_SYSTEM,
};
use crate::config::{About, Section, ValidationError, settings, written_as_word};

settings! {
    /// `[gateways.NAME]`
    #[derive(Debug, Clone)]
    pub struct Gateway read from section {
        /// Address: `ws://host:port`, `wss://host:port` or `unix:/path`. Absent: `sluice gateway up` runs it in a
        /// container without a network.
        pub url: Option<String> => optional(),
        /// File with its token and nothing else. `sluice gateway up` creates it for a managed gateway.
        pub token_file: Option<PathBuf> => optional(),
        /// File with the key that identifies this client, which a gateway on another host requires. `sluice gateway
        /// pair` makes it.
        pub device_key_file: Option<PathBuf> => optional(),
        /// PEM file of the CA certificates that are trusted with `wss:`, and no others; the system's if absent.
        pub ca_file: Option<PathBuf> => optional(),
        /// Way in which the gateway's calls are matched to runs.
        pub attribution: Attribution = section
            .field(
                "attribution",
                "Attribution of its calls to runs: `trace`, by a trace id (tested with OpenClaw from 2026.8.2); `slot`, by a provider of its own (from 2026.2.6-3); `headers`, by `outboundHeaders` (patched gateways); `plugin`, by our plugin (from 2026.9.5).",
            )
            .or(Attribution::Trace),
        /// With `slot`: file with the slots in its configuration, a line each of 32 hexadecimal digits. `sluice gateway
        /// up` creates it for a managed gateway.
        pub slots_file: Option<PathBuf> => optional(),
        /// Provider in the gateway's configuration through which it calls models.
        pub provider: String = read_provider(section),
        /// The only account that has sessions there. Without one the gateway is shared, and its agents may have no tool
        /// that executes or reads files.
        pub account: Option<AccountId> => optional(),
        /// Asks people about commands of its agents, in a gateway with a `url`. It has to grant `operator.approvals`. A
        /// managed gateway always asks.
        pub approvals: bool => or(false),
        /// Active sessions at a time; others wait.
        pub max_concurrent_sessions: u32 => or(limit::gateway::SESSIONS),
        /// Settings of a managed gateway's container.
        pub managed: ManagedSettings = ManagedSettings::read(section),
    }
}

settings! {
    /// Settings of the container of a managed gateway, which `sluice gateway up` runs.
    #[derive(Debug, Clone)]
    pub struct ManagedSettings read from section {
        /// Image of the container.
        pub image: Image = image::read_or(section, "sluicegate/sandbox-openclaw:latest"),
        /// Agents in the gateway, by the names that entries of `[agents]` may give.
        pub agents: Vec<String> = read_agents(section),
        /// Tools that its agents have; if absent those that read, write and execute where it has an `account`, and none
        /// of them where it is shared.
        pub tools: Option<Vec<String>> => list(),
        /// Memory, swap included.
        pub memory: ByteSize => at_least(&limit::sandbox::LEAST_MEMORY).or(limit::gateway::MEMORY),
        /// Processes and threads.
        pub pids: u32 => or(limit::gateway::PIDS),
        /// Processor time, in thousandths of a core.
        pub milli_cpu: u32 => at_least(&limit::sandbox::LEAST_MILLI_CPU).or(limit::sandbox::MILLI_CPU),
        /// Size of its file system for conversations and its agents' files, fixed when it is created.
        pub disk: ByteSize = read_disk(section),
        /// Grace for its sessions when it is stopped; with `0s` they are cut at once.
        pub drain_timeout: Millis => may_be_zero().or(limit::gateway::DRAIN),
    }
}

/// Way in which calls of a gateway are matched to runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// The trace id that is sent with the turn. OpenClaw from 2026.8.2 passes it to every call of a session's turn.
    Trace,
    /// The path of a provider that belongs to one run until the run ends. Tested with OpenClaw from 2026.2.6-3.
    Slot,
    /// The run's token in `outboundHeaders` of the turn. A patched gateway sends it with every call.
    Headers,
    /// The run's token, which Sluicegate's plugin in the gateway sends with every call.
    Plugin,
}

written_as_word!(Attribution { Trace: "trace", Slot: "slot", Headers: "headers", Plugin: "plugin" });

/// Separator between the name of a gateway's provider and the number of a slot.
const SLOT_SUFFIX: &str = "-s";

/// Settings that apply to managed gateways only.
const MANAGED_FIELDS: [&str; 8] =
    ["image", "agents", "tools", "memory", "pids", "milli_cpu", "disk", "drain_timeout"];

/// Error for a name that no gateway has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no [gateways.{name}]; there are: {known}")]
pub struct NoGateway {
    name: String,
    known: String,
}

impl Coded for NoGateway {
    fn code(&self) -> Code {
        Code::GatewayUnknown
    }
}

impl NoGateway {
    /// Returns the error that `name` is not among the `known` gateways.
    pub fn among<'k>(known: impl IntoIterator<Item = &'k GatewayId>, name: &str) -> Self {
        let known: Vec<_> = known.into_iter().map(GatewayId::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Self { name: name.to_owned(), known }
    }
}

/// Agent of a gateway that is used if none is named.
pub const MAIN: &str = "main";

pub(super) fn read(root: &Section<'_>) -> BTreeMap<GatewayId, Gateway> {
    let read = |id: &str, section: &Section<'_>| {
        let gateway = Gateway::section(section);
        let id = GatewayId::parse(id).map_err(|error| section.reject_itself(error.to_string())).ok()?;
        Some((id, gateway))
    };
    root.each(
        SectionName::Gateways.name(),
        "OpenClaw gateways, in which runs are sessions. The table's name is the gateway's.",
        read,
    )
    .into_iter()
    .flatten()
    .collect()
}

impl Gateway {
    fn section(section: &Section<'_>) -> Self {
        let gateway = Self::read(section);
        if gateway.url.is_some() {
            let ignored = MANAGED_FIELDS.into_iter().filter(|name| section.has(name));
            ignored.for_each(|name| {
                section.reject(
                    name,
                    "it is of a gateway that runs here, which one with a `url` does not".to_owned(),
                );
            });
        }
        gateway
    }

    /// Returns whether this is a managed gateway, which `sluice gateway up` runs without a network.
    #[must_use]
    pub const fn is_managed(&self) -> bool {
        self.url.is_none()
    }

    /// Returns the agents that the configuration describes. Of a gateway elsewhere, they are unknown.
    #[must_use]
    pub fn fixed_agents(&self) -> &[String] {
        if self.is_managed() { &self.managed.agents } else { &[] }
    }

    /// Returns whether the configuration describes the agent `id`.
    #[must_use]
    pub fn has_fixed_agent(&self, id: &str) -> bool {
        self.fixed_agents().iter().any(|agent| agent == id)
    }

    /// Returns the provider in its configuration that has slot number `slot`.
    #[must_use]
    pub fn slot_provider(&self, slot: usize) -> String {
        format!("{}{SLOT_SUFFIX}{slot}", self.provider)
    }

    /// Returns whether `provider` is the one through which the gateway calls models, or has one of its slots.
    #[must_use]
    pub fn has_provider(&self, provider: &str) -> bool {
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        provider
            .strip_prefix(self.provider.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.strip_prefix(SLOT_SUFFIX).is_some_and(is_number))
    }

    /// Returns whether runs of `account` may be its sessions.
    #[must_use]
    pub fn serves(&self, account: &AccountId) -> bool {
        self.account.as_ref().is_none_or(|own| own == account)
    }
}

fn read_provider(section: &Section<'_>) -> String {
    const NAME: &str = "provider";
    let doc = "The provider in its configuration through which it calls models.";
    let provider = section.field(NAME, doc).or("cogni".to_owned());
    if let Err(invalid) = GatewayProvider::parse(&provider) {
        section.reject(NAME, invalid.to_string());
    }
    provider
}

fn read_disk(section: &Section<'_>) -> ByteSize {
    const NAME: &str = "disk";
    let doc = "Disk space for its conversations and its agents' files together. An existing file system keeps its size until `sluice gateway down NAME --purge`, which removes its conversations, and `up`.";
    section.field(NAME, doc).at_least(&MIN_FILE_SYSTEM).or(limit::gateway::DISK)
}

/// Reads the agents in a gateway.
fn read_agents(section: &Section<'_>) -> Vec<String> {
    const NAME: &str = "agents";
    let agents = section
        .field(NAME, "Agents in it, which entries of `[agents]` name as their `gateway_agent`.")
        .at_least(&1u64)
        .list_or(vec![MAIN.to_owned()]);
    let invalid = agents.iter().filter_map(|agent| GatewayAgentId::parse(agent).err());
    invalid.for_each(|error| section.reject(NAME, error.to_string()));
    agents
}

/// Returns conflicts between gateways and other settings.
pub(super) fn errors(settings: &Settings) -> Vec<ValidationError> {
    let gateways = settings.gateways.iter().flat_map(|(id, gateway)| {
        let about = About::Setting(format!("gateways.{id}"));
        let error = move |problem| ValidationError { about: about.clone(), problem };
        problems_of_gateway(gateway, settings).into_iter().map(error)
    });
    let agents = settings.agents.iter().filter(|(_, agent)| agent.mode == Execution::Gateway);
    let agents = agents.flat_map(|(id, agent)| {
        let about = About::Setting(format!("agents.{id}"));
        problem_of_agent(agent, settings).map(|problem| ValidationError { about, problem })
    });
    gateways.chain(agents).collect()
}

fn problems_of_gateway(gateway: &Gateway, settings: &Settings) -> Vec<String> {
    let proxy = &settings.proxy;
    let unmet_needs = [
        (proxy.listen.is_none(), "there is no `proxy.listen` that it could call models on"),
        (
            proxy.listen.is_some() && proxy.listen_serves == Serves::Clients,
            "`proxy.listen_serves` lets no gateway call models",
        ),
        (gateway.token_file.is_none(), "it needs a `token_file`"),
        (
            gateway.attribution == Attribution::Slot && gateway.slots_file.is_none(),
            "attribution by slots needs a `slots_file`",
        ),
    ];
    let unmet_needs = unmet_needs.into_iter().filter(|(is_unmet, _)| *is_unmet && !gateway.is_managed());
    let unmanaged = unmet_needs.map(|(_, problem)| format!("it is not run here: {problem}"));
    let sends_tokens = matches!(gateway.attribution, Attribution::Headers | Attribution::Plugin);
    let unsigned = (sends_tokens && proxy.token_secrets_file.is_none()).then(|| {
        "its calls are to be known by their runs' tokens, which are signed with the first secret in `proxy.token_secrets_file`: there is none".to_owned()
    });
    unmanaged.chain(unsigned).collect()
}

fn problem_of_agent(agent: &Agent, settings: &Settings) -> Option<String> {
    let unknown = agent.gateways.iter().find(|id| !settings.gateways.contains_key(*id));
    match unknown {
        Some(id) => Some(NoGateway::among(settings.gateways.keys(), id.as_str()).to_string()),
        None if agent.gateways.is_empty() => {
            Some("its mode is `gateway`, and it names none: `gateways = [\"NAME\"]`".to_owned())
        }
        None => {
            let lacks_agent = |id: &&GatewayId| {
                let gateway = settings.gateways.get(*id);
                gateway.is_some_and(|gateway| {
                    gateway.is_managed() && !gateway.has_fixed_agent(&agent.gateway_agent)
                })
            };
            let gateway = agent.gateways.iter().find(lacks_agent)?;
            Some(format!(
                "[gateways.{gateway}] has no agent `{}`: name it in its `agents`",
                agent.gateway_agent
            ))
        }
    }
}
