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
pub struct Known {
    /// Name of the holder, for a sentence: "consumer billing".
    pub who: String,
    /// Cursor that the holder has kept.
    pub cursor: Cursor,
}

/// Fault of a journal, at the place where it is first noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub(crate) kind: Kind,
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
pub(crate) enum Kind {
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
pub struct Report {
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
    known: Vec<Known>,
    records: u64,
    first: Option<u64>,
    last: Option<Seen>,
    /// A record, and the next one, which holds another hash of it. The record after both shows which of them was
    /// changed.
    suspect: Option<(Place, Place)>,
    fault: Option<Fault>,
    /// Records that the proxy found lost.
    lost: Vec<Lost>,
}

/// State that is kept of a line.
#[derive(Debug)]
struct Seen {
    place: Place,
    hash: String,
}

/// Number and call of a record.
#[derive(Debug, Clone)]
struct Place {
    seq: u64,
    call: String,
}

/// Part of a line that makes the chain.
#[derive(Deserialize)]
struct Link<'l> {
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
    pub fn new(journal: String, known: Vec<Known>) -> Self {
        let other = known.iter().find(|known| known.cursor.journal != journal).map(|known| {
            let theirs = &known.cursor.journal;
            let message = format!("{} knows journal {theirs}, and this is journal {journal}", known.who);
            Fault { kind: Kind::Unknown, seq: known.cursor.seq, call: None, message }
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
        let link: Link<'_> = match serde_json::from_slice(line) {
            Ok(link) => link,
            Err(_not_one) => return self.broken(),
        };
        self.lost(&link.lost);
        let seen =
            Seen { place: Place { seq: link.seq, call: link.litellm_call_id.to_owned() }, hash: hash(line) };
        if self.fault.is_some() {
            self.look_again(&seen.place);
        } else if let Some((before, here)) = self.suspect.take() {
            let knows_here = self.last.as_ref().is_some_and(|last| last.hash == link.prev);
            self.fault =
                Some(if knows_here { changed_before(&before, &here) } else { changed_here(&before, &here) });
        } else {
            self.fault = match self.last.take() {
                None => self.begins(&seen, link.prev),
                Some(last) => self.follows(&last, &seen, link.prev),
            }
            .or_else(|| self.contradicted(&seen));
        }
        self.last = Some(seen);
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
    pub fn finish(mut self, end: Option<u64>) -> Report {
        if let Some((before, here)) = self.suspect.take() {
            let message = format!(
                "record {} or record {} was changed: {}, the last, holds another hash of {}",
                named(&before),
                named(&here),
                here.seq,
                before.seq
            );
            self.fault =
                Some(Fault { kind: Kind::Changed, seq: before.seq, call: Some(before.call), message });
        }
        let fault = self.fault.take().or_else(|| self.truncated(end)).or_else(|| self.begins_late());
        let fault = fault.map(|fault| self.explained(fault));
        let agrees =
            self.known.iter().map(|known| format!("{} (record {})", known.who, known.cursor.seq)).collect();
        let (seq, hash) = self.last.map_or((0, written(&NO_LINE)), |last| (last.place.seq, last.hash));
        let cursor = fault.is_none().then_some(Cursor { journal: self.journal, seq, hash });
        let agrees = if fault.is_none() { agrees } else { Vec::new() };
        Report { records: self.records, first: self.first, cursor, fault, agrees }
    }

    fn broken(&mut self) {
        if self.fault.is_none() {
            let (seq, after) = match &self.last {
                Some(last) => (last.place.seq + 1, format!("the line after record {}", named(&last.place))),
                None => (1, "the first line".to_owned()),
            };
            let message = format!("{after} is not a record");
            self.fault = Some(Fault { kind: Kind::Broken, seq, call: None, message });
        }
    }

    /// Changes the fault if a missing record comes later.
    fn look_again(&mut self, place: &Place) {
        let Some(fault) = self.fault.as_mut().filter(|fault| fault.kind == Kind::Missing) else { return };
        if fault.seq == place.seq {
            let message = match &self.last {
                Some(last) => format!("record {} stands after record {}", named(place), named(&last.place)),
                None => format!("record {} stands in another place", named(place)),
            };
            *fault =
                Fault { kind: Kind::OutOfOrder, seq: place.seq, call: Some(place.call.clone()), message };
        }
    }

    fn begins(&mut self, seen: &Seen, prev: &str) -> Option<Fault> {
        let Place { seq, call } = &seen.place;
        self.first = Some(*seq);
        if *seq == 1 && prev.as_bytes() != NO_LINE {
            let message =
                format!("record {} is the first, and says that there was one before", named(&seen.place));
            return Some(Fault { kind: Kind::Changed, seq: *seq, call: Some(call.clone()), message });
        }
        let gone = self.known.iter().find(|known| known.cursor.seq > 0 && known.cursor.seq + 1 < *seq);
        if let Some(known) = gone {
            let message = format!(
                "the journal begins with record {}, and {} knows record {}: what lay between is gone, let go or taken out",
                named(&seen.place),
                known.who,
                known.cursor.seq
            );
            return Some(Fault { kind: Kind::Unknown, seq: known.cursor.seq, call: None, message });
        }
        let before = self.known.iter().find(|known| known.cursor.seq + 1 == *seq && *seq > 1);
        before.filter(|known| known.cursor.hash != prev).map(|known| Fault {
            kind: Kind::Rewritten,
            seq: *seq,
            call: Some(call.clone()),
            message: format!(
                "record {} does not follow the record {} that {} knows: the journal was written anew",
                named(&seen.place),
                known.cursor.seq,
                known.who
            ),
        })
    }

    fn follows(&mut self, last: &Seen, seen: &Seen, prev: &str) -> Option<Fault> {
        let (before, here) = (&last.place, &seen.place);
        let fault = |kind, seq, call: Option<&str>, message| {
            Some(Fault { kind, seq, call: call.map(str::to_owned), message })
        };
        let call = Some(here.call.as_str());
        if here.seq == before.seq {
            let message = if last.hash == seen.hash {
                format!("record {} is there twice", named(here))
            } else {
                format!("there are two records {}: {} and {}", here.seq, before.call, here.call)
            };
            return fault(Kind::Doubled, here.seq, call, message);
        }
        if here.seq < before.seq {
            let message = format!("record {} stands after record {}", named(here), named(before));
            return fault(Kind::OutOfOrder, here.seq, call, message);
        }
        if here.seq > before.seq + 1 {
            let missing = match (before.seq + 1, here.seq - 1) {
                (one, other) if one == other => format!("record {one} is missing"),
                (from, to) => format!("records {from} to {to} are missing"),
            };
            let message = format!("{missing}: after record {} comes record {}", named(before), named(here));
            return fault(Kind::Missing, before.seq + 1, None, message);
        }
        if prev != last.hash {
            self.suspect = Some((before.clone(), here.clone()));
        }
        None
    }

    /// Returns a fault if a cursor knows this record by another hash.
    fn contradicted(&self, seen: &Seen) -> Option<Fault> {
        let Place { seq, call } = &seen.place;
        let other =
            self.known.iter().find(|known| known.cursor.seq == *seq && known.cursor.hash != seen.hash)?;
        let message = format!(
            "record {} is not the one that {} knows: it was changed, or the journal written anew, from there or before",
            named(&seen.place),
            other.who
        );
        Some(Fault { kind: Kind::Rewritten, seq: *seq, call: Some(call.clone()), message })
    }

    fn truncated(&self, end: Option<u64>) -> Option<Fault> {
        let last = self.last.as_ref().map_or(0, |last| last.place.seq);
        let knows = self.known.iter().map(|known| (known.cursor.seq, known.who.as_str()));
        let (seq, who) = knows.chain(end.map(|end| (end, "the proxy"))).max_by_key(|(seq, _)| *seq)?;
        let missing = match (last + 1, seq) {
            (from, to) if from > to => return None,
            (one, to) if one == to => format!("record {one} is missing"),
            (from, to) => format!("records {from} to {to} are missing"),
        };
        let message = format!("{missing} at the end: {who} knows record {seq}");
        Some(Fault { kind: Kind::Truncated, seq: last + 1, call: None, message })
    }
}

impl Verifier {
    /// Returns a fault if the journal begins late because earlier records were lost, not removed.
    fn begins_late(&self) -> Option<Fault> {
        let Lost { from, to } = *self.lost.iter().find(|lost| self.first == Some(lost.to + 1))?;
        let message = format!("records {from} to {to} are missing");
        Some(Fault { kind: Kind::Missing, seq: from, call: None, message })
    }

    /// Adds the proxy's own knowledge of missing records.
    fn explained(&self, fault: Fault) -> Fault {
        let is_about_gone = matches!(fault.kind, Kind::Missing | Kind::Truncated | Kind::Unknown);
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
fn changed_before(before: &Place, here: &Place) -> Fault {
    let message =
        format!("record {} was changed: record {} holds another hash of it", named(before), named(here));
    Fault { kind: Kind::Changed, seq: before.seq, call: Some(before.call.clone()), message }
}

/// Returns the fault that `here` was changed: its hash of `before` is wrong, and the next record holds another hash of
/// it.
fn changed_here(before: &Place, here: &Place) -> Fault {
    let message = format!(
        "record {} was changed: neither is the hash it holds that of record {}, nor is its own the one that the record after \
         it holds",
        named(here),
        before.seq
    );
    Fault { kind: Kind::Changed, seq: here.seq, call: Some(here.call.clone()), message }
}

fn named(place: &Place) -> String {
    format!("{} (call {})", place.seq, place.call)
}

fn hash(line: &[u8]) -> String {
    written(&record::hash(line))
}

fn written(hash: &[u8; 64]) -> String {
    String::from_utf8_lossy(hash).into_owned()
}
