//! Splits an event stream into the `data` of its events, fed in arbitrary pieces.
//!
//! Follows the line rules of the WHATWG HTML standard, 9.2.6, as far as model APIs use them: lines end in
//! LF, CR or CRLF, a blank line ends an event. `data` lines are handed out one by one, because no model API
//! spreads one JSON document over several. One that is larger than the bound is skipped, not buffered, and told of.

#[derive(Debug)]
pub(super) struct Events {
    /// Largest line that is looked into.
    largest: usize,
    partial: Partial,
    /// The last line was not blank: an event has begun.
    inside: bool,
    /// The last byte was a CR: an LF right after it belongs to it.
    after_cr: bool,
}

/// What a line tells.
#[derive(Debug, Clone, Copy)]
pub(super) enum Data<'a> {
    /// The event has the name `error`, whatever its data.
    NamedError,
    /// The content of a `data:` line.
    Whole(&'a [u8]),
    /// Of a line that is too long, the beginning.
    TooLong(&'a [u8]),
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
    pub(super) fn bounded(largest: usize) -> Self {
        Self { largest, partial: Partial::default(), inside: false, after_cr: false }
    }

    /// Calls `tell` with the content of each `data:` line that is complete or too long.
    pub(super) fn feed(&mut self, piece: &[u8], mut tell: impl FnMut(Data<'_>)) {
        let mut rest = piece;
        if rest.is_empty() {
            // Between CR and LF it would make a line of its own of the LF.
            return;
        }
        if std::mem::take(&mut self.after_cr) && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            self.line(line, &mut tell);
            let cr = rest[end] == b'\r';
            rest = if cr && after.first() == Some(&b'\n') { &after[1..] } else { after };
            self.after_cr = cr && after.is_empty();
        }
        self.keep(rest, &mut tell);
    }

    /// Whether the stream stands between two events.
    pub(super) fn between(&self) -> bool {
        !self.inside && matches!(&self.partial, Partial::Kept(kept) if kept.is_empty())
    }

    /// Bytes that are kept, or have room.
    #[cfg(any(test, feature = "parts"))]
    pub(super) fn kept(&self) -> usize {
        match &self.partial {
            Partial::Kept(kept) => kept.capacity(),
            Partial::Overlong => 0,
        }
    }

    fn line(&mut self, end: &[u8], tell: &mut impl FnMut(Data<'_>)) {
        let is_whole = matches!(&self.partial, Partial::Kept(kept) if kept.is_empty());
        self.inside = !(is_whole && end.is_empty());
        if is_whole && end.len() <= self.largest {
            return emit(end, Data::Whole, tell);
        }
        self.keep(end, tell);
        match &mut self.partial {
            Partial::Overlong => self.partial = Partial::default(),
            Partial::Kept(kept) => {
                emit(kept, Data::Whole, tell);
                kept.clear();
            }
        }
    }

    fn keep(&mut self, rest: &[u8], tell: &mut impl FnMut(Data<'_>)) {
        let Partial::Kept(kept) = &mut self.partial else { return };
        let room = self.largest - kept.len();
        let taken = rest.get(..room).unwrap_or(rest);
        if kept.len() + taken.len() > kept.capacity() {
            // As a vector grows by itself, but not beyond the bound.
            kept.reserve_exact(taken.len().max(kept.len()).min(room));
        }
        kept.extend_from_slice(taken);
        if rest.len() > room {
            emit(kept, Data::TooLong, tell);
            self.partial = Partial::Overlong;
        }
    }
}

fn emit<'a>(line: &'a [u8], kind: impl Fn(&'a [u8]) -> Data<'a>, tell: &mut impl FnMut(Data<'_>)) {
    if let Some(value) = line.strip_prefix(b"data:") {
        tell(kind(value.strip_prefix(b" ").unwrap_or(value)));
    } else if names_an_error(line) {
        tell(Data::NamedError);
    }
}

/// Whether this line gives an event the name `error`.
pub(super) fn names_an_error(line: &[u8]) -> bool {
    line.strip_prefix(b"event:").is_some_and(|name| name.trim_ascii() == b"error")
}
