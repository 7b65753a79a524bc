//! Implements `sluice runs logs`: shows the output of an agent.

use std::io::{self, Write};

use platform_core::event::{AgentEvent, OutputStream};
use platform_runtime::terminal::{Output, Sanitizer};
use runner_docker::mark;
use runner_engine::follow::{FollowEvent, Follower};

use super::{Context, Error, events::FollowOption, exit::Exit, run_reference::RunChoice};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sluice runs logs run-19c1-5f0e               print stdout and stderr, each on its own stream
  sluice runs logs -f run-19c1-5f0e            follow until the run has ended
  sluice runs logs --stderr run-19c1-5f0e      print stderr only

The first 256 KiB of each stream are stored as they come, and the last 256 KiB when it has ended. A
line between them says how many bytes were cut.

Exit codes: 0 regardless of the outcome of the run, 1 the output is too old and no longer kept")]
pub(super) struct Arguments {
    #[command(flatten)]
    run: RunChoice,
    #[command(flatten)]
    follow_option: FollowOption,
    #[command(flatten)]
    only: StreamChoice,
    /// Print the agent's text unchanged, including escape sequences
    #[arg(long)]
    raw: bool,
}

/// Choice of a stream. Without a choice, both are shown.
#[derive(clap::Args)]
struct StreamChoice {
    /// Only standard output of the agent
    #[arg(long, conflicts_with = "stderr")]
    stdout: bool,
    /// Only standard error of the agent
    #[arg(long)]
    stderr: bool,
}

pub(super) async fn logs(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let Arguments { run, follow_option, only, raw } = arguments;
    let only = match only {
        StreamChoice { stdout: true, .. } => Some(OutputStream::Stdout),
        StreamChoice { stderr: true, .. } => Some(OutputStream::Stderr),
        StreamChoice { .. } => None,
    };
    let store = context.store().await?;
    let run_id = run.in_store(&store).await?;
    let mut follower = Follower::of(store, &run_id, 0, follow_option.into());
    let output = if raw { Output::Raw } else { Output::Safe };
    let mut stdout = Sanitizer::new(output);
    let mut stderr = Sanitizer::new(output);
    let mut exit = Exit::Success;
    while let Some(event) = follower.next().await? {
        let stored = match event {
            FollowEvent::Stored(stored) => stored,
            FollowEvent::Pruned { .. } => {
                exit = Exit::Failure;
                writeln!(
                    io::stderr(),
                    "sluice: the output of {run_id} has been pruned (store.event_retention)"
                )?;
                continue;
            }
            FollowEvent::Live(_) => continue,
        };
        let (stream, text) = match stored.event() {
            Ok(AgentEvent::Log { stream, text }) => (stream, text),
            Ok(AgentEvent::LogCut { stream, bytes }) => (stream, mark(bytes)),
            Ok(_) => continue,
            // Its text is not repeated: it may be anything.
            Err(_corrupt) => {
                exit = Exit::Failure;
                writeln!(io::stderr(), "sluice: event {} of {run_id} cannot be read", stored.seq)?;
                continue;
            }
        };
        if only.is_some_and(|only| only != stream) {
            continue;
        }
        match stream {
            OutputStream::Stdout => {
                let mut out = io::stdout();
                out.write_all(stdout.clean(&text).as_bytes())?;
                out.flush()?;
            }
            OutputStream::Stderr => io::stderr().write_all(stderr.clean(&text).as_bytes())?,
        }
    }
    Ok(exit)
}
