//! Defines the permissions of a run, which the host fixes before the run's container starts.

use serde::{Deserialize, Serialize};

pub use crate::record::Tap;
use crate::{
    budget::Budget,
    capability::Capabilities,
    host_tools::HostTools,
    id::{AccountId, AgentId, ExternalId, GatewayId, ModelName, RunId, ToolName},
    limit::{self, ByteSize, Millis},
    name,
    record::Timeout,
    token::UnixSeconds,
};

/// Identity and permissions of one attempt of one run. Nothing an agent sends can change them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunGrant {
    /// The run.
    pub run_id: RunId,
    /// Number of the attempt. Starts at 0 and rises only when the run is deliberately started again.
    #[serde(default)]
    pub attempt: u32,
    /// Account that pays.
    pub account: AccountId,
    /// The agent that runs.
    pub graph: AgentId,
    /// Ids that the application wants to find again in the upstream's records.
    #[serde(default)]
    pub correlation: Correlation,
    /// Socket on which the proxy accepts the run's calls.
    #[serde(default)]
    pub listener: Listener,
    /// Limits of a single call.
    #[serde(default)]
    pub limits: CallLimits,
    /// Limits of all calls together.
    #[serde(default)]
    pub budget: Budget,
    /// Time at which the run expires: no more calls are accepted, and those in flight are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<UnixSeconds>,
    /// Models the run may name; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<ModelName>>,
    /// Tools the run may offer a model, by exact name; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolName>>,
    /// Tools on the host that the run may call.
    #[serde(default, skip_serializing_if = "HostTools::is_none")]
    pub host_tools: HostTools,
    /// Permissions to reach beyond the model.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Treatment of tools that would need another capability.
    #[serde(default, skip_serializing_if = "UngrantedTools::is_default")]
    pub ungranted_tools: UngrantedTools,
    /// Setting that decides whether the run's answers can be watched as they stream.
    #[serde(default)]
    pub tap: Tap,
}

/// Ids of the application around Sluicegate. Absent ones are not sent to the upstream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correlation {
    /// User that the run was started for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<ExternalId>,
    /// Session the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<ExternalId>,
    /// Trace the application already opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub existing_trace: Option<ExternalId>,
    /// User as the tracing system knows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_user: Option<ExternalId>,
}

/// Kind of socket on which the proxy accepts a run's calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", deny_unknown_fields)]
pub enum Listener {
    /// A unix socket of the run's own; only processes of this uid, as the host sees it, may connect.
    Unix {
        /// User id of the processes that may connect.
        peer_uid: u32,
    },
    /// The listener that runs share. Each call proves its run by a run token or a registered correlation.
    Shared,
    /// The socket of a managed gateway, which its sessions share in the same way. A proof that is valid there is not
    /// valid at any other listener.
    Gateway {
        /// Id of the gateway.
        gateway: GatewayId,
    },
}

impl Default for Listener {
    fn default() -> Self {
        Self::Unix { peer_uid: name::SANDBOX_UID }
    }
}

/// Limits of a single call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallLimits {
    /// Largest request body.
    pub request_body: ByteSize,
    /// Most tokens of one answer, reasoning included; this limit is also sent to the upstream.
    pub output_tokens: u64,
    /// Timeouts of the call.
    pub times: CallTimes,
}

impl Default for CallLimits {
    fn default() -> Self {
        Self {
            request_body: limit::data_plane::REQUEST_BODY,
            output_tokens: limit::data_plane::OUTPUT_TOKENS,
            times: CallTimes::default(),
        }
    }
}

impl CallLimits {
    /// Returns the name of a limit that is zero. No call could be made under it, and some upstreams treat zero as no
    /// limit.
    #[must_use]
    pub fn zero(&self) -> Option<&'static str> {
        let Self { request_body, output_tokens, times } = self;
        [
            ("request_body", request_body.0),
            ("output_tokens", *output_tokens),
            ("times.body_ms", times.body_ms.0),
            ("times.body_rate", times.body_rate.0),
            ("times.first_byte_ms", times.first_byte_ms.0),
            ("times.between_bytes_ms", times.between_bytes_ms.0),
            ("times.client_ms", times.client_ms.0),
            ("times.call_ms", times.call_ms.0),
        ]
        .into_iter()
        .find_map(|(name, amount)| (amount == 0).then_some(name))
    }
}

