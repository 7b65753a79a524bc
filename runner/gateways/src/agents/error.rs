//! Names the reasons why a gateway does not get an agent. People read them beside the agent.

use platform_core::id::{GatewayAgentId, GatewayId};

use crate::managed;

/// Reason why a step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    /// The managed gateway does not run.
    #[error("the gateway is down: start it with `sluice gateway up {0}`")]
    Down(GatewayId),
    /// The managed gateway cannot be given its configuration.
    #[error(transparent)]
    Managed(#[from] managed::Error),
    /// The gateway cannot be reached.
    #[error(transparent)]
    Unreachable(#[from] crate::Error),
    /// The gateway refused a call, or did not answer it.
    #[error(transparent)]
    Refused(#[from] gateway_bridge::Error),
    /// The gateway did not take its new configuration in time.
    #[error("the gateway has not taken its new configuration after {seconds} s{}", .issue.as_ref().map_or_else(String::new, |issue| format!(": {issue}")))]
    NotTaken {
        /// Time waited.
        seconds: u64,
        /// Fault that the gateway finds in the configuration.
        issue: Option<String>,
    },
    /// The answer to a method lacks what it should have.
    #[error("the gateway's answer to {method} cannot be read")]
    Answer {
        /// The method.
        method: &'static str,
    },
    /// The gateway gave the agent another id.
    #[error(
        "the gateway made an agent `{given}` in place of `{wanted}`: remove it there, and choose another name"
    )]
    OtherId {
        /// Id that the gateway gave.
        given: String,
        /// Id that was wanted.
        wanted: GatewayAgentId,
    },
    /// The version cannot create agents.
    #[error(
        "OpenClaw {version} creates no agents on request: add `{agent}` to `agents.list` of its configuration, or update it"
    )]
    CreatesNone {
        /// Version that the gateway reports.
        version: String,
        /// The agent.
        agent: GatewayAgentId,
    },
    /// The change would write a text that stands for a secret.
    #[error(
        "the gateway hides a value of its `agents.list`, which a change would replace: set the agent's tools in its configuration"
    )]
    Hidden,
    /// Another client changed the same settings again and again.
    #[error("another client changes the gateway's settings at the same time: it is tried again")]
    Contended,
}
