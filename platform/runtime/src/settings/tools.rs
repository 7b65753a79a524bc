//! Reads the settings of host tools, which run on the host for agents: their socket, and the limits of their calls.

use std::{collections::BTreeMap, path::PathBuf};

use platform_core::{
    host_tools::ToolLimits,
    id::{ToolName, ToolServerName},
    limit::{ByteSize, MAX_SOCKET_PATH, Millis},
};

use super::{Settings, ToolMetrics, ToolServer, tool_servers};
use crate::config::{Section, settings};

/// Most calls of an account at the same time.
const CALLS_IN_FLIGHT_PER_ACCOUNT: u32 = 32;
/// Most calls of an account that wait for a person at the same time.
const CALLS_WAITING_PER_ACCOUNT: u32 = 32;
/// Longest wait for a person's decision.
const MAX_APPROVAL_TIMEOUT: Millis = Millis::seconds(600);

settings! {
    /// `[tools]`
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Tools read from section {
        /// Path of the tool socket, if it is not the default.
        pub socket: Option<PathBuf> = read_socket(section),
        /// Calls of host tools that a run may make.
        pub max_calls: u64 => or(ToolLimits::default().calls),
        /// Calls of host tools that a run may make within a minute.
        pub calls_per_minute: u64 => or(ToolLimits::default().calls_per_minute),
        /// Calls of host tools that a run may make at the same time.
        pub max_calls_in_flight: u64 => or(ToolLimits::default().calls_in_flight),
        /// Longest duration of a call of a host tool. A wait for an approval is added to it.
        pub call_timeout: Millis => or(ToolLimits::default().call_ms),
        /// Tools with calls that wait for a person's approval.
        pub approval: Vec<ToolName> = section
            .field("approval", "Host tools whose calls wait for a person: `sluice tools pending` lists them.")
            .list_or(vec![]),
        /// Longest wait for an approval. Then the call is denied.
        pub approval_timeout: Millis = read_approval_timeout(section),
        /// Largest body of a call of a host tool.
        pub max_request: ByteSize => or(ToolLimits::default().request_body),
        /// Largest answer to a call of a host tool. A larger one does not reach the agent.
        pub max_answer: ByteSize => or(ToolLimits::default().answer_body),
        /// Calls of host tools of an account that `sluice up` executes at the same time, without those that need an
        /// approval.
        pub max_calls_in_flight_per_account: u32 => or(CALLS_IN_FLIGHT_PER_ACCOUNT),
        /// Calls of host tools of an account that wait for an approval, or run after it, at the same time.
        pub max_calls_waiting_per_account: u32 => or(CALLS_WAITING_PER_ACCOUNT),
        /// Users besides that of `sluice up` and root who may speak to the tool socket: the user of the proxy.
        pub peer_uids: Vec<u32> => list_or(vec![]),
        /// Metrics that agents may query.
        pub metrics: ToolMetrics => table(ToolMetrics::section),
        /// Third-party servers of tools.
        pub servers: BTreeMap<ToolServerName, ToolServer> = tool_servers::read(section),
    }
}

impl Tools {
    /// Returns whether calls of `tool` wait for a person's approval.
    #[must_use]
    pub fn needs_approval(&self, tool: &ToolName) -> bool {
        self.approval.contains(tool)
    }

    /// Returns the names of the tools of third-party servers, sorted.
    #[must_use]
    pub fn server_tools(&self) -> Vec<ToolName> {
        let mut names: Vec<_> =
            self.servers.values().flat_map(|server| server.tools.values().cloned()).collect();
        names.sort_unstable();
        names
    }

    /// Returns the limits of the calls of a run that may call `granted`.
    #[must_use]
    pub fn limits(&self, granted: &[ToolName]) -> ToolLimits {
        let has_approvals = granted.iter().any(|tool| self.needs_approval(tool));
        let wait = if has_approvals { self.approval_timeout } else { Millis(0) };
        ToolLimits {
            calls: self.max_calls,
            calls_per_minute: self.calls_per_minute,
            calls_in_flight: self.max_calls_in_flight,
            call_ms: Millis(self.call_timeout.0.saturating_add(wait.0)),
            request_body: self.max_request,
            answer_body: self.max_answer,
        }
    }
}

impl Settings {
    /// Returns the path of the tool socket, on which the control plane executes host tools for the data plane.
    #[must_use]
    pub fn tool_socket(&self) -> PathBuf {
        self.tools.socket.clone().unwrap_or_else(|| self.proxy.tools_dir().join("tools.sock"))
    }
}

fn read_socket(section: &Section<'_>) -> Option<PathBuf> {
    const NAME: &str = "socket";
    let doc = "Path of the socket on which `sluice up` executes host tools for the proxy; `tools/tools.sock` below `proxy.run_dir` if absent.";
    let socket: Option<PathBuf> = section.field(NAME, doc).optional();
    if socket.as_ref().is_some_and(|socket| socket.as_os_str().len() > MAX_SOCKET_PATH) {
        section.reject(NAME, format!("the path of a socket has at most {MAX_SOCKET_PATH} bytes"));
    }
    socket
}

fn read_approval_timeout(section: &Section<'_>) -> Millis {
    const NAME: &str = "approval_timeout";
    let doc = "Longest wait of a call for a person's approval, at most 10 minutes. Then the call is denied.";
    let timeout: Millis = section.field(NAME, doc).or(MAX_APPROVAL_TIMEOUT);
    if timeout.0 == 0 || timeout > MAX_APPROVAL_TIMEOUT {
        section.reject(
            NAME,
            "a wait for an approval takes more than nothing, and at most 10 minutes".to_owned(),
        );
    }
    timeout
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ConfigErrors, Sources};

    fn read(text: &str) -> Result<Tools, ConfigErrors> {
        let file = Some(("s.toml".into(), text.to_owned()));
        let settings = Settings::read(&Sources { file, ..Sources::default() });
        settings.map(|settings| settings.tools)
    }

    #[test]
    fn a_granted_tool_with_approval_extends_calls() {
        let tools =
            read("[tools]\ncall_timeout = '20s'\napproval = ['a__x']\napproval_timeout = '5m'").unwrap();
        let [with, without] = ["a__x", "a__y"].map(|name| ToolName::parse(name).unwrap());
        assert_eq!(tools.limits(std::slice::from_ref(&without)).call_ms, Millis::seconds(20));
        assert_eq!(tools.limits(&[without, with]).call_ms, Millis::seconds(320));
        assert_eq!(read("").unwrap().approval_timeout, Millis::seconds(600));
    }

    #[test]
    fn an_approval_waits_at_most_ten_minutes() {
        for (timeout, is_taken) in [("0s", false), ("1s", true), ("10m", true), ("601s", false)] {
            let read = read(&format!("[tools]\napproval_timeout = '{timeout}'"));
            assert_eq!(read.is_ok(), is_taken, "{timeout}: {read:?}");
            assert!(is_taken || read.unwrap_err().to_string().contains("approval_timeout"), "{timeout}");
        }
    }
}
