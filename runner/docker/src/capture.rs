//! Captures the beginning and the end of an output, however long it is.

use std::collections::VecDeque;

use platform_core::limit::ByteSize;
use runner_model::json_len;

/// An output being captured. Holds at most its limit in memory.
#[derive(Debug)]
pub struct Capture {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    cut: u64,
}

/// Captured part of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    head: Vec<u8>,
    tail: Vec<u8>,
    cut: u64,
}

/// The end of an output with a beginning that is known already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputEnd {
    /// Number of bytes between the known beginning and `text`.
    pub cut: u64,
    /// The end. Bytes that are not UTF-8 are replaced.
    pub text: String,
}

impl Capture {
    /// Returns an empty capture. It keeps at most `limit` bytes: one half from the beginning, the other from the end.
    pub fn new(limit: ByteSize) -> Self {
        Self { half: limit.as_usize() / 2, head: Vec::new(), tail: VecDeque::new(), cut: 0 }
    }

    /// Adds the next bytes of the output.
    pub fn push(&mut self, bytes: &[u8]) {
        let free = self.half - self.head.len();
        let (head, rest) = bytes.split_at(free.min(bytes.len()));
        self.head.extend_from_slice(head);
        let kept = &rest[rest.len().saturating_sub(self.half)..];
        let excess = (self.tail.len() + kept.len()).saturating_sub(self.half);
        self.tail.drain(..excess);
        self.tail.extend(kept);
        self.cut += (rest.len() - kept.len() + excess) as u64;
    }

    /// Ends the capture, and returns the part of the output that was kept.
    pub fn finish(self) -> Captured {
        Captured { head: self.head, tail: self.tail.into(), cut: self.cut }
    }
}

impl Captured {
    /// Returns the text; a line replaces bytes that were cut, and names their number. Bytes that are not UTF-8 are
    /// replaced.
    pub fn text(&self) -> String {
        let mark = if self.cut > 0 { mark(self.cut) } else { String::new() };
        let whole = [&self.head, mark.as_bytes(), &self.tail].concat();
        String::from_utf8_lossy(&whole).into_owned()
    }

    /// Returns whether `line` is the last one.
    pub fn ends_with_line(&self, line: &str) -> bool {
        self.text().lines().next_back() == Some(line)
    }

    /// Returns the number of bytes that were cut.
    pub const fn cut_bytes(&self) -> u64 {
        self.cut
    }

    /// Returns what follows the first `known` bytes: at most `max_size` bytes of its end, less if fewer were captured.
    pub fn after(&self, known: u64, max_size: usize) -> OutputEnd {
        let whole = self.head.len() as u64 + self.cut + self.tail.len() as u64;
        let left = whole.saturating_sub(known);
        let head = if self.cut == 0 { self.head.as_slice() } else { &[] };
        let end = [head, &self.tail].concat();
        let kept = end.len().min(max_size).min(usize::try_from(left).unwrap_or(usize::MAX));
        let mut end = &end[end.len() - kept..];
        if (kept as u64) < left {
            // The end does not begin in the middle of a character.
            let rest = end.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
            end = &end[rest..];
        }
        let end = &end[json_len::excess(end, max_size)..];
        OutputEnd { cut: left - end.len() as u64, text: String::from_utf8_lossy(end).into_owned() }
    }
}

/// Returns the line that replaces `cut` bytes in a text.
pub fn mark(cut: u64) -> String {
    format!("\n[… {cut} bytes cut …]\n")
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
    fn an_output_that_fits_is_kept_whole() {
        for pieces in [&["abcdefgh"][..], &["abc", "def", "gh"], &["a", "bcdefgh"], &["", "abcdefgh", ""]] {
            let captured = capture(8, pieces);
            assert_eq!((captured.text().as_str(), captured.cut_bytes()), ("abcdefgh", 0));
        }
    }

    #[test]
    fn a_long_output_keeps_both_ends_and_a_mark() {
        for pieces in [&["abcdXXXXXefgh"][..], &["ab", "cdXX", "XXXef", "gh"], &["abcdXXXXXefg", "h"]] {
            let captured = capture(8, pieces);
            assert_eq!(
                (captured.text().as_str(), captured.cut_bytes()),
                ("abcd\n[… 5 bytes cut …]\nefgh", 5)
            );
        }
    }

    #[test]
    fn the_rest_is_counted_to_the_byte() {
        let rest = |limit, known, max_size| {
            let rest = capture(limit, &["0123456789"]).after(known, max_size);
            (rest.cut, rest.text)
        };
        let expected = |cut, text: &str| (cut, text.to_owned());
        assert_eq!(rest(20, 0, 20), expected(0, "0123456789"));
        assert_eq!(rest(20, 4, 20), expected(0, "456789"), "all of it is there");
        assert_eq!(rest(20, 4, 2), expected(4, "89"));
        assert_eq!(rest(4, 2, 20), expected(6, "89"), "of what is not kept nothing is made up");
        assert_eq!(rest(4, 9, 20), expected(0, "9"));
        assert_eq!(rest(20, 12, 20), expected(0, ""), "who knows more than there was");
        let letters = capture(100, &["aaaa€€"]).after(1, 4);
        assert_eq!((letters.cut, letters.text.as_str()), (6, "€"), "no letter is cut in two");
        let controls = capture(100, &["\u{1}\u{1}\u{1}\n\u{2}b"]).after(1, 10);
        assert_eq!(
            (controls.cut, controls.text.as_str()),
            (2, "\n\u{2}b"),
            "they take more where they are kept"
        );
    }
}
