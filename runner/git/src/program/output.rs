//! output tells how a git ended: by itself, at a limit of this program, or by a fault of the host.

use std::borrow::Cow;

use rustix::process::Signal;

use super::process::Ending;
use crate::error::Error;

/// Words by which git says that it, or a part of it, met a limit of this program on memory, time or files.
const EXHAUSTED: [&str; 6] = [
    "out of memory",
    "Out of memory",
    "Cannot allocate memory",
    "File too large",
    "died of signal 24",
    "died of signal 25",
];
/// Signals by which the kernel says that a program met its limit on processor time or on the size of a file.
const LIMIT_SIGNALS: [i32; 2] = [Signal::XCPU.as_raw(), Signal::XFSZ.as_raw()];
/// Exit status of a program that ends as a part of it did, less the number of the part's signal.
const SIGNALLED: i32 = 128;
/// Bytes that git printed, and how it ended.
#[derive(Debug)]
pub struct GitOutput {
    pub(super) command: &'static str,
    pub(super) ending: Ending,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

impl GitOutput {
    /// Returns the exit status; `None` if a signal ended git.
    #[must_use]
    pub const fn status(&self) -> Option<i32> {
        match self.ending {
            Ending::Status(status) => Some(status),
            Ending::Signal(_) | Ending::Abandoned => None,
        }
    }

    /// Returns the standard output.
    #[must_use]
    pub fn stdout(&self) -> &[u8] {
        &self.stdout
    }

    /// Returns the end of the messages.
    #[must_use]
    pub fn messages(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.stderr)
    }

    /// Returns the last line of the messages that says why git failed, made safe to print.
    #[must_use]
    pub fn reason(&self) -> String {
        let messages = self.messages();
        let is_reason = |line: &&str| ["fatal: ", "error: "].iter().any(|mark| line.starts_with(mark));
        let reason =
            messages.lines().find(is_reason).or_else(|| messages.lines().rfind(|line| !line.is_empty()));
        platform_runtime::terminal::safe(reason.unwrap_or("it wrote no reason")).into_owned()
    }

    /// Returns whether git met a limit of this program. Any other signal, and a full disk, is a fault of the host.
    pub(crate) fn is_exhausted(&self) -> bool {
        let messages = self.messages();
        let met = match self.ending {
            Ending::Status(status) => status - SIGNALLED,
            Ending::Signal(signal) => signal,
            Ending::Abandoned => 0,
        };
        LIMIT_SIGNALS.contains(&met) || EXHAUSTED.iter().any(|words| messages.contains(words))
    }

    /// Returns the standard output, if git succeeded.
    ///
    /// # Errors
    /// With git's own words.
    pub fn checked(self) -> Result<Vec<u8>, Error> {
        if self.status() == Some(0) {
            return Ok(self.stdout);
        }
        Err(self.failure())
    }

    /// Returns the error for a git that failed.
    pub(crate) fn failure(&self) -> Error {
        let command = self.command;
        match self.ending {
            _ if self.is_exhausted() => Error::Exhausted { command },
            Ending::Signal(signal) => Error::Killed { command, signal },
            Ending::Status(_) | Ending::Abandoned => Error::Failed { command, reason: self.reason() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(ending: Ending, messages: &str) -> GitOutput {
        GitOutput { command: "index-pack", ending, stdout: Vec::new(), stderr: messages.into() }
    }

    #[test]
    fn only_limits_of_this_program_exhaust_git() {
        for output in [
            ended(Ending::Signal(24), ""),
            ended(Ending::Signal(25), ""),
            ended(Ending::Status(152), ""),
            ended(Ending::Status(128), "fatal: Out of memory, malloc failed (tried to allocate 9 bytes)"),
            ended(Ending::Status(128), "error: pack-objects died of signal 24"),
        ] {
            assert!(matches!(output.failure(), Error::Exhausted { .. }), "{output:?}");
        }
        for output in [
            ended(Ending::Signal(15), ""),
            ended(Ending::Signal(9), ""),
            ended(Ending::Status(129), "usage: git index-pack"),
            ended(Ending::Status(137), ""),
            ended(Ending::Status(128), "fatal: write error: No space left on device"),
            ended(Ending::Status(128), "fatal: mmap failed: Permission denied"),
        ] {
            assert!(!matches!(output.failure(), Error::Exhausted { .. }), "{output:?}");
        }
    }
}
