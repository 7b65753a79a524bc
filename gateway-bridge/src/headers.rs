//! Checks the headers that a gateway is asked to put on a session's model calls.

use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeMap};

/// Largest size of all headers together. Each has its name, its value, and four bytes for `: ` and the line's end.
pub const MAX_HEADERS_SIZE: usize = 8 * 1024 - 1;

/// Non-empty list of checked headers. Names are lower-case tokens, each there once; values are visible ASCII with
/// blanks inside; together they have at most [`MAX_HEADERS_SIZE`] bytes. Values are secrets (a run token is one), so
/// `Debug` shows names only.
#[derive(Clone, PartialEq, Eq)]
pub struct OutboundHeaders(Vec<(String, String)>);

/// Error for headers that must not be put on a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHeaders {
    /// The list is empty.
    #[error("there is no header to send")]
    None,
    /// The name is not valid in HTTP.
    #[error("`{name}` is not the name of a header: expected letters, digits and any of !#$%&'*+-.^_`|~")]
    Name {
        /// The name, cut to 80 characters and escaped.
        name: String,
    },
    /// The value is empty, or has a byte that could end its line or that HTTP does not define.
    #[error("the value of header `{name}` is not visible ASCII with blanks inside, or is empty")]
    Value {
        /// The header's name.
        name: String,
    },
    /// The name is there twice, in upper or lower case.
    #[error("header `{name}` is there twice")]
    Twice {
        /// The name.
        name: String,
    },
    /// The headers are larger than a gateway accepts.
    #[error("the headers have {size} bytes, at most {MAX_HEADERS_SIZE} are possible")]
    TooLarge {
        /// Their size.
        size: usize,
    },
}

impl OutboundHeaders {
    /// Checks `headers` and keeps them, names in lower case, in their order.
    ///
    /// # Errors
    /// [`InvalidHeaders`]; it never shows a value.
    pub fn new<N: AsRef<str>, V: Into<String>>(
        headers: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, InvalidHeaders> {
        let mut kept: Vec<(String, String)> = Vec::new();
        let mut size = 0;
        for (name, value) in headers {
            let name = name.as_ref().to_ascii_lowercase();
            let value = value.into();
            if name.is_empty() || !name.bytes().all(is_name_byte) {
                let name = name.chars().take(80).flat_map(char::escape_default).collect();
                return Err(InvalidHeaders::Name { name });
            }
            if !is_value(&value) {
                return Err(InvalidHeaders::Value { name });
            }
            if kept.iter().any(|(other, _)| *other == name) {
                return Err(InvalidHeaders::Twice { name });
            }
            size += name.len() + value.len() + 4;
            if size > MAX_HEADERS_SIZE {
                return Err(InvalidHeaders::TooLarge { size });
            }
            kept.push((name, value));
        }
        if kept.is_empty() { Err(InvalidHeaders::None) } else { Ok(Self(kept)) }
    }

    /// Iterates over names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn is_value(value: &str) -> bool {
    let bytes = value.as_bytes();
    let visible = |byte: &u8| byte.is_ascii_graphic();
    bytes.first().is_some_and(visible)
        && bytes.last().is_some_and(visible)
        && bytes.iter().all(|byte| visible(byte) || matches!(byte, b' ' | b'\t'))
}

const fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

impl fmt::Debug for OutboundHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

/// Serializes the headers as an object of names and values.
impl Serialize for OutboundHeaders {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_lower_case_and_hide_their_values() {
        let headers =
            OutboundHeaders::new([("X-Run-Token", "r1|0|9.secret"), ("x-cogni-run-id", "r1")]).unwrap();
        assert_eq!(headers.iter().next(), Some(("x-run-token", "r1|0|9.secret")));
        assert_eq!(format!("{headers:?}"), r#"["x-run-token", "x-cogni-run-id"]"#);
        let json = serde_json::to_string(&headers).unwrap();
        assert_eq!(json, r#"{"x-run-token":"r1|0|9.secret","x-cogni-run-id":"r1"}"#);
    }

    #[test]
    fn invalid_and_repeated_headers_are_refused() {
        for bad in ["", "x y", "x:y", "x\r\n", "ü", "x\0"] {
            let error = OutboundHeaders::new([(bad, "v")]).unwrap_err();
            assert!(matches!(error, InvalidHeaders::Name { .. }), "{bad:?}: {error}");
        }
        for bad in ["", " v", "v ", "a\r\nb: c", "a\nb", "a\rb", "é", "a\0b", "a\x7fb"] {
            let error = OutboundHeaders::new([("x", bad)]).unwrap_err();
            assert!(matches!(error, InvalidHeaders::Value { .. }), "{bad:?}: {error}");
        }
        assert_eq!(
            OutboundHeaders::new([("x", "1"), ("X", "2")]),
            Err(InvalidHeaders::Twice { name: "x".into() })
        );
        assert_eq!(OutboundHeaders::new::<&str, &str>([]), Err(InvalidHeaders::None));
        let long = |bytes: usize| OutboundHeaders::new([("x", "v".repeat(bytes - 5))]);
        assert!(long(MAX_HEADERS_SIZE).is_ok());
        assert_eq!(long(MAX_HEADERS_SIZE + 1), Err(InvalidHeaders::TooLarge { size: MAX_HEADERS_SIZE + 1 }));
    }
}
