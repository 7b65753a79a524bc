//! Reads the content of a string: decodes it, and detects images and strings that point elsewhere. `scan` finds where
//! it ends.

use std::borrow::Cow;

use memchr::memchr_iter;

/// Content of a string between its quotes: valid UTF-8, valid escapes.
#[derive(Debug, Clone, Copy)]
pub(super) struct JsonText<'a> {
    pub(super) raw: &'a [u8],
    /// Set if there is any backslash in it.
    pub(super) escaped: bool,
}

impl<'a> JsonText<'a> {
    /// Returns the text without escapes: `mo\u0064el` is `model`.
    pub(super) fn decoded(self) -> Cow<'a, [u8]> {
        if self.escaped { Cow::Owned(unescape(self.raw)) } else { Cow::Borrowed(self.raw) }
    }

    /// Returns the text without escapes, as a string.
    pub(super) fn to_str(self) -> Cow<'a, str> {
        match self.decoded() {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Returns whether it carries its content itself: a `data:` URL, and nothing but.
    pub(super) fn is_data_url(self) -> bool {
        let text = self.decoded();
        text.starts_with(b"data:") && !has_scheme(&text)
    }

    /// Returns whether it is the beginning of an image in base64: PNG, JPEG, GIF or WebP, by their first
    /// bytes.
    pub(super) fn is_image(self) -> bool {
        let is_webp = || self.raw.starts_with(b"UklGR") && self.raw.get(11..16) == Some(b"XRUJQ");
        let begins = |magic: &[u8]| self.raw.starts_with(magic);
        begins(b"iVBORw0KGgo") || begins(b"/9j/") || begins(b"R0lGOD") || is_webp()
    }

    /// Returns whether it is a `data:` URL of such an image.
    pub(super) fn is_image_url(self) -> bool {
        const BASE64: &[u8] = b";base64,";
        let head = &self.raw[..self.raw.len().min(64)];
        let Some(at) = memchr::memmem::find(head, BASE64) else { return false };
        head.starts_with(b"data:image/") && Self { raw: &self.raw[at + BASE64.len()..], ..self }.is_image()
    }

    /// Returns whether there is a URL in it. LiteLLM looks for `https://` and `gs://` anywhere in what should
    /// be data.
    pub(super) fn has_url(self) -> bool {
        has_scheme(&self.decoded())
    }
}

fn has_scheme(text: &[u8]) -> bool {
    memchr_iter(b':', text).any(|colon| text[colon..].starts_with(b"://"))
}

/// Returns the length of the escape at the start of `text`, if it is one. A pair of surrogates is one escape.
pub(super) fn escape_length(text: &[u8]) -> Option<usize> {
    match text.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => code_point(text).map(|(_, length)| length),
        _ => None,
    }
}

/// Returns the character of the `\u` escape at the start of `text`, and the escape's length.
fn code_point(text: &[u8]) -> Option<(char, usize)> {
    let unit = hex(text)?;
    if !(0xd800..0xdc00).contains(&unit) {
        return Some((char::from_u32(unit)?, 6));
    }
    let low = hex(&text[6..]).filter(|low| (0xdc00..0xe000).contains(low))?;
    Some((char::from_u32(0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00))?, 12))
}

fn hex(text: &[u8]) -> Option<u32> {
    let digits = text.get(..6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
}

fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(hit) = memchr::memchr(b'\\', rest) {
        text.extend_from_slice(&rest[..hit]);
        let escape = &rest[hit..];
        let (character, length) = match escape.get(1) {
            Some(b'u') => code_point(escape).unwrap_or((char::REPLACEMENT_CHARACTER, 6)),
            Some(b'b') => ('\u{8}', 2),
            Some(b'f') => ('\u{c}', 2),
            Some(b'n') => ('\n', 2),
            Some(b'r') => ('\r', 2),
            Some(b't') => ('\t', 2),
            Some(&itself) => (char::from(itself), 2),
            None => break,
        };
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        rest = escape.get(length..).unwrap_or_default();
    }
    text.extend_from_slice(rest);
    text
}
