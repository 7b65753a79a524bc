//! Keeps from an agent what is not for it: the event it did not ask for, in which a stream tells its usage, and what an
//! event that tells of an error says of the upstream's insides.
//!
//! An event that has not come whole is held back, since nobody could use it yet; all others pass as they are split by
//! chance, and are looked into only where the meter has found something. Works on bytes; knows nothing of calls.

use bytes::{Bytes, BytesMut};
use memchr::{memchr2, memmem};

use super::{Meter, answer, sse};

#[cfg(test)]
mod tests;

/// Most of one event that is held back. A longer one is no usage, and judged by its beginning.
const LONGEST: usize = 64 << 10;
/// As much of an overlong event stays behind, so that its end is seen wherever it was split.
const END: usize = 3;

/// What is held back of one stream.
#[derive(Debug)]
pub(crate) struct Withheld {
    /// Most of one event that is held back.
    longest: usize,
    held: BytesMut,
    searched: Searched,
    overlong: Overlong,
}

/// Who asked for the event in which a stream tells its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageIs {
    /// The agent, who gets it; or nobody.
    Theirs,
    /// Sluicegate alone.
    Ours,
}

/// How far the end of an event was looked for.
#[derive(Debug, Default, Clone, Copy)]
struct Searched {
    from: usize,
    /// Where the line began that is not at its end.
    line: usize,
}

/// What becomes of an event that is too long to be held.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Overlong {
    /// There is none.
    #[default]
    None,
    /// The rest of it passes.
    Passes,
    /// The rest of it goes nowhere, because it seems to tell of an error.
    Goes,
}

/// What is looked for in events.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Look {
    /// Events that tell nothing but usage, to be dropped.
    usage: bool,
    /// Events that tell of an error, to be scrubbed.
    errors: bool,
}

impl Default for Withheld {
    fn default() -> Self {
        Self::bounded(LONGEST)
    }
}

impl Withheld {
    /// Nothing yet, and of one event never more than `longest` bytes.
    pub(crate) fn bounded(longest: usize) -> Self {
        Self { longest, held: BytesMut::new(), searched: Searched::default(), overlong: Overlong::default() }
    }

    /// Bytes that are held back.
    #[cfg(feature = "parts")]
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether all that passed so far were whole events, so that one of our own may follow.
    pub(crate) fn leaves_whole_events(&self) -> bool {
        self.overlong != Overlong::Passes
    }

    /// What may go on now of `piece`, of which `meter` has just taken note: what that has not found is not looked for.
    /// `scrub` says what stands in the place of an event that tells of an error.
    pub(crate) fn follow(
        &mut self,
        piece: Bytes,
        (meter, usage): (&Meter, UsageIs),
        scrub: impl Fn(&[u8]) -> Bytes,
    ) -> Bytes {
        let look = Look { usage: usage == UsageIs::Ours && meter.has_counted(), errors: meter.has_failed() };
        // A larger piece may be one event that is too long to be held.
        let is_plain = look == Look::default() && piece.len() <= self.longest;
        if is_plain && self.held.is_empty() && meter.between_events() {
            return piece;
        }
        self.pass(&piece, look, scrub)
    }

    /// What of `piece` may go on now, with what was held.
    fn pass(&mut self, piece: &[u8], look: Look, scrub: impl Fn(&[u8]) -> Bytes) -> Bytes {
        self.held.extend_from_slice(piece);
        let mut passed = BytesMut::new();
        self.pass_overlong(&mut passed);
        while self.overlong == Overlong::None {
            // It belongs to no event, and may be the rest of a line end of which a CR has passed.
            let blank = blank_line(&self.held);
            if blank > 0 {
                self.searched = Searched::default();
                passed.extend_from_slice(&self.held.split_to(blank));
                continue;
            }
            match event_end(&self.held, &mut self.searched) {
                Some(end) if end <= self.longest => {
                    let event = self.held.split_to(end);
                    if look.errors && tells_error(&event) {
                        passed.extend_from_slice(&scrub(&event));
                    } else if !(look.usage && is_usage(&event)) {
                        passed.extend_from_slice(&event);
                    }
                }
                // Also if it has come whole: what becomes of it must not depend on how it is split.
                _ if self.held.len() > self.longest => {
                    if seems_to_tell_error(&self.held[..self.longest]) {
                        self.overlong = Overlong::Goes;
                        passed.extend_from_slice(&scrub(b""));
                    } else {
                        self.overlong = Overlong::Passes;
                    }
                    self.pass_overlong(&mut passed);
                }
                _ => break,
            }
        }
        passed.freeze()
    }

    /// Lets go of as much of an overlong event as is there.
    fn pass_overlong(&mut self, passed: &mut BytesMut) {
        if self.overlong == Overlong::None {
            return;
        }
        let end = event_end(&self.held, &mut self.searched);
        self.searched = Searched::default();
        let there = self.held.split_to(end.unwrap_or(self.held.len().saturating_sub(END)));
        if self.overlong == Overlong::Passes {
            passed.extend_from_slice(&there);
        }
        if end.is_some() {
            self.overlong = Overlong::None;
        }
    }

    /// What is left when the stream ends.
    pub(crate) fn rest(&mut self, scrub: impl Fn(&[u8]) -> Bytes) -> Bytes {
        let rest = self.held.split().freeze();
        match self.overlong {
            Overlong::Goes => Bytes::new(),
            Overlong::None if tells_error(&rest) => scrub(&rest),
            Overlong::None | Overlong::Passes => rest,
        }
    }
}

fn lines(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    event.split(|byte| matches!(byte, b'\n' | b'\r'))
}

fn data(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines(event).filter_map(|line| line.strip_prefix(b"data:"))
}

fn is_usage(event: &[u8]) -> bool {
    let mut data = data(event);
    match (data.next(), data.next()) {
        (Some(data), None) => answer::is_usage_only(data),
        _ => false,
    }
}

fn tells_error(event: &[u8]) -> bool {
    lines(event).any(sse::names_an_error) || data(event).any(answer::is_error)
}

/// Whether the beginning of an event has an error where another has `"error":null`.
fn seems_to_tell_error(event: &[u8]) -> bool {
    const WORD: &[u8] = b"\"error\"";
    let is_null = |at: usize| {
        let rest = event[at + WORD.len()..].trim_ascii_start();
        rest.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(b"null"))
    };
    memmem::find_iter(event, WORD).any(|at| !is_null(at)) || lines(event).any(sse::names_an_error)
}

/// How much at the start of `bytes` is a blank line; nothing while that is not known.
const fn blank_line(bytes: &[u8]) -> usize {
    match bytes {
        [b'\r', b'\n', ..] => 2,
        [b'\n', ..] | [b'\r', _, ..] => 1,
        _ => 0,
    }
}

/// Where the first event of `bytes` ends, its blank line included, or else how far it was `searched` for.
fn event_end(bytes: &[u8], searched: &mut Searched) -> Option<usize> {
    let Searched { mut from, mut line } = std::mem::take(searched);
    while let Some(at) = memchr2(b'\n', b'\r', &bytes[from..]).map(|at| from + at) {
        let end = match (bytes[at], bytes.get(at + 1)) {
            (b'\r', Some(b'\n')) => at + 2,
            // Whether an LF belongs to it is not known yet.
            (b'\r', None) => {
                *searched = Searched { from: at, line };
                return None;
            }
            _ => at + 1,
        };
        if at == line && at > 0 {
            return Some(end);
        }
        (from, line) = (end, end);
    }
    *searched = Searched { from: bytes.len(), line };
    None
}
