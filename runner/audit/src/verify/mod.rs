//! Verifies that a journal is unchanged: checks its sequence, its hash chain, and the cursors that other parties hold.
//!
//! The chain shows a record that was changed, removed or inserted. It cannot show a journal that was rewritten as a
//! whole, or that lost its end. Only a hash outside the journal shows that: a consumer's, or one in a file with a
//! cursor. Memory use is constant.

#[cfg(test)]
mod tests;

use platform_core::{
    control::Cursor,
    json::{self, Bounds},
    record::{self, Lost, NO_LINE},
};
use serde::{Deserialize, Serialize};

/// Cursor that another party holds.
#[derive(Debug, Clone)]
pub struct HeldCursor {
    /// Holder, in words that fit into a sentence: "consumer billing".
    pub who: String,
    /// Cursor that the holder keeps.
    pub cursor: Cursor,
}

/// First fault that a verification found in a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub(crate) kind: FaultKind,
    /// Sequence number of the faulty record.
    pub(crate) seq: u64,
    /// Call of that record, if the record exists.
    pub(crate) call: Option<String>,
    /// Description in words.
    pub message: String,
}

/// Kind of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultKind {
    /// A line is not a record.
    Broken,
    /// A record does not exist.
    Missing,
    /// A record exists twice.
    Doubled,
    /// A record follows a later one.
    OutOfOrder,
    /// The content of a record was changed.
    Changed,
    /// A record differs from a cursor that another party holds.
    Rewritten,
    /// The end of the journal is missing.
    Truncated,
    /// A cursor names another journal, or records that this journal no longer has.
    Unknown,
}

/// Result of a verification.
#[derive(Debug, Serialize)]
pub struct Verification {
    /// Number of records that were read.
    pub records: u64,
    /// Sequence number of the first record.
    pub first: Option<u64>,
    /// Cursor at the end of the journal, to be kept elsewhere. Absent if the journal has a fault.
    pub cursor: Option<Cursor>,
    /// Fault of the journal. Absent if none was found.
    pub fault: Option<Fault>,
    /// Holders of cursors that agree with the journal.
    pub agrees: Vec<String>,
}

/// Reader that verifies a journal line by line.
#[derive(Debug)]
pub struct Verifier {
    /// Id of the journal.
    journal: String,
    held: Vec<HeldCursor>,
    records: u64,
    first: Option<u64>,
    last: Option<LastLine>,
    /// Two neighbouring records, of which the second holds a wrong hash of the first. The record after both shows which
    /// of them was changed.
    suspect: Option<(RecordRef, RecordRef)>,
    fault: Option<Fault>,
    /// Ranges of records that the proxy reported as lost.
    lost: Vec<Lost>,
}

/// Line that was read last.
#[derive(Debug)]
struct LastLine {
    record: RecordRef,
    hash: String,
}

/// Sequence number and call of a record.
#[derive(Debug, Clone)]
struct RecordRef {
    seq: u64,
    call: String,
}

