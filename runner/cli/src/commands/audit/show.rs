//! Implements `sluice audit show`: shows the record of one call, and explains a refusal or a cut answer.

use std::io::{self, Write};

use platform_core::{
    control::RunState,
    host_tools::ToolOutcome,
    id::RunId,
    json::{self, Bounds},
    record::{ExchangeRecord, Identity, JournalLine, Kind, Outcome, Tokens, TokensSource, ToolCall},
    refusal::Refusal,
    untrusted::JournalText,
};
use platform_runtime::{settings::Settings, terminal};
use runner_audit::advice::{self, Advice};
use runner_control_client::DataPlane;
use serde_json::{Value, json};

use super::{call_choice::CallChoice, milliseconds, record};
use crate::commands::{Error, exit::Exit};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    call: CallChoice,
    /// Print JSON: the record and the advice
    #[arg(long)]
    json: bool,
}

pub(super) async fn show(
    data_plane: &DataPlane,
    settings: &Settings,
    arguments: Arguments,
) -> Result<Exit, Error> {
    let Arguments { call, json } = arguments;
    let line = call.line(data_plane).await?;
    let parsed = record(&line)?;
    let run_id = &parsed.record.run_id;
    let advice = advice::of(&parsed.record).map(|advice| match settings.runs.get(run_id) {
        Some(_) => advice.for_configured_run(run_id),
        None => advice,
    });
    let is_over = advice.is_some() && is_over(data_plane, run_id).await;
    let advice = advice.map(|advice| if is_over { advice.for_ended_run(&parsed.record) } else { advice });
    let mut out = io::stdout();
    if json {
        let raw: Value = json::from_slice(&line, Bounds::STORED).map_err(Error::invalid_record)?;
        let report = json!({ "record": raw, "advice": advice });
        writeln!(out, "{}", terminal::safe_json(&report.to_string()))?;
    } else {
        write!(out, "{}", terminal::safe(&text(&parsed, advice.as_ref())))?;
    }
    Ok(Exit::Success)
}

/// Returns whether the run makes no more calls. One that cannot be found out about now is taken for live.
async fn is_over(data_plane: &DataPlane, run_id: &RunId) -> bool {
    match data_plane.run(run_id).await {
        Ok(view) => view.state == RunState::Closed,
        Err(error) => error.is_unknown_run(),
    }
}

/// Returns the name of what is explained.
fn explained(record: &ExchangeRecord) -> &'static str {
    match record.refusal {
        Some(refusal) => refusal.code(),
        None if record.status >= 400 => "upstream_error",
        None => match record.outcome {
            outcome @ (Outcome::UpstreamGone | Outcome::StreamError | Outcome::TimedOut) => outcome.word(),
            _ => "answer_cut",
        },
    }
}

fn text(line: &JournalLine, advice: Option<&Advice>) -> String {
    let mut text = format!("call {}\n", line.record.litellm_call_id);
    for (name, value) in facts(line) {
        text += &format!("  {name:9} {value}\n");
    }
    if let Some(Advice { why, commands, settings }) = advice {
        let code = explained(&line.record);
        let rule = line.record.rule.as_ref().map_or_else(String::new, |rule| format!(", decided by {rule}"));
        text += &format!("\n{code}{rule}\n  {why}\n");
        if !commands.is_empty() {
            text += "  commands:\n";
            commands.iter().for_each(|command| text += &format!("    {command}\n"));
        }
        if !settings.is_empty() {
            text += "  settings:\n";
        }
        for setting in settings {
            let value = setting.value.as_ref().map_or_else(String::new, |value| format!(" = {value}"));
            text += &format!("    [{}] {}{value}\n", setting.section, setting.key);
        }
    }
    text
}

/// Returns what a call asked for, in words.
fn asked(record: &ExchangeRecord) -> String {
    let route = record.route.word();
    if let Some(tool) = &record.tool {
        return format!("{route}, host tool {}", tool.name);
    }
    if record.kind == Kind::Tool {
        return format!("{route}, host tools");
    }
    let model = record.model_asked.as_ref().map_or("-".to_owned(), ToString::to_string);
    format!("{route}, model {model}{}", if record.stream { ", streamed" } else { "" })
}

/// Returns the end of a host tool's call in words.
fn tool_in_words(tool: &ToolCall) -> String {
    let outcome = match tool.outcome {
        ToolOutcome::Done => "it gave a result",
        ToolOutcome::Failed => "it failed, or refused its arguments",
        ToolOutcome::Denied => "it was refused, and nothing ran",
        ToolOutcome::Unknown => "it began, and may have had its effect",
    };
    let connection = tool.connection.as_ref().map_or_else(String::new, |name| format!(", connection {name}"));
    let args = tool.args_sha256.as_ref().map_or_else(String::new, |digest| format!(", arguments {digest}"));
    format!("{}: {outcome}{connection}{args}", tool.name)
}

