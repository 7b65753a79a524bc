//! Shows a run: on a terminal, in a pipe, or as JSON.
//!
//! On a terminal the answer appears on stdout as the model writes it, if its agent's entry says that this is the
//! answer. Until then one line on stderr shows the progress. The agent's stderr goes there, too. In a pipe stdout
//! holds the final answer and nothing else. What an agent wrote is made safe for the terminal unless `--raw` was given.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use platform_core::{
    control::Usage,
    event::{AgentEvent, OutputStream},
};
use platform_runtime::terminal::{self, Output, Sanitizer};
use runner_docker::Captured;
use runner_engine::{request::Subject, run::RunResult};
use runner_model::lifecycle::{Detail, Failure, StartKind};
use serde_json::json;

use super::{run::OutputArguments, status::Status};

/// Printer for one run.
#[derive(Debug)]
pub(super) struct Show {
    style: OutputStyle,
    output: Output,
    answer: Sanitizer,
    stderr: Sanitizer,
    /// Part of the answer that was streamed already.
    streamed: String,
    /// Progress line, if a person waits at a terminal.
    status: Option<Status>,
    /// True after a write that ended its line.
    at_line: bool,
}

/// Form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputStyle {
    /// Live output for a person.
    Live,
    /// Final answer for a program.
    Final,
    /// Every event for a program.
    Json,
}

impl Show {
    pub(super) fn new(arguments: OutputArguments) -> Self {
        let style = match arguments.json {
            true => OutputStyle::Json,
            false if io::stdout().is_terminal() => OutputStyle::Live,
            false => OutputStyle::Final,
        };
        let output = if arguments.raw { Output::Raw } else { Output::Safe };
        Self {
            style,
            output,
            answer: Sanitizer::new(output),
            stderr: Sanitizer::new(output),
            streamed: String::new(),
            status: if style == OutputStyle::Json { None } else { Status::on_terminal() },
            at_line: true,
        }
    }

    /// Returns whether a person watches the progress. If so, [`Self::tick`] is to be called now and then.
    pub(super) const fn is_watched(&self) -> bool {
        self.status.is_some()
    }

    /// Draws the progress line, unless a line of output is unfinished.
    pub(super) fn tick(&mut self) -> io::Result<()> {
        match &mut self.status {
            Some(status) if self.at_line => status.draw(),
            _ => Ok(()),
        }
    }

    pub(super) fn event(&mut self, event: &AgentEvent) -> io::Result<()> {
        if self.style == OutputStyle::Json {
            return self.json(&serde_json::to_string(event)?);
        }
        if let Some(status) = &mut self.status {
            status.see(event);
        }
        match event {
            AgentEvent::TextDelta { delta } if self.style == OutputStyle::Live => {
                self.clear()?;
                self.streamed += delta;
                self.at_line = delta.ends_with('\n');
                let mut out = io::stdout();
                out.write_all(self.answer.clean(delta).as_bytes())?;
                out.flush()
            }
            AgentEvent::Log { stream: OutputStream::Stderr, text } => {
                self.clear()?;
                self.at_line = text.ends_with('\n');
                io::stderr().write_all(self.stderr.clean(text).as_bytes())
            }
            // After this the run has nothing left to wait for.
            AgentEvent::AssistantFinal { content, .. } => {
                self.clear()?;
                self.status = None;
                self.final_answer(content)
            }
            AgentEvent::Error { .. } | AgentEvent::Done => {
                self.clear()?;
                self.status = None;
                Ok(())
            }
            _ => self.tick(),
        }
    }

    /// Removes the progress line.
    fn clear(&mut self) -> io::Result<()> {
        self.status.as_mut().map_or(Ok(()), Status::clear)
    }

    fn json(&self, json: &str) -> io::Result<()> {
        match self.output {
            Output::Safe => writeln!(io::stdout(), "{}", terminal::safe_json(json)),
            Output::Raw => writeln!(io::stdout(), "{json}"),
        }
    }

