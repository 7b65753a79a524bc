//! Decodes bytes that come in pieces to text: a character cut between two pieces becomes whole again.

/// Incremental decoder of UTF-8.
#[derive(Debug, Default)]
pub(super) struct Utf8Stream {
    /// Beginning of an incomplete character.
    pending: Vec<u8>,
}

impl Utf8Stream {
    /// Returns the text of `bytes`, after the incomplete character from before and without the one that is incomplete
    /// now. Bytes that are not UTF-8 are replaced.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let whole = self.pending.len() - unfinished(&self.pending);
        let text = String::from_utf8_lossy(&self.pending[..whole]).into_owned();
        self.pending.drain(..whole);
        text
    }

    /// Returns the number of bytes that wait for the rest of their character: fewer than four.
    pub(super) const fn pending(&self) -> usize {
        self.pending.len()
    }
}

/// Returns the number of bytes at the end that begin an incomplete character.
fn unfinished(bytes: &[u8]) -> usize {
    for (before, byte) in bytes.iter().rev().take(3).enumerate() {
        let length = match byte {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        return if length > before + 1 { before + 1 } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_the_same_wherever_it_is_cut() {
        let text = "a¢€🦀 ž".repeat(3);
        for size in 1..9 {
            let mut stream = Utf8Stream::default();
            let decoded: String = text.as_bytes().chunks(size).map(|piece| stream.push(piece)).collect();
            assert_eq!((decoded.as_str(), stream.pending()), (text.as_str(), 0), "in pieces of {size}");
        }
    }

    #[test]
    fn invalid_bytes_are_replaced_at_once() {
        for (bytes, text, pending) in [
            (&b"a\xff"[..], "a\u{fffd}", 0),
            (b"a\x80\x80\x80\x80", "a\u{fffd}\u{fffd}\u{fffd}\u{fffd}", 0),
            (b"a\xf0\x9f\xa6", "a", 3),
            (b"a\xc3(", "a\u{fffd}(", 0),
        ] {
            let mut stream = Utf8Stream::default();
            assert_eq!((stream.push(bytes).as_str(), stream.pending()), (text, pending), "{bytes:?}");
        }
    }
}
