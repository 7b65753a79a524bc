//! Captures both outputs of a container, and passes them on as they come.

use std::{
    fmt,
    hash::{DefaultHasher, Hasher as _},
    pin::Pin,
    time::Duration,
};

use bollard::{container::LogOutput, errors::Error as ClientError};
use futures_util::{Stream, StreamExt};
use platform_core::{event::OutputStream, limit::ByteSize};
use platform_runtime::report;
use tokio::time::timeout;

use crate::{Capture, Captured, OnOutput, Piece, utf8_stream::Utf8Stream};

/// Largest size of a piece that is passed on, in bytes.
const MAX_PIECE: usize = 8 << 10;

type LogStream = Pin<Box<dyn Stream<Item = Result<LogOutput, ClientError>> + Send>>;

/// Both outputs of a container.
pub(super) struct Output {
    /// Absent after its end.
    source: Option<LogStream>,
    is_short: bool,
    capture_limit: ByteSize,
    stdout: SingleOutput,
    stderr: SingleOutput,
}

/// State of a source: open or at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceState {
    Open,
    AtEnd,
}

/// Length of what Docker's log has of both outputs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LogLength {
    stdout: TextLength,
    stderr: TextLength,
}

/// Length of an output without its last line feed: Docker's log has one behind a last line that had none.
#[derive(Debug, Clone, Copy, Default)]
struct TextLength {
    bytes: u64,
    line_feeds: u64,
}

impl LogLength {
    /// Adds the next piece of the log.
    pub(super) fn add(&mut self, piece: &LogOutput) {
        match piece {
            LogOutput::StdOut { message } => self.stdout.add(message),
            LogOutput::StdErr { message } => self.stderr.add(message),
            LogOutput::StdIn { .. } | LogOutput::Console { .. } => {}
        }
    }
}

impl TextLength {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += self.line_feeds + bytes.len() as u64;
        self.line_feeds = u64::from(bytes.ends_with(b"\n"));
        self.bytes -= self.line_feeds;
    }
}

/// Beginning of an output, as an earlier source had it.
#[derive(Debug, Clone, Copy, Default)]
struct Beginning {
    bytes: u64,
    digest: u64,
}

/// State of one of the two outputs.
#[derive(Debug)]
struct SingleOutput {
    capture: Capture,
    /// Digest of the bytes read.
    digest: DefaultHasher,
    earlier: Beginning,
    /// True if a source began otherwise than an earlier one.
    is_other: bool,
    /// Bytes read since the beginning of the source.
    read: u64,
    /// Bytes that were passed on, or wait in `decoder`.
    passed_on: u64,
    decoder: Utf8Stream,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("stdout", &self.stdout).field("stderr", &self.stderr).finish()
    }
}

impl Output {
    /// Reads from `source`, and captures at most `capture_limit` of each output.
    pub(super) fn new(
        source: impl Stream<Item = Result<LogOutput, ClientError>> + Send + 'static,
        capture_limit: ByteSize,
    ) -> Self {
        Self {
            source: Some(Box::pin(source)),
            is_short: false,
            capture_limit,
            stdout: SingleOutput::new(capture_limit),
            stderr: SingleOutput::new(capture_limit),
        }
    }

    /// Skips the first bytes of each output: an earlier worker has passed them on.
    pub(super) const fn skip(&mut self, stdout: u64, stderr: u64) {
        self.stdout.passed_on = stdout;
        self.stderr.passed_on = stderr;
    }

    /// Restarts from `source`, which has everything from the beginning. Bytes that were passed on are not passed on
    /// again.
    pub(super) fn restart_from(
        &mut self,
        source: impl Stream<Item = Result<LogOutput, ClientError>> + Send + 'static,
    ) {
        self.source = Some(Box::pin(source));
        for output in [&mut self.stdout, &mut self.stderr] {
            output.restart(self.capture_limit);
        }
    }

    /// Notes that output may be missing which no source has.
    pub(super) const fn mark_short(&mut self) {
        self.is_short = true;
    }

    /// Returns whether output may be missing: a source lacked what an earlier one had, or no source has it.
    pub(super) fn may_be_short(&self) -> bool {
        self.is_short || [&self.stdout, &self.stderr].into_iter().any(SingleOutput::lacks_earlier)
    }

    /// Returns whether as much was read as `kept`.
    pub(super) const fn reaches(&self, kept: LogLength) -> bool {
        self.stdout.read >= kept.stdout.bytes && self.stderr.read >= kept.stderr.bytes
    }

