//! Reads frames of a gateway: events, and answers to requests.

use std::borrow::Cow;

use platform_core::json::{self, Bounds, Raw, RawBuf};
use serde::Deserialize;

use super::{Malformed, gateway_error::GatewayError};

/// Bounds of a frame; `GatewayLimits::receive` bounds its bytes. What a model gave a tool is in frames as it was
/// written, so they may be deeper than other texts: no type of this module nests with them.
const BOUNDS: Bounds = Bounds::of(usize::MAX).with_depth(10_000).with_values(1_000_000);

/// Frame from a gateway.
#[derive(Debug)]
pub(crate) enum Frame<'a> {
    /// An event.
    Event {
        /// Name of the event.
        name: Cow<'a, str>,
        /// Content of the event.
        payload: Option<Raw<'a>>,
    },
    /// An answer to the request of this id; a turn's request has two.
    Response {
        /// Id of the request.
        id: Cow<'a, str>,
        /// Content of the answer.
        answer: ResponseFrame,
    },
    /// A frame of a kind that this client does not know.
    Other,
}

/// Answer to a request. The answer of a failed turn has both a payload and an error.
#[derive(Debug, Clone)]
pub(crate) struct ResponseFrame {
    /// Content of the answer.
    pub(crate) payload: Option<RawBuf>,
    /// Reason of a refusal, if the gateway gives one.
    pub(crate) error: Option<GatewayError>,
}

#[derive(Deserialize)]
struct RawFrame<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    event: Option<Cow<'a, str>>,
    ok: Option<bool>,
    #[serde(borrow)]
    payload: Option<Raw<'a>>,
    #[serde(borrow)]
    error: Option<Raw<'a>>,
}

/// Reads one frame.
pub(crate) fn read(text: &str) -> Result<Frame<'_>, Malformed> {
    let raw: RawFrame<'_> = json::from_str(text, BOUNDS).map_err(|_error| Malformed)?;
    match (raw.kind.as_ref(), raw.event, raw.id, raw.ok) {
        ("event", Some(name), ..) => Ok(Frame::Event { name, payload: raw.payload }),
        ("res", _, Some(id), Some(ok)) => {
            let error = raw.error.map(GatewayError::read);
            let error = if ok { None } else { Some(error.unwrap_or_default()) };
            Ok(Frame::Response { id, answer: ResponseFrame { payload: raw.payload.map(Raw::to_buf), error } })
        }
        ("event" | "res", ..) => Err(Malformed),
        _ => Ok(Frame::Other),
    }
}
