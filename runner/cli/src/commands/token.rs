//! Implements `sluice token`: creates, inspects and revokes run tokens.
//!
//! Creation and inspection work without a proxy: any holder of the secrets can sign and verify. Tokens are read from
//! standard input, because every process on the host can read command lines.

use std::{
    io::{self, BufRead, Read, Write},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use platform_core::{
    id::RunId,
    limit::Millis,
    token::{Claims, RunToken, Secrets, SignedToken, TokenError, UnixSeconds},
};
use platform_runtime::{settings::token_secrets, trust::Trusted};
use runner_control_client::DataPlane;
use serde_json::{Value, json};

use super::{Context, Error, error::Misused, exit::Exit, run_reference::RunReference};

/// Longest input in bytes: more than any token has. The rest of a longer text is not read.
const MAX_INPUT: u64 = 4096;

/// Last second that RFC 3339 can write: 9999-12-31T23:59:59Z.
const LAST_WRITABLE: u64 = 253_402_300_799;

#[derive(clap::Subcommand)]
pub(super) enum Command {
    /// Create a run token and print it
    ///
    /// The token identifies its bearer as the run on shared listeners, until it expires or the run is closed. It is
    /// signed with the first secret of proxy.token_secrets_file, else with PROXY_SHARED_SECRET. This command and
    /// the proxy need the same secret. The upstream's key is not needed.
    #[command(after_help = "\
Examples:
  sluice token mint --run run-1 > token.txt
  OPENAI_API_KEY=$(sluice token mint --run run-1 --ttl 1h) ./app    an SDK sends it as its API key")]
    Mint {
        /// Run that the token identifies; it need not be open yet. Of a stored run, its last 4 digits are enough
        #[arg(long, value_name = "RUN")]
        run: RunReference,
        /// Attempt number of the run
        #[arg(long, default_value_t = 0, value_name = "N")]
        attempt: u32,
        /// Lifetime of the token
        #[arg(long, default_value = "24h", value_name = "DURATION")]
        ttl: Millis,
    },
    /// Show the contents of a run token, and whether it is valid here and now
    ///
    /// Checks the token with the secrets that `mint` would use. It does not check whether the run is open: only the
    /// proxy knows that. The exit code is 0 if the token is valid, 1 if not.
    #[command(after_help = "\
Examples:
  sluice token inspect < token.txt
  sluice token mint --run run-1 | sluice token inspect --json | jq .expires_in_seconds")]
    Inspect {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Source of the token: `-`, which is also the default, is standard input
        #[arg(value_name = "-")]
        source: Option<String>,
    },
    /// Revoke all tokens of a run permanently
    ///
    /// The proxy remembers the revocation across restarts. It cuts calls in flight that were identified by a token.
    /// The run itself stays open, and so do its calls by socket, trace id or slot.
    #[command(after_help = "Example:\n  sluice token revoke --run run-1")]
    Revoke {
        /// Revoke the tokens of this run. Of a stored run, its last 4 digits are enough
        #[arg(long, value_name = "RUN")]
        run: RunReference,
    },
    /// Make the proxy read proxy.token_secrets_file again; the same as `sluice reload`
    ///
    /// To rotate secrets, put the new secret first, keep the old one below, and reload. Remove the old one when the
    /// last token signed with it has expired. If the file cannot be used, the previous secrets stay.
    Reload,
}

pub(super) async fn token(context: &Context, command: Command) -> Result<Exit, Error> {
    let settings = &context.settings.proxy;
    let data_plane = DataPlane::at(&settings.control_socket());
    let secrets = || {
        token_secrets::read(
            settings.token_secrets_file.as_deref(),
            context.token_secret.as_ref(),
            &Trusted::own(),
        )
    };
    let now = UnixSeconds(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs());
    match command {
        Command::Mint { run, attempt, ttl } => {
            let run_id = named_run(context, &run).await?;
            mint(&secrets()?, &RunToken { run_id, attempt, expiry: expiry_after(now, ttl)? })
        }
        Command::Inspect { json, source } => {
            let text = read_token(source)?;
            let secrets = secrets()?;
            let inspection = inspect(text.trim(), &secrets, now, settings.token_leeway.duration());
            let mut out = io::stdout();
            if json {
                writeln!(out, "{}", inspection.json())?;
            } else {
                inspection.print(&mut out)?;
            }
            Ok(if inspection.failure.is_none() { Exit::Success } else { Exit::Failure })
        }
        Command::Revoke { run } => {
            let run_id = named_run(context, &run).await?;
            if !data_plane.revoke(&run_id).await?.known {
                writeln!(
                    io::stderr(),
                    "sluice: warning: the proxy knows no run {run_id}, open, configured or closed: from now on no token of this id holds, also of a run that is opened later; was another run meant?"
                )?;
            }
            Ok(Exit::Success)
        }
        Command::Reload => {
            data_plane.reload().await?;
            Ok(Exit::Success)
        }
    }
}

/// Returns the run that the tokens are for. Says on stderr which one a part of an id has named, because nothing else
/// that the command prints does.
async fn named_run(context: &Context, run: &RunReference) -> Result<RunId, Error> {
    // Any other id may be of a run that is not stored yet: it must not be taken for a part of another one's.
    let run_id = match run.whole_unless_digits() {
        Some(run_id) => return Ok(run_id),
        None => run.in_store(&context.store().await?).await?,
    };
    if run_id.as_str() != run.to_string() {
        writeln!(io::stderr(), "sluice: {run} is the end of {run_id}, which is taken")?;
    }
    Ok(run_id)
}

fn mint(secrets: &Secrets, token: &RunToken) -> Result<Exit, Error> {
    let Some(secret) = secrets.minting() else {
        return Err(Error::from(Misused(
            "there is no secret to sign with: name a file in proxy.token_secrets_file, or set PROXY_SHARED_SECRET".to_owned(),
        )));
    };
    writeln!(io::stdout(), "{}", token.mint(secret).expose())?;
    Ok(Exit::Success)
}

/// Returns the expiry of a token that is created `now` and lives for `ttl`.
fn expiry_after(now: UnixSeconds, ttl: Millis) -> Result<UnixSeconds, Misused> {
    let seconds = ttl.duration().as_secs();
    let expiry = now.0.saturating_add(seconds);
    if seconds == 0 || expiry > LAST_WRITABLE {
        return Err(Misused(format!(
            "--ttl {ttl}: a token holds for at least a second, and not beyond the year 9999"
        )));
    }
    Ok(UnixSeconds(expiry))
}

/// Reads one line of standard input. On a terminal, Return ends it.
fn read_token(source: Option<String>) -> Result<String, Error> {
    if source.is_some_and(|source| source != "-") {
        return Err(Error::from(Misused(
            "a token is read from standard input only: arguments can be seen by every process on this host"
                .to_owned(),
        )));
    }
    let mut line = Vec::new();
    io::stdin().lock().take(MAX_INPUT).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// Result of the inspection of a text that may be a token.
struct Inspection<'t> {
    /// Claims of the token, if the text has the form of a token.
    claims: Option<Claims<'t>>,
    /// Name of the secret that signed the token.
    secret: Option<String>,
    failure: Option<TokenError>,
    now: UnixSeconds,
    /// True if secrets are configured. Without a secret, no token can be verified.
    has_secrets: bool,
}

fn inspect<'t>(text: &'t str, secrets: &Secrets, now: UnixSeconds, leeway: Duration) -> Inspection<'t> {
    let parsed = SignedToken::parse(text);
    let verified =
        parsed.map_err(TokenError::from).and_then(|token| token.verify(secrets, now, leeway).map(drop));
    Inspection {
        claims: parsed.as_ref().ok().map(SignedToken::claims),
        secret: parsed.ok().and_then(|token| token.signer(secrets)).map(ToString::to_string),
        failure: verified.err(),
        now,
        has_secrets: secrets.minting().is_some(),
    }
}

