//! Draws one line of progress on standard error, for a person who waits.
//!
//! The line appears on a terminal only, and only if the wait is long. Code that writes other text clears it first.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use platform_runtime::terminal;
use rustix::termios;

use super::columns;

/// Interval between two drawings of the line.
pub(super) const REDRAW_INTERVAL: Duration = Duration::from_millis(250);
/// Duration of a wait after which the line appears.
const SHOW_DELAY: Duration = Duration::from_secs(2);
/// Width of a terminal that does not report one.
const DEFAULT_WIDTH: usize = 80;

/// Line of progress. It is cleared when it is dropped.
#[derive(Debug)]
pub(super) struct ProgressLine {
    began: Instant,
    /// Time of the last drawing; `None` while the line is cleared.
    drawn: Option<Instant>,
}

impl ProgressLine {
    /// Returns a line for a wait that begins now. Returns `None` if standard error is not a terminal.
    pub(super) fn on_terminal() -> Option<Self> {
        io::stderr().is_terminal().then(|| Self { began: Instant::now(), drawn: None })
    }

    /// Draws the line, if it is time. `text` is given the columns that it may take.
    pub(super) fn draw(&mut self, text: impl FnOnce(usize) -> String) {
        let now = Instant::now();
        if !self.is_due(now) {
            return;
        }
        self.drawn = Some(now);
        let width = termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let line = line(now - self.began, if width == 0 { DEFAULT_WIDTH } else { width }, text);
        write_lossy(&format!("\r\x1b[K\x1b[2m{line}\x1b[0m"));
    }

    /// Clears the line, so that other text can be written.
    pub(super) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            write_lossy("\r\x1b[K");
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        match self.drawn {
            Some(drawn) => now - drawn >= REDRAW_INTERVAL,
            None => now - self.began >= SHOW_DELAY,
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Writes to standard error. A lost line of progress harms nothing.
fn write_lossy(text: &str) {
    let mut err = io::stderr();
    drop(err.write_all(text.as_bytes()).and_then(|()| err.flush()));
}

/// Returns the line after `elapsed`, for a terminal of `width` columns.
fn line(elapsed: Duration, width: usize, text: impl FnOnce(usize) -> String) -> String {
    let time = format!("· {} s · ", elapsed.as_secs());
    // A full last column would break the line on some terminals.
    let columns_left = width.saturating_sub(columns::of(&time) + 1);
    let text = one_line(&text(columns_left));
    columns::beginning(&format!("{time}{text}"), width.saturating_sub(1)).to_owned()
}

/// Returns `text` without what would move the cursor.
pub(super) fn one_line(text: &str) -> String {
    terminal::safe(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_time_and_fits() {
        let of = |width| line(Duration::from_millis(61_900), width, |_| "a\nb\u{1b}[2J 日本語".repeat(9));
        assert!(of(80).starts_with("· 61 s · a b"), "{}", of(80));
        for width in 0..100 {
            let text = of(width);
            assert!(columns::of(&text) < width.max(1), "{width}: {text}");
            assert!(!text.contains(['\u{1b}', '\n']), "{text:?}");
        }
        line(Duration::ZERO, 80, |columns_left| {
            assert_eq!(columns_left, 79 - "· 0 s · ".chars().count());
            String::new()
        });
    }

    #[test]
    fn a_short_wait_has_no_line() {
        let began = Instant::now();
        let mut progress = ProgressLine { began, drawn: None };
        let after = |millis| began + Duration::from_millis(millis);
        assert!(!progress.is_due(after(1999)) && progress.is_due(after(2000)));
        progress.drawn = Some(after(2000));
        assert!(!progress.is_due(after(2249)) && progress.is_due(after(2250)));
        progress.clear();
        assert!(progress.is_due(after(2001)), "after other text it is drawn at once");
    }
}
