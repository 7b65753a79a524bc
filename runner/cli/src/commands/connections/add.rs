//! Implements `sluice connections add`.

use std::{
    io::{self, IsTerminal as _, Read as _, Write},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use platform_core::{
    connection::{ConnectionKind, ConnectionProvider, ConnectionScope},
    id::AccountId,
    invalid::InvalidValue,
    limit::ByteSize,
    secret::Secret,
};
use platform_runtime::{file, trust::Trusted};
use runner_connections::WantedConnection;
use runner_store::{AtSamePlace, ConnectionPlace, UnixMillis};

use super::{ConnectionView, Context, Error, Exit, broker};
use crate::commands::error::Misused;

/// Largest secret.
const MAX_SECRET: ByteSize = ByteSize::kib(32);

#[derive(clap::Args)]
pub(in crate::commands) struct Arguments {
    /// Account that the credential belongs to
    #[arg(long, value_name = "ACCOUNT")]
    account: AccountId,
    /// Provider of the credential: `github`, or a name that tools of yours use
    #[arg(long, value_name = "PROVIDER")]
    provider: ConnectionProvider,
    /// Scope for which it is used, such as `acme/app`, or a beginning before `*`
    #[arg(long, default_value_t = ConnectionScope::everything(), value_name = "SCOPE")]
    scope: ConnectionScope,
    /// Kind of the secret [default: token, or github-app with --app-id]
    #[arg(long, value_name = "KIND")]
    kind: Option<KindName>,
    /// Number of the GitHub App; its private key is the secret
    #[arg(long, requires = "installation_id", value_name = "N")]
    app_id: Option<u64>,
    /// Number of the App's installation
    #[arg(long, requires = "app_id", value_name = "N")]
    installation_id: Option<u64>,
    /// File of the secret, closed to other users [default: standard input]
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// End of a token, such as `2027-01-31T00:00:00Z`
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    expires: Option<UnixMillis>,
    /// Replace the connection of the account at the same provider for the same scope
    #[arg(long)]
    replace: bool,
    /// Print JSON instead of the id alone
    #[arg(long)]
    json: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum KindName {
    Token,
    #[value(name = "github-app")]
    GitHubApp,
    #[value(name = "oauth")]
    OAuth,
}

fn parse_time(text: &str) -> Result<UnixMillis, InvalidValue> {
    let time: SystemTime = humantime::parse_rfc3339_weak(text)
        .map_err(|error| format!("no time such as 2027-01-31T00:00:00Z: {error}"))?;
    let since = time.duration_since(UNIX_EPOCH).map_err(InvalidValue::of)?;
    i64::try_from(since.as_millis()).map(UnixMillis).map_err(InvalidValue::of)
}

pub(super) async fn add(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let kind = arguments.kind()?;
    let Arguments { account, provider, scope, file, expires, replace, json, .. } = arguments;
    if expires.is_some() && kind != ConnectionKind::Token {
        return Err(
            Misused("--expires is for tokens: the others say themselves when they end".to_owned()).into()
        );
    }
    let broker = broker(context).await?;
    let secret = read_secret(file.as_deref())?;
    let place = ConnectionPlace { account, provider, scope };
    let wanted = WantedConnection { place, kind, secret, expires };
    let at_same_place = if replace { AtSamePlace::Replace } else { AtSamePlace::Keep };
    let view = ConnectionView::of(broker.add(wanted, at_same_place).await?);
    let mut out = io::stdout();
    if json {
        writeln!(out, "{}", serde_json::to_string(&view)?)?;
    } else {
        writeln!(out, "{}", view.id)?;
    }
    Ok(Exit::Success)
}

impl Arguments {
    fn kind(&self) -> Result<ConnectionKind, Error> {
        let misused = |text: &str| Err(Misused(text.to_owned()).into());
        match (self.kind, self.app_id.zip(self.installation_id)) {
            (None | Some(KindName::GitHubApp), Some((app_id, installation_id))) => {
                Ok(ConnectionKind::GitHubApp { app_id, installation_id })
            }
            (Some(KindName::GitHubApp), None) => {
                misused("a GitHub App needs its numbers: --app-id and --installation-id")
            }
            (Some(_), Some(_)) => misused("--app-id is for the kind github-app"),
            (None | Some(KindName::Token), None) => Ok(ConnectionKind::Token),
            (Some(KindName::OAuth), None) => Ok(ConnectionKind::OAuth),
        }
    }
}

/// Reads the secret from a file, or from standard input. Never from the command line, which other users see.
fn read_secret(path: Option<&Path>) -> Result<Secret, Error> {
    if let Some(path) = path {
        let read = file::secret(path, MAX_SECRET, &Trusted::own());
        return read.map_err(|error| Misused(format!("--file {}: {error}", path.display())).into());
    }
    if io::stdin().is_terminal() {
        writeln!(io::stderr(), "reading the secret from standard input, until Ctrl-D")?;
    }
    let mut text = String::with_capacity(MAX_SECRET.as_usize() + 1);
    let read = io::stdin().lock().take(MAX_SECRET.0 + 1).read_to_string(&mut text);
    let secret = Secret::new(text);
    read?;
    if secret.expose().len() > MAX_SECRET.as_usize() {
        return Err(Misused("standard input has more than 32 KiB: it is not a secret".to_owned()).into());
    }
    Ok(secret)
}
