//! Single steps of a call, for micro-benchmarks and fuzzers to reach (feature `parts`). Not an interface to build on.

use std::{path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use platform_core::{
    budget::{Budget, LimitView, Price},
    control::{Correlation, Usage},
    grant::RunGrant,
    id::CallId,
    money::NanoDollars,
    record::{ExchangeRecord, Tokens},
    route::Route,
};
use platform_runtime::settings;

use crate::{
    budget::{Ask, Reservation, Spending, pace},
    exchange::{Policy, parts},
    journal::{self, Journal},
    mask::Mask,
    usage::{Count, Format, Heard, Meter, Reading, UsageIs, Withheld},
};

/// Whether `body` is one that may pass.
#[must_use]
pub fn body_is_good(body: &Bytes) -> bool {
    parts::rewritten(Route::ChatCompletions, body, &Policy::default(), 1).is_ok()
}

/// A body that may pass: what was read in it, and what is sent for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// The model it names.
    pub model: String,
    /// Whether the answer is to stream.
    pub stream: bool,
    /// Whether the agent itself asked for the usage at a stream's end.
    pub usage_asked: bool,
    /// The most tokens an answer may have, as far as the body says.
    pub output: Option<u64>,
    /// What the upstream gets.
    pub sent: Vec<u8>,
}

/// The body of a call to `route` under `grant`, whose answers may have `most` tokens.
///
/// # Errors
/// Why it is refused, in words.
pub fn rewritten(route: Route, body: &Bytes, grant: &RunGrant, most: u64) -> Result<Rewritten, String> {
    let policy = Policy::of(grant, &[]);
    let (checked, sent) =
        parts::rewritten(route, body, &policy, most).map_err(|rejection| rejection.to_string())?;
    Ok(Rewritten {
        stream: checked.stream,
        usage_asked: checked.usage_asked,
        output: checked.sizes.output(),
        model: checked.model.into_owned(),
        sent,
    })
}

/// The slot and the route that the request line `method target` names, if there is such a route.
#[must_use]
pub fn addressed(method: &str, target: &str) -> Option<(Option<Correlation>, Route)> {
    parts::addressed(method, target)
}

/// The headers that go to the upstream with a call of `grant` that came with the headers `from`.
///
/// # Errors
/// If one of Sluicegate's own cannot be a header.
pub fn headers(
    grant: &RunGrant,
    authorization: HeaderValue,
    from: &HeaderMap,
    call: CallId,
) -> Result<HeaderMap, http::Error> {
    parts::headers(grant, authorization, from, call)
}

/// What an agent is told of an upstream's error `text`, of which it must not learn what is `unspoken`.
#[must_use]
pub fn scrubbed(text: &str, unspoken: &[String]) -> String {
    parts::scrubbed(text, unspoken)
}

/// The same of a whole error document; `None` if it is none.
#[must_use]
pub fn scrubbed_document(text: &[u8], unspoken: &[String]) -> Option<String> {
    parts::scrubbed_document(text, unspoken)
}

/// The same of a stream's event that tells of an error.
#[must_use]
pub fn scrubbed_event(event: &[u8], unspoken: &[String]) -> Option<String> {
    parts::scrubbed_event(event, unspoken)
}

/// The tokens that an answer of `route` reports which comes in `pieces`.
#[must_use]
pub fn metered(route: Route, content_type: &str, pieces: &[Bytes]) -> Option<Tokens> {
    let mut meter = Meter::new(route, Format::of(Some(content_type)));
    pieces.iter().for_each(|piece| meter.feed(piece, None));
    meter.finish(None).tokens()
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As its route ends answers.
    Complete,
    /// An error came where an answer should.
    Failed,
    /// In the middle.
    Open,
}

/// What the meter made of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Read {
    /// The model it names.
    pub model: Option<String>,
    /// Why the model stopped.
    pub finish: Option<String>,
    /// The tokens it reports, and whether these are all that the whole answer used.
    pub tokens: Option<(Tokens, bool)>,
    /// Bytes of text that came.
    pub said: u64,
    /// What it says it cost.
    pub cost: Option<NanoDollars>,
    /// The tools it calls.
    pub tools: Vec<String>,
    /// How it ended.
    pub end: End,
    /// An event of our own might follow.
    pub between_events: bool,
    /// What whoever watches was told; `None` if nobody does.
    pub told: Option<Vec<String>>,
}

/// What the agent gets of an answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Passed {
    /// All of it.
    pub bytes: Vec<u8>,
    /// The most bytes that were held back after any piece.
    pub held: usize,
    /// The most bytes that the meter kept.
    pub kept: usize,
}

/// The most bytes that a meter keeps of any answer.
pub const MAX_KEPT: usize = 256 << 10;

/// An answer on its way.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// Where it was asked for.
    pub route: Route,
    /// What it says it is.
    pub content_type: &'a str,
    /// Largest event that is held back.
    pub longest: usize,
}

