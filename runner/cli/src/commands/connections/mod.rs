//! Implements `sluice connections`: credentials of accounts at providers, which host tools use.

mod add;
mod ls;
mod view;

use std::{
    io::{self, Write},
    sync::Arc,
};

use platform_core::connection::ConnectionId;
use platform_runtime::terminal;
use runner_connections::{ConnectionBroker, MIN_TEST_INTERVAL, SealingKeys, TestedBy};
use runner_store::AccountScope;
use serde_json::json;

use self::view::ConnectionView;
use super::{Context, Error, error::Unknown, exit::Exit, times::format_time};

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Add a connection, and read its secret from a file or standard input
    ///
    /// The secret is sealed with the first key of `connections.key_file`. No command shows it again.
    #[command(after_help = "\
Examples:
  sluice connections add --account acct-7 --provider github --file token.txt
  sluice connections add --account acct-7 --provider github --scope 'acme/*' < token.txt
  sluice connections add --account acct-7 --provider github --app-id 12 --installation-id 345 --file app.pem
  sluice connections add --account acct-7 --provider linear --kind oauth --replace --file refresh.txt

Exit codes: 2 the secret is malformed, or the account has such a connection already")]
    Add(add::Arguments),
    /// List connections, with their state and their last use
    #[command(after_help = "\
Examples:
  sluice connections ls --account acct-7
  sluice connections ls --json | jq -r '.connections[] | select(.state != \"active\").id'")]
    Ls(ls::Arguments),
    /// Use a connection: refresh it, or ask the provider whether it takes the credential
    ///
    /// A connection is refreshed at most once in 30 seconds. In between, the token that it gave is used.
    #[command(after_help = "\
Examples:
  sluice connections test cn-0123456789abcdef
  sluice connections test cn-0123456789abcdef --json | jq .expires_ms

Exit codes: 1 the credential is not taken, 75 the provider does not answer now")]
    Test(TestArguments),
    /// Remove a connection. Calls from now on do without it
    #[command(after_help = "Example:\n  sluice connections rm cn-0123456789abcdef")]
    Rm {
        /// Id of the connection
        connection: ConnectionId,
    },
    /// Print a new key for `connections.key_file`, which is shown only now
    #[command(after_help = "\
Examples:
  (umask 077; sluice connections keygen > connections.key)
  (umask 077; sluice connections keygen | cat - connections.key > new.key && mv new.key connections.key)")]
    Keygen,
    /// Seal all connections with the first key again, so that the others can be removed
    ///
    /// `sluice up` does the same when it starts.
    #[command(after_help = "\
Example:
  sluice connections reseal

Exit codes: 1 a connection could not be opened, or was being refreshed")]
    Reseal(ResealArguments),
}

#[derive(clap::Args)]
pub(super) struct TestArguments {
    /// Id of the connection
    connection: ConnectionId,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct ResealArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn connections(context: &Context, command: Command) -> Result<Exit, Error> {
    match command {
        Command::Add(arguments) => add::add(context, arguments).await,
        Command::Ls(arguments) => ls::ls(context, &arguments).await,
        Command::Test(arguments) => test(context, &arguments).await,
        Command::Rm { connection } => remove(context, &connection).await,
        Command::Keygen => {
            writeln!(io::stdout(), "{}", SealingKeys::generate().expose())?;
            Ok(Exit::Success)
        }
        Command::Reseal(arguments) => reseal(context, &arguments).await,
    }
}

/// Returns the broker of this process, with a store that may be changed.
async fn broker(context: &Context) -> Result<ConnectionBroker, Error> {
    let store = context.serving_store().await?;
    let broker = ConnectionBroker::of(&context.settings, store, Arc::default());
    broker.keys()?;
    Ok(broker)
}

async fn test(context: &Context, arguments: &TestArguments) -> Result<Exit, Error> {
    let TestArguments { connection, json } = arguments;
    let broker = broker(context).await?;
    let stored = context.store().await?.connection_within(connection, &AccountScope::All).await?;
    let tested = broker.test(&stored).await?;
    let mut out = io::stdout();
    if *json {
        let asked = json!({ "id": connection, "asked": tested.tested_by == TestedBy::Provider, "expires_ms": tested.expires });
        writeln!(out, "{asked}")?;
        return Ok(Exit::Success);
    }
    let place = &stored.place;
    let result = match tested.tested_by {
        TestedBy::Provider => format!("{} takes it", place.provider),
        TestedBy::Opening => "it opens; nothing says where it is used, so it was not sent".to_owned(),
        TestedBy::FormerRefresh => format!(
            "it opens; it was refreshed less than {} s ago, so {} was not asked again",
            MIN_TEST_INTERVAL.as_secs(),
            place.provider
        ),
    };
    let expires = tested
        .expires
        .map_or_else(|| "no end is known".to_owned(), |at| format!("until {}", format_time(at)));
    writeln!(out, "{connection}: {result}, {expires}")?;
    Ok(Exit::Success)
}

async fn remove(context: &Context, connection: &ConnectionId) -> Result<Exit, Error> {
    if context.serving_store().await?.remove_connection(connection).await? {
        return Ok(Exit::Success);
    }
    Err(Unknown(format!("there is no connection {connection}: `sluice connections ls` lists them")).into())
}

async fn reseal(context: &Context, arguments: &ResealArguments) -> Result<Exit, Error> {
    let done = broker(context).await?.reseal().await?;
    let mut out = io::stdout();
    if arguments.json {
        let shown = json!({ "resealed": done.resealed, "current": done.current, "skipped": done.skipped });
        writeln!(out, "{shown}")?;
    } else {
        writeln!(out, "{} sealed again, {} were", done.resealed, done.current)?;
        for id in &done.skipped {
            writeln!(io::stderr(), "{id} could not be sealed again: see the log, or try again")?;
        }
    }
    Ok(if done.skipped.is_empty() { Exit::Success } else { Exit::Failure })
}

/// Prints connections as JSON.
fn print_json(views: &[ConnectionView]) -> io::Result<()> {
    let text = json!({ "connections": views }).to_string();
    writeln!(io::stdout(), "{}", terminal::safe_json(&text))
}
