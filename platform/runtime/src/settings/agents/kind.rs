//! Reads the kind of an agent: how it is run, what its workspace holds, and what its output means.

use serde::{Deserialize, Serialize};

use super::DEFAULT_AGENT;
use crate::config::{Section, written_as_word};

/// Settings of a run's own container, which a session of a gateway does not have.
const CONTAINER_FIELDS: [&str; 21] = [
    "image",
    "argv",
    "environment",
    "openclaw_agents",
    "workspace",
    "prompt",
    "behaviour_dir",
    "disk",
    "repo",
    "base",
    "pull_request",
    "protocol",
    "memory",
    "pids",
    "milli_cpu",
    "tmp_size",
    "shm_size",
    "bridge_port",
    "output_capture_limit",
    "warm_pool_size",
    "keep",
];
/// Settings of a session of a gateway, which a run's own container does not have.
const SESSION_FIELDS: [&str; 2] = ["gateways", "gateway_agent"];
/// Settings that every agent that is not built in has to set.
const REQUIRED_FIELDS: [&str; 2] = ["image", "argv"];

/// Reports settings that have no effect on an agent with this mode.
pub(super) fn refuse_ignored(section: &Section<'_>, mode: Execution) {
    let (ignored, why): (&[&str], _) = match mode {
        Execution::Gateway => (
            &CONTAINER_FIELDS,
            "a session has no container of its own; what its gateway has is said in [gateways.NAME]",
        ),
        Execution::Ephemeral => {
            (&SESSION_FIELDS, "a container for each run belongs to no gateway; `mode = \"gateway\"` does")
        }
    };
    for name in ignored.iter().filter(|name| section.has(name)) {
        section.reject(name, format!("has no effect with `mode = \"{}\"`: {why}; leave it out", mode.word()));
    }
}

/// Reports the required settings that are missing from the entry of an agent that is not built in. Their
/// defaults would run another program than the operator meant.
pub(super) fn refuse_missing(section: &Section<'_>, mode: Execution) {
    if mode == Execution::Ephemeral {
        for name in REQUIRED_FIELDS.into_iter().filter(|name| !section.has(name)) {
            section.reject(
                name,
                format!("is missing: only built-in agents such as `{DEFAULT_AGENT}` have one by default; say which is meant"),
            );
        }
    }
}

/// Way in which an agent is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    /// In its own container for each run.
    #[default]
    Ephemeral,
    /// As a session of a long-running gateway.
    Gateway,
}

written_as_word!(Execution { Ephemeral: "ephemeral", Gateway: "gateway" });

impl Execution {
    /// Returns the mode as it is written.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ephemeral => "ephemeral",
            Self::Gateway => "gateway",
        }
    }
}

/// Workspace of an agent's runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceSetup {
    /// A new one for each run, with the messages before its turn.
    #[default]
    Conversation,
    /// The same one for all runs of a thread.
    Thread,
}

written_as_word!(WorkspaceSetup { Conversation: "conversation", Thread: "thread" });

/// Format of what an agent's program prints on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// A JSON envelope: `payloads[]`, `meta{durationMs, error}`.
    Envelope,
    /// A JSON object a line for each event: text, tool calls, their results, usage; a result or an error at the end.
    Events,
    /// The answer itself.
    Text,
}

written_as_word!(Protocol { Envelope: "envelope", Events: "events", Text: "text" });

/// Meaning of the text that models stream to an agent, for watchers of its run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Pieces of the answer: the agent makes one call and passes its text on.
    Answer,
    /// A sign of progress: drafts, plans, arguments of tools.
    #[default]
    Progress,
}

written_as_word!(Stream { Answer: "answer", Progress: "progress" });
