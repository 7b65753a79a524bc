//! Frames of a gateway: events, and answers to requests.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Malformed, fault::Fault};

/// A frame that came.
#[derive(Debug)]
pub(crate) enum Frame<'a> {
    /// Something happened.
    Event {
        /// Its name.
        name: Cow<'a, str>,
        /// What it says.
        payload: Option<&'a RawValue>,
    },
    /// An answer to the request of this id; a turn's request has two.
    Answer {
        /// The request's id.
        id: Cow<'a, str>,
        /// What it says.
        answer: Answer,
    },
    /// A frame of a kind that this client does not know.
    Other,
}

/// An answer. A failed turn has both a payload and a fault.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// What it says.
    pub(crate) payload: Option<Box<RawValue>>,
    /// Why not, if it says so.
    pub(crate) fault: Option<Fault>,
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    event: Option<Cow<'a, str>>,
    ok: Option<bool>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Reads one frame.
pub(crate) fn read(text: &str) -> Result<Frame<'_>, Malformed> {
    let raw: Raw<'_> = serde_json::from_str(text).map_err(|_error| Malformed)?;
    match (raw.kind.as_ref(), raw.event, raw.id, raw.ok) {
        ("event", Some(name), ..) => Ok(Frame::Event { name, payload: raw.payload }),
        ("res", _, Some(id), Some(ok)) => {
            let fault = raw.error.map(Fault::read);
            let fault = if ok { None } else { Some(fault.unwrap_or_default()) };
            Ok(Frame::Answer { id, answer: Answer { payload: raw.payload.map(ToOwned::to_owned), fault } })
        }
        ("event" | "res", ..) => Err(Malformed),
        _ => Ok(Frame::Other),
    }
}