impl Inspection<'_> {
    fn json(&self) -> Value {
        let claims = self.claims.as_ref();
        let expiry = claims.map(|claims| claims.expiry().0);
        json!({
            "ok": self.failure.is_none(),
            "failure": self.failure.map(TokenError::code),
            "run": claims.map(Claims::run),
            "attempt": claims.map(Claims::attempt),
            "expiry": expiry,
            "expires_in_seconds": expiry.map(|expiry| i128::from(expiry) - i128::from(self.now.0)),
            "secret": self.secret,
        })
    }

    const fn unknown_signer(&self) -> &'static str {
        if self.has_secrets { "none of those in use here" } else { "unknown: none is configured here" }
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        if let Some(claims) = &self.claims {
            writeln!(out, "run      {}", claims.run())?;
            writeln!(out, "attempt  {}", claims.attempt())?;
            writeln!(
                out,
                "expiry   {}, {}",
                format_date(claims.expiry()),
                relative_time(claims.expiry(), self.now)
            )?;
            writeln!(out, "secret   {}", self.secret.as_deref().unwrap_or(self.unknown_signer()))?;
        }
        match self.failure {
            None => writeln!(out, "holds    yes"),
            Some(failure @ TokenError::Malformed(why)) => {
                writeln!(out, "holds    no: {failure}, {why} ({})", failure.code())
            }
            Some(failure) => writeln!(out, "holds    no: {failure} ({})", failure.code()),
        }
    }
}

fn format_date(time: UnixSeconds) -> String {
    if time.0 > LAST_WRITABLE {
        return format!("{} seconds after 1970", time.0);
    }
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(time.0)).to_string()
}

fn relative_time(time: UnixSeconds, now: UnixSeconds) -> String {
    let span = |seconds| humantime::format_duration(Duration::from_secs(seconds));
    match time.0.checked_sub(now.0) {
        Some(left) => format!("in {}", span(left)),
        None => format!("{} ago", span(now.0 - time.0)),
    }
}
