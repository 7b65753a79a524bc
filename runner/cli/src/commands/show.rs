//! Shows a run: on a terminal, in a pipe, or as JSON.
//!
//! On a terminal, stdout shows the answer as the model writes it, if the agent's entry says that this text is the
//! answer. Until then, one line on stderr shows the progress, and each tool call that the agent reports has a line. The
//! agent's stderr goes to stderr, too. In a pipe, stdout carries the final answer and nothing else. Text of an agent is
//! sanitised unless `--raw` was given.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use platform_core::{
    control::Usage,
    event::{AgentEvent, OutputStream},
    host_tools::{ToolCallState, ToolCode},
};
use platform_runtime::terminal::{self, Output, Sanitizer};
use runner_docker::Captured;
use runner_engine::{
    run::RunResult,
    run_request::{RunSpec, Subject},
};
use runner_model::lifecycle::{Failure, StartKind};
use serde_json::json;

use super::{failed_run, figures, git, left::Left, status::Status, tool_line};
use crate::plural::counted;

/// Output options of a run.
#[derive(clap::Args, Clone, Copy)]
pub(super) struct OutputArguments {
    /// Print every event as a line of JSON; the last line is the result
    #[arg(long)]
    pub(super) json: bool,
    /// Print the agent's text unchanged, including escape sequences
    #[arg(long)]
    pub(super) raw: bool,
}

/// Printer for one run.
#[derive(Debug)]
pub(super) struct Show {
    style: OutputStyle,
    output: Output,
    answer: Sanitizer,
    stderr: Sanitizer,
    /// Answer text that was shown already.
    streamed: String,
    /// Progress line, if a person waits at a terminal.
    status: Option<Status>,
    /// True if the last output ended its line.
    is_at_line_start: bool,
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
            is_at_line_start: true,
        }
    }

    /// Shows the files that the run begins with while it is prepared.
    pub(super) fn begins_with(mut self, spec: &RunSpec) -> Self {
        if let Some(status) = &mut self.status {
            status.begins_with(spec);
        }
        self
    }

    /// Returns whether a person watches the progress. If so, the caller has to call [`Self::tick`] at intervals.
    pub(super) const fn is_watched(&self) -> bool {
        self.status.is_some()
    }

    /// Draws the progress line, unless a line of output is unfinished.
    pub(super) fn tick(&mut self) {
        if let Some(status) = &mut self.status
            && self.is_at_line_start
        {
            status.draw();
        }
    }

    /// Shows an event of the run.
    pub(super) fn event(&mut self, event: &AgentEvent) -> io::Result<()> {
        if self.style == OutputStyle::Json {
            return self.json(&serde_json::to_string(event)?);
        }
        if let Some(status) = &mut self.status {
            status.update(event);
        }
        match event {
            AgentEvent::TextDelta { delta } if self.style == OutputStyle::Live => {
                self.clear();
                self.streamed += delta;
                self.is_at_line_start = delta.ends_with('\n');
                let mut out = io::stdout();
                out.write_all(self.answer.clean(delta).as_bytes())?;
                out.flush()
            }
            AgentEvent::Log { stream: OutputStream::Stderr, text } => {
                self.clear();
                self.is_at_line_start = text.ends_with('\n');
                io::stderr().write_all(self.stderr.clean(text).as_bytes())
            }
            AgentEvent::ToolCall { name, arguments, .. } => self.tool(&tool_line::call(name, arguments)),
            AgentEvent::ToolResult { result, is_error: true, .. } => {
                self.tool(&format!("failed: {}", tool_line::result(result)))
            }
            AgentEvent::HostTool { state, code, .. } => {
                let line = tool_line::host_tool(event).unwrap_or_default();
                if *state == ToolCallState::Waiting {
                    return self
                        .notice(&format!("{line}; `sluice tools pending` has the command that decides"));
                }
                let is_late = code.as_deref() == Some(ToolCode::ApprovalTimeout.word());
                let cause = if is_late { "; no member of the account and no operator decided" } else { "" };
                self.tool(&format!("{line}{cause}"))
            }
            // Nothing follows the final answer but the result: the progress line is not needed again.
            AgentEvent::AssistantFinal { content, .. } => {
                self.clear();
                self.status = None;
                self.final_answer(content)
            }
            AgentEvent::Error { .. } | AgentEvent::Done => {
                self.clear();
                self.status = None;
                Ok(())
            }
            _ => {
                self.tick();
                Ok(())
            }
        }
    }

    /// Clears the progress line.
    fn clear(&mut self) {
        if let Some(status) = &mut self.status {
            status.clear();
        }
    }

    /// Shows what an agent does with a tool, if a person watches.
    fn tool(&mut self, line: &str) -> io::Result<()> {
        if self.status.is_none() { Ok(()) } else { self.notice(line) }
    }

    /// Shows a line between those of the agent, in a pipe, too.
    fn notice(&mut self, line: &str) -> io::Result<()> {
        self.clear();
        let mut err = io::stderr();
        if !self.is_at_line_start {
            writeln!(err)?;
            self.is_at_line_start = true;
        }
        let line = terminal::safe(line);
        if err.is_terminal() { print_for_person(&line) } else { writeln!(err, "{line}") }
    }

    fn json(&self, json: &str) -> io::Result<()> {
        match self.output {
            Output::Safe => writeln!(io::stdout(), "{}", terminal::safe_json(json)),
            Output::Raw => writeln!(io::stdout(), "{json}"),
        }
    }

    /// Shows the part of the final answer that was not streamed. Shows the whole final answer if it differs from the
    /// streamed text, because the final answer is authoritative.
    fn final_answer(&mut self, content: &str) -> io::Result<()> {
        let mut out = io::stdout();
        let shown = self.streamed.trim_end();
        // The streamed text may begin with the text of earlier calls, before that of the call with the answer.
        let rest = if shown.ends_with(content.trim_end()) { Some("") } else { content.strip_prefix(shown) };
        if rest.is_none() {
            writeln!(out, "\n\nfinal answer:")?;
            // An unfinished escape sequence of the streamed text must not swallow the beginning of this text.
            self.answer = Sanitizer::new(self.output);
        }
        out.write_all(self.answer.clean(rest.unwrap_or(content)).as_bytes())?;
        writeln!(out)
    }

    /// Shows the result of the run, and what became of its commits if it has a repository.
    pub(super) fn result(&self, subject: &Subject<'_>, result: &RunResult, left: &Left) -> io::Result<()> {
        if self.style == OutputStyle::Json {
            return self.json(&result_json(subject, result, left).to_string());
        }
        if self.style == OutputStyle::Live && result.answer.is_err() && !self.streamed.is_empty() {
            writeln!(io::stdout())?;
        }
        if let Err(failure) = &result.answer {
            failed_run::print(failure, subject.run_id)?;
        }
        if let Some(relay) = &left.relay {
            io::stderr().write_all(git::outcome(subject.run_id, relay).as_bytes())?;
        }
        if !left.outside.is_empty() {
            let files = left.outside.in_words().replace(['\n', '\t'], " ");
            let fate = "`sluice runs diff` and commits do not have it";
            writeln!(io::stderr(), "left: {}: {fate}", terminal::safe(&files))?;
        }
        print_for_person(&summary(subject, result))
    }
}

