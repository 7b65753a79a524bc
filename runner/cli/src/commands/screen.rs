//! Takes the whole terminal for a view that goes on. Keys are read one by one; the previous screen comes back at the
//! end.
//!
//! The terminal is restored when the [`Screen`] is dropped, and before a panic is reported. The caller has to make text
//! safe before it is drawn.

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

/// Sequences that open the alternate screen without a cursor, and that leave it.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// Size of a terminal that does not report one.
const DEFAULT_SIZE: Size = Size { rows: 24, columns: 80 };

/// Terminal that this process has for itself.
#[derive(Debug)]
pub(super) struct Screen {
    /// Reader of keys. A terminal is no pipe, but is read like one.
    keys: pipe::Receiver,
    saved: Arc<SavedTerminal>,
}

/// Size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// State of the terminal before it was taken.
#[derive(Debug)]
struct SavedTerminal {
    terminal: File,
    modes: Termios,
    is_back: AtomicBool,
}

impl SavedTerminal {
    /// Restores the terminal, but only once: later another process may own it.
    fn restore(&self) {
        if !self.is_back.swap(true, Ordering::SeqCst) {
            // A terminal that is gone cannot be restored.
            drop(io::stdout().write_all(LEAVE).and_then(|()| io::stdout().flush()));
            if let Err(error) = termios::tcsetattr(&self.terminal, OptionalActions::Now, &self.modes) {
                tracing::debug!(error = report::chain(&error), "terminal not restored");
            }
        }
    }
}

impl Screen {
    /// Takes the terminal, if standard output is one.
    ///
    /// # Errors
    /// If it cannot be taken.
    pub(super) fn take() -> io::Result<Option<Self>> {
        if !io::stdout().is_terminal() {
            return Ok(None);
        }
        // Opened separately, so that non-blocking reads affect no other process on this terminal.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let terminal = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/tty")?;
        let modes = termios::tcgetattr(&terminal)?;
        let keys = pipe::Receiver::from_file_unchecked(terminal.try_clone()?)?;
        let saved = SavedTerminal { terminal, modes: modes.clone(), is_back: AtomicBool::new(false) };
        let screen = Self { keys, saved: Arc::new(saved) };
        screen.restore_before_panic_report();
        let mut raw = modes;
        // Signals stay keys: Ctrl-C leaves as `q` does, Ctrl-Z does nothing.
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN | LocalModes::ISIG;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        termios::tcsetattr(&screen.saved.terminal, OptionalActions::Now, &raw)?;
        io::stdout().write_all(ENTER)?;
        Ok(Some(screen))
    }

    /// Returns the present size.
    pub(super) fn size(&self) -> Size {
        match termios::tcgetwinsize(&self.saved.terminal) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
                Size { rows: size.ws_row.into(), columns: size.ws_col.into() }
            }
            _ => DEFAULT_SIZE,
        }
    }

    /// Draws `lines` over the previous screen; each has to fit.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let text = format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n"));
        let mut out = io::stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Waits for at least one key, and returns all that were typed since. Cancel safe.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) async fn typed(&self) -> io::Result<Vec<u8>> {
        loop {
            self.keys.readable().await?;
            let mut typed = [0; 64];
            match self.keys.try_read(&mut typed) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => return Ok(typed[..read].to_vec()),
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
    }

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