    /// Shows the part of the final answer that was not streamed. The final answer is authoritative: if it differs, it
    /// is shown whole.
    fn final_answer(&mut self, content: &str) -> io::Result<()> {
        let mut out = io::stdout();
        let shown = self.streamed.trim_end();
        // An agent may have streamed other calls before the one that made the answer.
        let rest = if shown.ends_with(content.trim_end()) { Some("") } else { content.strip_prefix(shown) };
        if rest.is_none() {
            writeln!(out, "\n\nfinal answer:")?;
            // The streamed text may have left an escape sequence unfinished, which does not belong to this text.
            self.answer = Sanitizer::new(self.output);
        }
        out.write_all(self.answer.clean(rest.unwrap_or(content)).as_bytes())?;
        writeln!(out)
    }

    /// Shows how the run ended.
    pub(super) fn result(&self, subject: &Subject<'_>, finished: &RunResult) -> io::Result<()> {
        if self.style == OutputStyle::Json {
            return self.json(&result_json(subject, finished).to_string());
        }
        if self.style == OutputStyle::Live && finished.answer.is_err() && !self.streamed.is_empty() {
            writeln!(io::stdout())?;
        }
        if let Err(Failure { code, message, detail }) = &finished.answer {
            let message = Sanitizer::new(Output::Safe).clean(message).into_owned();
            writeln!(io::stderr(), "sluice: {} failed ({}): {message}", subject.run_id, code.code())?;
            if let Some(detail) =
                detail.as_ref().map(Detail::for_operators).filter(|detail| *detail != message)
            {
                let detail = Sanitizer::new(Output::Safe).clean(detail).into_owned();
                writeln!(io::stderr(), "sluice: in detail: {detail}")?;
            }
        }
        progress(&summary(subject, finished))
    }
}

/// Prints a line for a person who watches; not for logs.
fn progress(line: &str) -> io::Result<()> {
    let mut err = io::stderr();
    if err.is_terminal() { writeln!(err, "\x1b[2m· {line}\x1b[0m") } else { Ok(()) }
}

fn summary(subject: &Subject<'_>, finished: &RunResult) -> String {
    let used = finished.usage.map_or_else(|| "its usage is unknown".to_owned(), used);
    let took = finished.duration;
    format!("{}: {used}, {}.{:03} s", subject.run_id, took.as_secs(), took.subsec_millis())
}

fn used(usage: Usage) -> String {
    let calls = if usage.calls == 1 { "call" } else { "calls" };
    let Usage { tokens, cost_nanodollars: cost, .. } = usage;
    format!("{} {calls}, {} tokens in, {} out, {cost}", usage.calls, tokens.input, tokens.output)
}

fn result_json(subject: &Subject<'_>, finished: &RunResult) -> serde_json::Value {
    let ended = finished.container_exit.as_ref();
    let failure = finished.answer.as_ref().err();
    json!({
        "type": "result",
        "run_id": subject.run_id,
        "agent": subject.agent_id,
        "account": subject.account,
        "ok": failure.is_none(),
        "text": finished.answer.as_ref().ok(),
        "error": failure.map(Failure::for_operators),
        "exit_code": finished.exit_code,
        "killed_by": ended.and_then(|ended| ended.killed_by),
        "oom_seen": finished.oom_seen.unwrap_or_default(),
        "stdout": ended.map(|ended| captured(&ended.stdout)),
        "stderr": ended.map(|ended| captured(&ended.stderr)),
        "usage": finished.usage,
        "start": finished.start_kind.map(StartKind::name),
        "start_ms": finished.start_latency.map(milliseconds),
        "duration_ms": milliseconds(finished.duration),
    })
}

fn captured(captured: &Captured) -> serde_json::Value {
    json!({ "text": captured.text(), "cut_bytes": captured.cut_bytes() })
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
