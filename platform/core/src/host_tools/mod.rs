//! Defines what agent, data plane and control plane agree on about host tools. They run on the host, for an agent that
//! has no network and no credential.
//!
//! An agent posts a call to its run's socket: [`exec`] or [`mcp`]. The data plane checks identity, permission and limits,
//! and passes the body on unchanged, to the control plane's tool socket. Its own headers ([`header`]) name the run: the
//! control plane believes them and no body.

mod call_state;
mod code;
pub mod exec;
pub mod mcp;
pub mod mcp_request;

use serde::{Deserialize, Serialize};

pub use self::{
    call_state::ToolCallState,
    code::{CodeMeaning, ToolCode},
};
use crate::{
    id::ToolName,
    limit::{ByteSize, Millis},
};
pub use crate::{
    record::ToolOutcome,
    route::{EXEC_PATH, MCP_PATH},
};

/// Version of the protocol on the tool socket.
pub const TOOL_PROTOCOL: u32 = 1;

/// Names of the headers on the tool socket.
pub mod header {
    /// Version of the protocol, on every request. A control plane that does not speak it answers 505, and runs nothing;
    /// one that takes no calls at the moment answers 503. Any other answer of 5xx without [`OUTCOME`] is one of a call
    /// whose outcome is unknown.
    pub const PROTOCOL: &str = "x-sluice-tool-protocol";
    /// Run that calls.
    pub const RUN: &str = "x-sluice-run";
    /// Attempt of that run.
    pub const ATTEMPT: &str = "x-sluice-attempt";
    /// Account that pays for the run.
    pub const ACCOUNT: &str = "x-sluice-account";
    /// Call id that the data plane gave the call, as its record has it.
    pub const CALL: &str = "x-sluice-call";
    /// Names of the tools that the run may call, with a comma between two.
    pub const GRANTED: &str = "x-sluice-tools";
    /// Tool that the data plane has allowed, on calls that execute one. A body that names another is refused.
    pub const TOOL: &str = "x-sluice-tool";
    /// Outcome of an executed call, on its answer: a word of [`super::ToolOutcome`].
    pub const OUTCOME: &str = "x-sluice-tool-outcome";
    /// Connection whose credential the tool used, on its answer, if it used one.
    pub const CONNECTION: &str = "x-sluice-tool-connection";
}

/// Deepest nesting of the arguments of a call.
pub const MAX_DEPTH: usize = 64;

/// Returns whether `json` is an object, if it is JSON at all. Serde also reads a list as a struct, member by member.
fn is_object(json: &[u8]) -> bool {
    json.trim_ascii_start().starts_with(b"{")
}

/// Returns whether no part of `json`, which is one JSON value, is nested deeper than [`MAX_DEPTH`]. Readers differ in
/// the depth that they can read.
fn is_shallow(json: &str) -> bool {
    let mut depth = 0_usize;
    let mut in_text = false;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_text => drop(bytes.next()),
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return false;
        }
    }
    true
}

/// Host tools that a run may call, and their limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTools {
    /// Tools that the run may call, by exact name. None may be called if it is empty.
    #[serde(default)]
    pub names: Vec<ToolName>,
    /// Limits of the calls.
    #[serde(default)]
    pub limits: ToolLimits,
}

impl HostTools {
    /// Returns whether the run may call no tool at all.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns whether the run may call the tool `name`.
    #[must_use]
    pub fn allows(&self, name: &ToolName) -> bool {
        self.names.contains(name)
    }
}

/// Limits of a run's calls of host tools. They are apart from those of model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolLimits {
    /// Most calls of the run.
    pub calls: u64,
    /// Most calls within a minute.
    pub calls_per_minute: u64,
    /// Most calls at the same time.
    pub calls_in_flight: u64,
    /// Longest duration of a call, a wait for an approval included.
    pub call_ms: Millis,
    /// Largest body of a call.
    pub request_body: ByteSize,
    /// Largest answer.
    pub answer_body: ByteSize,
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            calls: 1000,
            calls_per_minute: 120,
            calls_in_flight: 8,
            call_ms: Millis::seconds(60),
            request_body: ByteSize::kib(256),
            answer_body: ByteSize::mib(1),
        }
    }
}

impl ToolLimits {
    /// Returns the name of a limit that is zero: no call could be made under it.
    #[must_use]
    pub fn zero(&self) -> Option<&'static str> {
        let Self { calls, calls_per_minute, calls_in_flight, call_ms, request_body, answer_body } = self;
        [
            ("calls", *calls),
            ("calls_per_minute", *calls_per_minute),
            ("calls_in_flight", *calls_in_flight),
            ("call_ms", call_ms.0),
            ("request_body", request_body.0),
            ("answer_body", answer_body.0),
        ]
        .into_iter()
        .find_map(|(name, amount)| (amount == 0).then_some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_of_texts() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_shallow(&nested(MAX_DEPTH)) && !is_shallow(&nested(MAX_DEPTH + 1)));
        assert!(is_shallow(&format!("[{}]", [nested(60), nested(60)].join(","))));
        let text = format!("{{\"a\":\"\\\"{}\"}}", "[".repeat(100));
        assert!(is_shallow(&text), "{text}");
        assert!(!is_shallow(&format!("{{\"a\":\"\\\\\",\"b\":{}}}", nested(100))));
    }

    #[test]
    fn a_zero_limit_is_named() {
        assert_eq!(ToolLimits::default().zero(), None);
        assert_eq!(
            ToolLimits { calls_in_flight: 0, ..ToolLimits::default() }.zero(),
            Some("calls_in_flight")
        );
    }

    #[test]
    fn a_tool_is_allowed_by_its_exact_name() {
        let name = |text| ToolName::parse(text).unwrap();
        let tools = HostTools { names: vec![name("core__get_current_time")], ..HostTools::default() };
        assert!(tools.allows(&name("core__get_current_time")));
        for other in ["Core__get_current_time", "core__get_current_tim", "core__get_current_time."] {
            assert!(!tools.allows(&name(other)), "{other}");
        }
        assert!(HostTools::default().is_none());
    }
}