/// Fields of a line that form the chain.
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
    /// Starts the verification of the journal with the id `journal`, and compares it with the cursors in `held`.
    pub fn new(journal: String, held: Vec<HeldCursor>) -> Self {
        let of_other = held.iter().find(|holder| holder.cursor.journal != journal).map(|holder| {
            let theirs = &holder.cursor.journal;
            let message = format!("{} knows journal {theirs}, and this is journal {journal}", holder.who);
            Fault { kind: FaultKind::Unknown, seq: holder.cursor.seq, call: None, message }
        });
        Self {
            journal,
            held,
            records: 0,
            first: None,
            last: None,
            suspect: None,
            fault: of_other,
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
        let link: ChainLink<'_> = match json::from_slice(line, Bounds::STORED) {
            Ok(link) => link,
            Err(_error) => return self.broken_line(),
        };
        self.lost(&link.lost);
        let line = LastLine {
            record: RecordRef { seq: link.seq, call: link.litellm_call_id.to_owned() },
            hash: hash(line),
        };
        if self.fault.is_some() {
            self.note_out_of_order(&line.record);
        } else if let Some((before, here)) = self.suspect.take() {
            let here_is_intact = self.last.as_ref().is_some_and(|last| last.hash == link.prev);
            self.fault = Some(if here_is_intact {
                changed_before(&before, &here)
            } else {
                changed_here(&before, &here)
            });
        } else {
            self.fault = match self.last.take() {
                None => self.check_first(&line, link.prev),
                Some(last) => self.check_next(&last, &line, link.prev),
            }
            .or_else(|| self.check_cursors(&line));
        }
        self.last = Some(line);
    }

    /// Notes ranges of records that the proxy reported as lost.
    pub fn lost(&mut self, lost: &[Lost]) {
        for range in lost {
            if !self.lost.contains(range) {
                self.lost.push(*range);
            }
        }
    }

    /// Returns the result after the last line. `end` is the sequence number of the last record, if the proxy reported
    /// it.
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
        let fault = fault.map(|fault| self.with_reported_loss(fault));
        let (seq, hash) = self.last.map_or((0, hash_text(&NO_LINE)), |last| (last.record.seq, last.hash));
        let cursor = fault.is_none().then_some(Cursor { journal: self.journal, seq, hash });
        let agreeing = self.held.iter().filter(|_| fault.is_none());
        let agrees =
            agreeing.map(|holder| format!("{} (record {})", holder.who, holder.cursor.seq)).collect();
        Verification { records: self.records, first: self.first, cursor, fault, agrees }
    }

    /// Notes that the present line is not a record.
    fn broken_line(&mut self) {
        if self.fault.is_none() {
            let (seq, after) = match &self.last {
                Some(last) => (last.record.seq + 1, format!("the line after record {}", named(&last.record))),
                None => (1, "the first line".to_owned()),
            };
            let message = format!("{after} is not a record");
            self.fault = Some(Fault { kind: FaultKind::Broken, seq, call: None, message });
        }
    }

    /// Changes the fault if `record` is the one that was missing: it only comes late.
    fn note_out_of_order(&mut self, record: &RecordRef) {
        let Some(fault) = self.fault.as_mut().filter(|fault| fault.kind == FaultKind::Missing) else {
            return;
        };
        if fault.seq == record.seq {
            let message = match &self.last {
                Some(last) => format!("record {} stands after record {}", named(record), named(&last.record)),
                None => format!("record {} stands in another place", named(record)),
            };
            let call = Some(record.call.clone());
            *fault = Fault { kind: FaultKind::OutOfOrder, seq: record.seq, call, message };
        }
    }

    /// Returns a fault if the journal cannot begin with this record.
    fn check_first(&mut self, line: &LastLine, prev: &str) -> Option<Fault> {
        let RecordRef { seq, call } = &line.record;
        self.first = Some(*seq);
        if *seq == 1 && prev.as_bytes() != NO_LINE {
            let message =
                format!("record {} is the first, and says that there was one before", named(&line.record));
            return Some(Fault { kind: FaultKind::Changed, seq: *seq, call: Some(call.clone()), message });
        }
        let behind = self.held.iter().find(|holder| holder.cursor.seq > 0 && holder.cursor.seq + 1 < *seq);
        if let Some(holder) = behind {
            let message = format!(
                "the journal begins with record {}, and {} knows record {}: the records between are gone, by retention or by hand",
                named(&line.record),
                holder.who,
                holder.cursor.seq
            );
            return Some(Fault { kind: FaultKind::Unknown, seq: holder.cursor.seq, call: None, message });
        }
        let at_start = self.held.iter().find(|holder| holder.cursor.seq + 1 == *seq && *seq > 1);
        at_start.filter(|holder| holder.cursor.hash != prev).map(|holder| Fault {
            kind: FaultKind::Rewritten,
            seq: *seq,
            call: Some(call.clone()),
            message: format!(
                "record {} does not follow the record {} that {} knows: the journal was rewritten",
                named(&line.record),
                holder.cursor.seq,
                holder.who
            ),
        })
    }

    /// Returns a fault if this record cannot follow `last`. A wrong hash is only suspected until the next record.
    fn check_next(&mut self, last: &LastLine, line: &LastLine, prev: &str) -> Option<Fault> {
        let before = &last.record;
        let here = &line.record;
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

    /// Returns a fault if a cursor holds another hash of this record.
    fn check_cursors(&self, line: &LastLine) -> Option<Fault> {
        let RecordRef { seq, call } = &line.record;
        let contradicting =
            self.held.iter().find(|holder| holder.cursor.seq == *seq && holder.cursor.hash != line.hash)?;
        let message = format!(
            "record {} is not the one that {} knows: it was changed, or the journal was rewritten, from there or before",
            named(&line.record),
            contradicting.who
        );
        Some(Fault { kind: FaultKind::Rewritten, seq: *seq, call: Some(call.clone()), message })
    }

    /// Returns a fault if a cursor or the proxy holds a later record than the last one.
    fn check_end(&self, end: Option<u64>) -> Option<Fault> {
        let last = self.last.as_ref().map_or(0, |last| last.record.seq);
        let held = self.held.iter().map(|holder| (holder.cursor.seq, holder.who.as_str()));
        let (seq, who) = held.chain(end.map(|end| (end, "the proxy"))).max_by_key(|(seq, _)| *seq)?;
        let missing = match (last + 1, seq) {
            (from, to) if from > to => return None,
            (one, other) if one == other => format!("record {one} is missing"),
            (from, to) => format!("records {from} to {to} are missing"),
        };
        let message = format!("{missing} at the end: {who} knows record {seq}");
        Some(Fault { kind: FaultKind::Truncated, seq: last + 1, call: None, message })
    }
}

