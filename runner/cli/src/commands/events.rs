//! Implements `sluice runs events`: shows a run's events, stored and live.

use std::io::{self, IsTerminal, Write};

use platform_core::event::AgentEvent;
use platform_runtime::terminal;
use runner_control_client::{DataPlane, Follow};
use runner_engine::follow::{FollowEvent, Follower};
use runner_store::UnixMillis;
use serde::Serialize;

use super::{Context, Error, exit::Exit, run_reference::RunChoice, times::time_of_day, tool_line};
use crate::plural::counted;

/// Most bytes of live text that are buffered. A line feed prints the buffer earlier.
const MAX_LIVE_LINE: usize = 100;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice runs events run-19c1-5f0e                    show all events so far
  sluice runs events -f run-19c1-5f0e                 follow until the run has ended
  sluice runs events -f --after 12 run-19c1-5f0e      follow the events after number 12
  sluice runs events run-19c1-5f0e | jq -r 'select(.type == \"tool\").name'
  sluice runs events run-19c1-5f0e | jq -r 'select(.type == \"tool_call\") | .name, .arguments'
  sluice runs events run-19c1-5f0e | jq -r 'select(.type == \"host_tool\") | .name, .state'

In a pipe, events are lines of JSON. Events with a `seq` are stored. Every reader gets them in this
order, and --after continues after one of them.

Events with `\"live\":true` show what models write at the moment. They have no fixed place among
stored events and are held for a short while only. A reader that starts to follow gets all text held
at that moment, even if it had some of it before.

For a run that ended long ago, only the last events are kept. `pruned` stands for the others, with
the number of the last of them.

The exit code is 0, regardless of the outcome of the run.")]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunChoice,
    #[command(flatten)]
    follow_option: FollowOption,
    /// Only events after the event with this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    after: u64,
    /// Print JSON on a terminal, too
    #[arg(long)]
    json: bool,
}

/// Option to follow a run.
#[derive(clap::Args, Clone, Copy)]
pub(super) struct FollowOption {
    /// Keep following until the run has ended
    #[arg(short, long)]
    follow: bool,
}

impl From<FollowOption> for Follow {
    fn from(FollowOption { follow }: FollowOption) -> Self {
        if follow { Self::On } else { Self::UntilEnd }
    }
}

/// Event as a line of JSON.
#[derive(Serialize)]
struct EventLine<'e> {
    /// Sequence number. Live text has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_ms: Option<UnixMillis>,
    #[serde(flatten)]
    event: &'e AgentEvent,
}

impl<'e> EventLine<'e> {
    const fn stored(seq: u64, at_ms: Option<UnixMillis>, event: &'e AgentEvent) -> Self {
        Self { seq: Some(seq), live: None, at_ms, event }
    }
}

pub(super) async fn events(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let store = context.store().await?;
    let follow = Follow::from(arguments.follow_option);
    let run_id = arguments.run.in_store(&store).await?;
    let mut follower = Follower::of(store, &run_id, arguments.after, follow);
    if follow == Follow::On {
        let data_plane = DataPlane::at(&context.settings.proxy.control_socket());
        follower = follower.with_live(data_plane).await?;
    }
    let mut printer = Printer { as_json: arguments.json || !io::stdout().is_terminal(), live: String::new() };
    while let Some(followed) = follower.next().await? {
        match followed {
            FollowEvent::Stored(stored) => {
                printer.line(&EventLine::stored(stored.seq, Some(stored.at), &stored.shown()))?;
            }
            FollowEvent::Pruned { count, upto } => {
                printer.line(&EventLine::stored(upto, None, &AgentEvent::Pruned { count }))?;
            }
            FollowEvent::Live(event) => printer.live(&event)?,
        }
    }
    printer.flush()?;
    Ok(Exit::Success)
}

/// Printer of events, as lines of text or of JSON.
struct Printer {
    as_json: bool,
    /// Live text that is buffered until its line is complete.
    live: String,
}

