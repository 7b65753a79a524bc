//! Both outputs of a container, kept and passed on.

use std::{fmt, pin::Pin, time::Duration};

use bollard::{container::LogOutput, errors::Error as ClientError};
use futures_util::{Stream, StreamExt};
use platform_core::{event::OutputStream, limit::ByteSize};
use tokio::{sync::mpsc, time::timeout};

use crate::sandbox::{Capture, Captured, Piece};

type Source = Pin<Box<dyn Stream<Item = Result<LogOutput, ClientError>> + Send>>;

/// What a container prints.
pub(super) struct Output {
    source: Source,
    is_broken: bool,
    most: ByteSize,
    stdout: One,
    stderr: One,
}

/// Whether a source may have more to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    Perhaps,
    Never,
}

/// One of the two.
#[derive(Debug)]
struct One {
    capture: Capture,
    /// Bytes since the beginning of the source.
    read: u64,
    /// Bytes that were passed on.
    told: u64,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").field("stdout", &self.stdout).field("stderr", &self.stderr).finish()
    }
}

impl Output {
    /// From `source`, keeping at most `most` of each.
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

    /// Begins again with a source that has everything from the beginning. What was told is not told again.
    pub(super) fn again(
        &mut self,
        source: impl Stream<Item = Result<LogOutput, ClientError>> + Send + 'static,
    ) {
        self.source = Box::pin(source);
        self.is_broken = false;
        for one in [&mut self.stdout, &mut self.stderr] {
            *one = One { told: one.told, ..One::new(self.most) };
        }
    }

    /// Reads until the source ends. Cancel safe: what was read is kept.
    pub(super) async fn read(&mut self, to: &mpsc::Sender<Piece>) {
        while self.piece(to).await == More::Perhaps {}
    }

    /// Reads what is left when the container has ended: however much that is, as long as it comes. Docker may never say
    /// that this was all; then nothing comes for as long as `silence`.
    pub(super) async fn rest(&mut self, to: &mpsc::Sender<Piece>, silence: Duration) {
        while let Ok(More::Perhaps) = timeout(silence, self.piece(to)).await {}
    }

    /// Whether the source broke off, and may have had more to say.
    pub(super) const fn is_broken(&self) -> bool {
        self.is_broken
    }

    async fn piece(&mut self, to: &mpsc::Sender<Piece>) -> More {
        match self.source.next().await {
            Some(Ok(output)) => {
                self.take(output, to);
                // Output without end is always ready: the time limit beside us must get its turn.
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

    fn take(&mut self, output: LogOutput, to: &mpsc::Sender<Piece>) {
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
        let new = one.push(&bytes);
        if !new.is_empty() {
            let piece = Piece { stream, text: String::from_utf8_lossy(new).into_owned() };
            // Live output is for whoever can keep up; the capture has it all.
            drop(to.try_send(piece));
        }
    }

    /// What was kept of stdout and stderr.
    pub(super) fn finish(self) -> (Captured, Captured) {
        (self.stdout.capture.finish(), self.stderr.capture.finish())
    }
}

impl One {
    fn new(most: ByteSize) -> Self {
        Self { capture: Capture::new(most), read: 0, told: 0 }
    }

    /// Keeps `bytes`; returns what of them was not told yet.
    fn push<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        self.capture.push(bytes);
        let known = usize::try_from(self.told.saturating_sub(self.read)).unwrap_or(usize::MAX);
        self.read += bytes.len() as u64;
        self.told = self.told.max(self.read);
        &bytes[known.min(bytes.len())..]
    }
}

#[cfg(test)]
mod tests {
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
        let (to, _told) = mpsc::channel(16);
        let mut output = Output::from(slow.chain(futures_util::stream::pending()), ByteSize::kib(1));
        output.rest(&to, Duration::from_secs(1)).await;
        assert_eq!(output.finish().0.text, "abcde");
    }

    #[tokio::test]
    async fn what_was_told_is_not_told_again_when_the_source_begins_again() {
        let (to, mut told) = mpsc::channel(16);
        let mut output = Output::from(source(&["ab", "cd"]), ByteSize::kib(1));
        output.read(&to).await;
        output.again(source(&["abc", "def", "gh"]));
        output.read(&to).await;
        drop(to);
        let mut pieces = Vec::new();
        while let Some(piece) = told.recv().await {
            pieces.push(piece.text);
        }
        assert_eq!(pieces, ["ab", "cd", "ef", "gh"]);
        assert_eq!(output.finish().0.text, "abcdefgh", "and yet all of it is kept, once");
    }
}
