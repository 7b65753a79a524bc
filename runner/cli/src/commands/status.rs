//! Shows one line of progress to a person who waits: phase, time, tools and the last text of the model.
//!
//! The line appears on a terminal only. Code that writes other text clears the line first.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use platform_core::{
    event::{AgentEvent, Phase},
    host_tools::ToolCallState,
};
use platform_runtime::terminal;
use rustix::termios;

use super::columns;
use crate::plural::counted;

/// Interval between two drawings of the line.
pub(super) const REDRAW_INTERVAL: Duration = Duration::from_millis(250);
/// Width of a terminal that does not report one.
const DEFAULT_WIDTH: usize = 80;
/// Most bytes of the last text that are kept.
const MAX_LAST_TEXT: usize = 400;

/// State of the progress line.
#[derive(Debug)]
pub(super) struct Status {
    began: Instant,
    /// Time of the last drawing; `None` while the line is cleared.
    drawn: Option<Instant>,
    phase: Option<Phase>,
    tools: u64,
    last_tool: String,
    /// End of the text that the model wrote.
    last_text: String,
    /// Calls of host tools that wait for an approval: id and tool.
    waiting: BTreeMap<String, String>,
}

impl Status {
    /// Returns a line on standard error. Returns `None` if that is not a terminal.
    pub(super) fn on_terminal() -> Option<Self> {
        io::stderr().is_terminal().then(|| Self {
            began: Instant::now(),
            drawn: None,
            phase: None,
            tools: 0,
            last_tool: String::new(),
            last_text: String::new(),
            waiting: BTreeMap::new(),
        })
    }

    /// Updates the state with an event of the run.
    pub(super) fn update(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Status { phase } => self.phase = Some(*phase),
            AgentEvent::Tool { name } | AgentEvent::ToolCall { name, .. } => {
                self.tools += 1;
                self.last_tool.clone_from(name);
            }
            AgentEvent::Progress { text } => {
                self.last_text += text;
                let excess = self.last_text.len().saturating_sub(MAX_LAST_TEXT);
                self.last_text.drain(..self.last_text.ceil_char_boundary(excess));
            }
            AgentEvent::HostTool { id, name, state: ToolCallState::Waiting, .. } => {
                self.waiting.insert(id.clone(), name.clone());
            }
            AgentEvent::HostTool { id, .. } => drop(self.waiting.remove(id)),
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

    /// Clears the line, so that other text can be written.
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
        let waits = self.waiting.values().next();
        let waits = waits.map(|tool| format!("{tool} waits for an approval, ")).unwrap_or_default();
        let mut text = format!("· {waits}{phase} {} s", self.began.elapsed().as_secs());
        if self.tools > 0 {
            text += &format!(" · {}, last {}", counted(self.tools, "tool"), self.last_tool);
        }
        let words: Vec<_> = self.last_text.split_whitespace().collect();
        let words = words.join(" ");
        let sanitize = |text: &str| terminal::safe(text).replace(['\n', '\t'], " ");
        // Sanitised text may be longer than the original, so it is sanitised before it is cut.
        let mut text = sanitize(&text);
        let words = sanitize(&words);
        let columns_left = width.saturating_sub(columns::of(&text) + 5);
        if !words.is_empty() && columns_left > 0 {
            text += &format!(" · {}", columns::end(&words, columns_left));
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
            last_text: String::new(),
            waiting: BTreeMap::new(),
        };
        assert_eq!(status.text(80), "· running 0 s");
        let call = |id: &str, state| AgentEvent::HostTool {
            id: id.to_owned(),
            name: format!("acme__{id}"),
            state,
            arguments: None,
            code: None,
            result_bytes: None,
            duration_ms: None,
        };
        for id in ["a", "b"] {
            status.update(&call(id, ToolCallState::Waiting));
        }
        assert_eq!(status.text(80), "· acme__a waits for an approval, running 0 s");
        status.update(&call("a", ToolCallState::Approved));
        assert_eq!(status.text(80), "· acme__b waits for an approval, running 0 s");
        status.update(&call("b", ToolCallState::Denied));
        assert_eq!(status.text(80), "· running 0 s");
        for text in ["first words\n", &"more of them ".repeat(50), "the\tlast\u{1b}[2J\u{202e} one"] {
            status.update(&AgentEvent::Progress { text: text.to_owned() });
        }
        status.update(&AgentEvent::Tool { name: "ls".to_owned() });
        let text = status.text(60);
        assert!(text.starts_with("· running 0 s · 1 tool, last ls · ") && text.ends_with("one"), "{text}");
        assert!(text.chars().count() < 60, "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\n']), "{text:?}");
        assert!(status.last_text.len() <= MAX_LAST_TEXT && status.text(3).chars().count() < 3);
        // Each of these characters takes two columns.
        status.update(&AgentEvent::Tool { name: "検索".to_owned() });
        status
            .update(&AgentEvent::Progress { text: "日本語の文章です 🦀🦀 ".repeat(20) + "終" });
        for width in 3..100 {
            let text = status.text(width);
            assert!(columns::of(&text) < width, "{width}: {text}");
        }
        assert!(status.text(70).ends_with("終"), "{}", status.text(70));
    }
}
