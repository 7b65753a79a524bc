//! Opens a connection to the gateway and reads from it until a deadline.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{TcpStream, ToSocketAddrs as _},
    time::{Duration, Instant},
};

use crate::{error::Error, settings::GatewayAddress};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest wait for the end of an answer: longer than any wait for an approval, after which the gateway itself answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// A connection for one request.
#[derive(Debug)]
pub(crate) struct RequestStream {
    stream: TcpStream,
    deadline: Instant,
}

impl RequestStream {
    /// Connects to `address`. Nothing has been sent if this fails.
    pub(crate) fn open(address: &GatewayAddress) -> Result<Self, Error> {
        let endpoint = address.endpoint();
        let connect = || {
            let mut failure = None;
            for address in endpoint.to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                    Ok(stream) => return Ok(stream),
                    Err(error) => failure = failure.or(Some(error)),
                }
            }
            Err(failure.unwrap_or_else(|| io::Error::new(ErrorKind::NotFound, "the name has no address")))
        };
        match connect() {
            Ok(stream) => Ok(Self { stream, deadline: Instant::now() + ANSWER_TIMEOUT }),
            Err(source) => Err(Error::Unreachable { endpoint, source }),
        }
    }

    fn time_left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Write for RequestStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.time_left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Read for RequestStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.time_left()?))?;
        self.stream.read(buffer)
    }
}
