//! What an answer says about itself: tokens, cost, model, tools, failure.
//!
//! Pure: bytes go in, a [`Reading`] comes out. Nothing here changes the bytes, and nothing here can stop a
//! call; an answer that cannot be understood has simply no usage.

mod answer;
mod sse;
#[cfg(test)]
mod tests;
mod withhold;

use bytes::Bytes;
use platform_core::{
    control::TapEvent, money::NanoDollars, record::Tokens, route::Route, untrusted::JournalText,
};

use self::sse::Events;
pub(crate) use self::withhold::{Look, Withheld};

/// Largest JSON answer, and largest single event of a stream, that is looked into.
const LOOK_INTO: usize = 16 << 20;
/// Most tool names kept of one call.
const TOOLS: usize = 32;

/// What an answer said about itself.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) model: Option<JournalText>,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) count: Count,
    pub(crate) cost: Option<NanoDollars>,
    pub(crate) tools: Vec<JournalText>,
    /// An error came where an answer should.
    pub(crate) failed: bool,
    /// How far the stream has come.
    pub(crate) stage: Stage,
}

/// How far a stream has come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The model speaks, as far as is known.
    #[default]
    Speaking,
    /// It has said all that it will say; only usage and the mark are still to come.
    Finished,
    /// The mark came that ends a complete stream of this route.
    Ended,
}

/// What the tokens of a [`Reading`] are worth.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// What the upstream knew when it began.
    #[default]
    Preliminary,
    /// What it counted in the end.
    Final,
}

/// How an answer's body is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `text/event-stream`
    Events,
    /// One JSON document.
    Json,
    /// Nothing we know.
    Opaque,
}

impl Format {
    /// The format that a content type announces.
    pub(crate) fn of(content_type: Option<&str>) -> Self {
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        match essence {
            "text/event-stream" => Self::Events,
            "application/json" => Self::Json,
            _ => Self::Opaque,
        }
    }
}

/// Watches one answer pass.
#[derive(Debug)]
pub(crate) struct Meter {
    route: Route,
    body: Body,
    reading: Reading,
}

#[derive(Debug)]
enum Body {
    Events(Events),
    Json(Vec<Bytes>, usize),
    Opaque,
}

impl Meter {
    pub(crate) fn new(route: Route, format: Format) -> Self {
        let body = match format {
            Format::Events => Body::Events(Events::default()),
            Format::Json => Body::Json(Vec::new(), 0),
            Format::Opaque => Body::Opaque,
        };
        Self { route, body, reading: Reading::default() }
    }

    /// Takes note of the next piece of the body, wherever it was split. `tap` is told of text and tools;
    /// without one, events that carry only text are not even parsed.
    pub(crate) fn feed(&mut self, piece: &Bytes, mut tap: Option<&mut dyn FnMut(TapEvent)>) {
        match &mut self.body {
            Body::Events(events) => {
                let (route, reading) = (self.route, &mut self.reading);
                let named = events.feed(piece, |data| answer::read_event(route, data, reading, &mut tap));
                self.reading.failed |= named;
            }
            Body::Json(pieces, length) => {
                *length += piece.len();
                if *length <= LOOK_INTO {
                    pieces.push(piece.clone());
                }
            }
            Body::Opaque => {}
        }
    }

    /// Whether the answer is a stream of events.
    pub(crate) const fn reads_events(&self) -> bool {
        matches!(self.body, Body::Events(_))
    }

    /// Whether the model has finished, so that the event with the usage may be next.
    pub(crate) fn has_finished(&self) -> bool {
        self.reading.stage >= Stage::Finished
    }

    /// Whether an event told of an error.
    pub(crate) const fn has_failed(&self) -> bool {
        self.reading.failed
    }

    /// Whether a stream is between two events.
    pub(crate) fn between_events(&self) -> bool {
        matches!(&self.body, Body::Events(events) if events.between())
    }

    /// What the whole answer said. Call once, after its last piece.
    pub(crate) fn finish(&mut self, mut tap: Option<&mut dyn FnMut(TapEvent)>) -> Reading {
        if let Body::Json(pieces, length) = &mut self.body
            && *length <= LOOK_INTO
        {
            let whole = match pieces.as_slice() {
                [one] => one.clone(),
                several => several.concat().into(),
            };
            answer::read_document(&whole, &mut self.reading, &mut tap);
            pieces.clear();
        }
        std::mem::take(&mut self.reading)
    }

    /// Whether a stream that ended as HTTP ended as its route ends streams.
    pub(crate) fn is_complete(&self, reading: &Reading) -> bool {
        let needs_mark = matches!(self.body, Body::Events(_)) && self.route != Route::Unknown;
        !reading.failed && (reading.stage == Stage::Ended || !needs_mark)
    }
}

impl Reading {
    fn tool(&mut self, name: &str) {
        if self.tools.len() < TOOLS {
            self.tools.push(JournalText::of(name));
        }
    }
}

/// No prompt in `body` has more tokens: a tokeniser makes at least a byte of each.
pub(crate) const fn most_input(body: &[u8]) -> u64 {
    body.len() as u64 + 1024
}
