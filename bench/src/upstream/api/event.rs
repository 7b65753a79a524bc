//! Builds server-sent events.

use bytes::Bytes;
use serde::Serialize;

/// Wire form of an event.
#[derive(Debug)]
pub(in crate::upstream) struct Event {
    pub(in crate::upstream) frame: Bytes,
    pub(in crate::upstream) kind: Kind,
}

/// Kind of an event; scripts count content only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::upstream) enum Kind {
    /// The event carries a word of the answer, or a fragment of a tool call.
    Content,
    /// The event frames the answer.
    Frame,
}

#[derive(Serialize)]
struct Typed<T> {
    r#type: &'static str,
    #[serde(flatten)]
    rest: T,
}

impl Event {
    /// Creates an event with a `data:` line only.
    pub(super) fn data(shape: &impl Serialize) -> serde_json::Result<Self> {
        let data = serde_json::to_string(shape)?;
        Ok(Self { frame: format!("data: {data}\n\n").into(), kind: Kind::Frame })
    }

    /// Creates an event with an `event:` line before the data.
    pub(super) fn named(name: &str, shape: &impl Serialize) -> serde_json::Result<Self> {
        let data = serde_json::to_string(shape)?;
        Ok(Self { frame: format!("event: {name}\ndata: {data}\n\n").into(), kind: Kind::Frame })
    }

    /// Creates an event with an `event:` line, and the same name as the data's `type`.
    pub(super) fn typed(name: &'static str, rest: impl Serialize) -> serde_json::Result<Self> {
        Self::named(name, &Typed { r#type: name, rest })
    }

    /// Creates the end of a stream of chat and legacy completions.
    pub(super) fn done() -> Self {
        Self { frame: Bytes::from_static(b"data: [DONE]\n\n"), kind: Kind::Frame }
    }

    pub(super) fn content(self) -> Self {
        Self { kind: Kind::Content, ..self }
    }
}
