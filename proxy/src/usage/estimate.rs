//! Estimates uncounted tokens: a bound before a call is sent, an estimate after it ended without usage.
//!
//! Pure, and without a tokeniser. A model's tokeniser is not known here, and running one takes longer than the rest of
//! a call. Bound and estimate are compared with counts of five real tokenisers over forty kinds of text
//! (`tests/tokenizers`).

/// Sizes that a request's prompt depends on, apart from its text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Media {
    /// Images, files, recordings.
    pub(crate) parts: u64,
    /// Bytes that they occupy in the body.
    pub(crate) bytes: u64,
    /// Bytes of that which are images for certain, which no model reads as text.
    pub(crate) image_bytes: u64,
}

/// Letters of a body, as far as they affect its tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Letters {
    /// Some are beyond ASCII.
    pub(crate) beyond_ascii: bool,
    /// Some are written as escapes.
    pub(crate) escaped: bool,
}

/// Tokens that every request may cost beyond its text: Anthropic adds up to 530 tokens of instructions to a request
/// that has tools, and the JSON around roles and separators pays for them.
const INSTRUCTIONS: u64 = 1024;
/// The most that OpenAI takes for an image, whatever its file's size: 2833 tokens and 5667 for each of eight tiles.
pub(super) const LARGEST_IMAGE: u64 = 2833 + 8 * 5667;
/// Tokens that most images cost.
pub(super) const USUAL_IMAGE: u64 = 1000;
/// Bytes of usual text for so many tokens.
const USUAL: (u64, u64) = (7, 2);

/// Returns a bound on the tokens that any model reads of this request's text and images. Files with pages may exceed
/// it: only a reader of the file knows their number.
///
/// Tokenisers work on bytes and merge them, so that no text has more tokens than bytes; those that know no bytes use
/// one token for each of a letter's. But some first replace letters by compatible ones, which can be more: Claude's
/// published one makes thirty-three bytes and fifteen tokens of the three bytes of `ﷺ`. So each letter counts for the
/// longest that it can become. JSON's own signs are counted as text, which leaves room for what separates messages.
pub(crate) fn most_input(body: &[u8], media: Media, letters: Letters) -> u64 {
    let text = longest(body, letters).saturating_sub(media.image_bytes);
    text + INSTRUCTIONS + media.parts.saturating_mul(LARGEST_IMAGE)
}

/// Estimates the tokens of `text_bytes` bytes of text: two for seven bytes.
///
/// The deviation from the counts of five tokenisers is, for prose and code in English −31 … +31 %, for other languages
/// −55 … +137 % (most per byte in Llama 2, which knows few of them; fewest in OpenAI's newest), for base64, hexadecimal
/// digits and rows of numbers −72 … −51 %: they cost a token for one to two bytes.
pub(crate) const fn tokens(text_bytes: u64) -> u64 {
    let (bytes, tokens) = USUAL;
    text_bytes.saturating_mul(tokens).div_ceil(bytes)
}

/// Returns the most bytes that the text of `body`, which is UTF-8, can have after its letters are replaced.
fn longest(body: &[u8], letters: Letters) -> u64 {
    let mut bytes = body.len();
    if letters.beyond_ascii {
        bytes += (0..body.len()).step_by(BLOCK).map(|block| stretch_in(body, block)).sum::<usize>();
    }
    if letters.escaped {
        bytes += memchr::memmem::find_iter(body, b"\\u").map(|at| escaped(&body[at + 2..])).sum::<usize>();
    }
    bytes as u64
}

/// Bytes of a block. Letters are examined in blocks, since most blocks have none beyond ASCII.
const BLOCK: usize = 64;

/// Returns by how many bytes the letters that begin in the block at `block` can become longer.
fn stretch_in(body: &[u8], block: usize) -> usize {
    let bytes = &body[block..body.len().min(block + BLOCK)];
    if bytes.is_ascii() {
        return 0;
    }
    let begins = bytes.iter().enumerate().filter(|(_, byte)| **byte >= 0xc0);
    begins.map(|(at, _)| stretch_of(&body[block + at..])).sum()
}

/// Returns by how many bytes the letter at the start of `utf8` can become longer.
fn stretch_of(utf8: &[u8]) -> usize {
    let bits = |at: usize| u32::from(utf8.get(at).map_or(0, |byte| byte & 0x3f));
    let first = u32::from(utf8[0]);
    let (code, length) = match utf8[0] {
        ..=0xdf => ((first & 0x1f) << 6 | bits(1), 2),
        0xe0..=0xef => ((first & 0xf) << 12 | bits(1) << 6 | bits(2), 3),
        _ => ((first & 7) << 18 | bits(1) << 12 | bits(2) << 6 | bits(3), 4),
    };
    stretched(code).saturating_sub(length)
}

/// Returns by how many bytes the letter that these four digits mean can be longer than its escape.
fn escaped(digits: &[u8]) -> usize {
    const WRITTEN: usize = "\\u0000".len();
    let digits = digits.get(..4).and_then(|digits| std::str::from_utf8(digits).ok());
    let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    code.map_or(0, |code| stretched(code).saturating_sub(WRITTEN))
}