fn facts(line: &JournalLine) -> Vec<(&'static str, String)> {
    let record = &line.record;
    let named = |text: &Option<JournalText>| text.as_ref().map_or("-".to_owned(), ToString::to_string);
    let user = record.user.as_ref().map_or_else(String::new, |user| format!(", user {user}"));
    let first = record
        .ttfb_us
        .map_or_else(String::new, |first| format!(", first byte after {}", milliseconds(first)));
    let why = record.finish_reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
    let timeout =
        record.timeout.map_or_else(String::new, |timeout| format!(", time limit: {}", timeout.word()));
    let tokens = &record.tokens;
    let cost = record
        .cost_nanodollars
        .map_or("unknown".to_owned(), |cost| format!("{cost} ({})", record.cost_source.word()));
    let answered_by = match record.kind {
        Kind::Model => format!(", model {}{why}", named(&record.model_answered)),
        Kind::Tool | Kind::Correction => String::new(),
    };
    let mut facts = vec![
        ("when", format!("{}, took {}{first}", record.ts, milliseconds(record.duration_us))),
        (
            "who",
            format!("run {}, attempt {}, of account {}{user}", record.run_id, record.attempt, record.account),
        ),
        ("agent", format!("{}, known by {}", record.graph, identity_in_words(record.identity))),
        ("asked", asked(record)),
        ("answered", format!("status {}{answered_by}", record.status)),
        ("ended", format!("{}: {}{timeout}", record.outcome, end_in_words(record.outcome, record.refusal))),
        ("bytes", format!("{} asked, {} answered", record.request_bytes, record.response_bytes)),
    ];
    if record.tokens_source != TokensSource::None {
        let hour = match tokens.cache_written_1h {
            0 => String::new(),
            hour => format!(", {hour} of them for an hour"),
        };
        let cached = format!("{} cached, {} written to a cache{hour}", tokens.cached, tokens.cache_written);
        let Tokens { input, output, reasoning, .. } = record.tokens;
        let source = record.tokens_source.word();
        facts.push((
            "tokens",
            format!("{input} in ({cached}), {output} out ({reasoning} reasoning); {source}"),
        ));
        facts.push(("cost", cost));
    }
    if let Some(tool) = &record.tool {
        facts.push(("tool", tool_in_words(tool)));
    }
    if !record.tools.is_empty() {
        let tools: Vec<_> = record.tools.iter().map(ToString::to_string).collect();
        facts.push(("tools", tools.join(", ")));
    }
    if record.calls > 1 {
        facts.push(("stands for", format!("{} calls that were refused alike", record.calls)));
    }
    facts.push(("record", format!("{} of the journal, schema {}", line.seq, line.v)));
    facts
}

const fn identity_in_words(identity: Identity) -> &'static str {
    match identity {
        Identity::Socket => "the run's own socket",
        Identity::Token => "a run token",
        Identity::Trace => "a registered trace id",
        Identity::Slot => "a leased slot",
        Identity::None => "nothing",
    }
}

/// Returns the end of a call in words. Where a whole answer came with a refusal, the client received the refusal.
/// `context_overflow` alone may have been passed on in the upstream's own words.
const fn end_in_words(outcome: Outcome, refusal: Option<Refusal>) -> &'static str {
    match (outcome, refusal) {
        (Outcome::Complete, None | Some(Refusal::ContextOverflow)) | (_, None) => outcome_in_words(outcome),
        (Outcome::Complete, Some(_)) => "the upstream answered, and the client received the refusal instead",
        (_, Some(_)) => outcome_in_words(outcome),
    }
}

const fn outcome_in_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Complete => "the answer reached its end and was passed on whole",
        Outcome::StreamError => "the stream carried an error, or ended without its mark",
        Outcome::ClientGone => "the client left first",
        Outcome::UpstreamGone => "the upstream could not be reached, or closed the connection",
        Outcome::TimedOut => "a time limit passed",
        Outcome::Refused => "it was refused, and nothing was sent",
        Outcome::RunClosed => "the run was closed during the call",
        Outcome::Frozen => "an operator stopped it",
        Outcome::Interrupted => "the proxy went down during the call",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_answer_is_not_said_to_be_passed_on() {
        let is_passed_on = |refusal| end_in_words(Outcome::Complete, refusal).contains("passed on whole");
        assert!(is_passed_on(None) && is_passed_on(Some(Refusal::ContextOverflow)));
        assert!(!is_passed_on(Some(Refusal::UpstreamAuth)) && !is_passed_on(Some(Refusal::UpstreamFailed)));
        let refused = end_in_words(Outcome::Refused, Some(Refusal::Frozen));
        assert_eq!(refused, "it was refused, and nothing was sent");
    }
}
