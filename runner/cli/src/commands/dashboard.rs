//! Implements `sluice dashboard`: prints a link with which a person's browser signs in once.

use std::{
    io::{self, Write},
    net::SocketAddr,
    process::Stdio,
    time::Duration,
};

use platform_core::{
    code::{Code, Coded},
    id::PrincipalId,
};
use platform_runtime::{
    file, random,
    settings::{self, WebOrigin},
    terminal,
};
use runner_model::principal::{PrincipalRole, SignInCode};
use runner_store::{MAX_SIGN_IN_LINK_AGE, Principal};
use serde_json::json;
use tokio::{net::TcpStream, process::Command, time::timeout};

use super::{
    Context, Error,
    error::{Misused, Unknown},
    exit::Exit,
};

/// Longest wait for the API.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Program that shows an address in the person's browser.
const OPENER: &str = "xdg-open";
/// Variables by which that program finds the desktop.
const DESKTOP: [&str; 8] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "PATH",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CURRENT_DESKTOP",
    "XDG_RUNTIME_DIR",
];
/// File that leads a browser to the last link, below `sandbox.state_dir`.
const PAGE: &str = "sign-in.html";
const PAGE_MODE: u32 = 0o600;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Principal that the browser acts for [default: the only operator or admin]
    #[arg(long, value_name = "PRINCIPAL")]
    principal: Option<PrincipalId>,
    /// Show the page in the browser of this desktop, with xdg-open
    #[arg(long)]
    open: bool,
    /// Print JSON instead of the link alone
    #[arg(long)]
    json: bool,
}

/// Reason why the dashboard cannot be reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum DashboardError {
    /// The configuration has no API.
    #[error(
        "the dashboard is part of the HTTP API, which is off: set api.listen, such as \"127.0.0.1:4180\", and restart `sluice up`"
    )]
    Off,
    /// The configuration does not say where the API listens.
    #[error(
        "api.listen has port 0, so only `sluice up` knows the port: set api.listen to a port, or use `--set api.listen=ADDRESS:PORT` with the address that it printed"
    )]
    UnknownPort,
    /// Nothing accepts connections there.
    #[error("nothing answers at {address}, where api.listen says that the dashboard is: start `sluice up`")]
    NotRunning {
        /// Address of the API.
        address: SocketAddr,
        /// Error of the connection.
        #[source]
        source: io::Error,
    },
}

impl Coded for DashboardError {
    fn code(&self) -> Code {
        match self {
            Self::Off | Self::UnknownPort => Code::ApiOff,
            Self::NotRunning { .. } => Code::ApiUnavailable,
        }
    }
}

pub(super) async fn dashboard(context: &Context, arguments: Arguments) -> Result<Exit, Error> {
    let origin = reach(&context.settings.api).await?;
    let store = context.serving_store().await?;
    let principal = choose(store.principals().await?, arguments.principal.as_ref())?;
    let code = SignInCode::from_random([random::bits(), random::bits()]);
    store.add_sign_in_link(&principal.key_id, &code.hash()).await?;
    let link = format!("{origin}/signin#code={}", code.expose());
    let exit = print(&arguments, &principal, &link)?;
    if arguments.open {
        open(context, &link)?;
    }
    Ok(exit)
}

/// Shows the link in a browser. Arguments of programs are open to all users of the host, so the program gets a file that
/// leads there, which only this user reads.
fn open(context: &Context, link: &str) -> Result<(), Error> {
    let path = context.settings.sandbox.state_dir.join(PAGE);
    let page = format!(
        "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={link}\"><title>Sluicegate</title>\n"
    );
    file::replace(&path, PAGE_MODE, page.as_bytes())?;
    let mut opener = Command::new(OPENER);
    opener.arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).env_clear();
    let environment = &context.sources.environment;
    let known = DESKTOP.iter().filter_map(|name| Some((name, environment.get(name)?)));
    opener.envs(known);
    if let Err(error) = opener.spawn() {
        writeln!(io::stderr(), "{OPENER} cannot be started ({error}): open the link yourself")?;
    }
    Ok(())
}

/// Returns the origin of the pages, if the API answers.
async fn reach(settings: &settings::Api) -> Result<WebOrigin, DashboardError> {
    let address = settings.listen.ok_or(DashboardError::Off)?;
    if address.port() == 0 {
        return Err(DashboardError::UnknownPort);
    }
    let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await;
    let connected = connected.unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()));
    connected.map_err(|source| DashboardError::NotRunning { address, source })?;
    let own = settings.origins.as_ref().and_then(|origins| origins.first()).cloned();
    Ok(own.unwrap_or_else(|| WebOrigin::of(settings.scheme(), address)))
}

/// Returns the principal that a browser shall act for.
fn choose(principals: Vec<Principal>, named: Option<&PrincipalId>) -> Result<Principal, Error> {
    let mut active: Vec<_> = principals.into_iter().filter(|principal| principal.revoked.is_none()).collect();
    if let Some(id) = named {
        let at = active.iter().position(|principal| principal.id == *id);
        let unknown = || {
            Unknown(format!(
                "there is no principal {id}, or it was revoked: `sluice principals ls` lists all"
            ))
        };
        return Ok(active.swap_remove(at.ok_or_else(unknown)?));
    }
    active.retain(|principal| principal.role >= PrincipalRole::Operator);
    match active.len() {
        1 => Ok(active.swap_remove(0)),
        0 => Err(Misused(
            "no principal is operator or admin: `sluice principals add NAME --account ACCOUNT --role operator` adds one, \
             or name another with --principal (`sluice principals ls`)"
                .to_owned(),
        )
        .into()),
        _ => {
            let ids: Vec<_> = active.iter().map(|principal| principal.id.to_string()).collect();
            let problem = format!("several principals may see everything: name one with --principal: {}", ids.join(", "));
            Err(Misused(problem).into())
        }
    }
}

/// Prints the link. Says on stderr which principal it signs in, so that a script can read stdout.
fn print(arguments: &Arguments, principal: &Principal, link: &str) -> Result<Exit, Error> {
    let mut out = io::stdout();
    let seconds = MAX_SIGN_IN_LINK_AGE.as_secs();
    if arguments.json {
        let answer = json!({ "link": link, "principal": principal.id, "role": principal.role, "expiresSeconds": seconds });
        writeln!(out, "{}", terminal::safe_json(&answer.to_string()))?;
        return Ok(Exit::Success);
    }
    writeln!(out, "{link}")?;
    writeln!(
        io::stderr(),
        "the link signs in once, within {seconds} s, as {} ({} of account {})",
        principal.id,
        principal.role,
        principal.account
    )?;
    Ok(Exit::Success)
}
