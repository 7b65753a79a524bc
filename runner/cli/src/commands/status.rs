//! Shows one line of progress to a person who waits: phase, time, tools, the last words.
//!
//! The line is drawn only at the beginning of a line, on a terminal. Code that writes other text clears it first.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use platform_core::event::{AgentEvent, Phase};
use platform_runtime::terminal;
use rustix::termios;

use super::columns;

/// Interval between drawings.
pub(super) const REDRAW_INTERVAL: Duration = Duration::from_millis(250);
/// Width of a terminal that does not report one.
const DEFAULT_WIDTH: usize = 80;
/// Most bytes of the last words that are remembered.
const MAX_WORDS: usize = 400;

/// State of the progress line.
#[derive(Debug)]
pub(super) struct Status {
    began: Instant,
    drawn: Option<Instant>,
    phase: Option<Phase>,
    tools: u64,
    last_tool: String,
    words: String,
}

impl Status {
    /// Returns a line on standard error; `None` if that is no terminal.
    pub(super) fn on_terminal() -> Option<Self> {
        io::stderr().is_terminal().then(|| Self {
            began: Instant::now(),
            drawn: None,
            phase: None,
            tools: 0,
            last_tool: String::new(),
            words: String::new(),
        })
    }

    /// Takes an event of the run into account.
    pub(super) fn see(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Status { phase } => self.phase = Some(*phase),
            AgentEvent::Tool { name } => {
                self.tools += 1;
                self.last_tool.clone_from(name);
            }
            AgentEvent::Progress { text } => {
                self.words += text;
                let most = self.words.len().saturating_sub(MAX_WORDS);
                self.words.drain(..self.words.ceil_char_boundary(most));
            }
            _ => {}
        }
    }

    /// Draws the line, unless it was drawn less than `REDRAW_INTERVAL` ago.
    pub(super) fn draw(&mut self) -> io::Result<()> {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW_INTERVAL) {
            return Ok(());
        }
        self.drawn = Some(Instant::now());
        let width = termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
        let text = self.text(if width == 0 { DEFAULT_WIDTH } else { width });
        let mut err = io::stderr();
        write!(err, "\r\x1b[K\x1b[2m{text}\x1b[0m")?;
        err.flush()
    }

    /// Removes the line, so that other text can be written.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        if self.drawn.take().is_none() {
            return Ok(());
        }
        let mut err = io::stderr();
        write!(err, "\r\x1b[K")?;
        err.flush()
    }

    /// Returns the text for a terminal of `width` columns.
    fn text(&self, width: usize) -> String {
        let phase = self.phase.map_or("waiting", Phase::name);
        let mut text = format!("· {phase} {} s", self.began.elapsed().as_secs());
        if self.tools > 0 {
            let tools = if self.tools == 1 { "tool" } else { "tools" };
            text += &format!(" · {} {tools}, last {}", self.tools, self.last_tool);
        }
        let words: Vec<_> = self.words.split_whitespace().collect();
        let words = words.join(" ");
        let safe = |text: &str| terminal::safe(text).replace(['\n', '\t'], " ");
        // Safe text may be longer than the original.
        let mut text = safe(&text);
        let words = safe(&words);
        let room = width.saturating_sub(columns::of(&text) + 5);
        if !words.is_empty() && room > 0 {
            text += &format!(" · {}", columns::end(&words, room));
        }
        columns::beginning(&text, width.saturating_sub(1)).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_and_ends_with_the_last_words() {
        let mut status = Status {
            began: Instant::now(),
            drawn: None,
            phase: Some(Phase::Running),
            tools: 0,
            last_tool: String::new(),
            words: String::new(),
        };
        assert_eq!(status.text(80), "· running 0 s");
        for text in ["first words\n", &"more of them ".repeat(50), "the\tlast\u{1b}[2J\u{202e} one"] {
            status.see(&AgentEvent::Progress { text: text.to_owned() });
        }
        status.see(&AgentEvent::Tool { name: "ls".to_owned() });
        let text = status.text(60);
        assert!(text.starts_with("· running 0 s · 1 tool, last ls · ") && text.ends_with("one"), "{text}");
        assert!(text.chars().count() < 60, "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\n']), "{text:?}");
        assert!(status.words.len() <= MAX_WORDS && status.text(3).chars().count() < 3);
        // Each of these characters takes two columns.
        status.see(&AgentEvent::Tool { name: "検索".to_owned() });
        status.see(&AgentEvent::Progress { text: "日本語の文章です 🦀🦀 ".repeat(20) + "終" });
        for width in 3..100 {
            let text = status.text(width);
            assert!(columns::of(&text) < width, "{width}: {text}");
        }
        assert!(status.text(70).ends_with("終"), "{}", status.text(70));
    }
}
