//! events reads a stream of server-sent events, within a bound. Pure.

use bytes::Bytes;

use crate::{error::ServerError, lines::LineSplitter};

/// Reader of events. Only their data matters.
#[derive(Debug)]
pub(super) struct EventReader {
    lines: LineSplitter,
    data: Vec<u8>,
    limit: usize,
}

impl EventReader {
    /// Creates a reader. No event has more than `limit` bytes.
    pub(super) const fn new(limit: usize) -> Self {
        Self { lines: LineSplitter::new(limit), data: Vec::new(), limit }
    }

    /// Takes bytes from `chunk`, up to the end of an event, and returns its data.
    ///
    /// # Errors
    /// [`ServerError::TooLarge`].
    pub(super) fn take(&mut self, chunk: &mut Bytes) -> Result<Option<Vec<u8>>, ServerError> {
        while let Some(line) = self.lines.take(chunk)? {
            if line.is_empty() {
                if !self.data.is_empty() {
                    return Ok(Some(std::mem::take(&mut self.data)));
                }
            } else if let Some(data) = line.strip_prefix(b"data:") {
                let data = data.strip_prefix(b" ").unwrap_or(data);
                if self.data.len() + data.len() > self.limit {
                    return Err(ServerError::TooLarge { limit: self.limit });
                }
                if !self.data.is_empty() {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(data);
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_any_pieces() {
        let text = "\u{feff}: note\r\nid: 1\r\ndata:\r\n\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nretry: 5\n\ndata: x\n\n";
        for size in [1, 2, 7, 1000] {
            let mut events = EventReader::new(64);
            let mut found = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                let mut chunk = Bytes::copy_from_slice(piece);
                while let Some(data) = events.take(&mut chunk).unwrap() {
                    found.push(String::from_utf8(data).unwrap());
                }
            }
            assert_eq!(found, ["{\"a\":\n1}", "x"], "{size}");
        }
        let mut events = EventReader::new(8);
        let mut chunk = Bytes::from_static(b"data: 1234\ndata: 56789\n\n");
        assert!(events.take(&mut chunk).is_err());
    }
}
