//! Exposes single steps of a call to micro-benchmarks and fuzzers (feature `internals`). This is not a stable interface.

mod limits;
mod records;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use platform_core::{
    control::Correlation, grant::RunGrant, id::CallId, invalid::InvalidValue, money::NanoDollars,
    record::Tokens, route::Route,
};

pub use self::{
    limits::{CallSize, Limits, RunLimits},
    records::{InFlight, Records},
};
use crate::{
    exchange::fuzzing,
    mask::Mask,
    policy::Policy,
    usage::{AnswerDelta, DocumentFilter, EventFilter, Finality, Format, Meter, UsageEventFor, UsageReport},
};

/// Returns whether `body` may pass.
#[must_use]
pub fn body_is_good(body: &Bytes) -> bool {
    fuzzing::rewritten(Route::ChatCompletions, body, &Policy::default(), 1).is_ok()
}

/// A body that may pass, as it was read and as it is sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// Model it names.
    pub model: String,
    /// Set if the answer is to stream.
    pub stream: bool,
    /// Set if the agent itself requested the usage at a stream's end.
    pub usage_asked: bool,
    /// Most tokens an answer may have, as far as the body says.
    pub output: Option<u64>,
    /// Bytes that the upstream gets.
    pub sent: Vec<u8>,
}

/// Rewrites the body of a call to `route` under `grant`, for answers of at most `most` tokens.
///
/// # Errors
/// The reason for a refusal, in words.
pub fn rewritten(route: Route, body: &Bytes, grant: &RunGrant, most: u64) -> Result<Rewritten, InvalidValue> {
    let policy = Policy::of(grant, &[]);
    let (checked, sent) = fuzzing::rewritten(route, body, &policy, most).map_err(InvalidValue::of)?;
    Ok(Rewritten {
        stream: checked.stream,
        usage_asked: checked.usage_asked,
        output: checked.sizes.output(),
        model: checked.model.into_owned(),
        sent,
    })
}

/// Returns the slot and the route that the request line `method target` names, if there is such a route.
#[must_use]
pub fn addressed(method: &str, target: &str) -> Option<(Option<Correlation>, Route)> {
    fuzzing::addressed(method, target)
}

/// Returns the headers that go to the upstream with a call of `grant` that came with the headers `from`.
///
/// # Errors
/// If one of Sluicegate's own cannot be a header.
pub fn headers(
    grant: &RunGrant,
    authorization: HeaderValue,
    from: &HeaderMap,
    call: CallId,
) -> Result<HeaderMap, http::Error> {
    fuzzing::headers(grant, authorization, from, call)
}

/// Redacts an upstream's error `text` for an agent, which must not learn the `redacted_terms`.
#[must_use]
pub fn redacted(text: &str, redacted_terms: &[String]) -> String {
    fuzzing::redacted(text, redacted_terms)
}

/// Redacts a whole error document; `None` if `text` is anything else.
#[must_use]
pub fn redacted_document(text: &[u8], redacted_terms: &[String]) -> Option<String> {
    fuzzing::redacted_document(text, redacted_terms)
}

/// Redacts a stream's event that reports an error.
#[must_use]
pub fn redacted_event(event: &[u8], redacted_terms: &[String]) -> Option<String> {
    fuzzing::redacted_event(event, redacted_terms)
}

/// Returns the tokens that an answer of `route`, which comes in `pieces`, reports.
#[must_use]
pub fn metered(route: Route, content_type: &str, pieces: &[Bytes]) -> Option<Tokens> {
    let mut meter = Meter::new(route, Format::of(Some(content_type)));
    pieces.iter().for_each(|piece| meter.feed(piece, None));
    meter.finish(None).tokens()
}

/// End of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The answer ended as its route ends answers.
    Complete,
    /// An error came where an answer should.
    Failed,
    /// The answer broke off in the middle.
    Open,
}

/// Results of the meter for an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Read {
    /// Model it names.
    pub model: Option<String>,
    /// Reason that the model stopped.
    pub finish: Option<String>,
    /// Tokens it reports, and whether these are all that the whole answer used.
    pub tokens: Option<(Tokens, bool)>,
    /// Bytes of text that came.
    pub said: u64,
    /// Cost it reports.
    pub cost: Option<NanoDollars>,
    /// Tools it calls.
    pub tools: Vec<String>,
    /// End of the answer.
    pub end: End,
    /// Set if an event of our own might follow.
    pub between_events: bool,
    /// Texts and tool calls that watchers got; `None` without watchers.
    pub deltas: Option<Vec<String>>,
}