/// Feeds `pieces` of an answer to a meter, and of a stream withholds what is not for the agent: the usage, on routes where
/// Sluicegate asked for it, and errors, in whose place stands what `scrub` says.
pub fn observed<'p>(
    answer: Answer<'_>,
    told: Option<Vec<String>>,
    pieces: impl Iterator<Item = &'p [u8]>,
    scrub: impl Fn(&[u8]) -> Bytes,
) -> (Read, Passed) {
    let mut told = told;
    let format = Format::of(Some(answer.content_type));
    let mut meter = Meter::new(answer.route, format);
    let mask = Arc::new(Mask::default());
    let mut withheld = meter.reads_events().then(|| Withheld::bounded(answer.route, mask, answer.longest));
    let usage = match answer.route {
        Route::ChatCompletions | Route::Completions => UsageIs::Ours,
        _ => UsageIs::Theirs,
    };
    let mut passed = Passed { bytes: Vec::new(), held: 0, kept: 0 };
    for piece in pieces.map(Bytes::copy_from_slice) {
        match &mut told {
            Some(told) => meter.feed(&piece, Some(&mut |heard| told.push(text_of(heard)))),
            None => meter.feed(&piece, None),
        }
        let piece = match &mut withheld {
            Some(withheld) => {
                let usage = if meter.has_counted() { usage } else { UsageIs::Theirs };
                withheld.follow(piece, usage, &scrub)
            }
            None => piece,
        };
        passed.bytes.extend_from_slice(&piece);
        passed.held = passed.held.max(withheld.as_ref().map_or(0, Withheld::held));
        passed.kept = passed.kept.max(meter.kept());
    }
    if let Some(withheld) = &mut withheld {
        passed.bytes.extend_from_slice(&withheld.rest(&scrub));
    }
    (read(meter, told), passed)
}

fn text_of(heard: Heard<'_>) -> String {
    match heard {
        Heard::Text(text) => format!("text {text}"),
        Heard::Tool(name) => format!("tool {name}"),
    }
}

fn read(mut meter: Meter, mut told: Option<Vec<String>>) -> Read {
    let between_events = meter.between_events();
    let reading = match &mut told {
        Some(told) => meter.finish(Some(&mut |heard| told.push(text_of(heard)))),
        None => meter.finish(None),
    };
    let end = match (meter.is_complete(&reading), reading.failed) {
        (true, _) => End::Complete,
        (false, true) => End::Failed,
        (false, false) => End::Open,
    };
    let tokens = reading.tokens().map(|tokens| (tokens, reading.count == Count::Final));
    let Reading { model, finish, cost, said, tools, .. } = reading;
    let text = |text: platform_core::untrusted::JournalText| text.to_string();
    Read {
        model: model.map(text),
        finish: finish.map(text),
        tokens,
        said,
        cost,
        tools: tools.into_iter().map(text).collect(),
        end,
        between_events,
        told,
    }
}

/// Calls of several runs of one account, under limits.
#[derive(Debug)]
pub struct Limits {
    /// The runs', then the account's.
    spending: Vec<Arc<Spending>>,
    calls: Vec<Reservation>,
}

impl Limits {
    /// Of each run, and last of the account, what is allowed and what was used so far.
    #[must_use]
    pub fn new(of_all: &[(Budget, Usage)]) -> Self {
        let spending = of_all.iter().map(|(budget, usage)| Arc::new(Spending::new(budget, usage))).collect();
        Self { spending, calls: Vec::new() }
    }

    /// Begins a call of `run` that asks for so much input, and so much output of each of so many answers. Returns the most
    /// it may use, or nothing if it may not be made now.
    pub fn begin(
        &mut self,
        run: usize,
        (input, output, answers): (u64, u64, u64),
        price: Price,
    ) -> Option<Tokens> {
        let (run, account) = (self.spending.get(run)?, self.spending.last()?);
        pace(run, account, Duration::ZERO).ok()?;
        let mut call = Reservation::enter(run, account).ok()?;
        let granted = call.grow(&Ask { input, output, answers, price: Some(price) }).ok()?;
        self.calls.push(call);
        Some(granted.tokens)
    }

    /// Ends a call, the last one in whose place then is, with what it used; without that, before anything was sent.
    pub fn end(&mut self, call: usize, used: Option<(Tokens, NanoDollars)>) {
        let call = self.calls.swap_remove(call);
        if let Some((tokens, cost)) = used {
            call.settle(tokens, cost);
        }
    }

    /// How far each limit of a run or, last, of the account is used.
    #[must_use]
    pub fn view(&self, whose: usize) -> Vec<LimitView> {
        self.spending[whose].view()
    }
}

/// A journal to append to.
#[derive(Debug)]
pub struct Records(Journal);

impl Records {
    /// A journal in `dir`.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(dir: &Path) -> Result<Self, journal::Error> {
        Journal::open(dir, settings::Journal::default()).map(Self)
    }

    /// What a call does that goes upstream: takes room, is marked, and has its line appended.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append(&self, record: &ExchangeRecord) -> Result<(), journal::Error> {
        let mut room = self.0.room();
        if let Some(room) = &mut room {
            drop(self.0.mark(room, record)?);
        }
        drop(self.0.append(record, room)?);
        Ok(())
    }
}
