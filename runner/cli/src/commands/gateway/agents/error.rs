//! Names the reasons why a command does not change an agent of a gateway.

use std::{io, path::PathBuf};

use platform_core::{
    code::{Code, Coded},
    invalid::InvalidValue,
};
use runner_store::{GatewayAgent, GatewayAgentKey};

/// Reason why a command does not change an agent.
#[derive(Debug, thiserror::Error)]
pub(super) enum AgentError {
    /// Another agent has the id.
    #[error("{} has an agent `{}` already: {}; choose a name with another id", .0.agent.key.gateway, .0.agent.key.agent, .0.agent.settings.name)]
    Exists(Box<GatewayAgent>),
    /// The gateway has too many agents.
    #[error("the gateway has {0} agents, and takes no more: remove one with `sluice gateway agents rm`")]
    TooMany(u32),
    /// The configuration describes the agent.
    #[error("`agents` of [gateways.{}] describes `{}`: change the configuration, or make another agent", .0.gateway, .0.agent)]
    Fixed(GatewayAgentKey),
    /// The gateway lacks the agent.
    #[error("{} has no agent `{}` that was made here: `sluice gateway agents ls` lists them", .0.gateway, .0.agent)]
    Unknown(GatewayAgentKey),
    /// The agent was changed meanwhile.
    #[error("another command or the dashboard has changed {0} meanwhile: run the command again")]
    Changed(GatewayAgentKey),
    /// The gateway has not got the agent.
    #[error("{} has not got {}: {problem}; it is tried again: sluice gateway agents ls {}", key.gateway, key.agent, key.gateway)]
    NotApplied {
        /// The agent.
        key: GatewayAgentKey,
        /// Reason.
        problem: String,
    },
    /// A gateway's agent has no such file.
    #[error("there is no behaviour file `{0}`: write AGENTS.md, SOUL.md, USER.md or MEMORY.md")]
    NoSuchFile(String),
    /// The text cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Path of the text.
        path: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// People could not read the text as it is.
    #[error("{}: {fault}", path.display())]
    Text {
        /// Path of the text.
        path: PathBuf,
        /// Fault of the text.
        fault: InvalidValue,
    },
    /// There are too many allowed commands.
    #[error("an agent has at most 200 commands that it runs without asking")]
    TooManyCommands,
}

impl Coded for AgentError {
    fn code(&self) -> Code {
        match self {
            Self::Exists(_) => Code::GatewayAgentExists,
            Self::TooMany(_) => Code::GatewayAgentsExhausted,
            Self::Fixed(_) => Code::GatewayAgentFixed,
            Self::Unknown(_) => Code::GatewayAgentUnknown,
            Self::Changed(_) => Code::GatewayAgentChanged,
            Self::NotApplied { .. } => Code::GatewayAgentNotReady,
            Self::NoSuchFile(_) | Self::Unreadable { .. } | Self::Text { .. } | Self::TooManyCommands => {
                Code::Usage
            }
        }
    }
}
