//! Measures the width of text on a terminal, in columns.
//!
//! The result may be more than the true width, but never less: a longer text would break its line. Combining marks,
//! which take no column, count as one.

/// Ranges of characters that take two columns: East Asian ones and emoji. Sorted. Where terminals differ, as with
/// symbols that some draw as emoji, the wider reading counts.
const WIDE: [(char, char); 17] = [
    ('\u{1100}', '\u{115f}'),
    ('\u{231a}', '\u{231b}'),
    ('\u{2329}', '\u{232a}'),
    ('\u{23e9}', '\u{23f3}'),
    ('\u{25fd}', '\u{27bf}'),
    ('\u{2b1b}', '\u{2b55}'),
    ('\u{2e80}', '\u{303e}'),
    ('\u{3041}', '\u{a4cf}'),
    ('\u{a960}', '\u{a97c}'),
    ('\u{ac00}', '\u{d7a3}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{fe10}', '\u{fe6f}'),
    ('\u{ff01}', '\u{ff60}'),
    ('\u{ffe0}', '\u{ffe6}'),
    ('\u{16fe0}', '\u{1b2ff}'),
    ('\u{1f000}', '\u{1faff}'),
    ('\u{20000}', '\u{3fffd}'),
];

fn of_char(character: char) -> usize {
    let before = WIDE.partition_point(|(_, last)| *last < character);
    if WIDE.get(before).is_some_and(|(first, _)| *first <= character) { 2 } else { 1 }
}

/// Returns the width of `text` in columns.
pub(super) fn of(text: &str) -> usize {
    text.chars().map(of_char).sum()
}

/// Returns as much of the beginning of `text` as fits in `max_columns` columns.
pub(super) fn beginning(text: &str, max_columns: usize) -> &str {
    let mut width = 0;
    let cut = text.char_indices().find(|(_, character)| {
        width += of_char(*character);
        width > max_columns
    });
    &text[..cut.map_or(text.len(), |(at, _)| at)]
}

/// Returns as much of the end of `text` as fits in `max_columns` columns.
pub(super) fn end(text: &str, max_columns: usize) -> &str {
    let mut width = 0;
    let cut = text.char_indices().rev().find(|(_, character)| {
        width += of_char(*character);
        width > max_columns
    });
    &text[cut.map_or(0, |(at, character)| at + character.len_utf8())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_have_the_width_of_a_terminal() {
        assert!(WIDE.is_sorted());
        for (text, columns) in [
            ("", 0),
            ("abc", 3),
            ("žluť", 4),
            ("日本語", 6),
            ("한국어", 6),
            ("🦀", 2),
            ("ｆｕｌｌ", 8),
            ("ﾊﾝ", 2),
            ("❌✅", 4),
            ("· …", 3),
        ] {
            assert_eq!(of(text), columns, "{text}");
        }
        assert_eq!((beginning("a日b", 2), beginning("a日b", 3), beginning("a日b", 9)), ("a", "a日", "a日b"));
        assert_eq!((end("a日b", 2), end("a日b", 3), end("a日b", 9)), ("b", "日b", "a日b"));
    }
}
