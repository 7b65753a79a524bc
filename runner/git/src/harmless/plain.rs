//! plain takes out of a text what is not seen: control characters, and those that hide, join or turn others.

use platform_core::invisible::{Invisible, kind_of};
use platform_runtime::terminal;

/// Returns `text` with only tabs and line feeds besides what is seen. Other ends of lines become line feeds.
#[must_use]
pub fn plain(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let is_line_end = |c: char| matches!(c, '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let text = text.replace(is_line_end, "\n");
    // Whole escape sequences go, not only their first character.
    let text = terminal::safe(&text);
    text.chars().filter(|c| matches!(c, '\t' | '\n') || !(c.is_control() || is_unseen(*c))).collect()
}

/// Returns whether a character shows nothing, or changes how its neighbours are shown. A blank keeps words apart, and stays.
fn is_unseen(c: char) -> bool {
    kind_of(c).is_some_and(|kind| kind != Invisible::Space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_seen_stays() {
        for (text, expected) in [
            ("a\r\nb\rc\u{2028}d\u{85}e", "a\nb\nc\nd\ne"),
            ("\u{1b}[31mred\u{1b}[0m\u{7}\u{0}", "red"),
            ("@\u{200b}us\u{200d}er\u{202e}\u{2066}\u{feff}\u{ad}\u{e0041}", "@user"),
            ("a\u{a0}b\u{3000}c\u{2065}\u{206a}\u{2800}\u{fe0f}d", "a\u{a0}b\u{3000}cd"),
            ("\tünï ➜ 漢字 👍", "\tünï ➜ 漢字 👍"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }
}
