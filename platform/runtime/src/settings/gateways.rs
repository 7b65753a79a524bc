//! OpenClaw gateways, in which runs of agents with `mode = "gateway"` are sessions.

use std::{collections::BTreeMap, path::PathBuf};

use platform_core::{
    id::{AccountId, GatewayId},
    limit::{self, ByteSize, Millis},
};
use serde::{Deserialize, Serialize};

use super::{Agent, Execution, Image, Serves, Settings, agents::image};
use crate::config::{About, Objection, Section, written_as_word};

/// `[gateways.NAME]`
#[derive(Debug, Clone)]
pub struct Gateway {
    /// Where it is; absent of one that `sluice gateway up` runs, without a network.
    pub url: Option<String>,
    /// File with its token and nothing else. One that `sluice gateway up` runs has a token made for it.
    pub token_file: Option<PathBuf>,
    /// File with the key of this client, for gateways that want to know the device. Made by `sluice gateway pair`.
    pub device_key_file: Option<PathBuf>,
    /// PEM file of the CA certificates that are trusted with `wss:`; those of the system if absent.
    pub ca_file: Option<PathBuf>,
    /// How its calls are known to be a run's.
    pub attribution: Attribution,
    /// File with the slots that its configuration has, a line each.
    pub slots_file: Option<PathBuf>,
    /// The provider in its configuration through which it calls models.
    pub provider: String,
    /// The account whose sessions it has. Without one it is shared, and its agents have no tool that executes or reads files.
    pub account: Option<AccountId>,
    /// Sessions at work at a time.
    pub sessions: u32,
    /// Of one that `sluice gateway up` runs.
    pub sealed: Sealed,
}

/// What the container of a gateway is that `sluice gateway up` runs.
#[derive(Debug, Clone)]
pub struct Sealed {
    /// Image of the container.
    pub image: Image,
    /// The agents in it, by the names that entries of `[agents]` may give.
    pub agents: Vec<String>,
    /// Tools that its agents have; what is sensible for its account if absent.
    pub tools: Option<Vec<String>>,
    /// Memory, swap included.
    pub memory: ByteSize,
    /// Processes and threads.
    pub pids: u32,
    /// Processor time, in thousandths of a core.
    pub milli_cpu: u32,
    /// How long its sessions may go on when it is stopped.
    pub drain: Millis,
}

/// How calls of a gateway are known to be a run's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribution {
    /// By the trace id that is sent with the order. OpenClaw from 2026.8 on passes it to every call of a session's turn.
    Trace,
    /// By the path of a provider that the run has for itself as long as it lasts. Any version.
    Slot,
    /// By the run's token in `outboundHeaders` of the order, which a patched gateway sends with every call.
    Headers,
    /// By the run's token, which our plugin in the gateway sends with every call.
    Plugin,
}

written_as_word!(Attribution { Trace: "trace", Slot: "slot", Headers: "headers", Plugin: "plugin" });

/// The agent of a gateway that is meant if nobody says.
pub const MAIN: &str = "main";

/// What names an agent of a gateway.
pub(super) const AGENT_RULE: &str = "1 to 64 of a-z, 0-9, `_` and `-`, the first a letter or digit";

/// Whether `text` names an agent of a gateway. Gateways make another name of anything else.
pub(super) fn is_agent(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=64).contains(&text.len())
        && plain(text.as_bytes()[0])
        && text.bytes().all(|byte| plain(byte) || matches!(byte, b'_' | b'-'))
}

pub(super) fn read(root: &Section<'_>) -> BTreeMap<GatewayId, Gateway> {
    let read = |id: &str, section: &Section<'_>| {
        let gateway = Gateway::section(section);
        let id = GatewayId::parse(id).map_err(|error| section.reject_itself(error.to_string())).ok()?;
        Some((id, gateway))
    };
    root.each(
        "gateways",
        "OpenClaw gateways, in which runs are sessions. The table's name is the gateway's.",
        read,
    )
    .into_iter()
    .flatten()
    .collect()
}