/// Prints a line on stderr, if a person watches.
fn print_for_person(line: &str) -> io::Result<()> {
    let mut err = io::stderr();
    if err.is_terminal() { writeln!(err, "\x1b[2m· {line}\x1b[0m") } else { Ok(()) }
}

fn summary(subject: &Subject<'_>, result: &RunResult) -> String {
    let used = result.usage.map_or_else(|| "its usage is unknown".to_owned(), usage_in_words);
    let duration = result.duration;
    format!("{}: {used}, {}.{:03} s", subject.run_id, duration.as_secs(), duration.subsec_millis())
}

fn usage_in_words(usage: Usage) -> String {
    let Usage { tokens, cost_nanodollars, inexact, .. } = usage;
    let [input, output] = [tokens.input, tokens.output].map(|count| figures::tokens(count, inexact));
    let cost = figures::cost(cost_nanodollars, inexact);
    format!("{}, {input} tokens in, {output} out, {cost}", counted(usage.calls, "call"))
}

fn result_json(subject: &Subject<'_>, result: &RunResult, left: &Left) -> serde_json::Value {
    let exit = result.container_exit.as_ref();
    let failure = result.answer.as_ref().err();
    json!({
        "type": "result",
        "run_id": subject.run_id,
        "agent": subject.agent_id,
        "account": subject.account,
        "ok": failure.is_none(),
        "text": result.answer.as_ref().ok(),
        "error": failure.map(Failure::for_operators),
        "exit_code": result.exit_code,
        "killed_by": exit.and_then(|exit| exit.killed_by),
        "oom_seen": result.oom_seen.unwrap_or_default(),
        "stdout": exit.map(|exit| captured(&exit.stdout)),
        "stderr": exit.map(|exit| captured(&exit.stderr)),
        "usage": result.usage,
        "commits": left.relay,
        "outside": (!left.outside.is_empty()).then_some(&left.outside),
        "start": result.start_kind.map(StartKind::name),
        "start_ms": result.start_latency.map(milliseconds),
        "duration_ms": milliseconds(result.duration),
    })
}

fn captured(captured: &Captured) -> serde_json::Value {
    json!({ "text": captured.text(), "cut_bytes": captured.cut_bytes() })
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
