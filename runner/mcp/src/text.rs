//! text makes texts of servers harmless: no control of a terminal, nothing invisible, bounded. Pure.

use platform_core::invisible::{Invisible, kind_of};
use platform_runtime::terminal;
use serde_json::{Map, Value};

/// Most bytes of a server's words in an error.
const MAX_QUOTE: usize = 300;

/// Returns `text` without characters that control something or cannot be seen.
pub(crate) fn clean(text: &str) -> String {
    terminal::safe(&text.replace("\r\n", "\n")).chars().filter(|c| !is_hidden(*c)).collect()
}

/// Returns whether a person sees all of `text`.
pub(crate) fn is_visible(text: &str) -> bool {
    clean(text) == text.replace("\r\n", "\n")
}

/// Returns the beginning of `text` on one line, for an error.
pub(crate) fn quote(text: &str) -> String {
    let cut = &text[..text.floor_char_boundary(MAX_QUOTE)];
    let line = clean(cut).split_whitespace().collect::<Vec<_>>().join(" ");
    if cut.len() < text.len() { format!("{line}…") } else { line }
}

/// Returns `value` with all its texts cleaned, names of members included.
pub(crate) fn clean_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text)),
        Value::Array(items) => items.into_iter().map(clean_value).collect(),
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, member)| (clean(&name), clean_value(member)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        plain => plain,
    }
}

/// Returns whether a text is better without `c`, of which nothing is seen. Blanks, joiners and the selector of emoji stay:
/// writing needs them. Who accepts a definition is shown a mark for each.
const fn is_hidden(c: char) -> bool {
    match kind_of(c) {
        None | Some(Invisible::Space | Invisible::Joiner) => false,
        Some(Invisible::Selector) => c != '\u{fe0f}',
        Some(Invisible::Filler | Invisible::Direction | Invisible::Hidden) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_removed() {
        let hidden = "a\u{1b}[2Jb\u{200b}c\u{202e}d\u{e0041}e\u{0}f";
        assert_eq!(clean(hidden), "abcdef");
        assert!(!is_visible(hidden));
        let tricks = "\u{2065}\u{206a}\u{206f}\u{115f}\u{1160}\u{ffa0}\u{34f}\u{17b4}\u{2800}\u{fe0e}\u{1d173}\u{e0080}\u{e01f0}";
        for hidden in tricks.chars() {
            assert!(!is_visible(&format!("a{hidden}b")), "{hidden:?}");
        }
        for seen in
            ["plain\ttext\r\nnext", "für 日本 \u{1f468}\u{200d}\u{1f469} ⚠\u{fe0f} 1\u{a0}000\u{3000}"]
        {
            assert!(is_visible(seen), "{seen}");
        }
        assert_eq!(quote("a\n b"), "a b");
        assert!(quote(&"x".repeat(10_000)).len() < 400);
    }
}
