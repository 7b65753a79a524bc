//! Shows the progress of a run to a person who waits: phase, tools and the last text of the model.

use std::collections::BTreeMap;

use platform_core::{
    event::{AgentEvent, Phase},
    host_tools::ToolCallState,
    limit::ByteSize,
};
use runner_engine::run_request::RunSpec;
use runner_files::{StagedFiles, size_text};
use runner_git::RepoUrl;

use super::{
    columns,
    progress::{ProgressLine, one_line},
};
use crate::plural::counted;

/// Most bytes of the last text that are kept.
const MAX_LAST_TEXT: usize = 400;

/// Progress of a run, and the line that shows it.
#[derive(Debug)]
pub(super) struct Status {
    line: ProgressLine,
    progress: RunProgress,
}

/// Facts of a run that the progress line shows.
#[derive(Debug, Default)]
struct RunProgress {
    phase: Option<Phase>,
    /// Files that the run begins with, in words; empty if unknown.
    initial_files: String,
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
        ProgressLine::on_terminal().map(|line| Self { line, progress: RunProgress::default() })
    }

    /// Names the files that the run begins with: their copy or clone can take most of its preparation.
    pub(super) fn begins_with(&mut self, spec: &RunSpec) {
        let repo = spec.repo.as_ref().map(|repo| &repo.url);
        self.progress.initial_files = initial_files(spec.files.as_ref(), repo);
    }

    /// Updates the state with an event of the run.
    pub(super) fn update(&mut self, event: &AgentEvent) {
        self.progress.update(event);
    }

    /// Draws the line, if it is time.
    pub(super) fn draw(&mut self) {
        let Self { line, progress } = self;
        line.draw(|width| progress.text(width));
    }

    /// Clears the line, so that other text can be written.
    pub(super) fn clear(&mut self) {
        self.line.clear();
    }
}

impl RunProgress {
    fn update(&mut self, event: &AgentEvent) {
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

    /// Returns the text in at most `width` columns.
    fn text(&self, width: usize) -> String {
        let phase = self.phase.map_or("waiting", Phase::name);
        let waits = self.waiting.values().next();
        let waits = waits.map(|tool| format!("{tool} waits for an approval, ")).unwrap_or_default();
        let mut text = format!("{waits}{phase}");
        if self.phase == Some(Phase::Preparing) && !self.initial_files.is_empty() {
            text += &format!(" {}", self.initial_files);
        }
        if self.tools > 0 {
            text += &format!(" · {}, last {}", counted(self.tools, "tool"), self.last_tool);
        }
        let words: Vec<_> = self.last_text.split_whitespace().collect();
        // Sanitised text may be longer than the original, so it is sanitised before it is cut.
        let mut text = one_line(&text);
        let words = one_line(&words.join(" "));
        let columns_left = width.saturating_sub(columns::of(&text) + 4);
        if !words.is_empty() && columns_left > 0 {
            text += &format!(" · {}", columns::end(&words, columns_left));
        }
        columns::beginning(&text, width).to_owned()
    }
}

/// Returns the files that a run begins with, in words; an empty text if it has none.
fn initial_files(files: Option<&StagedFiles>, repo: Option<&RepoUrl>) -> String {
    match (files, repo) {
        (Some(StagedFiles { files, bytes, .. }), _) => {
            format!("a copy of {}, {}", counted(*files, "file"), size_text(ByteSize(*bytes)))
        }
        (None, Some(repo)) => format!("a clone of {repo}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_begins_with_a_copy_or_a_clone() {
        let files = StagedFiles { digest: String::new(), files: 2, bytes: 2048 };
        let repo = RepoUrl::parse("https://github.com/acme/app").unwrap();
        assert_eq!(initial_files(None, None), "");
        assert_eq!(initial_files(Some(&files), None), "a copy of 2 files, 2 KiB");
        assert_eq!(initial_files(None, Some(&repo)), "a clone of https://github.com/acme/app");
    }

    #[test]
    fn a_line_fits_and_ends_with_the_last_words() {
        let mut status = RunProgress { phase: Some(Phase::Running), ..RunProgress::default() };
        assert_eq!(status.text(80), "running");
        status.initial_files = "a copy of 2 files, 3 B".to_owned();
        status.update(&AgentEvent::Status { phase: Phase::Preparing });
        assert_eq!(status.text(80), "preparing a copy of 2 files, 3 B");
        status.update(&AgentEvent::Status { phase: Phase::Running });
        assert_eq!(status.text(80), "running");
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
        assert_eq!(status.text(80), "acme__a waits for an approval, running");
        status.update(&call("a", ToolCallState::Approved));
        assert_eq!(status.text(80), "acme__b waits for an approval, running");
        status.update(&call("b", ToolCallState::Denied));
        assert_eq!(status.text(80), "running");
        for text in ["first words\n", &"more of them ".repeat(50), "the\tlast\u{1b}[2J\u{202e} one"] {
            status.update(&AgentEvent::Progress { text: text.to_owned() });
        }
        status.update(&AgentEvent::Tool { name: "ls".to_owned() });
        let text = status.text(60);
        assert!(text.starts_with("running · 1 tool, last ls · ") && text.ends_with("one"), "{text}");
        assert!(text.chars().count() <= 60, "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\n']), "{text:?}");
        assert!(status.last_text.len() <= MAX_LAST_TEXT && status.text(3).chars().count() <= 3);
        // Each of these characters takes two columns.
        status.update(&AgentEvent::Tool { name: "検索".to_owned() });
        status
            .update(&AgentEvent::Progress { text: "日本語の文章です 🦀🦀 ".repeat(20) + "終" });
        for width in 3..100 {
            let text = status.text(width);
            assert!(columns::of(&text) <= width, "{width}: {text}");
        }
        assert!(status.text(70).ends_with("終"), "{}", status.text(70));
    }
}
