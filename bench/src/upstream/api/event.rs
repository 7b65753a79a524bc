//! One server-sent event.

use bytes::Bytes;
use serde::Serialize;

/// An event as it goes on the wire.
#[derive(Debug)]
pub(in crate::upstream) struct Event {
    pub(in crate::upstream) frame: Bytes,
    pub(in crate::upstream) kind: Kind,
}

/// Whether scripts count it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::upstream) enum Kind {
    /// It carries a word of the answer, or a fragment of a tool call.
    Content,
    /// It frames the answer.
    Frame,
}

#[derive(Serialize)]
struct Typed<T> {
    r#type: &'static str,
    #[serde(flatten)]
    rest: T,
}

impl Event {
    /// With a `data:` line only.
    pub(super) fn data(shape: &impl Serialize) -> serde_json::Result<Self> {
        let data = serde_json::to_string(shape)?;
        Ok(Self { frame: format!("data: {data}\n\n").into(), kind: Kind::Frame })
    }

    /// With an `event:` line before.
    pub(super) fn named(name: &str, shape: &impl Serialize) -> serde_json::Result<Self> {
        let data = serde_json::to_string(shape)?;
        Ok(Self { frame: format!("event: {name}\ndata: {data}\n\n").into(), kind: Kind::Frame })
    }

    /// With an `event:` line before, and the same name as the data's `type`.
    pub(super) fn typed(name: &'static str, rest: impl Serialize) -> serde_json::Result<Self> {
        Self::named(name, &Typed { r#type: name, rest })
    }

    /// What ends a stream of chat and legacy completions.
    pub(super) fn done() -> Self {
        Self { frame: Bytes::from_static(b"data: [DONE]\n\n"), kind: Kind::Frame }
    }

    pub(super) fn content(self) -> Self {
        Self { kind: Kind::Content, ..self }
    }
}
