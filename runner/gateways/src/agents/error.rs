//! Names the reasons why a gateway does not get an agent. People read them beside the agent.

use platform_core::id::GatewayAgentId;

use crate::managed;

/// Reason why a step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    /// The managed gateway cannot be given its configuration. Only what a person can act on is told: causes name files.
    #[error("{}", told(.0))]
    Managed(#[from] managed::Error),
    /// The gateway cannot be reached.
    #[error("the gateway does not answer: `sluice gateway check` says what it lacks")]
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
        "the gateway made an agent `{given}` in place of `{wanted}`, and it was deleted: remove this one, and make one with another name"
    )]
    OtherId {
        /// Id that the gateway gave.
        given: String,
        /// Id that was wanted.
        wanted: GatewayAgentId,
    },
    /// No person can be asked about commands there.
    #[error("{0}, so the agent runs none: set `commands` to `off` or `auto`")]
    CannotAsk(&'static str),
    /// The gateway has an agent of this id that was not made here.
    #[error("the gateway has an agent `{0}` that was not made here: choose a name with another id")]
    Foreign(GatewayAgentId),
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

/// Returns what people are told of a managed gateway's error.
fn told(error: &managed::Error) -> String {
    match error {
        managed::Error::Down(_) | managed::Error::NeedsRestart { .. } => error.to_string(),
        _ => "the gateway cannot be given its configuration: the log of `sluice up` has the cause".to_owned(),
    }
}
