//! Decodes the strings of a checked text.

use std::borrow::Cow;

use super::error::ErrorKind;

/// Returns the string with the content `content`, which stands between its quotes.
pub(super) fn decode(content: &str) -> Result<Cow<'_, str>, ErrorKind> {
    if !content.contains('\\') {
        return Ok(Cow::Borrowed(content));
    }
    let mut decoded = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(start) = rest.find('\\') {
        let (character, length) = escaped(&rest[start..]).ok_or(ErrorKind::Surrogate)?;
        decoded.push_str(&rest[..start]);
        decoded.push(character);
        rest = &rest[start + length..];
    }
    decoded.push_str(rest);
    Ok(Cow::Owned(decoded))
}

/// Returns the character of the escape that `text` begins with, and the bytes that write it; `None` for an unpaired
/// surrogate.
fn escaped(text: &str) -> Option<(char, usize)> {
    let character = match text.as_bytes().get(1)? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(text),
        other => char::from(*other),
    };
    Some((character, 2))
}

/// Returns the character of an escape with four digits, or of two of them that form a pair.
fn unicode(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| u32::from_str_radix(text.get(at..at + 4)?, 16).ok();
    let high = unit(2)?;
    let has_another = (0xD800..0xDC00).contains(&high) && text.get(6..8) == Some("\\u");
    if has_another && let Some(low) = unit(8).filter(|low| (0xDC00..0xE000).contains(low)) {
        return Some((char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))?, 12));
    }
    Some((char::from_u32(high)?, 6))
}
