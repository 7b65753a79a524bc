//! Splits an event stream into its events, fed in arbitrary pieces, in constant memory.
//!
//! Follows the WHATWG HTML standard, 9.2.5 and 9.2.6. Lines end in LF, CR or CRLF, and a blank line ends an event. The
//! `data` lines of an event make one text with line feeds between them. A byte order mark may come first. Data is
//! passed on as it comes.

use super::byte_order_mark::ByteOrderMark;

/// Longest line that is kept to see which field it is: long enough for an event's name.
const MAX_HEAD: usize = 32;

#[derive(Debug)]
pub(super) struct EventParser {
    line: LineKind,
    head: [u8; MAX_HEAD],
    /// Bytes of the head that have come.
    length: usize,
    event: EventProgress,
    /// Set if the last byte was a CR: an LF right after it belongs to it.
    after_cr: bool,
    mark: ByteOrderMark,
}

/// Progress of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventProgress {
    /// Nothing: the last line was blank, or there was none.
    None,
    /// A line without data.
    Begun,
    /// Data.
    WithData,
}

/// A part of an event.
#[derive(Debug, Clone, Copy)]
pub(super) enum EventPart<'a> {
    /// The event has the name `error`, whatever its data.
    NamedError,
    /// More of its data.
    Data(&'a [u8]),
    /// The event has ended, and had data.
    End,
}

/// The line that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    /// A line that is still too short to name its field.
    Head,
    /// A line of the field `data`.
    Data,
    /// A line of a field that does not matter.
    Ignored,
}

impl EventParser {
    pub(super) const fn new() -> Self {
        Self {
            line: LineKind::Head,
            head: [0; MAX_HEAD],
            length: 0,
            event: EventProgress::None,
            after_cr: false,
            mark: ByteOrderMark::new(),
        }
    }

    /// Calls `emit` with each part of each event.
    pub(super) fn feed(&mut self, piece: &[u8], mut emit: impl FnMut(EventPart<'_>)) {
        let (text, mut rest) = self.mark.behind(piece);
        if !text.is_empty() {
            self.read(text, &mut emit);
        }
        if rest.is_empty() {
            // Between CR and LF it would make its own line of the LF.
            return;
        }
        if std::mem::take(&mut self.after_cr) && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let after = &rest[end + 1..];
            self.read(&rest[..end], &mut emit);
            self.end_line(&mut emit);
            let cr = rest[end] == b'\r';
            rest = if cr && after.first() == Some(&b'\n') { &after[1..] } else { after };
            self.after_cr = cr && after.is_empty();
        }
        self.read(rest, &mut emit);
    }

    /// Returns whether the stream is between two events.
    #[cfg(any(test, feature = "internals"))]
    pub(super) fn between(&self) -> bool {
        self.event == EventProgress::None && self.line == LineKind::Head && self.length == 0
    }

    /// Returns whether an event has data and has not ended.
    pub(super) fn is_open(&self) -> bool {
        self.event == EventProgress::WithData
    }

    fn read(&mut self, content: &[u8], emit: &mut impl FnMut(EventPart<'_>)) {
        match self.line {
            LineKind::Ignored => {}
            LineKind::Data => emit(EventPart::Data(content)),
            LineKind::Head => {
                const DATA: &[u8] = b"data:";
                // The value begins behind one byte more, which may be a space that does not belong to it.
                let missing = DATA.len().saturating_sub(self.length);
                let taken = content.len().min(missing);
                self.take(&content[..taken]);
                if self.head[..self.length] != *DATA {
                    return self.take(&content[taken..]);
                }
                let Some(first) = content.get(taken) else { return };
                self.begin_data(emit);
                self.line = LineKind::Data;
                emit(EventPart::Data(&content[taken + usize::from(*first == b' ')..]));
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        match self.head.get_mut(self.length..self.length + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => self.line = LineKind::Ignored,
        }
    }

    fn begin_data(&mut self, emit: &mut impl FnMut(EventPart<'_>)) {
        if std::mem::replace(&mut self.event, EventProgress::WithData) == EventProgress::WithData {
            emit(EventPart::Data(b"\n"));
        }
    }

    fn end_line(&mut self, emit: &mut impl FnMut(EventPart<'_>)) {
        match (self.line, &self.head[..self.length]) {
            (LineKind::Head, b"") => {
                if std::mem::replace(&mut self.event, EventProgress::None) == EventProgress::WithData {
                    emit(EventPart::End);
                }
            }
            (LineKind::Head, b"data" | b"data:") => self.begin_data(emit),
            (line, head) => {
                if line == LineKind::Head && names_an_error(head) {
                    emit(EventPart::NamedError);
                }
                self.event =
                    if self.event == EventProgress::None { EventProgress::Begun } else { self.event };
            }
        }
        self.line = LineKind::Head;
        self.length = 0;
    }
}

/// Returns whether this line gives an event the name `error`.
pub(super) fn names_an_error(line: &[u8]) -> bool {
    line.strip_prefix(b"event:").is_some_and(|name| name.trim_ascii() == b"error")
}
