//! Captures both outputs of a container, and passes them on as they come.

use std::{fmt, pin::Pin, time::Duration};

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
    source: LogStream,
    is_broken: bool,
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

/// State of one of the two outputs.
#[derive(Debug)]
struct SingleOutput {
    capture: Capture,
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
            source: Box::pin(source),
            is_broken: false,
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
        self.source = Box::pin(source);
        self.is_broken = false;
        for output in [&mut self.stdout, &mut self.stderr] {
            let decoder = std::mem::take(&mut output.decoder);
            *output = SingleOutput {
                passed_on: output.passed_on,
                decoder,
                ..SingleOutput::new(self.capture_limit)
            };
        }
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

    /// Returns whether the source broke off, and may have had more to come.
    pub(super) const fn is_broken(&self) -> bool {
        self.is_broken
    }

    async fn read_piece(&mut self, on_output: OnOutput<'_>) -> SourceState {
        match self.source.next().await {
            Some(Ok(output)) => {
                self.handle(output, on_output);
                // Endless output is always ready: without this, timeouts in the same task would never be polled.
                tokio::task::yield_now().await;
                SourceState::Open
            }
            Some(Err(error)) => {
                tracing::debug!(error = report::chain(&error), "container output ended early");
                self.is_broken = true;
                SourceState::AtEnd
            }
            None => SourceState::AtEnd,
        }
    }

    fn handle(&mut self, output: LogOutput, on_output: OnOutput<'_>) {
        let (stream, bytes) = match output {
            LogOutput::StdErr { message } => (OutputStream::Stderr, message),
            LogOutput::StdOut { message } | LogOutput::Console { message } | LogOutput::StdIn { message } => {
                (OutputStream::Stdout, message)
            }
        };
        let output = match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        output.push(stream, &bytes, on_output);
    }

    /// Returns the captured stdout and stderr.
    pub(super) fn finish(self) -> (Captured, Captured) {
        (self.stdout.capture.finish(), self.stderr.capture.finish())
    }
}

impl SingleOutput {
    fn new(capture_limit: ByteSize) -> Self {
        Self { capture: Capture::new(capture_limit), read: 0, passed_on: 0, decoder: Utf8Stream::default() }
    }

    /// Captures `bytes` of `stream`, and passes on those that were not passed on yet.
    fn push(&mut self, stream: OutputStream, bytes: &[u8], on_output: OnOutput<'_>) {
        self.capture.push(bytes);
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

    fn bytes(message: &'static [u8]) -> LogOutput {
        LogOutput::StdOut { message: Bytes::from_static(message) }
    }
}
