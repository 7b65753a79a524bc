//! Asks questions on a terminal: prompts on standard error, answers from standard input, secrets without echo.
//!
//! Reads the terminal byte by byte, so that answers that were typed ahead stay for the next question.

use std::io::{self, IsTerminal, Stdin, Write};

use platform_core::secret::Secret;
use platform_runtime::{report, terminal};
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios};

use super::Error;

/// Longest answer that is read.
const MAX_ANSWER: usize = 64 << 10;
/// Keys that a terminal without line editing passes on.
const INTERRUPT: u8 = 0x03;
const END_OF_FILE: u8 = 0x04;
const BACKSPACES: [u8; 2] = [0x08, 0x7f];
const KILL_LINE: u8 = 0x15;

/// Terminal on which a person answers.
#[derive(Debug)]
pub(crate) struct Dialogue {
    stdin: Stdin,
}

impl Dialogue {
    /// Returns a dialogue if standard input and standard error are a terminal.
    pub(crate) fn on_terminal() -> Option<Self> {
        let stdin = io::stdin();
        (stdin.is_terminal() && io::stderr().is_terminal()).then_some(Self { stdin })
    }

    /// Asks for a line. Returns `default` for an empty one.
    ///
    /// # Errors
    /// If the input ends, or the terminal fails.
    pub(crate) fn ask(&self, question: &str, default: &str) -> Result<String, Error> {
        let hint = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        self.prompt(&format!("{question}{hint}: "))?;
        let line = self.read_line(Editing::Terminal)?;
        let answer = String::from_utf8_lossy(&line).trim().to_owned();
        Ok(if answer.is_empty() { default.to_owned() } else { answer })
    }

    /// Asks for a secret, which the terminal does not show. Returns `None` for an empty one.
    ///
    /// # Errors
    /// If the user presses Ctrl-C, the input ends, or the terminal fails.
    pub(crate) fn ask_secret(&self, question: &str) -> Result<Option<Secret>, Error> {
        // Comes before the question: what is typed right after it is hidden, too.
        let hidden = HiddenInput::begin(&self.stdin).map_err(Error::Terminal)?;
        self.prompt(&format!("{question}: "))?;
        let line = self.read_line(Editing::None);
        drop(hidden);
        // The line end was not shown either.
        self.prompt("\n")?;
        let secret = Secret::new(
            String::from_utf8(line?)
                .map_err(|error| Error::Terminal(io::Error::other(error.utf8_error())))?,
        );
        Ok((!secret.expose().trim().is_empty()).then_some(secret))
    }

    /// Asks whether to do something. Only `y` and `yes` agree.
    ///
    /// # Errors
    /// If the input ends, or the terminal fails.
    pub(crate) fn confirm(&self, question: &str) -> Result<bool, Error> {
        let answer = self.ask(&format!("{question} [y/N]"), "")?;
        Ok(["y", "yes"].contains(&answer.to_ascii_lowercase().as_str()))
    }

    /// Shows a line above a question.
    ///
    /// # Errors
    /// If the terminal fails.
    pub(crate) fn tell(&self, line: &str) -> Result<(), Error> {
        self.prompt(&format!("{line}\n"))
    }

    fn prompt(&self, text: &str) -> Result<(), Error> {
        let mut err = io::stderr();
        let text = terminal::safe(text);
        err.write_all(text.as_bytes()).and_then(|()| err.flush()).map_err(Error::Terminal)
    }

    fn read_line(&self, editing: Editing) -> Result<Vec<u8>, Error> {
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            let read = rustix::io::retry_on_intr(|| rustix::io::read(&self.stdin, &mut byte));
            let read = read.map_err(|error| Error::Terminal(error.into()))?;
            match byte[0] {
                _ if read == 0 => return Err(Error::Stopped),
                b'\n' | b'\r' => return Ok(line),
                _ if line.len() >= MAX_ANSWER => {
                    return Err(Error::Terminal(io::ErrorKind::FileTooLarge.into()));
                }
                INTERRUPT | END_OF_FILE if editing == Editing::None => return Err(Error::Stopped),
                KILL_LINE if editing == Editing::None => line.clear(),
                key if editing == Editing::None && BACKSPACES.contains(&key) => drop(line.pop()),
                other => line.push(other),
            }
        }
    }
}

/// Editor of the line that is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Editing {
    /// The terminal, which passes whole lines on.
    Terminal,
    /// None: each key is passed on.
    None,
}

/// Terminal that shows no keys. Dropping it restores the terminal.
struct HiddenInput<'t> {
    terminal: &'t Stdin,
    modes: Termios,
}

impl<'t> HiddenInput<'t> {
    fn begin(terminal: &'t Stdin) -> io::Result<Self> {
        let modes = termios::tcgetattr(terminal)?;
        let mut hidden = modes.clone();
        // Without ISIG, Ctrl-C is read as a key: a signal would end the process and leave the terminal mute.
        hidden.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        hidden.special_codes[SpecialCodeIndex::VMIN] = 1;
        hidden.special_codes[SpecialCodeIndex::VTIME] = 0;
        termios::tcsetattr(terminal, OptionalActions::Drain, &hidden)?;
        Ok(Self { terminal, modes })
    }
}

impl Drop for HiddenInput<'_> {
    fn drop(&mut self) {
        if let Err(error) = termios::tcsetattr(self.terminal, OptionalActions::Drain, &self.modes) {
            tracing::debug!(error = report::chain(&error), "terminal not restored");
        }
    }
}