    /// Reads until the source ends. Cancel safe: what was read is kept.
    pub(super) async fn read(&mut self, on_output: OnOutput<'_>) {
        while self.read_piece(on_output).await == SourceState::Open {}
    }

    /// Reads the rest of an ended container's output: however much that is, as long as it comes. Docker may never
    /// report the end; a `silence` of that length counts as the end.
    pub(super) async fn read_rest(&mut self, on_output: OnOutput<'_>, silence: Duration) {
        while let Ok(SourceState::Open) = timeout(silence, self.read_piece(on_output)).await {}
    }

    async fn read_piece(&mut self, on_output: OnOutput<'_>) -> SourceState {
        let Some(source) = &mut self.source else { return SourceState::AtEnd };
        match source.next().await {
            Some(Ok(LogOutput::StdOut { message })) => {
                self.stdout.push(OutputStream::Stdout, &message, on_output);
            }
            Some(Ok(LogOutput::StdErr { message })) => {
                self.stderr.push(OutputStream::Stderr, &message, on_output);
            }
            // The client makes `Console` of a piece that broke off.
            end => {
                if let Some(Err(error)) = &end {
                    tracing::debug!(error = report::chain(error), "container output ended early");
                }
                self.source = None;
                return SourceState::AtEnd;
            }
        }
        // Endless output is always ready: without this, timeouts in the same task would never be polled.
        tokio::task::yield_now().await;
        SourceState::Open
    }

    /// Returns the captured stdout and stderr.
    pub(super) fn finish(self) -> (Captured, Captured) {
        (self.stdout.capture.finish(), self.stderr.capture.finish())
    }
}

impl SingleOutput {
    fn new(capture_limit: ByteSize) -> Self {
        Self {
            capture: Capture::new(capture_limit),
            digest: DefaultHasher::new(),
            earlier: Beginning::default(),
            is_other: false,
            read: 0,
            passed_on: 0,
            decoder: Utf8Stream::default(),
        }
    }

    /// Prepares for a source that has everything from the beginning.
    fn restart(&mut self, capture_limit: ByteSize) {
        let read = Beginning { bytes: self.read, digest: self.digest.finish() };
        *self = Self {
            earlier: if read.bytes < self.earlier.bytes { self.earlier } else { read },
            is_other: self.is_other,
            passed_on: self.passed_on,
            decoder: std::mem::take(&mut self.decoder),
            ..Self::new(capture_limit)
        };
    }

    /// Returns whether the source lacks bytes that an earlier one had.
    const fn lacks_earlier(&self) -> bool {
        self.is_other || self.read < self.earlier.bytes
    }

    /// Adds the next `bytes` to the digest, and compares it at the end of what an earlier source had.
    fn digest(&mut self, bytes: &[u8]) {
        let left = usize::try_from(self.earlier.bytes.saturating_sub(self.read)).unwrap_or(usize::MAX);
        let (earlier, new) = bytes.split_at(left.min(bytes.len()));
        self.digest.write(earlier);
        if left > 0 && left <= bytes.len() {
            self.is_other |= self.digest.finish() != self.earlier.digest;
        }
        self.digest.write(new);
    }

