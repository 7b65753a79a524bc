//! Writes and reads bytes in parts of URIs, where others than letters, digits and `-._~` are escaped (RFC 3986, section 2).

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Returns `text` with all bytes but letters, digits and `-._~` escaped. Allocates once, so no copy of a secret is left.
#[must_use]
pub fn encode(text: impl AsRef<[u8]>) -> String {
    let text = text.as_ref();
    let mut encoded = String::with_capacity(text.len() * "%00".len());
    for &byte in text {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let digits = [byte >> 4, byte & 0xf].map(|digit| char::from(DIGITS[usize::from(digit)]));
            encoded.extend(['%'].into_iter().chain(digits));
        }
    }
    encoded
}

/// Returns the bytes that `text` stands for; `None` if an escape is malformed.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                u8::try_from(digit(bytes.next())? << 4 | digit(bytes.next())?).ok()?
            }
            byte => byte,
        });
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_back() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
        assert_eq!(encode("a&state=all#b/../c%20 é~"), "a%26state%3Dall%23b%2F..%2Fc%2520%20%C3%A9~");
        assert_eq!(decode("a%2fb+c/é"), Some("a/b+c/é".into()));
    }

    #[test]
    fn malformed_escapes_are_not_decoded() {
        for text in ["%", "a%", "a%4", "a%zz", "a%+f", "a%-f", "%4é"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
