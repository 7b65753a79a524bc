//! Restores a container's output from what Docker kept of it.
//!
//! Docker's `local` driver stores a line of more than 16 KiB in parts. It forgets whether a line feed followed the last
//! part (moby's `local` reader adds one only to lines of one part). If more output of the same stream follows that
//! part, there was a line feed. If nothing follows, this cannot be known, and none is added.
//!
//! The `json-file` driver keeps line feeds, but it stores text. A character that is cut in two and a byte that is not
//! UTF-8 come back as U+FFFD.

use bollard::container::LogOutput;
use bytes::{BufMut, Bytes, BytesMut};

/// Size of a part that is not the last of its line, in bytes.
const PART_SIZE: usize = 16 << 10;

/// Restores lost line feeds.
#[derive(Debug, Default)]
pub(super) struct LogRepair {
    stdout: LastPiece,
    stderr: LastPiece,
}

/// Ending of a stream's previous piece.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LastPiece {
    /// Nothing yet, or the end of a line.
    #[default]
    Line,
    /// A part of a line that continues.
    Part,
    /// The last part of a line, without a line feed.
    End,
}

impl LogRepair {
    /// Returns the next piece, with the line feed that was lost before it.
    pub(super) fn repair(&mut self, output: LogOutput) -> LogOutput {
        match output {
            LogOutput::StdOut { message } => LogOutput::StdOut { message: self.stdout.repair(message) },
            LogOutput::StdErr { message } => LogOutput::StdErr { message: self.stderr.repair(message) },
            other => other,
        }
    }
}

impl LastPiece {
    fn repair(&mut self, message: Bytes) -> Bytes {
        let before = *self;
        *self = match message.len() {
            _ if message.ends_with(b"\n") => Self::Line,
            PART_SIZE => Self::Part,
            _ => Self::End,
        };
        if before != Self::End {
            return message;
        }
        let mut repaired = BytesMut::with_capacity(message.len() + 1);
        repaired.put_u8(b'\n');
        repaired.put(message);
        repaired.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_line_feed_is_put_back() {
        let part = "x".repeat(PART_SIZE);
        let pieces = ["a\n", &part, &part, "end", "b\n", &part, "", "c\n", &part, "end\n", "no line feed"];
        let expected = format!("a\n{part}{part}end\nb\n{part}\nc\n{part}end\nno line feed");
        let mut repair = LogRepair::default();
        let repaired: String = pieces
            .iter()
            .map(|piece| LogOutput::StdOut { message: Bytes::copy_from_slice(piece.as_bytes()) })
            .map(|piece| repair.repair(piece).to_string())
            .collect();
        assert!(repaired == expected);
        let other = LogOutput::StdErr { message: Bytes::from_static(b"its own") };
        assert_eq!(repair.repair(other).to_string(), "its own", "streams are apart");
    }
}
