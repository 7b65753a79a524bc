//! Reads and writes W3C trace context: the trace that a request belongs to, and its parent span.
//!
//! A trace id here is not an identity: the permissions of a call never depend on it. A trace id that is one
//! (`control::Correlation`) was registered.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Id of a trace. Never all zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// Id of a span. Never all zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// A `traceparent` of version 00: the span that caused a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Traceparent {
    /// The trace.
    pub trace: TraceId,
    /// The span.
    pub span: SpanId,
    /// Flag of the process that began the trace: true if it keeps the trace.
    pub sampled: bool,
}

/// Error for a text that is not a `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a traceparent of version 00: expected `00-<32 hex digits>-<16 hex digits>-<2 hex digits>`, in lower case"
)]
pub struct InvalidTraceparent;

/// Returns bytes that two processes derive alike from the same parts.
fn derive<const N: usize>(kind: &str, parts: &[&str]) -> [u8; N] {
    let mut hash = Sha256::new();
    for part in [kind].iter().chain(parts) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut bytes = [0; N];
    bytes.copy_from_slice(&hash.finalize()[..N]);
    nonzero(bytes)
}

const fn nonzero<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    // All zeros is not an id. Changing one bit is safe: the result is as unlikely as any other.
    bytes[N - 1] |= (is_zero(&bytes)) as u8;
    bytes
}

const fn is_zero(bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != 0 {
            return false;
        }
        at += 1;
    }
    true
}

impl TraceId {
    /// Returns the id made from these random bits.
    #[must_use]
    pub const fn from_random(bits: u128) -> Self {
        Self(nonzero(bits.to_be_bytes()))
    }

    /// Derives an id: equal parts give equal ids, different parts different ids.
    #[must_use]
    pub fn derived(parts: &[&str]) -> Self {
        Self(derive("trace", parts))
    }

    /// Parses 32 lower-case hexadecimal digits, not all zero.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse_hex(text).map(Self)
    }
}

impl SpanId {
    /// Returns the id made from these random bits.
    #[must_use]
    pub const fn from_random(bits: u64) -> Self {
        Self(nonzero(bits.to_be_bytes()))
    }

    /// Derives an id: equal parts give equal ids, different parts different ids.
    #[must_use]
    pub fn derived(parts: &[&str]) -> Self {
        Self(derive("span", parts))
    }

    /// Parses 16 lower-case hexadecimal digits, not all zero.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        parse_hex(text).map(Self)
    }
}

fn parse_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let mut bytes = [0; N];
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    (!is_zero(&bytes)).then_some(bytes)
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

impl FromStr for Traceparent {
    type Err = InvalidTraceparent;

    fn from_str(text: &str) -> Result<Self, InvalidTraceparent> {
        let mut parts = text.split('-');
        let mut next_part = || parts.next().unwrap_or_default();
        let version = next_part();
        let trace = next_part();
        let span = next_part();
        let flags = next_part();
        let flags = flags.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).then_some(flags);
        let flags =
            flags.filter(|flags| flags.len() == 2).and_then(|flags| u8::from_str_radix(flags, 16).ok());
        match (version, TraceId::parse(trace), SpanId::parse(span), flags, parts.next()) {
            ("00", Some(trace), Some(span), Some(flags), None) => {
                Ok(Self { trace, span, sampled: flags & 1 == 1 })
            }
            _ => Err(InvalidTraceparent),
        }
    }
}

impl TryFrom<String> for Traceparent {
    type Error = InvalidTraceparent;

    fn try_from(text: String) -> Result<Self, InvalidTraceparent> {
        text.parse()
    }
}

impl From<Traceparent> for String {
    fn from(context: Traceparent) -> Self {
        context.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn only_valid_traceparents_are_read() {
        for (flags, sampled) in [("01", true), ("00", false), ("03", true), ("fe", false)] {
            let context: Traceparent = format!("00-{TRACE}-{SPAN}-{flags}").parse().unwrap();
            assert_eq!(
                (context.trace.to_string().as_str(), context.span.to_string().as_str()),
                (TRACE, SPAN)
            );
            assert_eq!(context.sampled, sampled);
            assert_eq!(context.to_string().parse(), Ok(context));
        }
        let no_trace = "0".repeat(32);
        let no_span = "0".repeat(16);
        for bad in [
            String::new(),
            format!("01-{TRACE}-{SPAN}-01"),
            format!("00-{no_trace}-{SPAN}-01"),
            format!("00-{TRACE}-{no_span}-01"),
            format!("00-{TRACE}-{SPAN}-01-01"),
            format!("00-{TRACE}-{SPAN}-0x"),
            format!("00-{TRACE}-{SPAN}-+1"),
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}0-{SPAN}-01"),
            format!("00-{}é-{SPAN}-01", &TRACE[2..]),
        ] {
            assert_eq!(bad.parse::<Traceparent>(), Err(InvalidTraceparent), "{bad}");
        }
    }

    #[test]
    fn a_derived_id_depends_on_every_part() {
        let id = |parts: &[&str]| SpanId::derived(parts);
        assert_eq!(id(&["r1", "0", "run"]), id(&["r1", "0", "run"]));
        for other in [&["r1", "0", "agent"][..], &["r10", "", "run"], &["r1", "0run"], &["r1", "1", "run"]] {
            assert_ne!(id(&["r1", "0", "run"]), id(other), "{other:?}");
        }
        assert_ne!(TraceId::derived(&["r1"]).to_string()[..16], id(&["r1"]).to_string());
    }

    #[test]
    fn no_id_is_zero() {
        assert_eq!(SpanId::from_random(0).to_string(), "0000000000000001");
        assert_eq!(TraceId::from_random(0).to_string(), format!("{}1", "0".repeat(31)));
    }
}
