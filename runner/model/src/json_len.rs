//! Measures a text in the form in which it is stored: JSON. There some letters take two bytes and most control
//! characters six.

/// Returns the bytes of `letter`, without the quotes around its text.
const fn letter_length(letter: char) -> usize {
    match letter {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

/// Returns the bytes of `text`, without the quotes around it.
pub fn length(text: &str) -> usize {
    text.chars().map(letter_length).sum()
}

/// Returns as much of the beginning of `text` as `most` bytes hold.
pub fn beginning(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let over = text.char_indices().find(|(_, letter)| {
        taken += letter_length(*letter);
        taken > most
    });
    &text[..over.map_or(text.len(), |(at, _)| at)]
}

/// Returns how many bytes at the beginning of `bytes` have to go so that `most` bytes hold the text of the rest. Bytes
/// that are no text become a letter of three bytes.
pub fn excess(bytes: &[u8], most: usize) -> usize {
    const REPLACED: usize = '\u{fffd}'.len_utf8();
    let replaced = |invalid: &[u8]| if invalid.is_empty() { 0 } else { REPLACED };
    let whole: usize =
        bytes.utf8_chunks().map(|chunk| length(chunk.valid()) + replaced(chunk.invalid())).sum();
    let mut left = whole;
    let mut gone = 0;
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if left <= most {
                return gone;
            }
            left -= letter_length(letter);
            gone += letter.len_utf8();
        }
        if left <= most {
            return gone;
        }
        left -= replaced(chunk.invalid());
        gone += chunk.invalid().len();
    }
    gone
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
            most in 0_usize..60,
        ) {
            let kept = beginning(&text, most);
            let next = text[kept.len()..].chars().next();
            assert!(in_json(kept) <= most && next.is_none_or(|next| in_json(kept) + letter_length(next) > most));
        }

        #[test]
        fn an_end_loses_only_what_does_not_fit(bytes in proptest::collection::vec(any::<u8>(), 0..60), most in 0_usize..60) {
            let gone = excess(&bytes, most);
            let fits = |from: usize| in_json(&String::from_utf8_lossy(&bytes[from..])) <= most;
            assert!(fits(gone), "{gone}");
            // At the start of a letter, one letter more would have been too much.
            let before = (0..gone).rev().find(|from| {
                let whole = String::from_utf8_lossy(&bytes).chars().count();
                let parts = [&bytes[..*from], &bytes[*from..]];
                parts.map(|part| String::from_utf8_lossy(part).chars().count()).iter().sum::<usize>() == whole
            });
            assert!(before.is_none_or(|before| !fits(before)), "{gone}, {before:?}");
        }
    }
}
