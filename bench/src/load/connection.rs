//! Drives one connection: writes prepared bytes, and reads answers with the least work that finds their end.

use std::io;

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};

use super::Target;
use crate::measure::clock;

/// A connection to a peer.
pub struct Connection {
    stream: Box<dyn Duplex>,
    buffer: Vec<u8>,
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// Measurements of an answer.
#[derive(Debug, Default)]
pub struct Received {
    /// Time of its first byte.
    pub first_byte_ns: u64,
    /// Time of its last byte.
    pub last_byte_ns: u64,
    /// Delay of each of its events.
    pub event_delay: Vec<u64>,
}

/// Framing of an answer, which decides how its end is found.
enum Length {
    Bytes(usize),
    Chunked,
}

impl Connection {
    /// Connects to `target`.
    ///
    /// # Errors
    /// If no server listens there.
    pub async fn open(target: &Target) -> io::Result<Self> {
        let stream: Box<dyn Duplex> = match target {
            Target::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Target::Unix(path) => Box::new(UnixStream::connect(path).await?),
        };
        Ok(Self { stream, buffer: Vec::with_capacity(16 << 10) })
    }

    /// Frees the buffer of a connection that will be idle.
    pub fn forget_buffer(&mut self) {
        self.buffer = Vec::new();
    }

    /// Sends `request` and reads the answer to its end. Not cancel safe.
    ///
    /// # Errors
    /// If the connection breaks, or the answer is not a success.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<Received> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let mut received = Received::default();
        let head = loop {
            self.read().await?;
            if received.first_byte_ns == 0 {
                received.first_byte_ns = clock::nanos();
            }
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
        };
        check_success(&self.buffer, head)?;
        match length(&self.buffer[..head]) {
            Length::Bytes(length) => {
                while self.buffer.len() < head + length {
                    self.read().await?;
                }
            }
            Length::Chunked => self.read_events(head, &mut received).await?,
        }
        received.last_byte_ns = clock::nanos();
        Ok(received)
    }

    /// Sends `request`, reads an answer in one piece and returns its status, success or not. Not cancel safe.
    ///
    /// # Errors
    /// If the connection breaks, or the answer comes in pieces.
    pub async fn status(&mut self, request: &[u8]) -> io::Result<u16> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let head = loop {
            self.read().await?;
            if let Some(end) = memchr::memmem::find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
        };
        let Length::Bytes(length) = length(&self.buffer[..head]) else {
            return Err(io::Error::other("the peer answered in pieces"));
        };
        let status = self.buffer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        while self.buffer.len() < head + length {
            self.read().await?;
        }
        status.ok_or_else(|| io::Error::other("the peer answered without a status"))
    }

    async fn read_events(&mut self, mut scanned: usize, received: &mut Received) -> io::Result<()> {
        loop {
            let now = clock::nanos();
            scanned += note_events(&self.buffer[scanned..], now, &mut received.event_delay);
            if self.buffer.ends_with(b"0\r\n\r\n") {
                return Ok(());
            }
            self.buffer.drain(..scanned);
            scanned = 0;
            self.read().await?;
        }
    }

    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the peer closed before its answer was complete",
            )),
            _ => Ok(()),
        }
    }
}

/// Checks that the answer, with a head of `head` bytes, is a success; otherwise the error has its status and body.
fn check_success(answer: &[u8], head: usize) -> io::Result<()> {
    if answer.starts_with(b"HTTP/1.1 200") {
        return Ok(());
    }
    let (head, body) = answer.split_at(head);
    let (head, body) = (String::from_utf8_lossy(head), String::from_utf8_lossy(body));
    let status = head.lines().next().unwrap_or_default();
    Err(io::Error::other(format!("the peer answered {status}: {}", body.trim())))
}

fn length(head: &[u8]) -> Length {
    let text = String::from_utf8_lossy(head);
    let value = |line: &str, wanted: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case(wanted).then(|| value.trim().to_owned())
    };
    let length =
        text.lines().find_map(|line| value(line, "content-length")).and_then(|text| text.parse().ok());
    length.map_or(Length::Chunked, Length::Bytes)
}

/// Records the delay of every event with a complete time stamp; returns the number of bytes that need no second look.
fn note_events(bytes: &[u8], now: u64, delays: &mut Vec<u64>) -> usize {
    const MARK: &[u8] = b"\"t\":\"";
    const DIGITS: usize = 19;
    let mut done = 0;
    for at in memchr::memmem::find_iter(bytes, MARK) {
        let start = at + MARK.len();
        let Some(stamp) = bytes.get(start..start + DIGITS) else { return done };
        let sent = stamp.iter().fold(0u64, |number, digit| number * 10 + u64::from(digit - b'0'));
        delays.push(now.saturating_sub(sent));
        done = start + DIGITS;
    }
    // The mark may be split between two reads.
    done.max(bytes.len().saturating_sub(MARK.len() + DIGITS))
}
