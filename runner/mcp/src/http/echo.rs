//! echo finds a secret in what a server sends back. Pure.
//!
//! A server that reports the request it got, in a text or in an error, gives the credential to the agent. One that hides it
//! on purpose, in base64 for example, is not found: it can send it anywhere by itself.

use memchr::{memchr, memmem};

/// Fewest bytes of a secret that is looked for. Shorter ones would be found in any text.
const MIN_SECRET: usize = 8;
/// Most times that JSON is text in JSON.
const MAX_LEVELS: usize = 4;

/// Returns whether `text` has `secret` in it, as it is or as JSON writes it, also in a text in JSON that is JSON itself.
pub(super) fn has_secret(text: &[u8], secret: &[u8]) -> bool {
    if secret.len() < MIN_SECRET {
        return false;
    }
    let finder = memmem::Finder::new(secret);
    let mut level = None;
    for _ in 0..MAX_LEVELS {
        let current = level.as_deref().unwrap_or(text);
        if finder.find(current).is_some() {
            return true;
        }
        if memchr(b'\\', current).is_none() {
            return false;
        }
        level = Some(unescaped(current));
    }
    level.is_some_and(|last| finder.find(&last).is_some())
}

/// Returns `text` with each escape of JSON replaced by its character. Those of other characters than ASCII stay.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(b'\\', rest) {
        let (before, escape) = rest.split_at(at);
        plain.extend_from_slice(before);
        let (byte, length) = match escape.get(1) {
            Some(b'u') => match ascii(escape.get(2..6)) {
                Some(byte) => (byte, 6),
                None => (b'\\', 1),
            },
            Some(b'n') => (b'\n', 2),
            Some(b'r') => (b'\r', 2),
            Some(b't') => (b'\t', 2),
            Some(other) => (*other, 2),
            None => (b'\\', 1),
        };
        plain.push(byte);
        rest = &escape[length..];
    }
    plain.extend_from_slice(rest);
    plain
}

/// Returns the ASCII character of four hexadecimal digits.
fn ascii(digits: Option<&[u8]>) -> Option<u8> {
    let text = std::str::from_utf8(digits?).ok()?;
    u8::from_str_radix(text, 16).ok().filter(u8::is_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "tok/en-\"canary\"";

    fn finds(text: &str) -> bool {
        has_secret(text.as_bytes(), SECRET.as_bytes())
    }

    #[test]
    fn a_secret_is_found_in_any_form_of_json() {
        let json = |text: &str| serde_json::to_string(text).unwrap();
        let once = json(SECRET);
        let unicode: String = SECRET.bytes().map(|byte| format!("\\u00{byte:02X}")).collect();
        let php = once.replace('/', "\\/");
        for text in [
            SECRET.to_owned(),
            format!("Authorization: Bearer {SECRET}\r\n"),
            once.clone(),
            php.clone(),
            json(&php),
            json(&json(&once)),
            format!("\"{unicode}\""),
            json(&format!("\"{unicode}\"")),
        ] {
            assert!(finds(&text), "{text}");
        }
        for text in ["", "\\", "\\u00", "\\ud83d", "tok/en-canary", "\"tok\\/en-\"", &SECRET[1..]] {
            assert!(!finds(text), "the control: {text}");
        }
        assert!(!has_secret(b"a short one", b"short"));
    }
}