    /// Captures `bytes` of `stream`, and passes on those that were not passed on yet.
    fn push(&mut self, stream: OutputStream, bytes: &[u8], on_output: OnOutput<'_>) {
        self.capture.push(bytes);
        self.digest(bytes);
        let already_passed = usize::try_from(self.passed_on.saturating_sub(self.read)).unwrap_or(usize::MAX);
        self.read += bytes.len() as u64;
        for new in bytes[already_passed.min(bytes.len())..].chunks(MAX_PIECE) {
            let line_end =
                new.iter().rposition(|byte| *byte == b'\n').map(|at| self.passed_on + at as u64 + 1);
            self.passed_on += new.len() as u64;
            let text = self.decoder.push(new);
            if !text.is_empty() {
                let to = self.passed_on - self.decoder.pending() as u64;
                on_output(Piece { stream, text, to, line_end });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use bytes::Bytes;

    use super::*;

    fn source(pieces: &[&'static str]) -> impl Stream<Item = Result<LogOutput, ClientError>> + use<> {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|piece| Ok(LogOutput::StdOut { message: Bytes::from_static(piece.as_bytes()) }))
            .collect();
        futures_util::stream::iter(pieces)
    }

    #[tokio::test]
    async fn a_slow_rest_is_read_to_its_end() {
        let slow = source(&["a", "b", "c", "d", "e"]).then(async |piece| {
            tokio::time::sleep(Duration::from_millis(300)).await;
            piece
        });
        let mut output = Output::new(slow.chain(futures_util::stream::pending()), ByteSize::kib(1));
        output.read_rest(&|_piece| {}, Duration::from_secs(1)).await;
        assert_eq!(output.finish().0.text(), "abcde");
    }

    #[tokio::test]
    async fn a_new_source_repeats_no_output() {
        let passed_on = RefCell::new(Vec::new());
        let on_output = |piece: Piece| passed_on.borrow_mut().push((piece.text, piece.to));
        let mut output = Output::new(source(&["ab", "cd"]), ByteSize::kib(1));
        output.read(&on_output).await;
        output.restart_from(source(&["abc", "def", "gh"]));
        output.read(&on_output).await;
        let pieces = [("ab", 2), ("cd", 4), ("ef", 6), ("gh", 8)];
        assert_eq!(passed_on.take(), pieces.map(|(text, to)| (text.to_owned(), to)));
        assert_eq!(output.finish().0.text(), "abcdefgh", "and yet all of it is kept, once");
    }

    #[tokio::test]
    async fn a_takeover_continues_in_whole_letters() {
        let passed_on = RefCell::new(Vec::new());
        let on_output = |piece: Piece| passed_on.borrow_mut().push((piece.text, piece.to));
        let euro = [Ok(bytes(b"ab\xe2")), Ok(bytes(b"\x82")), Ok(bytes(b"\xacc"))];
        let mut output = Output::new(futures_util::stream::iter(euro), ByteSize::kib(1));
        output.skip(1, 0);
        output.read(&on_output).await;
        assert_eq!(passed_on.take(), [("b", 2), ("€c", 6)].map(|(text, to)| (text.to_owned(), to)));
    }

    #[tokio::test]
    async fn the_end_of_a_line_is_exact_to_the_byte() {
        let line_ends = RefCell::new(Vec::new());
        let on_output = |piece: Piece| line_ends.borrow_mut().push((piece.to, piece.line_end));
        // An invalid byte is one byte of the stream and three of the text.
        let pieces = [b"a\xffb".as_slice(), b"\xff\n\xe2\x82", b"\xac\n\nc"].map(|piece| Ok(bytes(piece)));
        let mut output = Output::new(futures_util::stream::iter(pieces), ByteSize::kib(1));
        output.read(&on_output).await;
        assert_eq!(line_ends.take(), [(3, None), (5, Some(5)), (11, Some(10))]);
    }

    #[tokio::test]
    async fn a_source_that_lacks_earlier_output_shows() {
        for (later, is_short) in [
            (&["ab", "cd\n", "e\n"][..], false),
            (&["abcd\n"], false),
            // Docker was killed in the middle of a line, and has lost its beginning.
            (&["cd\n", "e\n", "\n"], true),
            (&["ab"], true),
            (&[], true),
        ] {
            let mut output = Output::new(source(&["a", "bc"]), ByteSize::kib(1));
            output.read(&|_piece| {}).await;
            assert!(!output.may_be_short(), "control");
            output.restart_from(source(later));
            output.read(&|_piece| {}).await;
            assert_eq!(output.may_be_short(), is_short, "{later:?}");
            output.restart_from(source(&["abcd\n", "e\n"]));
            output.read(&|_piece| {}).await;
            // What began otherwise is not forgotten. A source that ended early is: this one has it all.
            assert_eq!(output.may_be_short(), later.len() == 3 && is_short, "{later:?}");
        }
    }

    #[tokio::test]
    async fn a_log_says_whether_output_is_missing() {
        let length = |pieces: &[&'static [u8]]| {
            let mut length = LogLength::default();
            pieces.iter().for_each(|piece| length.add(&bytes(piece)));
            length
        };
        let mut output = Output::new(source(&["a\n", "bc"]), ByteSize::kib(1));
        output.read(&|_piece| {}).await;
        for (kept, reaches) in [
            (&[b"a\n".as_slice(), b"bc"][..], true),
            (&[b"a\n", b"bc\n"], true),
            (&[b"a\n"], true),
            (&[b"a\n", b"bcd"], false),
            (&[b"a\n", b"bc\n", b"\n"], false),
        ] {
            assert_eq!(output.reaches(length(kept)), reaches, "{kept:?}");
        }
    }

    fn bytes(message: &'static [u8]) -> LogOutput {
        LogOutput::StdOut { message: Bytes::from_static(message) }
    }
}
