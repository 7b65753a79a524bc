//! Reads answers to the call that started a turn: that it was accepted, and how it ended.

use platform_core::id::ModelName;
use serde::Deserialize;

use super::{Malformed, frame::ResponseFrame, gateway_error::GatewayError};
use crate::outcome::{Code, Usage};

/// Content of an answer to a turn's call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TurnReply {
    /// The gateway has accepted the turn.
    Accepted,
    /// The gateway has accepted the same turn before, and it has not ended.
    InFlight,
    /// The turn has ended.
    Ended(Box<TurnReport>),
}

/// End of a turn as the gateway reports it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TurnReport {
    pub(crate) status: TurnStatus,
    /// Texts of the answer without those that are errors.
    pub(crate) text: String,
    /// True if one of the texts is an error.
    pub(crate) has_error: bool,
    /// Kind of that error, if it is given.
    pub(crate) kind: Option<Code>,
    /// Cause of a turn that was cut off.
    pub(crate) cut: Option<Cut>,
    pub(crate) usage: Option<Usage>,
    pub(crate) model: Option<ModelName>,
    pub(crate) error: Option<GatewayError>,
}

/// Cause of a turn that was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// A client aborted the turn, or, as older gateways report it, the gateway's own timeout passed.
    Aborted,
    /// The gateway's own timeout passed.
    TimedOut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TurnStatus {
    Ok,
    #[default]
    Error,
    Timeout,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawResponse {
    status: Option<String>,
    stop_reason: Option<String>,
    timeout_phase: Option<String>,
    result: RawResult,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawResult {
    payloads: Vec<RawPayload>,
    meta: RawMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawPayload {
    text: Option<String>,
    is_error: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawMeta {
    agent_meta: RawAgentMeta,
    aborted: bool,
    error: Option<RawMetaError>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawMetaError {
    kind: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawAgentMeta {
    model: Option<String>,
    usage: Option<RawUsage>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawUsage {
    input: u64,
    output: u64,
    cache_read: u64,
}

impl RawUsage {
    pub(super) const fn read(self) -> Usage {
        Usage { input: self.input, output: self.output, cache_read: self.cache_read }
    }
}

/// Reads an answer to `agent` or `chat.send`.
pub(crate) fn read(answer: &ResponseFrame) -> Result<TurnReply, Malformed> {
    let raw = match &answer.payload {
        Some(payload) => payload.read().map_err(|_error| Malformed)?,
        None if answer.error.is_some() => RawResponse::default(),
        None => return Err(Malformed),
    };
    if answer.error.is_none() {
        match raw.status.as_deref() {
            Some("accepted" | "started") => return Ok(TurnReply::Accepted),
            Some("in_flight") => return Ok(TurnReply::InFlight),
            _ => {}
        }
    }
    Ok(TurnReply::Ended(Box::new(report(raw, answer.error.clone()))))
}

fn report(raw: RawResponse, error: Option<GatewayError>) -> TurnReport {
    let status = match raw.status.as_deref() {
        _ if error.is_some() => TurnStatus::Error,
        Some("ok") => TurnStatus::Ok,
        Some("timeout") => TurnStatus::Timeout,
        _ => TurnStatus::Error,
    };
    let RawResult { meta, payloads } = raw.result;
    let reason = raw.stop_reason.as_deref();
    let cut = if raw.timeout_phase.is_some() || reason == Some("timeout") {
        Some(Cut::TimedOut)
    } else {
        (meta.aborted || stopped(reason)).then_some(Cut::Aborted)
    };
    let texts =
        payloads.iter().filter(|payload| !payload.is_error).filter_map(|payload| payload.text.as_deref());
    let text: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
    TurnReport {
        status,
        text: text.join("\n\n"),
        has_error: meta.error.is_some() || payloads.iter().any(|payload| payload.is_error),
        kind: meta.error.and_then(|error| error.kind).map(|kind| Code::new(&kind)),
        cut,
        usage: meta.agent_meta.usage.map(RawUsage::read),
        model: meta.agent_meta.model.and_then(|model| ModelName::parse(&model).ok()),
        error,
    }
}

/// Returns whether a turn stopped because a client asked for it.
pub(super) fn stopped(reason: Option<&str>) -> bool {
    matches!(reason, Some("rpc" | "aborted" | "stop-command" | "user"))
}
