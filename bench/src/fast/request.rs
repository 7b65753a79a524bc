//! Finds the requests in a connection's bytes, and the answer that each asks for.

use std::{io, time::Duration};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Answer that a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Document { hold: Option<Duration> },
    AgentDocument,
    Stream { events: u32, gap: Option<Duration> },
}

/// Reader of a connection's requests, one after the other.
#[derive(Debug, Default)]
pub(super) struct Requests {
    buffer: Vec<u8>,
}

impl Requests {
    /// Returns the next request, with its body read and dropped; `None` once the client has closed.
    pub(super) async fn next(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Wanted>> {
        let head = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        };
        let length = content_length(&self.buffer[..head]).ok_or(io::ErrorKind::InvalidData)?;
        while self.buffer.len() < head + length {
            if stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
        let wanted = wanted_answer(&self.buffer[head..head + length]);
        self.buffer.drain(..head + length);
        Ok(Some(wanted))
    }
}

/// Returns the length of the body. Every request in a benchmark declares it. A peer that makes the body chunked is not
/// measured: its configuration has to be fixed.
fn content_length(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })
}

/// Returns the answer that the model's name selects. The load generator puts the model at the beginning of the body.
fn wanted_answer(body: &[u8]) -> Wanted {
    let start = &body[..body.len().min(128)];
    let number = |word: &[u8]| find(start, word).map(|at| digits(&start[at + word.len()..]));
    let milliseconds = |word: &[u8]| Some(Duration::from_millis(number(word)?.into()));
    match number(b"events") {
        None if find(start, b"fast-agent").is_some() => Wanted::AgentDocument,
        None => Wanted::Document { hold: milliseconds(b"-hold") },
        Some(events) => Wanted::Stream { events, gap: milliseconds(b"-gap") },
    }
}

fn digits(text: &[u8]) -> u32 {
    text.iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(haystack, needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_says_what_is_asked_for() {
        let stream = |events, gap| Wanted::Stream { events, gap };
        let cases = [
            ("{\"model\":\"fast\",\"messages\":[]}", Wanted::Document { hold: None }),
            ("{\"model\":\"fast-agent\"}", Wanted::AgentDocument),
            ("{\"model\":\"fast-hold7ms\"}", Wanted::Document { hold: Some(Duration::from_millis(7)) }),
            ("{\"model\":\"fast-events64\",\"stream\":true}", stream(64, None)),
            ("{\"model\":\"fast-events9-gap20ms\"}", stream(9, Some(Duration::from_millis(20)))),
        ];
        for (body, expected) in cases {
            assert_eq!(wanted_answer(body.as_bytes()), expected, "{body}");
        }
    }
}