impl Printer {
    fn line(&mut self, line: &EventLine<'_>) -> io::Result<()> {
        self.flush()?;
        let mut out = io::stdout();
        if self.as_json {
            writeln!(out, "{}", terminal::safe_json(&serde_json::to_string(line)?))?;
        } else {
            let at = line.at_ms.map(time_of_day).unwrap_or_default();
            let seq = line.seq.map(|seq| seq.to_string()).unwrap_or_default();
            let (name, details) = describe(line.event);
            let mut lines = details.lines();
            writeln!(
                out,
                "{at:8} {seq:>5}  {name:<15} {}",
                terminal::safe(lines.next().unwrap_or_default())
            )?;
            for more in lines {
                writeln!(out, "{:31} {}", "", terminal::safe(more))?;
            }
        }
        out.flush()
    }

    fn live(&mut self, event: &AgentEvent) -> io::Result<()> {
        match event {
            AgentEvent::TextDelta { delta: text } | AgentEvent::Progress { text } if !self.as_json => {
                self.live += text;
                if self.live.contains('\n') || self.live.len() > MAX_LIVE_LINE {
                    self.flush()
                } else {
                    Ok(())
                }
            }
            event => self.line(&EventLine { seq: None, live: Some(true), at_ms: None, event }),
        }
    }

    /// Prints the buffered live text.
    fn flush(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.live);
        text.lines().filter(|line| !line.trim().is_empty()).try_for_each(|line| {
            writeln!(io::stdout(), "{:8} {:>5}  {:<15} {}", "", "", "text", terminal::safe(line))
        })
    }
}

/// Returns an event's name and details for people.
fn describe(event: &AgentEvent) -> (&'static str, String) {
    match event {
        AgentEvent::Status { phase } => ("status", phase.name().to_owned()),
        AgentEvent::Activity { kind, label } => (
            "activity",
            [Some(kind.name()), label.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" "),
        ),
        AgentEvent::Log { stream, text } => (stream.name(), text.clone()),
        AgentEvent::LogCut { stream, bytes } => (stream.name(), format!("[… {bytes} bytes cut …]")),
        AgentEvent::Tool { name } => ("tool", name.clone()),
        AgentEvent::ToolCall { name, arguments, .. } => ("tool_call", tool_line::call(name, arguments)),
        AgentEvent::ToolResult { result, is_error, .. } => {
            (if *is_error { "tool_error" } else { "tool_result" }, tool_line::result(result))
        }
        AgentEvent::HostTool { .. } => ("host_tool", tool_line::host_tool(event).unwrap_or_default()),
        AgentEvent::AgentUsage { input_tokens, output_tokens, .. } => {
            ("agent_usage", format!("{input_tokens} tokens in, {output_tokens} out, by its own count"))
        }
        AgentEvent::Commits { stage, branch, pull_request, .. } => {
            let url = pull_request.as_ref().map(|url| format!(", {url}")).unwrap_or_default();
            ("commits", format!("{branch}: {stage}{url}"))
        }
        AgentEvent::TextDelta { delta: text } | AgentEvent::Progress { text } => ("text", text.clone()),
        AgentEvent::Missed { count } => {
            ("missed", format!("{} left out, or cannot be read", counted(count, "event")))
        }
        AgentEvent::Pruned { count } => {
            ("pruned", format!("{} pruned up to here (store.event_retention)", counted(count, "event")))
        }
        AgentEvent::UsageReport { calls, tokens } => {
            let calls = counted(calls, "call");
            ("used", format!("{calls}, {} tokens in, {} out", tokens.input, tokens.output))
        }
        AgentEvent::AssistantFinal { content, cut_bytes: 0 } => ("answer", content.clone()),
        AgentEvent::AssistantFinal { content, cut_bytes } => {
            ("answer", format!("{content}\n[… {cut_bytes} bytes were not stored …]"))
        }
        AgentEvent::Done => ("done", String::new()),
        AgentEvent::Error { code, message } => ("failed", format!("{}: {message}", code.code())),
    }
}