/// Timeouts of a call. Each one runs by itself, and the record names the one that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CallTimes {
    /// Period over which the request's body must reach `body_rate` on average.
    pub body_ms: Millis,
    /// Bytes per second below which a body is too slow, on average over any `body_ms`.
    pub body_rate: ByteSize,
    /// Longest wait for the upstream's answer to begin; the same limit is sent to the upstream.
    pub first_byte_ms: Millis,
    /// Longest silence of the upstream in the middle of its answer.
    pub between_bytes_ms: Millis,
    /// Longest time in which the client reads nothing of the data that is ready for it. The kernel reports progress in
    /// steps of its buffer.
    pub client_ms: Millis,
    /// Longest duration of the whole call, from its head to the end of its answer.
    pub call_ms: Millis,
}

impl Default for CallTimes {
    fn default() -> Self {
        Self {
            body_ms: limit::data_plane::BODY,
            body_rate: limit::data_plane::BODY_RATE,
            first_byte_ms: limit::data_plane::FIRST_BYTE,
            between_bytes_ms: limit::data_plane::BETWEEN_BYTES,
            client_ms: limit::data_plane::CLIENT,
            call_ms: limit::data_plane::CALL,
        }
    }
}

impl CallTimes {
    /// Returns the limit behind `timeout`; `None` if the run does not set that timeout.
    #[must_use]
    pub const fn of(&self, timeout: Timeout) -> Option<Millis> {
        match timeout {
            Timeout::Body => Some(self.body_ms),
            Timeout::FirstByte => Some(self.first_byte_ms),
            Timeout::BetweenBytes => Some(self.between_bytes_ms),
            Timeout::Client => Some(self.client_ms),
            Timeout::Call => Some(self.call_ms),
            Timeout::Connect | Timeout::Tls => None,
        }
    }

    /// Returns the bytes of a body that must arrive within any `body_ms`, unless the body ends earlier.
    #[must_use]
    pub const fn body_bytes(&self) -> u64 {
        self.body_rate.0.saturating_mul(self.body_ms.0) / 1000
    }
}

/// Treatment of a call that offers a model hosted tools for which the run was not granted the capability.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UngrantedTools {
    /// The call is refused.
    #[default]
    Refuse,
    /// The tools are left out of the call.
    Drop,
}

impl UngrantedTools {
    /// Returns whether it is the treatment of a run without one in its grant.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_needs_only_an_identity() {
        let grant: RunGrant =
            serde_json::from_str(r#"{"run_id":"r1","account":"acct-1","graph":"sandbox:agent"}"#).unwrap();
        assert_eq!(grant.listener, Listener::Unix { peer_uid: 1001 });
        assert_eq!(grant.tap, Tap::Off);
        assert_eq!(grant.ungranted_tools, UngrantedTools::Refuse);
        let read_back: RunGrant = serde_json::from_str(&serde_json::to_string(&grant).unwrap()).unwrap();
        assert_eq!(read_back, grant);
    }

    #[test]
    fn a_misspelt_permission_is_not_ignored() {
        for json in [
            r#"{"run_id":"r1","account":"a","graph":"s:a","tapp":"text"}"#,
            r#"{"run_id":"r1","account":"a","graph":"s:a","limits":{"request_bytes":1}}"#,
            r#"{"run_id":"r1","account":"a","graph":"s:a","limits":{"times":{"call":1}}}"#,
            r#"{"run_id":"R1","account":"a","graph":"s:a"}"#,
        ] {
            assert!(serde_json::from_str::<RunGrant>(json).is_err(), "{json}");
        }
    }
}
