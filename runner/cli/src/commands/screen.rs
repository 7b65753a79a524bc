//! Takes over the whole terminal for a live view, and reads single keys.
//!
//! Dropping the [`Screen`] restores the terminal and its previous screen; so does a panic, before its report. The
//! caller has to sanitise text before drawing it.

use std::{
    fs::{File, OpenOptions},
    io::{self, IsTerminal, Write},
    os::unix::fs::OpenOptionsExt,
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use platform_runtime::report;
use rustix::{
    fs::OFlags,
    termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios},
};
use tokio::net::unix::pipe;

/// Sequences that open the alternate screen and hide the cursor, and that undo both.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// Size of a terminal that does not report one.
const DEFAULT_SIZE: Size = Size { rows: 24, columns: 80 };

/// Terminal that this process has taken over.
#[derive(Debug)]
pub(super) struct Screen {
    /// Reader of keys. A terminal is not a pipe, but a pipe's receiver can read it.
    keys: pipe::Receiver,
    saved: Arc<SavedTerminal>,
}

/// Size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// State of the terminal before it was taken over.
#[derive(Debug)]
struct SavedTerminal {
    terminal: File,
    modes: Termios,
    is_restored: AtomicBool,
}

impl SavedTerminal {
    /// Restores the terminal. Does so only once, because another process may use it later.
    fn restore(&self) {
        if !self.is_restored.swap(true, Ordering::SeqCst) {
            // Fails if the terminal is gone: then there is nothing to restore.
            drop(io::stdout().write_all(LEAVE).and_then(|()| io::stdout().flush()));
            if let Err(error) = termios::tcsetattr(&self.terminal, OptionalActions::Now, &self.modes) {
                tracing::debug!(error = report::chain(&error), "terminal not restored");
            }
        }
    }
}

impl Screen {
    /// Takes over the terminal. Returns `None` if standard output is not a terminal.
    ///
    /// # Errors
    /// If the terminal cannot be taken over.
    pub(super) fn take() -> io::Result<Option<Self>> {
        if !io::stdout().is_terminal() {
            return Ok(None);
        }
        // Opened separately, so that non-blocking reads affect no other process on this terminal.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let terminal = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/tty")?;
        let modes = termios::tcgetattr(&terminal)?;
        let keys = pipe::Receiver::from_file_unchecked(terminal.try_clone()?)?;
        let saved = SavedTerminal { terminal, modes: modes.clone(), is_restored: AtomicBool::new(false) };
        let screen = Self { keys, saved: Arc::new(saved) };
        screen.restore_before_panic_report();
        let mut raw = modes;
        // Ctrl-C and Ctrl-Z are read as keys and send no signals: Ctrl-C quits as `q` does, Ctrl-Z does nothing.
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN | LocalModes::ISIG;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        termios::tcsetattr(&screen.saved.terminal, OptionalActions::Now, &raw)?;
        io::stdout().write_all(ENTER)?;
        Ok(Some(screen))
    }

    /// Returns the present size of the terminal.
    pub(super) fn size(&self) -> Size {
        match termios::tcgetwinsize(&self.saved.terminal) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
                Size { rows: size.ws_row.into(), columns: size.ws_col.into() }
            }
            _ => DEFAULT_SIZE,
        }
    }

    /// Draws `lines` over the previous ones. Each line has to fit.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let text = format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n"));
        let mut out = io::stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Waits for at least one key, and returns all keys that were typed. Cancel safe.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) async fn read_keys(&self) -> io::Result<Vec<u8>> {
        loop {
            self.keys.readable().await?;
            let mut keys = [0; 64];
            match self.keys.try_read(&mut keys) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => return Ok(keys[..read].to_vec()),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Installs a panic hook that restores the terminal, so that the report of a panic can be read.
    fn restore_before_panic_report(&self) {
        let saved = Arc::downgrade(&self.saved);
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if let Some(saved) = saved.upgrade() {
                saved.restore();
            }
            report(panic);
        }));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.saved.restore();
    }
}
