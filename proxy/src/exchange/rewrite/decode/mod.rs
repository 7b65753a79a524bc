//! Decodes bodies that a client sends compressed: one gzip member (RFC 1952) or one zstd frame (RFC 8878), whole, and
//! nothing behind it.
//!
//! The plain bytes are what is checked, counted and sent. The largest plain body bounds memory and work, not what the
//! sender claims. A decoder does a little at a time, and its caller counts what it holds after each step.

mod gzip;
#[cfg(test)]
mod tests;
mod zstd;

use std::fmt;

use http::{HeaderMap, header};
use platform_core::limit::ByteSize;

use self::{gzip::GzipMember, zstd::ZstdFrame};

/// Content coding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Zstd,
}

/// Reason that a body cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum DecodeError {
    #[error("the body's content-encoding is unsupported: send it plain, or once encoded as gzip or zstd")]
    Unsupported,
    #[error("the body is not one whole {0}")]
    Malformed(Coding),
    #[error("the body goes on behind its first {0}: send one")]
    Trailing(Coding),
    #[error("the body has more blocks than its {0} needs: flush less often")]
    Wasteful(Coding),
    #[error("the body's zstd frame has a window of more than {}", zstd::MAX_WINDOW)]
    WindowTooLarge,
    #[error("the body's zstd frame needs a dictionary")]
    DictionaryNeeded,
    #[error("the body begins with a skippable zstd frame: send one frame of data")]
    Skippable,
    #[error("the plain body is larger than the limit")]
    TooLarge,
}

/// State of a decoder after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecodeStatus {
    More,
    Done,
}

/// Decoder of one body.
pub(super) struct Decoder<'e> {
    source: Source<'e>,
    plain: Vec<u8>,
    limit: ByteSize,
}

enum Source<'e> {
    Gzip(GzipMember<'e>),
    Zstd(ZstdFrame<'e>),
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip member",
            Self::Zstd => "zstd frame",
        })
    }
}

impl Coding {
    /// Returns the coding that `headers` name, `None` for a plain body (RFC 9110, 8.4). Several are not read: the order
    /// of work would be the sender's choice.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, DecodeError> {
        let values = headers.get_all(header::CONTENT_ENCODING).iter();
        let words = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
        let mut coding = None;
        for word in words.map(<[u8]>::trim_ascii).filter(|word| !word.eq_ignore_ascii_case(b"identity")) {
            let found = match word.to_ascii_lowercase().as_slice() {
                b"gzip" | b"x-gzip" => Self::Gzip,
                b"zstd" => Self::Zstd,
                _ => return Err(DecodeError::Unsupported),
            };
            if coding.replace(found).is_some() {
                return Err(DecodeError::Unsupported);
            }
        }
        Ok(coding)
    }
}

impl<'e> Decoder<'e> {
    /// Begins to decode `encoded` into at most `limit` bytes.
    pub(super) fn new(coding: Coding, encoded: &'e [u8], limit: ByteSize) -> Result<Self, DecodeError> {
        let source = match coding {
            Coding::Gzip => Source::Gzip(GzipMember::new(encoded)),
            Coding::Zstd => Source::Zstd(ZstdFrame::new(encoded, limit)?),
        };
        Ok(Self { source, plain: Vec::new(), limit })
    }

    /// Decodes a little more: one block of zstd, which has at most 128 KiB, or 16 KiB of gzip.
    pub(super) fn step(&mut self) -> Result<DecodeStatus, DecodeError> {
        let progress = match &mut self.source {
            Source::Gzip(member) => member.step(&mut self.plain),
            Source::Zstd(frame) => frame.step(&mut self.plain),
        }?;
        if self.plain.len() as u64 > self.limit.0 { Err(DecodeError::TooLarge) } else { Ok(progress) }
    }

    /// Returns the bytes of memory that the decoder holds beside the encoded body.
    pub(super) fn memory(&self) -> u64 {
        let held = match &self.source {
            Source::Gzip(_) => gzip::MEMORY,
            Source::Zstd(frame) => frame.memory(),
        };
        held + self.plain.capacity() as u64
    }

    /// Returns what was decoded.
    pub(super) fn into_plain(mut self) -> Vec<u8> {
        self.plain.shrink_to_fit();
        self.plain
    }
}