impl Gateway {
    /// Whether `sluice gateway up` runs it, without a network.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.url.is_none()
    }

    /// Whether runs of `account` may be sessions of it.
    #[must_use]
    pub fn serves(&self, account: &AccountId) -> bool {
        self.account.as_ref().is_none_or(|own| own == account)
    }

    fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        Self {
            url: field(
                "url",
                "Where it is: `ws://host:port`, `wss://host:port` or `unix:/path`. Absent: `sluice gateway up` runs it in a container without a network.",
            )
            .optional(),
            token_file: field("token_file", "File with its token and nothing else. Made where `sluice gateway up` runs it.")
                .optional(),
            device_key_file: field(
                "device_key_file",
                "File with the key that this client is known by, where the gateway wants that: off its own host. `sluice gateway pair` makes it.",
            )
            .optional(),
            ca_file: field("ca_file", "PEM file of the CA certificates that are trusted with `wss:`, and no others; the system's if absent.")
                .optional(),
            attribution: field(
                "attribution",
                "How its calls are known to be a run's: `trace`, by a trace id (OpenClaw from 2026.8); `slot`, by a provider of its own (any version); `headers`, by `outboundHeaders` (patched gateways); `plugin`, by our plugin.",
            )
            .or(Attribution::Trace),
            slots_file: field("slots_file", "With `slot`: file with the slots in its configuration, a line each of 32 hexadecimal digits. Made where `sluice gateway up` runs it.")
                .optional(),
            provider: field("provider", "The provider in its configuration through which it calls models.")
                .or("cogni".to_owned()),
            account: field(
                "account",
                "The one account whose sessions it has. Without one it is shared, and its agents may have no tool that executes or reads files.",
            )
            .optional(),
            sessions: field("sessions", "Sessions at work at a time; others wait.").or(limit::gateway::SESSIONS),
            sealed: Sealed::section(section),
        }
    }
}

impl Sealed {
    fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        Self {
            image: image::or(section, "sluicegate/sandbox-openclaw:latest"),
            agents: agents(section),
            tools: field("tools", "Tools that its agents have; if absent those that read, write and execute where it has an `account`, and none of them where it is shared.")
                .list(),
            memory: field("memory", "Memory, swap included.").or(limit::gateway::MEMORY),
            pids: field("pids", "Processes and threads.").or(limit::gateway::PIDS),
            milli_cpu: field("milli_cpu", "Processor time, in thousandths of a core.").or(limit::sandbox::MILLI_CPU),
            drain: field("drain", "How long its sessions may go on when it is stopped.").or(limit::gateway::DRAIN),
        }
    }
}

/// The agents in a gateway.
fn agents(section: &Section<'_>) -> Vec<String> {
    const NAME: &str = "agents";
    let agents = section
        .field(NAME, "Agents in it, which entries of `[agents]` name as their `gateway_agent`.")
        .list_or(vec![MAIN.to_owned()]);
    if agents.is_empty() || !agents.iter().all(|agent| is_agent(agent)) {
        section.reject(NAME, format!("there is at least one, and each is named by {AGENT_RULE}"));
    }
    agents
}

/// What is wrong with gateways beside other settings.
pub(super) fn objections(settings: &Settings) -> Vec<Objection> {
    let gateways = settings.gateways.iter().flat_map(|(id, gateway)| {
        let about = About::Setting(format!("gateways.{id}"));
        of_gateway(gateway, settings).map(|problem| Objection { about, problem })
    });
    let agents = settings.agents.iter().filter(|(_, agent)| agent.mode == Execution::Gateway);
    let agents = agents.flat_map(|(id, agent)| {
        let about = About::Setting(format!("agents.{id}"));
        of_agent(agent, settings).map(|problem| Objection { about, problem })
    });
    gateways.chain(agents).collect()
}

fn of_gateway(gateway: &Gateway, settings: &Settings) -> Option<String> {
    if gateway.is_sealed() {
        return None;
    }
    if settings.proxy.listen.is_none() {
        return Some(
            "it is not run here, and there is no `proxy.listen` that it could call models on".to_owned(),
        );
    }
    if settings.proxy.listen_serves == Serves::Clients {
        return Some("it is not run here, and `proxy.listen_serves` lets no gateway call models".to_owned());
    }
    if gateway.token_file.is_none() {
        return Some("it is not run here, and needs a `token_file`".to_owned());
    }
    let lacks_slots = gateway.attribution == Attribution::Slot && gateway.slots_file.is_none();
    lacks_slots.then(|| "it is not run here, and attribution by slots needs a `slots_file`".to_owned())
}

fn of_agent(agent: &Agent, settings: &Settings) -> Option<String> {
    let unknown = agent.gateways.iter().find(|id| !settings.gateways.contains_key(*id));
    match unknown {
        Some(id) => Some(format!("there is no [gateways.{id}]")),
        None if agent.gateways.is_empty() => {
            Some("its mode is `gateway`, and it names none: `gateways = [\"NAME\"]`".to_owned())
        }
        None => {
            let lacks = |id: &&GatewayId| {
                let gateway = settings.gateways.get(*id);
                gateway.is_some_and(|gateway| {
                    gateway.is_sealed() && !gateway.sealed.agents.contains(&agent.gateway_agent)
                })
            };
            let without = agent.gateways.iter().find(lacks)?;
            Some(format!(
                "[gateways.{without}] has no agent `{}`: name it in its `agents`",
                agent.gateway_agent
            ))
        }
    }
}
