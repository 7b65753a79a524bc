//! `sluice runs logs`: what an agent printed.

use std::io::{self, Write};

use platform_core::{
    event::{AgentEvent, OutputStream},
    id::RunId,
};
use platform_runtime::terminal::{Output, Sanitizer};

use super::{Context, Error, events::UpTo, exit::Exit};
use crate::{
    follow::{Follower, Heard},
    sandbox::mark,
};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice runs logs run-19c1-5f0e               what it printed and complained of, each on the stream it used
  sluice runs logs -f run-19c1-5f0e            and what comes, until it has ended
  sluice runs logs --stderr run-19c1-5f0e      only what it complained of

Of each stream 256 KiB of its beginning are stored as they come, and as much of its end when it has ended; between them a line says
how many bytes were cut. Exit code 0, however the run ended; 1 if what it printed is kept no longer, because that was long ago.")]
pub(super) struct Arguments {
    /// The run
    run: RunId,
    #[command(flatten)]
    upto: UpTo,
    #[command(flatten)]
    only: Only,
    /// Pass what the agent wrote on as it is, escape sequences included
    #[arg(long)]
    raw: bool,
}

/// Which of the two streams; both if none is named.
#[derive(clap::Args)]
struct Only {
    /// Only what it printed on stdout
    #[arg(long, conflicts_with = "stderr")]
    stdout: bool,
    /// Only what it printed on stderr
    #[arg(long)]
    stderr: bool,
}

pub(super) async fn logs(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { run, upto, only, raw } = arguments;
    let only = match only {
        Only { stdout: true, .. } => Some(OutputStream::Stdout),
        Only { stderr: true, .. } => Some(OutputStream::Stderr),
        Only { .. } => None,
    };
    let mut follower = Follower::of(context.store().await?, &run, 0, upto.into());
    let output = if raw { Output::Raw } else { Output::Safe };
    let (mut printed, mut complained) = (Sanitizer::new(output), Sanitizer::new(output));
    let mut exit = Exit::Success;
    while let Some(heard) = follower.next().await? {
        let stored = match heard {
            Heard::Stored(stored) => stored,
            Heard::Pruned { .. } => {
                exit = Exit::Failure;
                writeln!(io::stderr(), "sluice: what {run} printed is kept no longer (store.keep_events)")?;
                continue;
            }
            Heard::Live(_) => continue,
        };
        let (stream, text) = match stored.event()? {
            AgentEvent::Log { stream, text } => (stream, text),
            AgentEvent::LogCut { stream, bytes } => (stream, mark(bytes)),
            _ => continue,
        };
        if only.is_some_and(|only| only != stream) {
            continue;
        }
        match stream {
            OutputStream::Stdout => {
                let mut out = io::stdout();
                out.write_all(printed.clean(&text).as_bytes())?;
                out.flush()?;
            }
            OutputStream::Stderr => io::stderr().write_all(complained.clean(&text).as_bytes())?,
        }
    }
    Ok(exit)
}
