//! Verifies that a journal is as it was written: its sequence, its hash chain, and the cursors that others hold.
//!
//! The chain shows a record that was changed, removed or inserted. It cannot show a journal that was rewritten as a
//! whole, or whose end is missing. Only a hash kept elsewhere shows that: by a consumer, or in a file with a cursor.
//! Memory use is constant.

#[cfg(test)]
mod tests;

use platform_core::{
    control::Cursor,
    record::{self, Lost, NO_LINE},
};
use serde::{Deserialize, Serialize};

/// Cursor that another party holds.
#[derive(Debug, Clone)]
pub struct HeldCursor {
    /// Name of the holder, for a sentence: "consumer billing".
    pub who: String,
    /// Cursor that the holder has kept.
    pub cursor: Cursor,
}

/// Fault of a journal, at the place where it is first noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub(crate) kind: FaultKind,
    /// Number of the faulty record.
    pub(crate) seq: u64,
    /// Call of that record, if the record is there.
    pub(crate) call: Option<String>,
    /// Description in words.
    pub message: String,
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultKind {
    /// A line is not a record.
    Broken,
    /// A record is not there.
    Missing,
    /// A record is there twice.
    Doubled,
    /// A record stands after a later one.
    OutOfOrder,
    /// A record is not what was written.
    Changed,
    /// A record differs from a cursor that was kept elsewhere.
    Rewritten,
    /// The end is missing.
    Truncated,
    /// A cursor names another journal, or records that are no longer here.
    Unknown,
}

/// Result of a verification.
#[derive(Debug, Serialize)]
pub struct Verification {
    /// Number of records that were read.
    pub records: u64,
    /// Number of the first record.
    pub first: Option<u64>,
    /// End of the journal, to be kept elsewhere; absent if the journal has a fault.
    pub cursor: Option<Cursor>,
    /// Fault of the journal; absent if none was noticed.
    pub fault: Option<Fault>,
    /// Holders whose cursors agree.
    pub agrees: Vec<String>,
}

/// Reader that verifies a journal line by line.
#[derive(Debug)]
pub struct Verifier {
    journal: String,
    known: Vec<HeldCursor>,
    records: u64,
    first: Option<u64>,
    last: Option<LastLine>,
    /// A record, and the next one, which holds another hash of it. The record after both shows which of them was
    /// changed.
    suspect: Option<(RecordRef, RecordRef)>,
    fault: Option<Fault>,
    /// Records that the proxy found lost.
    lost: Vec<Lost>,
}

/// State that is kept of a line.
#[derive(Debug)]
struct LastLine {
    at: RecordRef,
    hash: String,
}

/// Number and call of a record.
#[derive(Debug, Clone)]
struct RecordRef {
    seq: u64,
    call: String,
}

/// Part of a line that makes the chain.
#[derive(Deserialize)]
struct ChainLink<'l> {
    seq: u64,
    #[serde(borrow)]
    prev: &'l str,
    #[serde(borrow)]
    litellm_call_id: &'l str,
    #[serde(default)]
    lost: Vec<Lost>,
}

impl Verifier {
    /// Starts the verification of the journal with the id `journal` against the cursors in `known`.
    pub fn new(journal: String, known: Vec<HeldCursor>) -> Self {
        let other = known.iter().find(|known| known.cursor.journal != journal).map(|known| {
            let theirs = &known.cursor.journal;
            let message = format!("{} knows journal {theirs}, and this is journal {journal}", known.who);
            Fault { kind: FaultKind::Unknown, seq: known.cursor.seq, call: None, message }
        });
        Self {
            journal,
            known,
            records: 0,
            first: None,
            last: None,
            suspect: None,
            fault: other,
            lost: Vec::new(),
        }
    }

