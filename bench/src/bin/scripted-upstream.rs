//! `scripted-upstream`: serves until a signal stops it. The rest is in the library.

use std::{fs::OpenOptions, io, net::SocketAddr, path::PathBuf, process::ExitCode};

use bench::upstream::ScriptedUpstream;
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

/// A scripted, OpenAI-compatible model provider for tests and demonstrations.
///
/// The model's name says what it does: `fake`, `fake-gap100ms`, `fake-cut3`. `GET /v1/models` lists examples,
/// `GET /_ledger` shows every request it saw, credentials included.
#[derive(Parser)]
#[command(
    version,
    after_help = "\
Example:
  scripted-upstream --listen 127.0.0.1:18080 &
  curl -N http://127.0.0.1:18080/v1/chat/completions -d \\
    '{\"model\":\"fake-gap100ms\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}'"
)]
struct Arguments {
    /// Address to listen on; keep it on the loopback interface
    #[arg(long, default_value = "127.0.0.1:18080")]
    listen: SocketAddr,
    /// Also append each request to this file when it ends, as a line of JSON
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match serve(Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("scripted-upstream: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn serve(arguments: Arguments) -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let upstream = ScriptedUpstream::start_on(arguments.listen).await?;
    if let Some(path) = arguments.ledger {
        upstream.ledger().transcribe_to(OpenOptions::new().create(true).append(true).open(path)?);
    }
    say(&format!("serving {}", upstream.openai_base_url()));
    let ledger = upstream.ledger();
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        error = ledger.transcript_failed() => return Err(error),
    }
    upstream.stop().await;
    Ok(())
}

#[expect(clippy::print_stderr, reason = "this is what a person or a script waits for")]
fn say(line: &str) {
    eprintln!("{line}");
}
