//! Reads the answer to one request of HTTP/1.1, within bounds.

use std::io::{self, BufRead, BufReader, Read};

/// Largest head of an answer.
const MAX_HEAD: usize = 64 * 1024;
/// Most header fields of an answer.
const MAX_FIELDS: usize = 64;
/// Largest body of an answer. The gateway's own limit is far below by default.
pub(crate) const MAX_BODY: usize = 16 * 1024 * 1024;
/// Longest line that gives the length of a chunk.
const MAX_CHUNK_LINE: u64 = 1024;

/// A complete answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HttpAnswer {
    /// Its status.
    pub(crate) status: u16,
    /// Its body.
    pub(crate) body: Vec<u8>,
}

/// Fault of an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BrokenAnswer {
    /// The connection broke, or too much time passed.
    #[error("the answer could not be read: {0}")]
    Read(#[from] io::Error),
    /// The connection ended within the answer.
    #[error("the connection ended before the answer did")]
    Ended,
    /// The answer is not HTTP/1.1.
    #[error("the answer is not HTTP/1.1: {0}")]
    Head(#[from] httparse::Error),
    /// A part of the answer exceeds its bound.
    #[error("the answer is too large: its {part} has more than {most} bytes")]
    TooLarge {
        /// The part.
        part: &'static str,
        /// The bound.
        most: u64,
    },
    /// The answer does not say where its body ends, or says two different things.
    #[error("the length of the answer is not clear")]
    Length,
}

/// Rule by which a body ends.
enum BodyLength {
    Exactly(u64),
    Chunked,
    UntilEnd,
}

impl HttpAnswer {
    /// Reads the answer, past interim ones.
    pub(crate) fn read(source: impl Read) -> Result<Self, BrokenAnswer> {
        let mut reader = BufReader::new(source);
        loop {
            let (status, length) = read_head(&mut reader)?;
            if !(100..200).contains(&status) {
                return Ok(Self { status, body: read_body(&mut reader, length)? });
            }
        }
    }
}

fn read_head(reader: &mut impl BufRead) -> Result<(u16, BodyLength), BrokenAnswer> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let left = (MAX_HEAD - head.len()) as u64;
        if left == 0 {
            return Err(BrokenAnswer::TooLarge { part: "head", most: MAX_HEAD as u64 });
        }
        if reader.by_ref().take(left).read_until(b'\n', &mut head)? == 0 {
            return Err(BrokenAnswer::Ended);
        }
    }
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut answer = httparse::Response::new(&mut fields);
    if answer.parse(&head)?.is_partial() {
        return Err(BrokenAnswer::Ended);
    }
    let status = answer.code.unwrap_or_default();
    Ok((status, body_length(status, answer.headers)?))
}

fn body_length(status: u16, fields: &[httparse::Header<'_>]) -> Result<BodyLength, BrokenAnswer> {
    let values = |name: &'static str| {
        fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    };
    let coding: Vec<_> = values("transfer-encoding").collect();
    let lengths: Vec<_> = values("content-length").collect();
    match (coding.as_slice(), lengths.as_slice()) {
        _ if status == 204 || status == 304 => Ok(BodyLength::Exactly(0)),
        ([], []) => Ok(BodyLength::UntilEnd),
        ([one], []) if one.eq_ignore_ascii_case(b"chunked") => Ok(BodyLength::Chunked),
        ([], [one]) => {
            let text = str::from_utf8(one).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let length = text.and_then(|text| text.parse().ok()).ok_or(BrokenAnswer::Length)?;
            Ok(BodyLength::Exactly(length))
        }
        _ => Err(BrokenAnswer::Length),
    }
}

fn read_body(reader: &mut impl BufRead, length: BodyLength) -> Result<Vec<u8>, BrokenAnswer> {
    let mut body = Vec::new();
    match length {
        BodyLength::Exactly(length) => read_exactly(reader, length, &mut body)?,
        BodyLength::Chunked => loop {
            let size = read_chunk_size(reader)?;
            if size == 0 {
                break; // the connection is used for nothing else, so trailers need not be read
            }
            read_exactly(reader, size, &mut body)?;
            read_chunk_end(reader)?;
        },
        BodyLength::UntilEnd => {
            reader.by_ref().take(MAX_BODY as u64 + 1).read_to_end(&mut body)?;
            if body.len() > MAX_BODY {
                return Err(too_large());
            }
        }
    }
    Ok(body)
}

const fn too_large() -> BrokenAnswer {
    BrokenAnswer::TooLarge { part: "body", most: MAX_BODY as u64 }
}

fn read_exactly(reader: &mut impl BufRead, length: u64, body: &mut Vec<u8>) -> Result<(), BrokenAnswer> {
    if length > (MAX_BODY - body.len()) as u64 {
        return Err(too_large());
    }
    // Memory grows with what arrives, not with what is announced.
    match reader.by_ref().take(length).read_to_end(body)? as u64 {
        read if read == length => Ok(()),
        _ => Err(BrokenAnswer::Ended),
    }
}

fn read_line(reader: &mut impl BufRead) -> Result<Vec<u8>, BrokenAnswer> {
    let mut line = Vec::new();
    reader.by_ref().take(MAX_CHUNK_LINE).read_until(b'\n', &mut line)?;
    match line.strip_suffix(b"\r\n") {
        Some(text) => Ok(text.to_vec()),
        None if line.len() as u64 == MAX_CHUNK_LINE || line.ends_with(b"\n") => Err(BrokenAnswer::Length),
        None => Err(BrokenAnswer::Ended),
    }
}

fn read_chunk_size(reader: &mut impl BufRead) -> Result<u64, BrokenAnswer> {
    let line = read_line(reader)?;
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii_end();
    let is_hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = str::from_utf8(digits).ok().filter(|_| is_hex).ok_or(BrokenAnswer::Length)?;
    u64::from_str_radix(text, 16).map_err(|_overflow| too_large())
}

fn read_chunk_end(reader: &mut impl BufRead) -> Result<(), BrokenAnswer> {
    if read_line(reader)?.is_empty() { Ok(()) } else { Err(BrokenAnswer::Length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<HttpAnswer, BrokenAnswer> {
        HttpAnswer::read(text.as_bytes())
    }

    #[test]
    fn a_body_ends_as_its_head_says() {
        for text in [
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}and more",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1 ;x=y\r\n}\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n{}",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        ] {
            assert_eq!(read(text).unwrap(), HttpAnswer { status: 200, body: b"{}".to_vec() }, "{text}");
        }
    }

    #[test]
    fn a_broken_answer_is_named() {
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(20_000));
        for (text, reason) in [
            ("", "ended"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n", "ended"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{", "ended"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}}", "not clear"),
            ("HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\n{}", "not clear"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}", "not clear"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n{}", "too large"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "not clear"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "too large"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}", "ended"),
            ("SSH-2.0-OpenSSH\r\n\r\n", "not HTTP/1.1"),
            (many.as_str(), "its head has more than"),
        ] {
            let reason_given = read(text).unwrap_err().to_string();
            assert!(reason_given.contains(reason), "{}: {reason_given}", &text[..text.len().min(80)]);
        }
    }

    #[test]
    fn a_body_without_length_is_bounded() {
        let endless = "HTTP/1.1 200 OK\r\n\r\n".as_bytes().chain(io::repeat(b'x'));
        assert!(matches!(HttpAnswer::read(endless), Err(BrokenAnswer::TooLarge { part: "body", .. })));
    }
}
