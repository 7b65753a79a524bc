//! Keeps the beginning and the end of an output, however long it is.

use std::collections::VecDeque;

use platform_core::limit::ByteSize;

/// An output being kept. Holds at most its limit in memory.
#[derive(Debug)]
pub(crate) struct Capture {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    cut: u64,
}

/// What was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Captured {
    /// The text; where bytes were cut, a line says how many.
    pub(crate) text: String,
    /// Bytes that were cut.
    pub(crate) cut_bytes: u64,
}

impl Capture {
    pub(crate) fn new(limit: ByteSize) -> Self {
        Self { half: limit.as_usize() / 2, head: Vec::new(), tail: VecDeque::new(), cut: 0 }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = self.half - self.head.len();
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let kept = &rest[rest.len().saturating_sub(self.half)..];
        let over = (self.tail.len() + kept.len()).saturating_sub(self.half);
        self.tail.drain(..over);
        self.tail.extend(kept);
        self.cut += (rest.len() - kept.len() + over) as u64;
    }

    /// The text of it. Bytes that are not UTF-8 are replaced.
    pub(crate) fn finish(self) -> Captured {
        let Self { mut head, tail, cut, .. } = self;
        if cut > 0 {
            head.extend_from_slice(format!("\n[… {cut} bytes cut …]\n").as_bytes());
        }
        head.extend(tail);
        Captured { text: String::from_utf8_lossy(&head).into_owned(), cut_bytes: cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(limit: u64, pieces: &[&str]) -> Captured {
        let mut capture = Capture::new(ByteSize(limit));
        pieces.iter().for_each(|piece| capture.push(piece.as_bytes()));
        capture.finish()
    }

    #[test]
    fn what_fits_is_kept_whole() {
        for pieces in [&["abcdefgh"][..], &["abc", "def", "gh"], &["a", "bcdefgh"], &["", "abcdefgh", ""]] {
            assert_eq!(capture(8, pieces), Captured { text: "abcdefgh".to_owned(), cut_bytes: 0 });
        }
    }

    #[test]
    fn of_what_does_not_fit_beginning_and_end_are_kept_and_the_cut_is_marked() {
        for pieces in [&["abcdXXXXXefgh"][..], &["ab", "cdXX", "XXXef", "gh"], &["abcdXXXXXefg", "h"]] {
            assert_eq!(
                capture(8, pieces),
                Captured { text: "abcd\n[… 5 bytes cut …]\nefgh".to_owned(), cut_bytes: 5 }
            );
        }
    }
}
