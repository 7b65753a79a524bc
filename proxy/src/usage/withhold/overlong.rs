//! Reads an event that is too long to be held. It passes meanwhile, and is cut off where it is not an answer any more.

use bytes::Bytes;
use memchr::memchr2;

use super::{
    EventFilter,
    event::{Verdict, cleaned, judge},
    pieces::{EventSearch, PassedBytes, event_end},
};
use crate::mask::MaskedBody;

/// Bytes of a dropped event that are kept, so that its end is found wherever it was split.
const END: usize = 3;
/// Bytes that end an event that was cut off.
const CUT: &[u8] = b"\n\n";

/// The state of an event that is too long to be held.
#[derive(Debug)]
pub(super) enum Overlong {
    /// No event is too long.
    None,
    /// The rest of its one line passes.
    Passing(MaskedBody),
    /// The rest of it is dropped, because it is not an answer.
    Dropped,
}

impl Overlong {
    pub(super) const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }
}

/// The line behind a line's end.
enum NextLine {
    /// The next line is blank; both ends together are so long.
    Blank(usize),
    Other,
    /// The next line has not come.
    Unknown,
}

impl NextLine {
    fn of(bytes: &[u8]) -> Self {
        let first = match bytes {
            [b'\r', b'\n', ..] => 2,
            [b'\r'] | [] => return Self::Unknown,
            _ => 1,
        };
        match &bytes[first..] {
            [] | [b'\r'] => Self::Unknown,
            [b'\r', b'\n', ..] => Self::Blank(first + 2),
            [b'\r' | b'\n', ..] => Self::Blank(first + 1),
            _ => Self::Other,
        }
    }
}

impl EventFilter {
    /// Judges an event by the beginning that could be held.
    pub(super) fn begin_overlong(
        &mut self,
        rest: &mut Bytes,
        passed: &mut PassedBytes,
        redact: &impl Fn(&[u8]) -> Bytes,
    ) {
        self.search = EventSearch::default();
        self.split_secrets.give_up(|event| passed.push(event));
        let came = rest.len();
        self.skip_mark(rest, passed);
        let length = self.longest - (came - rest.len());
        // A line end is read with the line behind it.
        let beginning = rest[..length].trim_ascii_end().len();
        let head = rest.split_to(beginning);
        let is_data = ends_in_data(&head);
        let verdict = judge(&head, &mut self.shape);
        // Recognised by what could be held: not by what happens to have come besides.
        let may_pass = is_data && self.shape.looks_like_an_answer();
        let head = match verdict {
            Verdict::Unfinished | Verdict::Answer if may_pass => head,
            Verdict::NeedsCleaning if may_pass => cleaned(&head),
            _ => return self.cut(passed, redact),
        };
        let mut masked = MaskedBody::new(self.split_secrets.shared_mask());
        passed.push(masked.follow(head));
        self.overlong = Overlong::Passing(masked);
    }

    /// Passes or drops as much of an overlong event as has come. Returns whether its end has.
    pub(super) fn pass_overlong(
        &mut self,
        rest: &mut Bytes,
        passed: &mut PassedBytes,
        redact: &impl Fn(&[u8]) -> Bytes,
    ) -> bool {
        let Overlong::Passing(masked) = &mut self.overlong else {
            return self.drop_overlong(rest);
        };
        let line = rest.split_to(memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()));
        let good = self.shape.read(&line, 0);
        passed.push(masked.follow(line.slice(..good)));
        if !self.shape.looks_like_an_answer() {
            self.cut(passed, redact);
            return true;
        }
        match NextLine::of(rest) {
            NextLine::Unknown => false,
            NextLine::Blank(length) if self.shape.is_answer() => {
                passed.push(masked.rest());
                passed.push(rest.split_to(length));
                self.overlong = Overlong::None;
                true
            }
            // No model API spreads a document of that size over several lines.
            NextLine::Blank(_) | NextLine::Other => {
                self.cut(passed, redact);
                true
            }
        }
    }

    /// Drops as much of an event as has come. Returns whether its end has.
    fn drop_overlong(&mut self, rest: &mut Bytes) -> bool {
        let end = event_end(rest, &mut self.search);
        self.search = EventSearch::default();
        drop(rest.split_to(end.unwrap_or(rest.len().saturating_sub(END))));
        if end.is_some() {
            self.overlong = Overlong::None;
        }
        end.is_some()
    }

    /// Ends the event at its present position, and reports an error instead of its rest.
    fn cut(&mut self, passed: &mut PassedBytes, redact: &impl Fn(&[u8]) -> Bytes) {
        if let Overlong::Passing(masked) = &mut self.overlong {
            passed.push(masked.rest());
            passed.push(Bytes::from_static(CUT));
        }
        passed.push(self.split_secrets.mask().cover(redact(b"")));
        self.overlong = Overlong::Dropped;
        self.failed = true;
    }

    /// Returns the bytes that are left of an overlong event when the stream ends.
    pub(super) fn end_overlong(&mut self, rest: Bytes) -> Bytes {
        match &mut self.overlong {
            Overlong::Passing(masked) => [masked.rest(), rest].concat().into(),
            Overlong::Dropped | Overlong::None => Bytes::new(),
        }
    }
}

/// Returns whether the last line of `event` holds data, and no other does.
fn ends_in_data(event: &[u8]) -> bool {
    let begin = memchr::memrchr2(b'\n', b'\r', event).map_or(0, |at| at + 1);
    let mut earlier = event[..begin].split(|byte| matches!(byte, b'\n' | b'\r'));
    event[begin..].starts_with(b"data:") && !earlier.any(|line| line.starts_with(b"data"))
}