impl Verifier {
    /// Returns a fault if the journal begins late because earlier records were lost, not removed by retention.
    fn check_lost_start(&self) -> Option<Fault> {
        let Lost { from, to } = *self.lost.iter().find(|lost| self.first == Some(lost.to + 1))?;
        let message = format!("records {from} to {to} are missing");
        Some(Fault { kind: FaultKind::Missing, seq: from, call: None, message })
    }

    /// Adds the proxy's own report of lost records to the message of `fault`.
    fn with_reported_loss(&self, fault: Fault) -> Fault {
        let is_loss = matches!(fault.kind, FaultKind::Missing | FaultKind::Truncated | FaultKind::Unknown);
        match self.lost.iter().find(|lost| is_loss && lost.holds(fault.seq)) {
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

/// Returns the fault that `before` was changed. `here` holds another hash of it, and the next record confirms `here`.
fn changed_before(before: &RecordRef, here: &RecordRef) -> Fault {
    let message =
        format!("record {} was changed: record {} holds another hash of it", named(before), named(here));
    Fault { kind: FaultKind::Changed, seq: before.seq, call: Some(before.call.clone()), message }
}

/// Returns the fault that `here` was changed. Its hash of `before` is wrong, and the next record holds another hash of
/// `here`.
fn changed_here(before: &RecordRef, here: &RecordRef) -> Fault {
    let message = format!(
        "record {} was changed: neither is the hash it holds that of record {}, nor is its own the one that the record after \
         it holds",
        named(here),
        before.seq
    );
    Fault { kind: FaultKind::Changed, seq: here.seq, call: Some(here.call.clone()), message }
}

fn named(record: &RecordRef) -> String {
    format!("{} (call {})", record.seq, record.call)
}

fn hash(line: &[u8]) -> String {
    hash_text(&record::hash(line))
}

fn hash_text(hash: &[u8; 64]) -> String {
    String::from_utf8_lossy(hash).into_owned()
}
