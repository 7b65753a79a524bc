//! Records the events that an agent reports itself, in lines on its standard output. What is stored of them is bounded.
//!
//! The recorded position is always the end of a line, together with the counts up to there. A worker that takes the run
//! over therefore reads an unfinished line again, and neither repeats nor loses an event. The end of the run is not an event
//! here: it is judged from the whole output.

use std::cell::RefCell;

use platform_core::{
    event::{AgentEvent, OutputStream},
    limit::events as limit,
};
use platform_runtime::settings::Stream;
use runner_docker::Piece;
use runner_model::{
    agent_line::AgentLine,
    json_len,
    line_buffer::{CompleteLine, LineBuffer},
    tap_event,
};

use super::{
    EventRecorder,
    pending::{PendingEvents, event_texts},
};

/// Beginning of a text of a tool, and the number of bytes after it.
pub(super) struct ToolText {
    pub(super) kept: String,
    pub(super) cut_bytes: u64,
}

impl EventRecorder<'_> {
    /// Records the events in a piece of standard output.
    pub(super) fn record_lines(&self, lines: &RefCell<LineBuffer>, piece: &Piece) {
        let mut pending = self.pending.borrow_mut();
        lines.borrow_mut().push(&piece.text, |line| self.record_line(&mut pending, line));
        if let Some(line_end) = piece.line_end {
            pending.cursor.stdout.bytes = line_end;
        }
        if !pending.events.is_empty() {
            self.added.notify_one();
        }
    }

    /// Records a last line without a line feed, and the number of events that were left out.
    pub(super) fn record_last_line(&self, lines: &RefCell<LineBuffer>, pending: &mut PendingEvents) {
        lines.borrow_mut().finish(|line| self.record_line(pending, line));
        pending.push_left_out();
    }

    fn record_line(&self, pending: &mut PendingEvents, line: CompleteLine<'_>) {
        let parsed = (line.cut_bytes == 0).then(|| AgentLine::parse(line.text).ok()).flatten();
        let event = match parsed {
            None if line.text.trim_ascii().is_empty() => return,
            None => return self.record_other_line(pending, line),
            Some(AgentLine::End(_)) => return,
            Some(AgentLine::Text(text)) => {
                pending.push_text(self.stream, &text);
                return self.send(tap_event::text(text, self.stream));
            }
            Some(AgentLine::ToolCall { id, name, arguments }) => {
                let ToolText { kept, cut_bytes } = pending.tool_text(&arguments);
                AgentEvent::ToolCall { id, name, arguments: kept, cut_bytes }
            }
            Some(AgentLine::ToolResult { id, result, is_error }) => {
                let ToolText { kept, cut_bytes } = pending.tool_text(&result);
                AgentEvent::ToolResult { id, result: kept, is_error, cut_bytes }
            }
            Some(AgentLine::Usage { input_tokens, output_tokens, cached_tokens }) => {
                AgentEvent::AgentUsage { input_tokens, output_tokens, cached_tokens }
            }
        };
        pending.push_tool_event(event.clone());
        self.send(event);
    }

    /// Records a line that is not in the format as output.
    fn record_other_line(&self, pending: &mut PendingEvents, line: CompleteLine<'_>) {
        let stream = OutputStream::Stdout;
        let text = format!("{}\n", line.text);
        for piece in event_texts(&text) {
            let position = *pending.cursor.of(stream);
            if position.kept < self.max_kept.0 && position.events < limit::LOG_EVENTS {
                pending.push_output(stream, piece);
                self.send(AgentEvent::Log { stream, text: piece.to_owned() });
            } else {
                pending.cursor.reported.log_bytes_left_out += piece.len() as u64;
            }
        }
        pending.cursor.reported.log_bytes_left_out += line.cut_bytes;
    }
}

impl PendingEvents {
    /// Returns the part of a tool's text that is stored.
    pub(super) fn tool_text(&mut self, text: &str) -> ToolText {
        let stored = &mut self.cursor.reported.tool_bytes;
        let free = limit::TOOL_TEXTS.0.saturating_sub(*stored).min(limit::TOOL_TEXT.0);
        let kept = json_len::beginning(text, usize::try_from(free).unwrap_or(usize::MAX));
        *stored += json_len::length(kept) as u64;
        ToolText { kept: kept.to_owned(), cut_bytes: (text.len() - kept.len()) as u64 }
    }

    /// Adds a tool call, a result or a report of usage. Counts it if there are too many.
    pub(super) fn push_tool_event(&mut self, event: AgentEvent) {
        let reserve = match event {
            AgentEvent::AgentUsage { .. } => limit::AGENT_USAGE_RESERVE,
            _ => 0,
        };
        let counts = &mut self.cursor.reported;
        if counts.tools < limit::AGENT_EVENTS + reserve {
            counts.tools += 1;
            self.events.push(event);
        } else {
            counts.left_out += 1;
        }
    }

    /// Adds a piece of the agent's text, to the last event if that is text and has capacity left. Counts it if there is
    /// too much text.
    pub(super) fn push_text(&mut self, stream: Stream, text: &str) {
        for piece in event_texts(text) {
            let length = json_len::length(piece);
            let counts = &mut self.cursor.reported;
            if counts.text_bytes + length as u64 > limit::LOG_END.0 || counts.texts >= limit::LOG_EVENTS {
                counts.left_out += 1;
                continue;
            }
            counts.text_bytes += length as u64;
            match self.events.last_mut() {
                Some(AgentEvent::TextDelta { delta: last } | AgentEvent::Progress { text: last })
                    if self.last_length + length <= limit::LOG_EVENT.as_usize() =>
                {
                    last.push_str(piece);
                    self.last_length += length;
                }
                _ => {
                    counts.texts += 1;
                    self.events.push(tap_event::text(piece.to_owned(), stream));
                    self.last_length = length;
                }
            }
        }
    }

    /// Adds what was left out: bytes of other output, and events.
    pub(super) fn push_left_out(&mut self) {
        let counts = self.cursor.reported;
        if counts.log_bytes_left_out > 0 {
            let bytes = counts.log_bytes_left_out;
            self.events.push(AgentEvent::LogCut { stream: OutputStream::Stdout, bytes });
        }
        if counts.left_out > 0 {
            self.push_missed(counts.left_out);
        }
    }
}
