//! Reads the facts that an answer reports about itself: tokens, cost, model, reason of its end, tools, failure.
//!
//! Pure: bytes go in, a [`UsageReport`] comes out. Nothing here changes the bytes, and nothing here can stop a
//! call; an answer that cannot be understood has simply no usage.

mod answer;
mod answer_field;
mod byte_order_mark;
mod document_reader;
pub(crate) mod estimate;
mod event_frame;
mod json;
mod prompt;
mod scan;
mod sse;
#[cfg(test)]
mod tests;
mod token_counts;
mod withhold;

use bytes::Bytes;
use platform_core::{money::NanoDollars, record::Tokens, route::Route, untrusted::JournalText};

pub(crate) use self::prompt::PromptEstimate;
pub(crate) use self::withhold::{DocumentFilter, EventFilter, UsageEventFor};
use self::{
    answer::{AnswerReader, DeltaSink, EventFacts},
    answer_field::AnswerField,
    document_reader::{BodyStart, DocumentReader},
    sse::{EventParser, EventPart},
    token_counts::TokenCounts,
};

/// Most tool names kept of one call.
const MAX_TOOLS: usize = 32;

/// Facts that an answer reported about itself.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct UsageReport {
    pub(crate) model: Option<JournalText>,
    /// Reason why the model stopped.
    pub(crate) finish: Option<JournalText>,
    counts: Option<TokenCounts>,
    pub(crate) finality: Finality,
    pub(crate) cost: Option<NanoDollars>,
    /// Bytes of text that came, a tool's arguments and reasoning included.
    pub(crate) text_bytes: u64,
    /// Bytes of that text which the last usage can know of.
    text_bytes_counted: u64,
    pub(crate) tools: Vec<JournalText>,
    /// Set if an error came in place of an answer.
    pub(crate) failed: bool,
    opening: Opening,
    /// Progress of the stream.
    pub(crate) stage: StreamProgress,
}

/// Part of an answer that watchers of a run see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerDelta<'a> {
    /// A piece of text.
    Text(&'a str),
    /// The name of a tool that is called.
    Tool(&'a str),
}

/// Progress of a stream.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StreamProgress {
    /// The model still generates, as far as is known.
    #[default]
    Generating,
    /// The model has finished; only usage and the mark are still to come.
    Finished,
    /// The mark came that ends a complete stream of this route.
    Complete,
}

/// First event of an answer, or a whole answer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// None has come whole.
    #[default]
    None,
    /// Something else than an error.
    Answer,
    /// An error.
    Error,
}

/// Reliability of the counts of a [`UsageReport`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Finality {
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
    /// Returns the format that a content type announces. Without one it is a document, as clients take it.
    pub(crate) fn of(content_type: Option<&str>) -> Self {
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let is = |name: &str| essence.eq_ignore_ascii_case(name);
        let suffix = essence.rsplit_once('+').map_or("", |(_, suffix)| suffix);
        if is("text/event-stream") {
            Self::Events
        } else if essence.is_empty() || is("application/json") || suffix.eq_ignore_ascii_case("json") {
            Self::Json
        } else {
            Self::Opaque
        }
    }
}

/// Meter of one answer, which it reads as it passes.
#[derive(Debug)]
pub(crate) struct Meter {
    route: Route,
    body: Body,
    documents: DocumentReader,
    event: EventFacts,
    report: UsageReport,
}

#[derive(Debug)]
enum Body {
    Events(EventParser, BodyStart),
    Json(BodyStart),
    Opaque,
}

impl Meter {
    pub(crate) fn new(route: Route, format: Format) -> Self {
        let body = match format {
            Format::Events => Body::Events(EventParser::new(), BodyStart::default()),
            Format::Json => Body::Json(BodyStart::default()),
            Format::Opaque => Body::Opaque,
        };
        Self {
            route,
            body,
            documents: DocumentReader::new(),
            event: EventFacts::default(),
            report: UsageReport::default(),
        }
    }

