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
    json::Bounds,
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
    /// with an unknown outcome.
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
    /// Connection with the credential that the tool used, on its answer, if it used one.
    pub const CONNECTION: &str = "x-sluice-tool-connection";
}

/// Bounds of a body. How long it may be is [`ToolLimits::request_body`], for its receiver.
const BOUNDS: Bounds = Bounds::of(usize::MAX);

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
    use super::{exec::ExecRequest, mcp::McpMessage, mcp_request::McpRequest, *};

    /// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
    fn raw_nest(layers: usize) -> String {
        let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
        (0..layers).fold("1".to_owned(), |inner, _| {
            format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
        })
    }

    #[test]
    fn a_body_is_read_within_bounds() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let brackets = format!(r#""{}\"""#, "[".repeat(100));
        let many = format!("[{}0]", "0,".repeat(Bounds::VALUES));
        for (args, problem) in [
            (nested(Bounds::DEPTH - 2), None),
            (brackets, None),
            (nested(Bounds::DEPTH), Some("nested deeper than 64 levels")),
            // The reader of the arguments refuses these.
            (raw_nest(15), None),
            (r#"{"a":1,"\u0061":2}"#.to_owned(), None),
            ("18446744073709551617".to_owned(), None),
            (many, Some("more than 100000 values")),
        ] {
            let exec = format!(r#"{{"runId":"r1","callId":"c1","tool":"a","args":{args}}}"#);
            let params = format!(r#"{{"name":"a","arguments":{args}}}"#);
            let mcp = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            let errors = [
                ExecRequest::read(exec.as_bytes()).map(drop).map_err(|error| error.to_string()),
                McpMessage::read(mcp.as_bytes()).map(drop).map_err(|error| error.to_string()),
            ];
            for read in errors {
                let is_expected = match (&read, problem) {
                    (Err(error), Some(problem)) => error.contains(problem),
                    (read, problem) => read.is_ok() && problem.is_none(),
                };
                assert!(is_expected, "{problem:?}: {read:?}");
            }
            assert_eq!(McpRequest::read(mcp.as_bytes()).is_ok(), problem.is_none(), "{problem:?}");
        }
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
