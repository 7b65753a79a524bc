//! Implements `sluice audit trace`: follows a call step by step, as it happens.

use std::io::{self, Write};

use platform_core::{
    id::CallId,
    json::{self, Bounds},
    record::{Identity, TokensSource},
    trace::{Connection, Step, TraceEvent},
};
use platform_runtime::terminal;
use runner_control_client::DataPlane;

use super::milliseconds;
use crate::commands::{Context, Error, error::Unknown, exit::Exit, run_reference::RunChoice};

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    #[command(flatten)]
    run: RunChoice,
    /// Print the steps as NDJSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn trace(
    context: &Context,
    data_plane: &DataPlane,
    arguments: Arguments,
) -> Result<Exit, Error> {
    let Arguments { run, json } = arguments;
    let run_id = run.in_proxy(context, data_plane).await?;
    let mut lines = match data_plane.trace(&run_id).await {
        Err(error) if error.is_unknown_run() => {
            let message = format!("run {run_id} is not open; `sluice usage` shows those that are");
            return Err(Error::from(Unknown(message)));
        }
        result => result?,
    };
    writeln!(io::stderr(), "waiting for the next call of run {run_id}")?;
    let mut out = io::stdout();
    let mut followed = None;
    while let Some(line) = lines.next().await? {
        let event: TraceEvent = json::from_slice(line, Bounds::STORED).map_err(Error::invalid_record)?;
        if !is_followed(&event, &mut followed) {
            continue;
        }
        if json {
            writeln!(out, "{}", terminal::safe_json(&String::from_utf8_lossy(line)))?;
        } else {
            write!(out, "{}", terminal::safe(&text(&event)))?;
        }
        out.flush()?;
        if let TraceEvent::Step { step: Step::Settled { .. }, .. } = event {
            return Ok(Exit::Success);
        }
    }
    Err(Error::from(Unknown(format!("run {run_id} was closed"))))
}

/// Returns whether `event` belongs to the followed call, which is the first that begins.
fn is_followed(event: &TraceEvent, followed: &mut Option<CallId>) -> bool {
    match event {
        TraceEvent::Missed { .. } => followed.is_some(),
        TraceEvent::Step { call, step: Step::Accepted { .. }, .. } if followed.is_none() => {
            *followed = Some(*call);
            true
        }
        TraceEvent::Step { call, .. } => *followed == Some(*call),
    }
}

fn text(event: &TraceEvent) -> String {
    match event {
        TraceEvent::Missed { count } => format!("{:>12}  {count} steps were missed\n", ""),
        TraceEvent::Step { call, at_us, step } => {
            let heading = match step {
                Step::Accepted { .. } => format!("call {call}\n"),
                _ => String::new(),
            };
            let (name, details) = describe(step);
            format!("{heading}{:>12}  {name:12} {details}\n", milliseconds(*at_us))
        }
    }
}

/// Returns a step's name and details.
fn describe(step: &Step) -> (&'static str, String) {
    match step {
        Step::Accepted { identity } => {
            ("accepted", format!("identified by {}", identity_in_words(*identity)))
        }
        Step::Admitted { route } => ("admitted", format!("to {}", route.word())),
        Step::BodyRead { bytes, model, stream } => {
            let answer = if *stream { "a stream" } else { "one answer" };
            ("body read", format!("{bytes} bytes, asks {model} for {answer}"))
        }
        Step::Reserved { input_tokens, output_tokens, cost_nanodollars } => {
            let cost = cost_nanodollars.map_or_else(String::new, |cost| format!(", {cost}"));
            ("reserved", format!("at most {input_tokens} tokens in, {output_tokens} out{cost}"))
        }
        Step::Sent { connection: Connection::Fresh } => ("sent", "upstream, on a new connection".to_owned()),
        Step::Sent { connection: Connection::Pooled } => {
            ("sent", "upstream, on a pooled connection".to_owned())
        }
        Step::FirstByte { status } => ("first byte", format!("status {status}")),
        Step::FirstEvent => ("first event", "passed on".to_owned()),
        Step::Progress { bytes, pieces } => ("answering", format!("{bytes} bytes in {pieces} pieces")),
        Step::Ended { outcome, status, refusal, rule, bytes } => {
            let why: Vec<_> = refusal
                .map(|refusal| refusal.code().to_owned())
                .into_iter()
                .chain(rule.as_ref().map(ToString::to_string))
                .collect();
            let why = if why.is_empty() { String::new() } else { format!(" ({})", why.join(", ")) };
            ("ended", format!("{outcome}{why}, status {status}, {bytes} bytes passed on"))
        }
        Step::Settled { tokens, tokens_source, cost_nanodollars, cost_source } => {
            let cost = cost_nanodollars
                .map_or_else(String::new, |cost| format!(", {cost} ({})", cost_source.word()));
            let settled = match tokens_source {
                TokensSource::None => "no tokens".to_owned(),
                source => {
                    format!("{} tokens in, {} out ({}){cost}", tokens.input, tokens.output, source.word())
                }
            };
            ("settled", settled)
        }
    }
}

const fn identity_in_words(identity: Identity) -> &'static str {
    match identity {
        Identity::Socket => "its socket",
        Identity::Token => "a run token",
        Identity::Trace => "a trace id",
        Identity::Slot => "a slot",
        Identity::None => "nothing",
    }
}