    /// Returns the number of records that were read.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Reads the next line, without its line feed.
    pub fn line(&mut self, line: &[u8]) {
        self.records += 1;
        let link: ChainLink<'_> = match serde_json::from_slice(line) {
            Ok(link) => link,
            Err(_not_one) => return self.broken(),
        };
        self.lost(&link.lost);
        let line = LastLine {
            at: RecordRef { seq: link.seq, call: link.litellm_call_id.to_owned() },
            hash: hash(line),
        };
        if self.fault.is_some() {
            self.note_later(&line.at);
        } else if let Some((before, here)) = self.suspect.take() {
            let knows_here = self.last.as_ref().is_some_and(|last| last.hash == link.prev);
            self.fault =
                Some(if knows_here { changed_before(&before, &here) } else { changed_here(&before, &here) });
        } else {
            self.fault = match self.last.take() {
                None => self.check_first(&line, link.prev),
                Some(last) => self.check_next(&last, &line, link.prev),
            }
            .or_else(|| self.check_cursors(&line));
        }
        self.last = Some(line);
    }

    /// Notes records that the proxy found lost.
    pub fn lost(&mut self, lost: &[Lost]) {
        for lost in lost {
            if !self.lost.contains(lost) {
                self.lost.push(*lost);
            }
        }
    }

    /// Reports the result after the last line. `end` is the last record's number, if the journal's writer reports one.
    pub fn finish(mut self, end: Option<u64>) -> Verification {
        if let Some((before, here)) = self.suspect.take() {
            let message = format!(
                "record {} or record {} was changed: {}, the last, holds another hash of {}",
                named(&before),
                named(&here),
                here.seq,
                before.seq
            );
            self.fault =
                Some(Fault { kind: FaultKind::Changed, seq: before.seq, call: Some(before.call), message });
        }
        let fault = self.fault.take().or_else(|| self.check_end(end)).or_else(|| self.check_lost_start());
        let fault = fault.map(|fault| self.explained(fault));
        let agrees =
            self.known.iter().map(|known| format!("{} (record {})", known.who, known.cursor.seq)).collect();
        let (seq, hash) = self.last.map_or((0, hash_text(&NO_LINE)), |last| (last.at.seq, last.hash));
        let cursor = fault.is_none().then_some(Cursor { journal: self.journal, seq, hash });
        let agrees = if fault.is_none() { agrees } else { Vec::new() };
        Verification { records: self.records, first: self.first, cursor, fault, agrees }
    }

    fn broken(&mut self) {
        if self.fault.is_none() {
            let (seq, after) = match &self.last {
                Some(last) => (last.at.seq + 1, format!("the line after record {}", named(&last.at))),
                None => (1, "the first line".to_owned()),
            };
            let message = format!("{after} is not a record");
            self.fault = Some(Fault { kind: FaultKind::Broken, seq, call: None, message });
        }
    }

    /// Changes the fault if a missing record comes later.
    fn note_later(&mut self, at: &RecordRef) {
        let Some(fault) = self.fault.as_mut().filter(|fault| fault.kind == FaultKind::Missing) else {
            return;
        };
        if fault.seq == at.seq {
            let message = match &self.last {
                Some(last) => format!("record {} stands after record {}", named(at), named(&last.at)),
                None => format!("record {} stands in another place", named(at)),
            };
            *fault = Fault { kind: FaultKind::OutOfOrder, seq: at.seq, call: Some(at.call.clone()), message };
        }
    }

    fn check_first(&mut self, line: &LastLine, prev: &str) -> Option<Fault> {
        let RecordRef { seq, call } = &line.at;
        self.first = Some(*seq);
        if *seq == 1 && prev.as_bytes() != NO_LINE {
            let message =
                format!("record {} is the first, and says that there was one before", named(&line.at));
            return Some(Fault { kind: FaultKind::Changed, seq: *seq, call: Some(call.clone()), message });
        }
        let gone = self.known.iter().find(|known| known.cursor.seq > 0 && known.cursor.seq + 1 < *seq);
        if let Some(known) = gone {
            let message = format!(
                "the journal begins with record {}, and {} knows record {}: the records between are gone, by retention or by hand",
                named(&line.at),
                known.who,
                known.cursor.seq
            );
            return Some(Fault { kind: FaultKind::Unknown, seq: known.cursor.seq, call: None, message });
        }
        let before = self.known.iter().find(|known| known.cursor.seq + 1 == *seq && *seq > 1);
        before.filter(|known| known.cursor.hash != prev).map(|known| Fault {
            kind: FaultKind::Rewritten,
            seq: *seq,
            call: Some(call.clone()),
            message: format!(
                "record {} does not follow the record {} that {} knows: the journal was rewritten",
                named(&line.at),
                known.cursor.seq,
                known.who
            ),
        })
    }

    fn check_next(&mut self, last: &LastLine, line: &LastLine, prev: &str) -> Option<Fault> {
        let before = &last.at;
        let here = &line.at;
        let fault = |kind, seq, call: Option<&str>, message| {
            Some(Fault { kind, seq, call: call.map(str::to_owned), message })
        };
        let call = Some(here.call.as_str());
        if here.seq == before.seq {
            let message = if last.hash == line.hash {
                format!("record {} is there twice", named(here))
            } else {
                format!("there are two records {}: {} and {}", here.seq, before.call, here.call)
            };
            return fault(FaultKind::Doubled, here.seq, call, message);
        }
        if here.seq < before.seq {
            let message = format!("record {} stands after record {}", named(here), named(before));
            return fault(FaultKind::OutOfOrder, here.seq, call, message);
        }
        if here.seq > before.seq + 1 {
            let missing = match (before.seq + 1, here.seq - 1) {
                (one, other) if one == other => format!("record {one} is missing"),
                (from, to) => format!("records {from} to {to} are missing"),
            };
            let message = format!("{missing}: after record {} comes record {}", named(before), named(here));
            return fault(FaultKind::Missing, before.seq + 1, None, message);
        }
        if prev != last.hash {
            self.suspect = Some((before.clone(), here.clone()));
        }
        None
    }

    /// Returns a fault if a cursor knows this record by another hash.
    fn check_cursors(&self, line: &LastLine) -> Option<Fault> {
        let RecordRef { seq, call } = &line.at;
        let other =
            self.known.iter().find(|known| known.cursor.seq == *seq && known.cursor.hash != line.hash)?;
        let message = format!(
            "record {} is not the one that {} knows: it was changed, or the journal was rewritten, from there or before",
            named(&line.at),
            other.who
        );
        Some(Fault { kind: FaultKind::Rewritten, seq: *seq, call: Some(call.clone()), message })
    }

    fn check_end(&self, end: Option<u64>) -> Option<Fault> {
        let last = self.last.as_ref().map_or(0, |last| last.at.seq);
        let knows = self.known.iter().map(|known| (known.cursor.seq, known.who.as_str()));
        let (seq, who) = knows.chain(end.map(|end| (end, "the proxy"))).max_by_key(|(seq, _)| *seq)?;
        let missing = match (last + 1, seq) {
            (from, to) if from > to => return None,
            (one, to) if one == to => format!("record {one} is missing"),
            (from, to) => format!("records {from} to {to} are missing"),
        };
        let message = format!("{missing} at the end: {who} knows record {seq}");
        Some(Fault { kind: FaultKind::Truncated, seq: last + 1, call: None, message })
    }
}

