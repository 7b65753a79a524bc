//! Recognises an event that differs from the one before it in one text only, as most of a stream's are.
//!
//! Events with equal bytes around one text mean the same, so only the text is measured. This is a short cut and decides
//! nothing: an event that does not fit is read as any other.

use super::scan::TextRange;

/// Most of an event before its text, or behind it.
const MAX_SIDE: usize = 384;
/// Longest text that is measured here; longer ones are worth a search.
const MAX_TEXT: usize = 256;

/// Bytes around the one text of an event.
#[derive(Debug)]
pub(super) struct EventFrame {
    before: Side,
    after: Side,
}

#[derive(Debug)]
struct Side {
    bytes: [u8; MAX_SIDE],
    length: usize,
}

impl Side {
    const EMPTY: Self = Self { bytes: [0; MAX_SIDE], length: 0 };

    fn get(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn set(&mut self, bytes: &[u8]) {
        self.bytes[..bytes.len()].copy_from_slice(bytes);
        self.length = bytes.len();
    }
}

impl EventFrame {
    pub(super) const fn new() -> Self {
        Self { before: Side::EMPTY, after: Side::EMPTY }
    }

    /// Returns the bytes of the text in `data`, each escape counted for what it means, if the rest fits the frame.
    pub(super) fn measure(&self, data: &[u8]) -> Option<u64> {
        let before = self.before.get();
        let after = self.after.get();
        let text = data.strip_prefix(before)?.strip_suffix(after)?;
        if after.is_empty() || text.len() > MAX_TEXT {
            return None;
        }
        let mut bytes = text.len();
        let mut at = 0;
        while let Some(found) = text[at..].iter().position(|byte| matches!(byte, b'"' | b'\\')) {
            at += found;
            let escaped = text.get(at + 1).filter(|_| text[at] == b'\\')?;
            bytes = bytes.saturating_sub(if *escaped == b'u' { 3 } else { 1 });
            at += 2;
        }
        // An escape of two bytes may have reached beyond the end.
        (at <= text.len()).then_some(bytes as u64)
    }

    /// Remembers the bytes around the `text` of `data`.
    pub(super) fn learn(&mut self, data: &[u8], text: TextRange) {
        let Some(before) = data.get(..text.begin) else { return };
        let Some(after) = data.get(text.end..) else { return };
        if before.len().max(after.len()) <= MAX_SIDE && after.first() == Some(&b'"') {
            self.before.set(before);
            self.after.set(after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_may_differ() {
        let event = br#"{"delta":"one","n":1}"#;
        let mut frame = EventFrame::new();
        assert_eq!(frame.measure(event), None, "nothing is known");
        frame.learn(event, TextRange { begin: 10, end: 13 });
        let table: [(&[u8], Option<u64>); 9] = [
            (event, Some(3)),
            (br#"{"delta":"","n":1}"#, Some(0)),
            (br#"{"delta":"a\"b\\","n":1}"#, Some(4)),
            (br#"{"delta":"\u4f60","n":1}"#, Some(3)),
            (br#"{"delta":"x\","n":1}"#, None),
            (br#"{"delta":"x","usage":"","n":1}"#, None),
            (br#"{"delta":"one","n":2}"#, None),
            (br#"{"delta":"one","n":1} "#, None),
            (br#"{"delta":","n":1}"#, None),
        ];
        for (data, bytes) in table {
            assert_eq!(frame.measure(data), bytes, "{}", String::from_utf8_lossy(data));
        }
    }
}
