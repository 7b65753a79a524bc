//! Translates between the sessions that clients name and the threads that runs continue.
//!
//! A client's key is `agent:AGENT:KEY`. The key is that of a thread of the account, `main` for the main session. A session of
//! one run alone is `run/RUN`: no thread has a `/` in its key. The gateway's own names of sessions have the account in them,
//! and never leave.

use std::fmt;

use platform_core::id::{ExternalId, GatewayAgentId, RunId};
use runner_engine::thread::read_thread_key;

use super::refusal::SocketRefusal;

/// Key of the main session of an agent.
pub(super) const MAIN: &str = "main";
const AGENT: &str = "agent:";
const RUN: &str = "run/";

/// Session of an agent, as clients name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientSession {
    pub(super) agent: GatewayAgentId,
    pub(super) conversation: Conversation,
}

/// Runs that a session consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Conversation {
    /// Runs of a thread.
    Thread(ExternalId),
    /// A run without a thread.
    Single(RunId),
}

impl ClientSession {
    /// Returns the session of a run: that of its thread, if it has one.
    pub(super) fn of(agent: GatewayAgentId, thread: Option<ExternalId>, run_id: &RunId) -> Self {
        let conversation = thread.map_or_else(|| Conversation::Single(run_id.clone()), Conversation::Thread);
        Self { agent, conversation }
    }

    /// Reads a key, with or without its agent. Without one, it is `named`.
    pub(super) fn parse(text: &str, named: &GatewayAgentId) -> Result<Self, SocketRefusal> {
        let (agent, key) = match text.strip_prefix(AGENT) {
            None => (named.clone(), text),
            Some(rest) => {
                let (agent, key) = rest.split_once(':').ok_or_else(|| unknown(text))?;
                (GatewayAgentId::parse(agent).map_err(|_invalid| unknown(text))?, key)
            }
        };
        let conversation = match key.strip_prefix(RUN) {
            Some(run) => Conversation::Single(RunId::parse(run).map_err(|_invalid| unknown(text))?),
            None => Conversation::Thread(read_thread_key(key).map_err(|_invalid| unknown(text))?),
        };
        Ok(Self { agent, conversation })
    }

    /// Returns the thread of the session.
    pub(super) const fn thread(&self) -> Option<&ExternalId> {
        match &self.conversation {
            Conversation::Thread(thread) => Some(thread),
            Conversation::Single(_) => None,
        }
    }
}

impl fmt::Display for ClientSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = &self.agent;
        match &self.conversation {
            Conversation::Thread(thread) => write!(f, "{AGENT}{agent}:{thread}"),
            Conversation::Single(run) => write!(f, "{AGENT}{agent}:{RUN}{run}"),
        }
    }
}

/// Refuses a key that names no session.
pub(super) fn unknown(text: &str) -> SocketRefusal {
    let shown: String = text.chars().take(160).collect();
    SocketRefusal::invalid(
        "SESSION_UNKNOWN",
        format!(
            "unknown session `{}`: name `agent:AGENT:KEY` with an agent of `agents.list` and a key of letters, digits, `.`, `_`, `:` or `-`",
            shown.escape_default()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str) -> GatewayAgentId {
        GatewayAgentId::parse(id).unwrap()
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        for (text, written) in [
            ("agent:main:main", "agent:main:main"),
            ("main", "agent:first:main"),
            ("Team:42", "agent:first:Team:42"),
            ("agent:research-bot:Team:42", "agent:research-bot:Team:42"),
            ("agent:main:run/run-1", "agent:main:run/run-1"),
        ] {
            let read = ClientSession::parse(text, &agent("first")).unwrap();
            assert_eq!(read.to_string(), written);
            assert_eq!(ClientSession::parse(written, &agent("other")).unwrap(), read);
        }
    }

    #[test]
    fn what_can_be_no_key_is_refused() {
        for text in [
            "",
            "agent:",
            "agent:main",
            "agent:main:",
            "agent:../x:main",
            "agent:main:a/b",
            "agent:main:run/../x",
            "a b",
        ] {
            assert!(ClientSession::parse(text, &agent("main")).is_err(), "{text}");
        }
    }

    #[test]
    fn a_run_without_a_thread_is_a_session() {
        let run = RunId::parse("run-1").unwrap();
        assert_eq!(ClientSession::of(agent("main"), None, &run).to_string(), "agent:main:run/run-1");
        let thread = ExternalId::parse("main").ok();
        assert_eq!(ClientSession::of(agent("main"), thread, &run).to_string(), "agent:main:main");
    }
}