/// The part of an answer that the agent gets.
#[derive(Debug, PartialEq, Eq)]
pub struct Passed {
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// Most bytes that were held back after any piece.
    pub held: usize,
    /// Most bytes that the meter kept.
    pub kept: usize,
    /// Set for a document that is an answer, and for every stream.
    pub is_answer: bool,
}

/// Secret that a document must not let pass.
pub const SECRET: &str = "fuzz-secret-0123";

/// Filter between an answer and the agent.
enum Passage {
    Stream(Box<EventFilter>),
    Document(Box<DocumentFilter>),
}

/// Most bytes that a meter keeps of any answer.
pub const MAX_KEPT: usize = 256 << 10;

/// Properties of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Route of the call.
    pub route: Route,
    /// Content type it claims.
    pub content_type: &'a str,
    /// Largest event that is held back.
    pub longest: usize,
}

/// Feeds `pieces` of an answer to a meter, and withholds what is not for the agent. Of a stream these are the usage, on
/// routes where Sluicegate requested it, and errors, which `redact` replaces; of a document [`SECRET`].
pub fn observed<'p>(
    answer: Answer<'_>,
    deltas: Option<Vec<String>>,
    pieces: impl Iterator<Item = &'p [u8]>,
    redact: impl Fn(&[u8]) -> Bytes,
) -> (Read, Passed) {
    let mut deltas = deltas;
    let format = Format::of(Some(answer.content_type));
    let mut meter = Meter::new(answer.route, format);
    let mut passage = if meter.reads_events() {
        Passage::Stream(Box::new(EventFilter::bounded(
            answer.route,
            Arc::new(Mask::default()),
            answer.longest,
        )))
    } else {
        Passage::Document(Box::new(DocumentFilter::new(Arc::new(Mask::of([SECRET].into_iter())))))
    };
    let usage = match answer.route {
        Route::ChatCompletions | Route::Completions => UsageEventFor::Sluicegate,
        _ => UsageEventFor::Agent,
    };
    let mut passed = Passed { bytes: Vec::new(), held: 0, kept: 0, is_answer: true };
    for piece in pieces.map(Bytes::copy_from_slice) {
        match &mut deltas {
            Some(deltas) => meter.feed(&piece, Some(&mut |delta| deltas.push(text_of(delta)))),
            None => meter.feed(&piece, None),
        }
        let (piece, held) = match &mut passage {
            Passage::Stream(withheld) => (withheld.follow(piece, usage, &redact), withheld.held()),
            Passage::Document(document) => (document.follow(piece), document.held()),
        };
        passed.bytes.extend_from_slice(&piece);
        passed.held = passed.held.max(held);
        passed.kept = passed.kept.max(meter.kept());
    }
    let rest = match &mut passage {
        Passage::Stream(withheld) => withheld.rest(&redact),
        Passage::Document(document) => document.rest(),
    };
    passed.bytes.extend_from_slice(&rest);
    if let Passage::Document(document) = &passage {
        passed.is_answer = document.is_answer();
    }
    (read(meter, deltas), passed)
}

fn text_of(delta: AnswerDelta<'_>) -> String {
    match delta {
        AnswerDelta::Text(text) => format!("text {text}"),
        AnswerDelta::Tool(name) => format!("tool {name}"),
    }
}

fn read(mut meter: Meter, mut deltas: Option<Vec<String>>) -> Read {
    let between_events = meter.between_events();
    let report = match &mut deltas {
        Some(deltas) => meter.finish(Some(&mut |delta| deltas.push(text_of(delta)))),
        None => meter.finish(None),
    };
    let end = match (meter.is_complete(&report), report.failed) {
        (true, _) => End::Complete,
        (false, true) => End::Failed,
        (false, false) => End::Open,
    };
    let tokens = report.tokens().map(|tokens| (tokens, report.finality == Finality::Final));
    let UsageReport { model, finish, cost, text_bytes, tools, .. } = report;
    let text = |text: platform_core::untrusted::JournalText| text.to_string();
    Read {
        model: model.map(text),
        finish: finish.map(text),
        tokens,
        said: text_bytes,
        cost,
        tools: tools.into_iter().map(text).collect(),
        end,
        between_events,
        deltas,
    }
}