/// Returns the most bytes that Unicode's compatibility decomposition makes of a character (of half of one, if it is
/// written as two). Hangul is always composed again.
const fn stretched(code: u32) -> usize {
    match code {
        0..=0x7f => 1,
        0x80..=0x7ff | 0x3040..=0x30ff | 0xd800..=0xdfff | 0xfe00..=0xffff => 6,
        0x800..=0x1fff => 9,
        0x2000..=0x33ff => 18,
        0x3400..=0xd7ff | 0xe000..=0xf8ff => 3,
        0xf900..=0xfdff => 33,
        _ => 12,
    }
}

/// A text of one kind, and the tokens that tokenisers count in it.
#[cfg(test)]
#[derive(serde::Deserialize)]
pub(super) struct Row {
    pub(super) kind: String,
    bytes: u64,
    pub(super) tokens: std::collections::BTreeMap<String, u64>,
    pub(super) text: String,
}

/// Returns the texts of all kinds.
#[cfg(test)]
pub(super) fn rows() -> Vec<Row> {
    let golden = include_str!("../../tests/golden/tokens.jsonl");
    golden.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns `json` with escapes for everything beyond ASCII, as Python writes it.
    fn ascii(json: &str) -> String {
        let escape = |c: char| {
            let mut units = [0; 2];
            if c.is_ascii() {
                return c.to_string();
            }
            c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        };
        json.chars().map(escape).collect()
    }

    #[test]
    fn no_tokeniser_counts_more_than_the_bound() {
        for row in rows() {
            assert_eq!(row.bytes, row.text.len() as u64, "{}", row.kind);
            let body = json!({ "messages": [{ "role": "user", "content": row.text }] }).to_string();
            for (how, body) in [("as UTF-8", body.clone()), ("escaped", ascii(&body)), ("bare", row.text)] {
                for (tokeniser, count) in &row.tokens {
                    // Not by the allowance for instructions.
                    let letters = Letters { beyond_ascii: !body.is_ascii(), escaped: body.contains('\\') };
                    let bound = longest(body.as_bytes(), letters) + 1;
                    assert!(*count <= bound, "{tokeniser}, {} {how}: {count} > {bound}", row.kind);
                    assert!(bound < most_input(body.as_bytes(), Media::default(), letters));
                }
            }
        }
    }

    #[test]
    fn bytes_alone_are_no_bound() {
        let rows = rows();
        let ligature = rows.iter().find(|row| row.kind == "ligature").unwrap();
        assert!(ligature.tokens["claude"] > ligature.bytes);
    }

    #[test]
    fn no_letter_becomes_longer_than_the_bound_knows() {
        let golden = include_str!("../../tests/golden/stretched.tsv");
        for line in golden.lines() {
            let (first, longest) = line.split_once('\t').unwrap();
            let first = u32::from_str_radix(first, 16).unwrap();
            let known = (first..first + 64).map(stretched).min().unwrap();
            assert!(longest.parse::<usize>().unwrap() <= known, "{first:x}: {longest} > {known}");
        }
        for code in (0..=0x0010_ffff).filter_map(char::from_u32) {
            assert!(stretched(code.into()) >= code.len_utf8(), "{code:?}");
            let text = code.to_string();
            let stretch = if code.is_ascii() { 0 } else { stretch_of(text.as_bytes()) };
            assert_eq!(stretch, stretched(code.into()) - text.len(), "{code:?}");
        }
    }

    #[test]
    fn an_image_costs_what_it_may_whatever_its_size() {
        let media = Media { parts: 2, bytes: 900, image_bytes: 0 };
        assert_eq!(most_input(&[b'x'; 1000], media, Letters::default()), 1000 + 1024 + 2 * 48_169);
        let images = Media { image_bytes: 900, ..media };
        assert_eq!(most_input(&[b'x'; 1000], images, Letters::default()), 100 + 1024 + 2 * 48_169);
        assert_eq!((tokens(0), tokens(1), tokens(7), tokens(8)), (0, 1, 2, 3));
    }

    /// The bands that the documentation of [`tokens`] states.
    #[test]
    fn the_estimate_is_off_by_so_much_and_no_more() {
        let english = [
            "english prose",
            "english dialogue",
            "english technical",
            "rust",
            "python",
            "typescript",
            "c",
            "shell and diff",
            "json",
            "tool schema",
            "chat body",
        ];
        let languages = [
            "german",
            "french",
            "chinese",
            "japanese",
            "korean",
            "arabic",
            "hebrew",
            "russian",
            "hindi",
            "thai",
            "vietnamese",
        ];
        let dense = ["base64", "hex", "uuids and hashes", "numbers"];
        for (kinds, expected) in [(&english[..], (-31, 31)), (&languages, (-55, 137)), (&dense, (-72, -51))] {
            assert_eq!(band(kinds), expected, "{kinds:?}");
        }
    }

    /// Returns the percentages by which the estimate is below and above the real counts.
    fn band(kinds: &[&str]) -> (i64, i64) {
        let rows = rows();
        let rows: Vec<_> = rows.iter().filter(|row| kinds.contains(&row.kind.as_str())).collect();
        assert_eq!(rows.len(), kinds.len(), "each is there");
        let off = |row: &Row, count: u64| {
            (i64::try_from(tokens(row.bytes)).unwrap() * 100).div_euclid(i64::try_from(count).unwrap()) - 100
        };
        let all = rows.iter().flat_map(|row| row.tokens.values().map(|count| off(row, *count)));
        all.fold((i64::MAX, i64::MIN), |(least, most), it| (least.min(it), most.max(it)))
    }
}
