//! Measures the width of text on a terminal, in columns. The result is never less than the true width, which would
//! break a line. Marks that take no column of their own count as one.

/// Characters of two columns: East Asian ones, and pictures. Sorted. If terminals differ, as with signs that may be
/// pictures, the wider reading counts.
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

fn of_letter(letter: char) -> usize {
    let before = WIDE.partition_point(|(_, last)| *last < letter);
    if WIDE.get(before).is_some_and(|(first, _)| *first <= letter) { 2 } else { 1 }
}

/// Returns the columns of `text`.
pub(super) fn of(text: &str) -> usize {
    text.chars().map(of_letter).sum()
}

/// Returns as much of the beginning of `text` as fits in `most` columns.
pub(super) fn beginning(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let over = text.char_indices().find(|(_, letter)| {
        taken += of_letter(*letter);
        taken > most
    });
    &text[..over.map_or(text.len(), |(at, _)| at)]
}

/// Returns as much of the end of `text` as fits in `most` columns.
pub(super) fn end(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let over = text.char_indices().rev().find(|(_, letter)| {
        taken += of_letter(*letter);
        taken > most
    });
    &text[over.map_or(0, |(at, letter)| at + letter.len_utf8())..]
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
