//! What Docker kept of a container's output, as it was.
//!
//! Its `local` driver keeps lines, and of a line of more than 16 KiB parts; it forgets whether a line feed came behind the last
//! part (moby's `local` reader adds one only to lines of one part). What comes next in the same stream says that there was one.
//! Behind the very last line nothing comes: there it may be missing. The `json-file` driver keeps line feeds and loses more: it
//! keeps text, and what it cut in the middle of a letter, or was none, comes back as U+FFFD.

use bollard::container::LogOutput;
use bytes::{BufMut, Bytes, BytesMut};

/// Bytes in a part of a line that goes on.
const PART: usize = 16 << 10;

/// Puts line feeds back where they were.
#[derive(Debug, Default)]
pub(super) struct Mend {
    stdout: Before,
    stderr: Before,
}

/// What came before in a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Before {
    /// Nothing, or the end of a line.
    #[default]
    Line,
    /// A part of a line that goes on.
    Part,
    /// The end of a line without its line feed, or of everything.
    End,
}

impl Mend {
    /// The next piece, with what was lost before it.
    pub(super) fn mend(&mut self, output: LogOutput) -> LogOutput {
        match output {
            LogOutput::StdOut { message } => LogOutput::StdOut { message: self.stdout.mend(message) },
            LogOutput::StdErr { message } => LogOutput::StdErr { message: self.stderr.mend(message) },
            other => other,
        }
    }
}

impl Before {
    fn mend(&mut self, message: Bytes) -> Bytes {
        let before = *self;
        *self = match message.len() {
            _ if message.ends_with(b"\n") => Self::Line,
            PART => Self::Part,
            _ => Self::End,
        };
        if before != Self::End {
            return message;
        }
        let mut mended = BytesMut::with_capacity(message.len() + 1);
        mended.put_u8(b'\n');
        mended.put(message);
        mended.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_feed_is_put_back_where_something_follows() {
        let part = "x".repeat(PART);
        let pieces = ["a\n", &part, &part, "end", "b\n", &part, "", "c\n", &part, "end\n", "no line feed"];
        let expected = format!("a\n{part}{part}end\nb\n{part}\nc\n{part}end\nno line feed");
        let mut mend = Mend::default();
        let mended: String = pieces
            .iter()
            .map(|piece| LogOutput::StdOut { message: Bytes::copy_from_slice(piece.as_bytes()) })
            .map(|piece| mend.mend(piece).to_string())
            .collect();
        assert!(mended == expected);
        let other = LogOutput::StdErr { message: Bytes::from_static(b"its own") };
        assert_eq!(mend.mend(other).to_string(), "its own", "streams are apart");
    }
}
