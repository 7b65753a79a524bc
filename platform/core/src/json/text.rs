//! Decodes the strings of a checked text.

use std::{borrow::Cow, char, iter};

use super::error::ErrorKind;

/// Character of a string: a Unicode scalar value, or an unpaired surrogate.
type CodePoint = u32;

/// Returns the characters of the string whose content is `content`, which stands between its quotes.
fn code_points(content: &str) -> impl Iterator<Item = CodePoint> {
    let mut rest = content;
    iter::from_fn(move || {
        let (point, length) = first(rest)?;
        rest = &rest[length..];
        Some(point)
    })
}

/// Returns the first character of a string's content, and the bytes that write it.
fn first(content: &str) -> Option<(CodePoint, usize)> {
    let plain = content.chars().next()?;
    if plain != '\\' {
        return Some((plain.into(), plain.len_utf8()));
    }
    let escape = content.as_bytes().get(1)?;
    let point = match escape {
        b'b' => 8,
        b'f' => 12,
        b'n' => 10,
        b'r' => 13,
        b't' => 9,
        b'u' => return unicode(content),
        other => u32::from(*other),
    };
    Some((point, 2))
}

/// Returns the character of an escape with four digits, or of two of them that form a pair.
fn unicode(content: &str) -> Option<(CodePoint, usize)> {
    let unit = |at: usize| u32::from_str_radix(content.get(at..at + 4)?, 16).ok();
    let high = unit(2)?;
    let is_high = (0xD800..0xDC00).contains(&high);
    let has_another = is_high && content.get(6..8) == Some("\\u");
    if has_another && let Some(low) = unit(8).filter(|low| (0xDC00..0xE000).contains(low)) {
        return Some((0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00), 12));
    }
    Some((high, 6))
}

/// Returns the string whose content is `content`.
pub(super) fn decode(content: &str) -> Result<Cow<'_, str>, ErrorKind> {
    if !content.contains('\\') {
        return Ok(Cow::Borrowed(content));
    }
    let decoded = code_points(content).map(char::from_u32).collect::<Option<String>>();
    decoded.map(Cow::Owned).ok_or(ErrorKind::Surrogate)
}
