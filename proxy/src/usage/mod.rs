//! Reads what an answer reports about itself: tokens, cost, model, why it ended, tools, failure.
//!
//! Pure: bytes go in, a [`Reading`] comes out. Nothing here changes the bytes, and nothing here can stop a
//! call; an answer that cannot be understood has simply no usage.

mod answer;
mod counts;
pub(crate) mod estimate;
mod frame;
mod json;
mod mark;
mod place;
mod scan;
mod sse;
#[cfg(test)]
mod tests;
mod withhold;

use bytes::Bytes;
use platform_core::{money::NanoDollars, record::Tokens, route::Route, untrusted::JournalText};

pub(crate) use self::withhold::{Document, UsageIs, Withheld};
use self::{
    answer::{Event, Reader, Tap},
    counts::Counts,
    frame::Frame,
    place::Place,
    scan::Scanner,
    sse::{Events, Part},
};

/// Most tool names kept of one call.
const TOOLS: usize = 32;

/// Facts that an answer reported about itself.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) model: Option<JournalText>,
    /// Reason why the model stopped.
    pub(crate) finish: Option<JournalText>,
    counts: Option<Counts>,
    pub(crate) count: Count,
    pub(crate) cost: Option<NanoDollars>,
    /// Bytes of text that came, a tool's arguments and reasoning included.
    pub(crate) said: u64,
    /// Bytes of that text which the last usage can know of.
    counted_at: u64,
    pub(crate) tools: Vec<JournalText>,
    /// An error came where an answer should.
    pub(crate) failed: bool,
    /// Progress of the stream.
    pub(crate) stage: Stage,
}

/// Part of an answer that a watcher may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard<'a> {
    /// A piece of text.
    Text(&'a str),
    /// The name of a tool that is called.
    Tool(&'a str),
}

/// Progress of a stream.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The model speaks, as far as is known.
    #[default]
    Speaking,
    /// The model has said all that it will say; only usage and the mark are still to come.
    Finished,
    /// The mark came that ends a complete stream of this route.
    Ended,
}

/// Reliability of the counts of a [`Reading`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Count {
    /// The upstream counted something, but not all of it, or not up to the end.
    #[default]
    Preliminary,
    /// The upstream counted all that its route counts, when the answer was whole.
    Final,
}

/// Format of an answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// `text/event-stream`
    Events,
    /// A single JSON document.
    Json,
    /// Nothing we know.
    Opaque,
}

impl Format {
    /// The format that a content type announces.
    pub(crate) fn of(content_type: Option<&str>) -> Self {
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let is = |name: &str| essence.eq_ignore_ascii_case(name);
        let suffix = essence.rsplit_once('+').map_or("", |(_, suffix)| suffix);
        if is("text/event-stream") {
            Self::Events
        } else if is("application/json") || suffix.eq_ignore_ascii_case("json") {
            Self::Json
        } else {
            Self::Opaque
        }
    }
}

/// Watches one answer pass.
#[derive(Debug)]
pub(crate) struct Meter {
    route: Route,
    body: Body,
    scanner: Scanner<Place>,
    frame: Frame,
    event: Event,
    reading: Reading,
}

#[derive(Debug)]
enum Body {
    Events(Events, Start),
    Json(Start),
    Opaque,
}

/// The beginning of what may be no object.
#[derive(Debug, Default)]
struct Start {
    word: [u8; 8],
    length: u64,
}

impl Start {
    fn note(&mut self, bytes: &[u8]) {
        let at = usize::try_from(self.length).unwrap_or(usize::MAX);
        if let Some(room) = self.word.get_mut(at..) {
            room.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        }
        self.length += bytes.len() as u64;
    }

    /// Returns whether it is the mark that ends OpenAI's streams.
    fn is_done(&self) -> bool {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        self.word.get(..length).is_some_and(|word| word.trim_ascii() == b"[DONE]")
    }
}

impl Meter {
    pub(crate) fn new(route: Route, format: Format) -> Self {
        let body = match format {
            Format::Events => Body::Events(Events::new(), Start::default()),
            Format::Json => Body::Json(Start::default()),
            Format::Opaque => Body::Opaque,
        };
        let (scanner, frame) = (Scanner::new(), Frame::new());
        Self { route, body, scanner, frame, event: Event::default(), reading: Reading::default() }
    }

