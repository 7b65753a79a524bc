//! Finds the end of a string's run of plain bytes: the inner loop.
//!
//! memchr is not used, because it costs some nanoseconds a call. Code in JSON has an escape every few dozen
//! bytes, and such bodies were four times slower with memchr (measured). Short runs go by words, long ones by
//! blocks, of which the compiler makes vector instructions.

/// Run of plain bytes at the start of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlainRun {
    pub(super) length: usize,
    /// All bytes that were read, or-ed together: maybe a few more than the run's.
    pub(super) union: u64,
}

const BLOCK: usize = 64;
/// Length within which most strings end.
const SHORT: usize = 4 * size_of::<u64>();

/// Returns the run at the start of `text`, up to a quote, a backslash or a control character.
pub(super) fn plain(text: &[u8]) -> PlainRun {
    let mut run = PlainRun { length: 0, union: 0 };
    if run.words(text, SHORT) {
        return run;
    }
    while let Some(block) = text[run.length..].first_chunk::<BLOCK>() {
        let (special, union) = scan_block(block);
        if special {
            break;
        }
        run.union |= u64::from(union);
        run.length += BLOCK;
    }
    run.words(text, usize::MAX);
    run
}

/// Returns whether a run with this `union` may contain more than ASCII.
pub(super) fn beyond_ascii(union: u64) -> bool {
    union & HIGHS != 0
}

impl PlainRun {
    /// Extends the run word by word, up to `limit`; returns whether its end was found.
    fn words(&mut self, text: &[u8], limit: usize) -> bool {
        while self.length < limit {
            let Some(word) = text[self.length..].first_chunk() else {
                return self.bytes(text);
            };
            let word = u64::from_le_bytes(*word);
            self.union |= word;
            let special = special(word);
            if special != 0 {
                self.length += special.trailing_zeros() as usize / 8;
                return true;
            }
            self.length += size_of::<u64>();
        }
        false
    }

    /// Extends the run byte by byte; the end of the document is less than a word away.
    fn bytes(&mut self, text: &[u8]) -> bool {
        let rest = &text[self.length..];
        let length = rest.iter().position(|&byte| is_special(byte)).unwrap_or(rest.len());
        self.union |= rest.iter().fold(0, |union, &byte| union | u64::from(byte));
        self.length += length;
        true
    }
}

fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Scans a block without branches, so that it becomes a few vector instructions.
fn scan_block(block: &[u8; BLOCK]) -> (bool, u8) {
    let mut special = 0;
    let mut union = 0;
    for &byte in block {
        special |= u8::from(byte < b' ') | u8::from(byte == b'"') | u8::from(byte == b'\\');
        union |= byte;
    }
    (special != 0, union)
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = ONES << 7;

/// Sets the high bit of each special byte. Bytes behind the first special one may be marked wrongly.
fn special(word: u64) -> u64 {
    let below = |word: u64, bound: u8| word.wrapping_sub(ONES * u64::from(bound)) & !word;
    let equal = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    (below(word, b' ') | equal(b'"') | equal(b'\\')) & HIGHS
}
