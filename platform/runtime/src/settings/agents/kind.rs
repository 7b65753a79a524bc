//! What kinds of agents there are: how one is run, what it finds, and what it says.

use serde::{Deserialize, Serialize};

use super::DEFAULT_AGENT;
use crate::config::{Section, written_as_word};

/// All that says what kind an agent is of.
pub(super) struct Kind {
    pub(super) mode: Execution,
    pub(super) workspace: WorkspaceSetup,
    pub(super) protocol: Protocol,
    pub(super) stream: Stream,
}

impl Kind {
    /// That of an entry; `stream` if it does not say what is streamed.
    pub(super) fn section(section: &Section<'_>, stream: Stream) -> Self {
        let field = |name, doc| section.field(name, doc);
        Self {
            mode: field(
                "mode",
                "How it is run: `ephemeral`, in a container of its own for each run; `gateway`, as a session of one of its `gateways`.",
            )
            .or(Execution::Ephemeral),
            workspace: field(
                "workspace",
                "What is in its workspace when it starts: `conversation`, the messages before its turn, in `.cogni`.",
            )
            .or(WorkspaceSetup::Conversation),
            protocol: field("protocol", "What the program prints on stdout: `envelope` or `text`.")
                .or(Protocol::Envelope),
            stream: field(
                "stream",
                "What models stream to it: `answer`, pieces of its answer; `progress`, only a sign that it works. `answer` for `sandbox:agent` if absent.",
            )
            .or(stream),
        }
    }
}

/// Settings of a container of its own, which a session of a gateway does not have.
const OF_CONTAINERS: [&str; 12] = [
    "image",
    "argv",
    "environment",
    "volumes",
    "workspace",
    "disk",
    "protocol",
    "memory",
    "pids",
    "milli_cpu",
    "output",
    "warm",
];
/// Settings of a session.
const OF_SESSIONS: [&str; 2] = ["gateways", "gateway_agent"];
/// Settings that an agent other than the one that ships says itself.
const OWN: [&str; 2] = ["image", "argv"];

/// Reports settings that have no effect on an agent that is run in this way.
pub(super) fn refuse_ignored(section: &Section<'_>, mode: Execution) {
    let (ignored, why): (&[&str], _) = match mode {
        Execution::Gateway => (
            &OF_CONTAINERS,
            "a session has no container of its own; what its gateway has is said in [gateways.NAME]",
        ),
        Execution::Ephemeral => {
            (&OF_SESSIONS, "a container for each run belongs to no gateway; `mode = \"gateway\"` does")
        }
    };
    for name in ignored.iter().filter(|name| section.has(name)) {
        section.reject(name, format!("has no effect with `mode = \"{}\"`: {why}; leave it out", mode.word()));
    }
}

/// Reports what an agent other than the one that ships does not say. By default another program than it means would run.
pub(super) fn refuse_missing(section: &Section<'_>, mode: Execution) {
    if mode == Execution::Ephemeral {
        for name in OWN.into_iter().filter(|name| !section.has(name)) {
            section.reject(
                name,
                format!("is missing: only `{DEFAULT_AGENT}` has one by default; say which is meant"),
            );
        }
    }
}

/// How an agent is run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Execution {
    /// In a container of its own for each run.
    #[default]
    Ephemeral,
    /// As a session of a gateway that runs for long.
    Gateway,
}

written_as_word!(Execution { Ephemeral: "ephemeral", Gateway: "gateway" });

impl Execution {
    /// As it is written.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ephemeral => "ephemeral",
            Self::Gateway => "gateway",
        }
    }
}

/// What is in an agent's workspace when it starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkspaceSetup {
    /// The messages before its turn.
    #[default]
    Conversation,
}

written_as_word!(WorkspaceSetup { Conversation: "conversation" });

/// What an agent's program prints on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// One JSON envelope: `payloads[]`, `meta{durationMs, error}`.
    Envelope,
    /// The answer itself.
    Text,
}

written_as_word!(Protocol { Envelope: "envelope", Text: "text" });

/// What the text is that models stream to an agent, for whoever watches its run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Pieces of its answer: it asks once, and passes on what comes.
    Answer,
    /// A sign that it works: drafts, plans, what tools are to be given.
    #[default]
    Progress,
}

written_as_word!(Stream { Answer: "answer", Progress: "progress" });
