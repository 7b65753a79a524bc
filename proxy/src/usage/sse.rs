//! Splits an event stream into the `data` of its events, fed in arbitrary pieces.
//!
//! Follows the line rules of the WHATWG HTML standard, 9.2.6, as far as model APIs use them: lines end in
//! LF, CR or CRLF, a blank line ends an event. `data` lines are handed out one by one, because no model API
//! spreads one JSON document over several. An event larger than the bound is skipped, not buffered.

use super::LOOK_INTO;

#[derive(Debug, Default)]
pub(super) struct Events {
    partial: Partial,
    /// The last line was not blank: an event has begun.
    inside: bool,
    /// The last byte was a CR: an LF right after it belongs to it.
    after_cr: bool,
}

/// The beginning of a line whose end has not come yet.
#[derive(Debug)]
enum Partial {
    Kept(Vec<u8>),
    /// Thrown away, because the line is too long.
    Overlong,
}

impl Default for Partial {
    fn default() -> Self {
        Self::Kept(Vec::new())
    }
}

impl Events {
    /// Calls `data` with the content of each `data:` line that is complete, and says whether an event had the name
    /// `error`, whatever its data.
    pub(super) fn feed(&mut self, piece: &[u8], mut data: impl FnMut(&[u8])) -> bool {
        let (mut rest, mut named_an_error) = (piece, false);
        if std::mem::take(&mut self.after_cr) && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            named_an_error |= self.line(line, &mut data);
            let cr = rest[end] == b'\r';
            rest = if cr && after.first() == Some(&b'\n') { &after[1..] } else { after };
            self.after_cr = cr && after.is_empty();
        }
        self.keep(rest);
        named_an_error
    }

    /// Whether the stream stands between two events.
    pub(super) fn between(&self) -> bool {
        !self.inside && matches!(&self.partial, Partial::Kept(kept) if kept.is_empty())
    }

    fn line(&mut self, end: &[u8], data: &mut impl FnMut(&[u8])) -> bool {
        self.inside = true;
        match &mut self.partial {
            Partial::Overlong => {
                self.partial = Partial::default();
                false
            }
            Partial::Kept(kept) if kept.is_empty() => {
                self.inside = !end.is_empty();
                emit(end, data)
            }
            Partial::Kept(kept) => {
                kept.extend_from_slice(end);
                let named_an_error = emit(kept, data);
                kept.clear();
                named_an_error
            }
        }
    }

    fn keep(&mut self, rest: &[u8]) {
        match &mut self.partial {
            Partial::Kept(kept) if kept.len() + rest.len() <= LOOK_INTO => kept.extend_from_slice(rest),
            Partial::Kept(_) => self.partial = Partial::Overlong,
            Partial::Overlong => {}
        }
    }
}

/// Hands out what is data, and says whether the line names an error.
fn emit(line: &[u8], data: &mut impl FnMut(&[u8])) -> bool {
    let Some(value) = line.strip_prefix(b"data:") else { return names_an_error(line) };
    data(value.strip_prefix(b" ").unwrap_or(value));
    false
}

/// Whether this line gives an event the name `error`.
pub(super) fn names_an_error(line: &[u8]) -> bool {
    line.strip_prefix(b"event:").is_some_and(|name| name.trim_ascii() == b"error")
}
