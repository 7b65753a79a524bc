//! Holds the entries of the ledger and changes them. It is plain data: the ledger does the locking and waiting.

use std::{
    io::{self, Write},
    time::Instant,
};

use bytes::Bytes;

use super::{Ending, Entry, Generation, Reported, export};

pub(super) struct Book {
    pub(super) entries: Vec<Entry>,
    pub(super) stopping: bool,
    pub(super) transcript: Transcript,
    next_seq: u64,
}

/// Second destination of ended entries.
pub(super) enum Transcript {
    Unwanted,
    To(Box<dyn Write + Send>),
    Failed(io::Error),
}

/// Outcome of a request, as its guard saw it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    Answered,
    Cut,
    Dropped,
}

/// End of a request, as its guard saw it.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) outcome: Outcome,
    /// Content events sent until then.
    pub(super) events: usize,
    /// The usage in the answer, if it was handed over whole.
    pub(super) reports: Option<Reported>,
    /// The answer that was being generated.
    pub(super) generates: Option<Generation>,
}

impl End {
    fn generated(self) -> Option<Reported> {
        match (self.generates?, self.outcome) {
            (Generation::InOnePiece(usage), _) | (Generation::Streamed(usage), Outcome::Answered) => {
                Some(usage)
            }
            (Generation::Streamed(usage), Outcome::Cut | Outcome::Dropped) => {
                let sent = u64::try_from(self.events).unwrap_or(u64::MAX);
                Some(Reported { output: usage.output.min(sent), ..usage })
            }
        }
    }
}

impl Book {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), stopping: false, transcript: Transcript::Unwanted, next_seq: 1 }
    }

    pub(super) fn begin(&mut self, entry: Entry) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.entries.push(Entry { seq, ..entry });
        seq
    }

    pub(super) fn received(&mut self, seq: u64, body: Bytes) {
        if let Some(entry) = self.entry_mut(seq) {
            entry.body = body;
            entry.ending = Ending::Open;
        }
    }

    /// Ends the request `seq`. If a test has cleared the ledger meanwhile, this has no effect.
    pub(super) fn end(&mut self, seq: u64, end: End) {
        let End { outcome, events, reports, .. } = end;
        let (at, after_events) = (Instant::now(), events);
        let ending = match outcome {
            Outcome::Answered => Ending::Answered { events, at },
            Outcome::Cut => Ending::CutByScript { after_events, at },
            Outcome::Dropped if self.stopping => Ending::UpstreamStopped { after_events, at },
            Outcome::Dropped => Ending::ClientGone { after_events, at },
        };
        if let Some(entry) = self.entry_mut(seq) {
            entry.ending = ending;
            entry.reported = reports.filter(|_| matches!(ending, Ending::Answered { .. }));
            entry.generated = end.generated().filter(|_| !matches!(ending, Ending::UpstreamStopped { .. }));
            self.transcribe(seq);
        }
    }

    pub(super) fn entry(&self, seq: u64) -> Option<&Entry> {
        self.position(seq).and_then(|at| self.entries.get(at))
    }

    pub(super) fn whole(&self) -> usize {
        self.entries.iter().filter(|entry| entry.ending != Ending::Arriving).count()
    }

    pub(super) fn summary(&self) -> String {
        let each = self.entries.iter().map(|entry| {
            let Entry { seq, method, path, ending, .. } = entry;
            format!("{seq}: {method} {path} {ending:?}")
        });
        format!("{} requests [{}]", self.entries.len(), each.collect::<Vec<_>>().join(", "))
    }

    fn entry_mut(&mut self, seq: u64) -> Option<&mut Entry> {
        self.position(seq).and_then(|at| self.entries.get_mut(at))
    }

    fn position(&self, seq: u64) -> Option<usize> {
        self.entries.binary_search_by_key(&seq, |entry| entry.seq).ok()
    }

    fn transcribe(&mut self, seq: u64) {
        let Some(at) = self.position(seq) else { return };
        if let (Some(entry), Transcript::To(out)) = (self.entries.get(at), &mut self.transcript)
            && let Err(error) = export::line(entry).and_then(|line| out.write_all(&line))
        {
            self.transcript = Transcript::Failed(error);
        }
    }
}