    /// Takes note of the next piece of the body, wherever it was split. `tap` receives text and tools.
    pub(crate) fn feed(&mut self, piece: &Bytes, tap: Option<&mut dyn FnMut(Heard<'_>)>) {
        let mut tap: Tap<'_> = tap;
        let Self { route, body, scanner, frame, event, reading } = self;
        let mut reader = Reader { route: *route, root: Place::Answer, event, reading, tap: &mut tap };
        match body {
            Body::Events(events, start) => {
                reader.root = Place::Event;
                events.feed(piece, |part| match part {
                    Part::NamedError => reader.reading.failed = true,
                    Part::Data(data) => read_event(data, (scanner, frame), start, &mut reader),
                    Part::End => end_event(scanner, start, &mut reader),
                });
            }
            Body::Json(start) => read(piece, scanner, start, &mut reader),
            Body::Opaque => reader.reading.said += piece.len() as u64,
        }
    }

    /// Bytes of the answer that are kept for later, or have room.
    #[cfg(any(test, feature = "parts"))]
    pub(crate) fn kept(&self) -> usize {
        self.scanner.kept() + self.event.kept()
    }

    /// Returns whether the answer is a stream of events.
    pub(crate) const fn reads_events(&self) -> bool {
        matches!(self.body, Body::Events(..))
    }

    /// Returns whether an event reported usage.
    pub(crate) const fn has_counted(&self) -> bool {
        self.reading.counts.is_some()
    }

    /// Returns whether a stream is between two events.
    #[cfg(any(test, feature = "parts"))]
    pub(crate) fn between_events(&self) -> bool {
        matches!(&self.body, Body::Events(events, _) if events.between())
    }

    /// Returns whether there was any text yet.
    pub(crate) const fn has_text(&self) -> bool {
        self.reading.said > 0
    }

    /// Returns what the whole answer reported. Call once, after its last piece.
    pub(crate) fn finish(&mut self, tap: Option<&mut dyn FnMut(Heard<'_>)>) -> Reading {
        let mut tap: Tap<'_> = tap;
        let Self { route, body, scanner, event, reading, .. } = self;
        let mut reader = Reader { route: *route, root: Place::Answer, event, reading, tap: &mut tap };
        match body {
            Body::Events(events, start) => {
                reader.root = Place::Event;
                // A stream that was cut reports what has come so far, and nothing that its end would mean.
                if scanner.is_open() {
                    scanner.finish(&mut reader);
                } else if events.is_open() {
                    end_event(scanner, start, &mut reader);
                }
            }
            Body::Json(start) => end_event(scanner, start, &mut reader),
            Body::Opaque => {}
        }
        self.reading.count = if self.has_whole_usage() { Count::Final } else { Count::Preliminary };
        std::mem::take(&mut self.reading)
    }

    /// Returns whether the usage that came is that of the whole answer, and can be true.
    fn has_whole_usage(&self) -> bool {
        let reading = &self.reading;
        let Some(counts) = reading.counts.filter(|_| reading.count == Count::Final) else { return false };
        let came_last = reading.stage >= Stage::Finished && reading.counted_at == reading.said;
        let knows_text = reading.said == 0 || counts.tokens().output > 0 || self.route == Route::Embeddings;
        (came_last || !self.reads_events()) && knows_text && counts.are_whole(self.route)
    }

    /// Returns whether a stream that ended as HTTP ended as its route ends streams.
    pub(crate) fn is_complete(&self, reading: &Reading) -> bool {
        let needs_mark = matches!(self.body, Body::Events(..)) && self.route != Route::Unknown;
        !reading.failed && (reading.stage == Stage::Ended || !needs_mark)
    }
}

/// Reads on in what may be a document.
fn read(data: &[u8], scanner: &mut Scanner<Place>, start: &mut Start, reader: &mut Reader<'_, '_>) {
    if !scanner.is_object() {
        start.note(data);
    }
    scanner.feed(data, reader);
}

/// Reads on in an event. One that came whole, and fits the frame of the last one, is not read again.
fn read_event(
    data: &[u8],
    (scanner, frame): (&mut Scanner<Place>, &mut Frame),
    start: &mut Start,
    reader: &mut Reader<'_, '_>,
) {
    let is_first = start.length == 0 && !scanner.is_object() && reader.tap.is_none();
    if is_first && let Some(bytes) = frame.measure(data) {
        reader.reading.said += bytes;
        return scanner.pass_over(Place::Event);
    }
    read(data, scanner, start, reader);
    if is_first && let Some(text) = reader.only_text().filter(|_| scanner.is_object() && !scanner.is_open()) {
        frame.learn(data, text);
    }
}

/// An event has ended, or a whole answer.
fn end_event(scanner: &mut Scanner<Place>, start: &mut Start, reader: &mut Reader<'_, '_>) {
    scanner.finish(reader);
    let start = std::mem::take(start);
    if scanner.is_object() {
        reader.end();
    } else if start.is_done() && reader.root == Place::Event {
        reader.reading.stage = Stage::Ended;
    } else {
        // Nothing is known of it but that it came.
        reader.reading.said += start.length;
    }
    scanner.reset();
}

impl Reading {
    /// Returns the tokens that the upstream counted.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        self.counts.map(|counts| counts.tokens())
    }

    fn tool(&mut self, name: &str) {
        if self.tools.len() < TOOLS {
            self.tools.push(JournalText::of(name));
        }
    }
}