    /// Reads the next piece of the body, wherever it was split. `sink` receives text and tools.
    pub(crate) fn feed(&mut self, piece: &Bytes, sink: Option<&mut dyn FnMut(AnswerDelta<'_>)>) {
        let mut sink: DeltaSink<'_> = sink;
        let Self { route, body, documents, event, report } = self;
        let mut reader =
            AnswerReader { route: *route, root: AnswerField::Answer, event, report, sink: &mut sink };
        match body {
            Body::Events(events, start) => {
                reader.root = AnswerField::Event;
                events.feed(piece, |part| match part {
                    EventPart::NamedError => reader.report.failed = true,
                    EventPart::Data(data) => documents.read_event(data, start, &mut reader),
                    EventPart::End => {
                        documents.end(start, &mut reader);
                        reader.report.end_event();
                    }
                });
            }
            Body::Json(start) => documents.read(piece, start, &mut reader),
            Body::Opaque => reader.report.text_bytes += piece.len() as u64,
        }
    }

    /// Returns the capacity of the buffers for parts of the answer.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn kept(&self) -> usize {
        self.documents.kept() + self.event.kept()
    }

    /// Returns whether the answer is a stream of events.
    pub(crate) const fn reads_events(&self) -> bool {
        matches!(self.body, Body::Events(..))
    }

    /// Returns whether a stream is between two events.
    #[cfg(any(test, feature = "internals"))]
    pub(crate) fn between_events(&self) -> bool {
        matches!(&self.body, Body::Events(events, _) if events.between())
    }

    /// Returns the bytes of text that have come.
    pub(crate) const fn text_bytes(&self) -> u64 {
        self.report.text_bytes
    }

    /// Returns the report on the whole answer. Call once, after its last piece.
    pub(crate) fn finish(&mut self, sink: Option<&mut dyn FnMut(AnswerDelta<'_>)>) -> UsageReport {
        let mut sink: DeltaSink<'_> = sink;
        let Self { route, body, documents, event, report } = self;
        let mut reader =
            AnswerReader { route: *route, root: AnswerField::Answer, event, report, sink: &mut sink };
        match body {
            Body::Events(events, start) => {
                reader.root = AnswerField::Event;
                // A stream that was cut reports the parts that have come, without the effects of a regular end.
                if documents.is_open() {
                    documents.cut(&mut reader);
                } else if events.is_open() {
                    documents.end(start, &mut reader);
                    reader.report.end_event();
                }
            }
            Body::Json(start) => {
                documents.end(start, &mut reader);
                reader.report.end_event();
            }
            Body::Opaque => {}
        }
        self.report.finality = if self.has_whole_usage() { Finality::Final } else { Finality::Preliminary };
        std::mem::take(&mut self.report)
    }

    /// Returns whether the usage that came is that of the whole answer, and can be true.
    fn has_whole_usage(&self) -> bool {
        let report = &self.report;
        let Some(counts) = report.counts.filter(|_| report.finality == Finality::Final) else { return false };
        let came_last =
            report.stage >= StreamProgress::Finished && report.text_bytes_counted == report.text_bytes;
        let knows_text =
            report.text_bytes == 0 || counts.tokens().output > 0 || self.route == Route::Embeddings;
        (came_last || !self.reads_events()) && knows_text && counts.are_whole(self.route)
    }

    /// Returns whether a stream that ended as HTTP ended as its route ends streams.
    pub(crate) fn is_complete(&self, report: &UsageReport) -> bool {
        let needs_mark = matches!(self.body, Body::Events(..)) && self.route != Route::Unknown;
        !report.failed && (report.stage == StreamProgress::Complete || !needs_mark)
    }
}

impl UsageReport {
    /// Returns the tokens that the upstream counted.
    pub(crate) fn tokens(&self) -> Option<Tokens> {
        self.counts.map(|counts| counts.tokens())
    }

    /// Returns whether the upstream has refused the call: an error came first, and nothing of an answer.
    pub(crate) fn is_refusal(&self) -> bool {
        let has_nothing = self.text_bytes == 0 && self.counts.is_none() && self.finish.is_none();
        self.opening == Opening::Error && has_nothing
    }

    /// Notes the end of an event, or of a whole answer.
    fn end_event(&mut self) {
        if self.opening == Opening::None {
            self.opening = if self.failed { Opening::Error } else { Opening::Answer };
        }
    }

    fn tool(&mut self, name: &str) {
        if self.tools.len() < MAX_TOOLS {
            self.tools.push(JournalText::of(name));
        }
    }
}
