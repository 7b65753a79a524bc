//! Tests that secrets are masked in bytes, however these are written and cut.

use proptest::prelude::*;

use super::*;

const KEY: &str = "sk-own-0123456789abcdef";
const OTHER: &str = "sksksksk/sksksksk\"x";

fn mask() -> Arc<Mask> {
    Arc::new(Mask::of([KEY, OTHER, "too-short"].into_iter()))
}

fn covered(text: &str) -> String {
    String::from_utf8(mask().cover(Bytes::copy_from_slice(text.as_bytes())).to_vec()).unwrap()
}

/// Returns the same text with each `every`th letter escaped.
fn escaped(text: &str, every: usize) -> String {
    let escape = |(at, letter): (usize, char)| match at % every {
        0 => format!("\\u{:04x}", u32::from(letter)),
        _ if matches!(letter, '"' | '/') => format!("\\{letter}"),
        _ => letter.to_string(),
    };
    text.chars().enumerate().map(escape).collect()
}

#[test]
fn a_secret_is_overwritten_in_its_length() {
    let stars = "*".repeat(KEY.len());
    let cases = [
        (format!("a {KEY} b{KEY}"), format!("a {stars} b{stars}")),
        (format!("sk-own-{KEY}"), format!("sk-own-{stars}")),
        ("sk-own-0123456789abcde too-short".to_owned(), "sk-own-0123456789abcde too-short".to_owned()),
        (OTHER.to_owned(), "*".repeat(OTHER.len())),
    ];
    for (text, expected) in cases {
        assert_eq!(covered(&text), expected);
    }
    for every in 1..30 {
        for secret in [KEY, OTHER] {
            let text = escaped(secret, every);
            assert_eq!(covered(&format!("x{text}y")), format!("x{}y", "*".repeat(text.len())), "{text}");
        }
    }
}

#[test]
fn earlier_secrets_stay_masked() {
    let after = Mask::of(["sk-new-0123456789abcdef"].into_iter()).with(&mask());
    assert!(after.find(KEY.as_bytes(), 0).is_some());
    assert_eq!(format!("{after:?}"), "Mask(3 secrets)");
}

fn passed(text: &[u8], size: usize) -> Vec<u8> {
    let mut masked = MaskedBody::new(mask());
    let mut all = Vec::new();
    for piece in text.chunks(size) {
        all.extend_from_slice(&masked.follow(Bytes::copy_from_slice(piece)));
    }
    all.extend_from_slice(&masked.rest());
    all
}

proptest! {
    #[test]
    fn no_split_of_a_body_lets_a_secret_pass(
        before in "[sk\\-own\\\\u0-9 ]{0,40}",
        every in 1_usize..30,
        after in "[sk\\-own\\\\u0-9 ]{0,40}",
        size in 1_usize..40,
    ) {
        let text = format!("{before} {} {after}", escaped(KEY, every));
        let all = passed(text.as_bytes(), size);
        prop_assert_eq!(all.len(), text.len());
        prop_assert!(mask().find(&all, 0).is_none(), "{}", String::from_utf8_lossy(&all));
    }

    #[test]
    fn a_body_without_a_secret_passes_as_it_came(text in "[sk\\-own\\\\u0-9 ]{0,80}", size in 1_usize..40) {
        prop_assert_eq!(passed(text.as_bytes(), size), text.as_bytes());
    }

    #[test]
    fn text_without_a_secret_is_not_delayed(text in "[a-r0-9 ]{1,80}") {
        let mut masked = MaskedBody::new(mask());
        prop_assert_eq!(masked.follow(Bytes::from(text.clone().into_bytes())), text.as_bytes());
    }
}
