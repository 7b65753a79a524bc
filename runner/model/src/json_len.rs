//! Measures text by its length in JSON, the form in which it is stored. Escapes give some characters two bytes and most
//! control characters six.

/// Returns the length of `character` in JSON, in bytes.
const fn escaped_len(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

/// Returns the length of `text` in JSON, in bytes, without the quotes around it.
pub fn length(text: &str) -> usize {
    text.chars().map(escaped_len).sum()
}

/// Returns the longest beginning of `text` that takes at most `max_bytes` in JSON.
pub fn beginning(text: &str, max_bytes: usize) -> &str {
    let mut used = 0;
    let excluded = text.char_indices().find(|(_, character)| {
        used += escaped_len(*character);
        used > max_bytes
    });
    &text[..excluded.map_or(text.len(), |(at, _)| at)]
}

/// Returns the number of bytes to drop at the beginning of `bytes`, so that the rest takes at most `max_bytes` in JSON.
/// Each invalid sequence counts as a replacement character.
pub fn excess(bytes: &[u8], max_bytes: usize) -> usize {
    const REPLACEMENT_LEN: usize = '\u{fffd}'.len_utf8();
    let replacement_len = |invalid: &[u8]| if invalid.is_empty() { 0 } else { REPLACEMENT_LEN };
    let total: usize =
        bytes.utf8_chunks().map(|chunk| length(chunk.valid()) + replacement_len(chunk.invalid())).sum();
    let mut remaining = total;
    let mut dropped = 0;
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if remaining <= max_bytes {
                return dropped;
            }
            remaining -= escaped_len(character);
            dropped += character.len_utf8();
        }
        if remaining <= max_bytes {
            return dropped;
        }
        remaining -= replacement_len(chunk.invalid());
        dropped += chunk.invalid().len();
    }
    dropped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::*;

    fn in_json(text: &str) -> usize {
        serde_json::to_string(text).unwrap().len() - 2
    }

    proptest! {
        #[test]
        fn a_text_is_as_long_as_in_json(text: String, controls in "[\\x00-\\x20\"\\\\\\x7f]*") {
            for text in [&text, &controls] {
                assert_eq!(length(text), in_json(text));
            }
        }

        #[test]
        fn the_kept_text_is_the_longest_that_fits(
            text in "[\\x00-\\x24a-c\u{e4}\u{20ac}]{0,40}",
            max_bytes in 0_usize..60,
        ) {
            let kept = beginning(&text, max_bytes);
            let next = text[kept.len()..].chars().next();
            assert!(in_json(kept) <= max_bytes && next.is_none_or(|next| in_json(kept) + escaped_len(next) > max_bytes));
        }

        #[test]
        fn an_end_loses_only_what_does_not_fit(bytes in proptest::collection::vec(any::<u8>(), 0..60), max_bytes in 0_usize..60) {
            let dropped = excess(&bytes, max_bytes);
            let fits = |from: usize| in_json(&String::from_utf8_lossy(&bytes[from..])) <= max_bytes;
            assert!(fits(dropped), "{dropped}");
            // A cut one character earlier would have left too much.
            let before = (0..dropped).rev().find(|from| {
                let whole = String::from_utf8_lossy(&bytes).chars().count();
                let parts = [&bytes[..*from], &bytes[*from..]];
                parts.map(|part| String::from_utf8_lossy(part).chars().count()).iter().sum::<usize>() == whole
            });
            assert!(before.is_none_or(|before| !fits(before)), "{dropped}, {before:?}");
        }
    }
}
