//! Judges the evidence of a play: compares the journal with the usage that the upstream reported.

use std::collections::BTreeMap;

use bench::upstream::{Ending, Entry, Reported};
use http::StatusCode;
use platform_core::record::{ExchangeRecord, JournalLine, TokensSource};
use serde::Serialize;

use super::plan::{Kind, MAX_OUTPUT, Mode, number};

/// Tokens that the proxy reserves for a request in addition to its bytes.
const INSTRUCTIONS: u64 = 1024;

/// A call as its client saw it.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its kind.
    pub kind: Kind,
    /// Bytes of its request.
    pub request: u64,
    /// Received bytes of the answer.
    pub answer: u64,
    /// Its end.
    pub end: End,
}

/// The end of a call for its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client received the whole answer.
    Answered(StatusCode),
    /// The answer broke off.
    Broken,
    /// The client left.
    Left,
}

/// Data that a play is judged by. The number of a call is its index.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// All calls.
    pub calls: Vec<Call>,
    /// Usage that the upstream reported, by call that it answered whole.
    pub reported: BTreeMap<usize, Reported>,
    /// The whole journal.
    pub journal: Vec<JournalLine>,
}

/// Results of a play.
#[derive(Debug, Default, Serialize)]
pub struct Findings {
    /// Calls with a wrong record, in words.
    pub faults: Vec<String>,
    /// Figures by route, mode and models.
    pub kinds: BTreeMap<String, Figures>,
    /// Bytes of the largest request.
    pub largest_request: u64,
    /// Bytes of the largest answer.
    pub largest_answer: u64,
}

/// Figures of one kind of calls.
#[derive(Debug, Default, Serialize)]
pub struct Figures {
    /// Number of calls.
    pub calls: u64,
    /// Calls with a client that left, or an answer that broke off.
    pub cut: u64,
    /// Calls with usage that reached the client.
    pub reported: u64,
    /// Records by source of their tokens.
    pub sources: BTreeMap<&'static str, u64>,
    /// Largest number of tokens by which a record is below the usage that reached the client.
    pub largest_under: u64,
    /// Largest number of tokens by which a record is above that usage.
    pub largest_over: u64,
    /// Largest number of tokens by which the record of a cut call is below the upstream's report. Such records are
    /// estimates: the upstream may have reported more than ever reached the proxy.
    pub largest_under_of_cut: u64,
    /// Largest number of tokens by which the record of a cut call is above the upstream's report.
    pub largest_over_of_cut: u64,
}

impl Evidence {
    /// Collects the evidence of a play.
    pub(super) fn of(calls: Vec<Call>, ledger: &[Entry], journal: Vec<JournalLine>) -> Self {
        let whole = ledger.iter().filter(|entry| matches!(entry.ending, Ending::Answered { .. }));
        let reported = whole.filter_map(|entry| Some((number(&entry.body)?, entry.reported?))).collect();
        Self { calls, reported, journal }
    }

    /// Compares each call with its record.
    #[must_use]
    pub fn judge(&self) -> Findings {
        let mut findings = Findings::default();
        let mut records: BTreeMap<&str, Vec<&ExchangeRecord>> = BTreeMap::new();
        for line in &self.journal {
            records.entry(line.record.run_id.as_str()).or_default().push(&line.record);
        }
        for (number, call) in self.calls.iter().enumerate() {
            let of_call = records.remove(run_id(number).as_str()).unwrap_or_default();
            let [record] = of_call[..] else {
                findings.faults.push(format!("call {number} has {} records: {call:?}", of_call.len()));
                continue;
            };
            findings.add(call, record);
            let reported = self.reported.get(&number).copied();
            let faults = findings.compare(call, record, reported);
            findings.faults.extend(faults.into_iter().map(|fault| {
                format!("call {number}: {fault}: {call:?}, reported {reported:?}, booked {record:?}")
            }));
        }
        findings.faults.extend(records.keys().map(|run| format!("records of no call: {run}")));
        findings
    }
}

/// Returns the run id of a call; each call has its own run.
pub(super) fn run_id(number: usize) -> String {
    format!("m{number}")
}

impl Findings {
    fn figures(&mut self, kind: Kind) -> &mut Figures {
        let Kind { path, mode, models } = kind;
        self.kinds.entry(format!("{path} {mode:?} {models:?}").to_lowercase()).or_default()
    }

    fn add(&mut self, call: &Call, record: &ExchangeRecord) {
        self.largest_request = self.largest_request.max(call.request);
        self.largest_answer = self.largest_answer.max(call.answer);
        let figures = self.figures(call.kind);
        figures.calls += 1;
        figures.cut += u64::from(!matches!(call.end, End::Answered(_)));
        *figures.sources.entry(record.tokens_source.word()).or_default() += 1;
    }

    /// Returns the faults of one call's record.
    fn compare(
        &mut self,
        call: &Call,
        record: &ExchangeRecord,
        reported: Option<Reported>,
    ) -> Vec<&'static str> {
        let booked = &record.tokens;
        let mut faults = Vec::new();
        if let Some(Reported { input, output, .. }) = reported {
            let under = input.saturating_sub(booked.input).max(output.saturating_sub(booked.output));
            let over = booked.input.saturating_sub(input).max(booked.output.saturating_sub(output));
            let arrived = call.end == End::Answered(StatusCode::OK);
            let figures = self.figures(call.kind);
            if arrived {
                figures.reported += 1;
                figures.largest_under = figures.largest_under.max(under);
                figures.largest_over = figures.largest_over.max(over);
            } else {
                figures.largest_under_of_cut = figures.largest_under_of_cut.max(under);
                figures.largest_over_of_cut = figures.largest_over_of_cut.max(over);
            }
            if arrived && record.tokens_source != TokensSource::Exact {
                faults.push("its usage arrived, and it is not exact");
            }
            if arrived && under + over > 0 {
                faults.push("its usage arrived, and something else is booked");
            }
            // The upstream completes an answer in one piece even if its client has left.
            if call.end == End::Left && call.kind.mode == Mode::Whole && under > 0 {
                faults.push("it is booked for less than the upstream reported");
            }
        }
        let is_estimate = matches!(record.tokens_source, TokensSource::Estimated | TokensSource::Partial);
        if is_estimate && (booked.output > MAX_OUTPUT || booked.input > call.request + INSTRUCTIONS) {
            faults.push("an estimate is more than was reserved");
        }
        faults
    }
}
