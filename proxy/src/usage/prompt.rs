//! Estimates the tokens of a prompt if the upstream has counted none.
//!
//! Pure. Words are estimated by their bytes. Digits, letters beyond ASCII, and runs that are too long for words have
//! a token for a byte: tokenisers make no more of them. No ratio is learned from calls: an agent could
//! shift it.

use super::estimate::{LARGEST_IMAGE, Media, USUAL_IMAGE, tokens};

/// Longest run of letters and digits that is taken for a word, bytes.
const LONGEST_WORD: usize = 32;
/// Bytes that are counted at a time, so that each sum fits a byte.
const BLOCK: usize = 128;

/// Estimate of the tokens of one prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PromptEstimate {
    /// Tokens of words.
    words: u64,
    /// Tokens of everything that has one for a byte, media included.
    dense: u64,
    media: Media,
}

impl PromptEstimate {
    /// Estimates the prompt of the request `body`.
    pub(crate) fn of(body: &[u8], media: Media) -> Self {
        let dense = (count_singles(body) + count_in_runs(body)) as u64;
        let words = (body.len() as u64).saturating_sub(dense);
        Self { words: tokens(words), dense, media }
    }

    /// Returns the tokens of a call that was answered whole.
    pub(crate) const fn usual(self) -> u64 {
        let text = self.words + self.dense.saturating_sub(self.media.bytes);
        text.saturating_add(self.media.parts.saturating_mul(USUAL_IMAGE))
    }

    /// Returns the tokens of a call that its client may have left to hide them. Each image counts for the largest, and
    /// media that may be text count as text.
    pub(crate) const fn most(self) -> u64 {
        let text = self.words + self.dense.saturating_sub(self.media.image_bytes);
        text.saturating_add(self.media.parts.saturating_mul(LARGEST_IMAGE))
    }
}

/// Returns the number of digits and of bytes beyond ASCII.
fn count_singles(text: &[u8]) -> usize {
    let of_block = |block: &[u8]| block.iter().fold(0_u8, |count, byte| count + u8::from(is_single(*byte)));
    text.chunks(BLOCK).map(|block| usize::from(of_block(block))).sum()
}

/// Returns the number of bytes, digits excepted, in the runs that are longer than a word. Looks back from where a run
/// would be too long, so that most bytes of words are passed over.
fn count_in_runs(text: &[u8]) -> usize {
    let mut bytes = 0;
    let mut begin = 0;
    while let Some(window) = text.get(begin..=begin + LONGEST_WORD) {
        if let Some(gap) = window.iter().rposition(|byte| !is_in_run(*byte)) {
            begin += gap + 1;
            continue;
        }
        let rest = &text[begin..];
        let length = rest.iter().position(|byte| !is_in_run(*byte)).unwrap_or(rest.len());
        bytes += rest[..length].iter().filter(|byte| !byte.is_ascii_digit()).count();
        begin += length;
    }
    bytes
}

const fn is_single(byte: u8) -> bool {
    byte.is_ascii_digit() | !byte.is_ascii()
}

/// Bytes that a run may contain: letters, digits, and the other signs of base64. One lookup takes the place of eight
/// comparisons.
static IN_RUN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    loop {
        table[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-');
        if byte == u8::MAX {
            break table;
        }
        byte += 1;
    }
};

fn is_in_run(byte: u8) -> bool {
    IN_RUN[usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::estimate::rows;

    fn text(text: &str) -> u64 {
        PromptEstimate::of(text.as_bytes(), Media::default()).usual()
    }

    #[test]
    fn dense_text_has_a_token_for_a_byte() {
        let long = "aB3/".repeat(9);
        let table = [
            (String::new(), 0),
            ("seven b".to_owned(), 2),
            ("0123456".to_owned(), 7),
            ("\u{4f60}\u{597d}".to_owned(), 6),
            ("x".repeat(32), 10),
            ("x".repeat(33), 33),
            (format!("a word {long}"), 2 + 36),
            (format!("{long} {long}\"{long}"), 3 * 36 + 1),
            (format!("{}{long}", " ".repeat(56)), 16 + 36),
        ];
        for (prompt, expected) in table {
            assert_eq!(text(&prompt), expected, "{prompt}");
        }
    }

    /// Runs are found wherever they begin.
    #[test]
    fn no_run_is_missed() {
        for begin in 0..100 {
            for length in [32, 33, 34, 65, 66, 67, 200] {
                let prompt = format!("{}{}{}", " ".repeat(begin), "x".repeat(length), " ".repeat(7));
                let expected = if length > LONGEST_WORD { length } else { 0 };
                assert_eq!(count_in_runs(prompt.as_bytes()), expected, "{length} bytes at {begin}");
            }
        }
    }

    #[test]
    fn an_image_counts_by_its_number() {
        let body = "x".repeat(900) + &" ".repeat(70);
        let media = Media { parts: 2, bytes: 900, image_bytes: 0 };
        let prompt = PromptEstimate::of(body.as_bytes(), media);
        assert_eq!((prompt.usual(), prompt.most()), (20 + 2000, 20 + 900 + 2 * 48_169));
        let images = PromptEstimate::of(body.as_bytes(), Media { image_bytes: 900, ..media });
        assert_eq!(images.most(), 20 + 2 * 48_169);
    }

    /// The deviations from the counts of five tokenisers.
    #[test]
    fn prompts_are_off_by_so_much_and_no_more() {
        let english = ["english prose", "english technical", "rust", "python", "c", "json", "tool schema"];
        let languages = ["german", "french", "chinese", "korean", "arabic", "russian", "hindi", "vietnamese"];
        let dense = ["base64", "hex", "uuids and hashes", "numbers"];
        for (kinds, expected) in [(&english[..], (-26, 37)), (&languages, (0, 679)), (&dense, (-17, 65))] {
            let rows = rows();
            let rows = rows.iter().filter(|row| kinds.contains(&row.kind.as_str()));
            let all = rows.flat_map(|row| row.tokens.values().map(|count| off(&row.text, *count)));
            let band = all.fold((i64::MAX, i64::MIN), |(least, most), it| (least.min(it), most.max(it)));
            assert_eq!(band, expected, "{kinds:?}");
        }
    }

    /// Returns the percentage by which the estimate of a prompt differs from its count.
    fn off(prompt: &str, count: u64) -> i64 {
        (i64::try_from(text(prompt)).unwrap() * 100).div_euclid(i64::try_from(count).unwrap()) - 100
    }
}
