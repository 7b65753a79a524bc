//! What an answer says about itself: tokens, cost, model, why it ended, tools, failure.
//!
//! Pure: bytes go in, a [`Reading`] comes out. Nothing here changes the bytes, and nothing here can stop a
//! call; an answer that cannot be understood has simply no usage.

mod answer;
mod counts;
pub(crate) mod estimate;
mod json;
mod sse;
mod telling;
#[cfg(test)]
mod tests;
mod withhold;

use bytes::Bytes;
use platform_core::{money::NanoDollars, record::Tokens, route::Route, untrusted::JournalText};

pub(crate) use self::withhold::{UsageIs, Withheld};
use self::{
    counts::Counts,
    sse::{Data, Events},
};

/// Largest JSON answer that is looked into.
const LARGEST_DOCUMENT: usize = 16 << 20;
/// Largest event of a stream that is looked into.
const LARGEST_EVENT: usize = 1 << 20;
/// Most tool names kept of one call.
const TOOLS: usize = 32;

/// What an answer said about itself.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) model: Option<JournalText>,
    /// Why the model stopped.
    pub(crate) finish: Option<JournalText>,
    counts: Option<Counts>,
    pub(crate) count: Count,
    pub(crate) cost: Option<NanoDollars>,
    /// Bytes of text that came, a tool's arguments and reasoning included.
    pub(crate) said: u64,
    /// Something was too large to be looked into: what it told is not known.
    pub(crate) gave_up: bool,
    pub(crate) tools: Vec<JournalText>,
    /// An error came where an answer should.
    pub(crate) failed: bool,
    /// How far the stream has come.
    pub(crate) stage: Stage,
}

/// What an answer says that somebody may watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard<'a> {
    /// A piece of text.
    Text(&'a str),
    /// The name of a tool that is called.
    Tool(&'a str),
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

/// What the counts of a [`Reading`] are worth.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    /// Largest JSON answer that is looked into.
    largest: usize,
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
        Self::bounded(route, format, (LARGEST_DOCUMENT, LARGEST_EVENT))
    }

    /// One that looks into no larger documents and events than these.
    pub(crate) fn bounded(route: Route, format: Format, (largest, event): (usize, usize)) -> Self {
        let body = match format {
            Format::Events => Body::Events(Events::bounded(event)),
            Format::Json => Body::Json(Vec::new(), 0),
            Format::Opaque => Body::Opaque,
        };
        Self { route, largest, body, reading: Reading::default() }
    }

    /// Takes note of the next piece of the body, wherever it was split. `tap` is told of text and tools;
    /// without one, events that carry only text are not even parsed.
    pub(crate) fn feed(&mut self, piece: &Bytes, mut tap: Option<&mut dyn FnMut(Heard<'_>)>) {
        match &mut self.body {
            Body::Events(events) => {
                let (route, reading) = (self.route, &mut self.reading);
                events.feed(piece, |data| match data {
                    Data::NamedError => reading.failed = true,
                    Data::Whole(data) => answer::read_event(route, data, reading, &mut tap),
                    Data::TooLong(beginning) => {
                        reading.gave_up = true;
                        answer::read_beginning(route, beginning, reading);
                    }
                });
            }
            Body::Json(pieces, length) => {
                *length += piece.len();
                if *length <= self.largest {
                    pieces.push(piece.clone());
                } else {
                    pieces.clear();
                    self.reading.gave_up = true;
                    self.reading.said = *length as u64;
                }
            }
            Body::Opaque => self.reading.said += piece.len() as u64,
        }
    }

    /// Bytes of the answer that are kept for later, or have room.
    #[cfg(feature = "parts")]
    pub(crate) fn kept(&self) -> usize {
        match &self.body {
            Body::Events(events) => events.kept(),
            Body::Json(pieces, _) => pieces.iter().map(Bytes::len).sum(),
            Body::Opaque => 0,
        }
    }

    /// Whether the answer is a stream of events.
    pub(crate) const fn reads_events(&self) -> bool {
        matches!(self.body, Body::Events(_))
    }

    /// Whether an event told of usage.
    pub(crate) const fn has_counted(&self) -> bool {
        self.reading.counts.is_some()
    }

    /// Whether an event told of an error.
    pub(crate) const fn has_failed(&self) -> bool {
        self.reading.failed
    }

    /// Whether a stream is between two events.
    pub(crate) fn between_events(&self) -> bool {
        matches!(&self.body, Body::Events(events) if events.between())
    }

    /// Whether there was any text yet.
    pub(crate) const fn has_text(&self) -> bool {
        self.reading.said > 0
    }

    /// What the whole answer said. Call once, after its last piece.
    pub(crate) fn finish(&mut self, mut tap: Option<&mut dyn FnMut(Heard<'_>)>) -> Reading {
        if let Body::Json(pieces, length) = &mut self.body
            && *length <= self.largest
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
    /// What the upstream counted.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        self.counts.map(|counts| counts.tokens())
    }

    fn tool(&mut self, name: &str) {
        if self.tools.len() < TOOLS {
            self.tools.push(JournalText::of(name));
        }
    }
}
