//! Captures both outputs of a container, and passes them on as they come.

use std::{fmt, pin::Pin, time::Duration};

use bollard::{container::LogOutput, errors::Error as ClientError};
use futures_util::{Stream, StreamExt};
use platform_core::{event::OutputStream, limit::ByteSize};
use tokio::time::timeout;

use crate::{Capture, Captured, Hear, Piece, letters::Letters};

/// Most bytes of a piece that is passed on.
const PIECE: usize = 8 << 10;

type Source = Pin<Box<dyn Stream<Item = Result<LogOutput, ClientError>> + Send>>;

/// Both outputs of a container.
pub(super) struct Output {
    source: Source,
    is_broken: bool,
    most: ByteSize,
    stdout: One,
    stderr: One,
}

/// State of a source: open or at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    Perhaps,
    Never,
}

/// State of one of the two outputs.
#[derive(Debug)]
struct One {
    capture: Capture,
    /// Bytes read since the beginning of the source.
    read: u64,
    /// Bytes that were passed on, or wait in `letters`.
    told: u64,
    letters: Letters,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("stdout", &self.stdout).field("stderr", &self.stderr).finish()
    }
}

impl Output {
    /// Reads from `source`, and captures at most `most` of each output.
    pub(super) fn from(
        source: impl Stream<Item = Result<LogOutput, ClientError>> + Send + 'static,
        most: ByteSize,
    ) -> Self {
        Self {
            source: Box::pin(source),
            is_broken: false,
            most,
            stdout: One::new(most),
            stderr: One::new(most),
        }
    }

    /// Skips the first bytes of each output: an earlier holder of the run has passed them on.
    pub(super) const fn was_told(&mut self, stdout: u64, stderr: u64) {
        (self.stdout.told, self.stderr.told) = (stdout, stderr);
    }

    /// Begins again with a source that has everything from the beginning. Bytes that were passed on are not passed on
    /// again.
    pub(super) fn again(
        &mut self,
        source: impl Stream<Item = Result<LogOutput, ClientError>> + Send + 'static,
    ) {
        self.source = Box::pin(source);
        self.is_broken = false;
        for one in [&mut self.stdout, &mut self.stderr] {
            let letters = std::mem::take(&mut one.letters);
            *one = One { told: one.told, letters, ..One::new(self.most) };
        }
    }

    /// Reads until the source ends. Cancel safe: what was read is kept.
    pub(super) async fn read(&mut self, hear: Hear<'_>) {
        while self.piece(hear).await == More::Perhaps {}
    }

    /// Reads the rest of an ended container's output: however much that is, as long as it comes. Docker may never
    /// report the end; a `silence` of that length counts as the end.
    pub(super) async fn rest(&mut self, hear: Hear<'_>, silence: Duration) {
        while let Ok(More::Perhaps) = timeout(silence, self.piece(hear)).await {}
    }

    /// Returns whether the source broke off, and may have had more to come.
    pub(super) const fn is_broken(&self) -> bool {
        self.is_broken
    }

    async fn piece(&mut self, hear: Hear<'_>) -> More {
        match self.source.next().await {
            Some(Ok(output)) => {
                self.take(output, hear);
                // Endless output is always ready: the time limit beside us must get its turn.
                tokio::task::yield_now().await;
                More::Perhaps
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "a container's output breaks off");
                self.is_broken = true;
                More::Never
            }
            None => More::Never,
        }
    }

    fn take(&mut self, output: LogOutput, hear: Hear<'_>) {
        let (stream, bytes) = match output {
            LogOutput::StdErr { message } => (OutputStream::Stderr, message),
            LogOutput::StdOut { message } | LogOutput::Console { message } | LogOutput::StdIn { message } => {
                (OutputStream::Stdout, message)
            }
        };
        let one = match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        one.push(&bytes, |text, to| hear(Piece { stream, text, to }));
    }

    /// Returns the captured stdout and stderr.
    pub(super) fn finish(self) -> (Captured, Captured) {
        (self.stdout.capture.finish(), self.stderr.capture.finish())
    }
}

impl One {
    fn new(most: ByteSize) -> Self {
        Self { capture: Capture::new(most), read: 0, told: 0, letters: Letters::default() }
    }

    /// Captures `bytes`, and passes on those that were not passed on yet, with their end position in the stream.
    fn push(&mut self, bytes: &[u8], pass_on: impl Fn(String, u64)) {
        self.capture.push(bytes);
        let known = usize::try_from(self.told.saturating_sub(self.read)).unwrap_or(usize::MAX);
        self.read += bytes.len() as u64;
        for new in bytes[known.min(bytes.len())..].chunks(PIECE) {
            self.told += new.len() as u64;
            let text = self.letters.push(new);
            if !text.is_empty() {
                pass_on(text, self.told - self.letters.begun() as u64);
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
    async fn what_is_left_is_read_to_its_end_however_slowly_it_comes() {
        let slow = source(&["a", "b", "c", "d", "e"]).then(async |piece| {
            tokio::time::sleep(Duration::from_millis(300)).await;
            piece
        });
        let mut output = Output::from(slow.chain(futures_util::stream::pending()), ByteSize::kib(1));
        output.rest(&|_piece| {}, Duration::from_secs(1)).await;
        assert_eq!(output.finish().0.text(), "abcde");
    }

    #[tokio::test]
    async fn what_was_told_is_not_told_again_when_the_source_begins_again() {
        let told = RefCell::new(Vec::new());
        let hear = |piece: Piece| told.borrow_mut().push((piece.text, piece.to));
        let mut output = Output::from(source(&["ab", "cd"]), ByteSize::kib(1));
        output.read(&hear).await;
        output.again(source(&["abc", "def", "gh"]));
        output.read(&hear).await;
        let pieces = [("ab", 2), ("cd", 4), ("ef", 6), ("gh", 8)];
        assert_eq!(told.take(), pieces.map(|(text, to)| (text.to_owned(), to)));
        assert_eq!(output.finish().0.text(), "abcdefgh", "and yet all of it is kept, once");
    }

    #[tokio::test]
    async fn who_goes_on_where_another_was_is_told_the_rest_in_whole_letters() {
        let told = RefCell::new(Vec::new());
        let hear = |piece: Piece| told.borrow_mut().push((piece.text, piece.to));
        let euro = [Ok(bytes(b"ab\xe2")), Ok(bytes(b"\x82")), Ok(bytes(b"\xacc"))];
        let mut output = Output::from(futures_util::stream::iter(euro), ByteSize::kib(1));
        output.was_told(1, 0);
        output.read(&hear).await;
        assert_eq!(told.take(), [("b", 2), ("€c", 6)].map(|(text, to)| (text.to_owned(), to)));
    }

    fn bytes(message: &'static [u8]) -> LogOutput {
        LogOutput::StdOut { message: Bytes::from_static(message) }
    }
}
