//! Finds where events and blank lines end in the bytes of a stream, and which of its bytes pass.

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

/// Progress of the search for the end of an event.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct EventSearch {
    from: usize,
    /// Start of the line that is not at its end.
    line: usize,
}

/// Returns how much at the start of `bytes` is a blank line; nothing while that is not known.
pub(super) const fn blank_line(bytes: &[u8]) -> usize {
    match bytes {
        [b'\r', b'\n', ..] => 2,
        [b'\n', ..] | [b'\r', _, ..] => 1,
        _ => 0,
    }
}

/// Returns where the first event of `bytes` ends, its blank line included, or else notes how far it was `searched` for.
pub(super) fn event_end(bytes: &[u8], searched: &mut EventSearch) -> Option<usize> {
    let EventSearch { mut from, mut line } = std::mem::take(searched);
    while let Some(at) = memchr2(b'\n', b'\r', &bytes[from..]).map(|at| from + at) {
        let end = match (bytes[at], bytes.get(at + 1)) {
            (b'\r', Some(b'\n')) => at + 2,
            // Whether an LF belongs to it is not known yet.
            (b'\r', None) => {
                *searched = EventSearch { from: at, line };
                return None;
            }
            _ => at + 1,
        };
        if at == line && at > 0 {
            return Some(end);
        }
        (from, line) = (end, end);
    }
    *searched = EventSearch { from: bytes.len(), line };
    None
}

/// The bytes that pass, not copied as long as they are a beginning of those that came.
#[derive(Debug)]
pub(super) struct PassedBytes {
    came: Bytes,
    /// Number of bytes that pass as they came.
    length: usize,
    copied: Option<BytesMut>,
}

impl PassedBytes {
    pub(super) fn of(came: Bytes) -> Self {
        Self { came, length: 0, copied: None }
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        let follows = self.came[self.length..].as_ptr() == bytes.as_ptr();
        if self.copied.is_none() && follows && self.length + bytes.len() <= self.came.len() {
            self.length += bytes.len();
        } else if !bytes.is_empty() {
            let copied = self.copied.get_or_insert_with(|| BytesMut::from(&self.came[..self.length]));
            copied.extend_from_slice(&bytes);
        }
    }

    pub(super) fn finish(self) -> Bytes {
        match self.copied {
            Some(copied) => copied.freeze(),
            None => self.came.slice(..self.length),
        }
    }
}