impl Verifier {
    /// Returns a fault if the journal begins late because earlier records were lost, not removed.
    fn check_lost_start(&self) -> Option<Fault> {
        let Lost { from, to } = *self.lost.iter().find(|lost| self.first == Some(lost.to + 1))?;
        let message = format!("records {from} to {to} are missing");
        Some(Fault { kind: FaultKind::Missing, seq: from, call: None, message })
    }

    /// Adds the proxy's own knowledge of missing records.
    fn explained(&self, fault: Fault) -> Fault {
        let is_about_gone =
            matches!(fault.kind, FaultKind::Missing | FaultKind::Truncated | FaultKind::Unknown);
        match self.lost.iter().find(|lost| is_about_gone && lost.holds(fault.seq)) {
            Some(Lost { from, to }) => {
                let message = format!(
                    "{}. The proxy noticed when it started that {from} to {to} were gone: a file was moved, deleted or cut short from outside. It uses their numbers for nothing else, and what was spent stays counted",
                    fault.message
                );
                Fault { message, ..fault }
            }
            None => fault,
        }
    }
}

/// Returns the fault that `before` was changed: `here` holds another hash of it, and the next record confirms `here`.
fn changed_before(before: &RecordRef, here: &RecordRef) -> Fault {
    let message =
        format!("record {} was changed: record {} holds another hash of it", named(before), named(here));
    Fault { kind: FaultKind::Changed, seq: before.seq, call: Some(before.call.clone()), message }
}

/// Returns the fault that `here` was changed: its hash of `before` is wrong, and the next record holds another hash of
/// it.
fn changed_here(before: &RecordRef, here: &RecordRef) -> Fault {
    let message = format!(
        "record {} was changed: neither is the hash it holds that of record {}, nor is its own the one that the record after \
         it holds",
        named(here),
        before.seq
    );
    Fault { kind: FaultKind::Changed, seq: here.seq, call: Some(here.call.clone()), message }
}

fn named(at: &RecordRef) -> String {
    format!("{} (call {})", at.seq, at.call)
}

fn hash(line: &[u8]) -> String {
    hash_text(&record::hash(line))
}

fn hash_text(hash: &[u8; 64]) -> String {
    String::from_utf8_lossy(hash).into_owned()
}
