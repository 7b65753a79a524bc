//! Reads streams of NDJSON line by line.

use serde_json::Value;

use crate::agent::Stream;

/// Lines of a stream that were not yet read.
#[derive(Debug)]
pub struct Lines {
    stream: Stream,
    pending: Vec<u8>,
}

impl Lines {
    /// Creates a reader of the lines of `stream`.
    #[must_use]
    pub const fn of(stream: Stream) -> Self {
        Self { stream, pending: Vec::new() }
    }

    /// Reads the next line; returns `None` at the stream's end.
    ///
    /// # Panics
    /// If the connection breaks, or a line is not JSON.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let (piece, _) = self.stream.next().await.unwrap()?;
            self.pending.extend_from_slice(&piece);
        }
    }

    /// Reads the remaining lines up to the stream's end.
    pub async fn rest(mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(line) = self.next().await {
            rest.push(line);
        }
        rest
    }
}
