//! lines splits output into lines, within a bound. Pure.

use bytes::{Buf as _, Bytes};

use crate::error::ServerError;

/// Splitter of output into lines.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    begun: Vec<u8>,
    limit: usize,
}

impl LineSplitter {
    /// Creates a splitter. No line has more than `limit` bytes.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { begun: Vec::new(), limit }
    }

    /// Takes bytes from `chunk`, up to the end of a line, and returns that line; `None` if the chunk ends before.
    ///
    /// # Errors
    /// [`ServerError::TooLarge`].
    pub(crate) fn take(&mut self, chunk: &mut Bytes) -> Result<Option<Vec<u8>>, ServerError> {
        let end = memchr::memchr(b'\n', chunk);
        let length = end.unwrap_or(chunk.len());
        if self.begun.len() + length > self.limit {
            return Err(ServerError::TooLarge { limit: self.limit });
        }
        self.begun.extend_from_slice(&chunk[..length]);
        chunk.advance(length + usize::from(end.is_some()));
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.begun);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_however_they_come() {
        let mut lines = LineSplitter::new(4);
        let mut found = Vec::new();
        for piece in ["ab", "c\nd\n\n", "efgh\r"] {
            let mut chunk = Bytes::from_static(piece.as_bytes());
            while let Ok(Some(line)) = lines.take(&mut chunk) {
                found.push(String::from_utf8(line).unwrap());
            }
        }
        assert_eq!(found, ["abc", "d", ""]);
        let mut lines = LineSplitter::new(4);
        assert_eq!(lines.take(&mut Bytes::from_static(b"abcde")), Err(ServerError::TooLarge { limit: 4 }));
    }
}
