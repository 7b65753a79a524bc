//! The whole terminal, for a view that goes on: keys one by one, what was there before comes back at the end.
//!
//! The terminal is given back when the [`Screen`] is dropped, and before a panic is told. What is drawn has to be made safe
//! before.

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

use rustix::{
    fs::OFlags,
    termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Termios},
};
use tokio::net::unix::pipe;

/// Another screen, without a cursor; and back.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// What a terminal that does not say its size has.
const USUAL: Size = Size { rows: 24, columns: 80 };

/// A terminal that is all ours.
#[derive(Debug)]
pub(super) struct Screen {
    /// A terminal is no pipe, but is read like one.
    keys: pipe::Receiver,
    before: Arc<Before>,
}

/// How large a terminal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// What the terminal was like.
#[derive(Debug)]
struct Before {
    terminal: File,
    modes: Termios,
    is_back: AtomicBool,
}

impl Before {
    /// Gives the terminal back. Only the first time: later it may be somebody else's.
    fn restore(&self) {
        if !self.is_back.swap(true, Ordering::SeqCst) {
            // A terminal that is gone cannot be given back.
            drop(io::stdout().write_all(LEAVE).and_then(|()| io::stdout().flush()));
            if let Err(error) = termios::tcsetattr(&self.terminal, OptionalActions::Now, &self.modes) {
                tracing::debug!(%error, "cannot give the terminal back");
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
        // Opened for itself: that reads do not wait must hold for nobody else who has this terminal.
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let terminal = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/tty")?;
        let modes = termios::tcgetattr(&terminal)?;
        let keys = pipe::Receiver::from_file_unchecked(terminal.try_clone()?)?;
        let before = Before { terminal, modes: modes.clone(), is_back: AtomicBool::new(false) };
        let screen = Self { keys, before: Arc::new(before) };
        screen.restore_before_a_panic_is_told();
        let mut raw = modes;
        // Signals stay keys: Ctrl-C leaves as `q` does, Ctrl-Z does nothing.
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN | LocalModes::ISIG;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        termios::tcsetattr(&screen.before.terminal, OptionalActions::Now, &raw)?;
        io::stdout().write_all(ENTER)?;
        Ok(Some(screen))
    }

    /// How large it is now.
    pub(super) fn size(&self) -> Size {
        match termios::tcgetwinsize(&self.before.terminal) {
            Ok(size) if size.ws_row > 0 && size.ws_col > 0 => {
                Size { rows: size.ws_row.into(), columns: size.ws_col.into() }
            }
            _ => USUAL,
        }
    }

    /// Draws `lines` over what was there; each has to fit.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let text = format!("\x1b[H{}\x1b[K\x1b[J", lines.join("\x1b[K\r\n"));
        let mut out = io::stdout();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// What was typed since, at least a key. Cancel safe.
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

    fn restore_before_a_panic_is_told(&self) {
        let (before, tell) = (Arc::downgrade(&self.before), panic::take_hook());
        panic::set_hook(Box::new(move |panic| {
            if let Some(before) = before.upgrade() {
                before.restore();
            }
            tell(panic);
        }));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.before.restore();
    }
}
