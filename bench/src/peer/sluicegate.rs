//! Starts Sluicegate: the real `sluice-proxy` with one thread, as the other peers have one worker. One run is
//! registered, on its own socket or by its token.

use std::{
    fs, io,
    io::{Read, Write},
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use super::{Ability, Launch, PLAIN, Peer, Site};
use crate::{
    load::Target,
    request::{MODELS, TOKEN_SECRET, tools},
};

pub(crate) const PEER: Peer = Peer {
    name: "sluicegate",
    control: Some(|site| Target::Unix(control(site))),
    abilities: &[Ability::Tls, Ability::Pool],
    open_run: Some(|site, run| open(site, run, &account(run))),
    launch: |site| launch(site, Command::new(proxy(site))),
    ..PLAIN
};

/// Sluicegate with a run token on a TCP listener.
pub(super) const BY_TOKEN: Peer = Peer {
    name: "sluicegate-token",
    open_run: Some(open_shared),
    launch: |site| launch_by_token(site, Command::new(proxy(site))),
    ..PLAIN
};

/// Sluicegate with every in-flight mark and every record on disk before the call continues; measured only when named.
pub(super) const ON_DISK: Peer = Peer {
    name: "sluicegate-disk",
    launch: |site| {
        let settings =
            concat!(include_str!("../../peers/sluicegate.toml"), "[journal]\ndurability = \"disk\"\n");
        start(site, Command::new(proxy(site)), (&site.configure(settings, TLS)?, open_own_socket))
    },
    ..PEER
};

/// Another build of Sluicegate, measured if a run is given one.
pub(super) const BEFORE: Peer =
    Peer { name: "sluicegate-before", launch: |site| launch(site, Command::new(&site.setup.before)), ..PEER };

/// The same with a run token on a TCP listener.
pub(super) const BEFORE_BY_TOKEN: Peer = Peer {
    name: "sluicegate-token-before",
    launch: |site| launch_by_token(site, Command::new(&site.setup.before)),
    ..BY_TOKEN
};

/// Sluicegate with its instructions counted.
pub(crate) const UNDER_CALLGRIND: Peer = Peer {
    name: "sluicegate-callgrind",
    launch: |site| {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--quiet", "--collect-bus=yes", "--collect-systime=yes"]);
        command.arg(format!("--callgrind-out-file={}/callgrind", site.dir.display())).arg(proxy(site));
        launch(site, command)
    },
    ..PLAIN
};

/// Setting of the upstream if it speaks TLS.
const TLS: &str = "ca_file = \"@AUTHORITY@\"";

/// Amount that no run and no account reaches, so that every budget is kept and none refuses a call.
const PLENTY: u64 = 1 << 50;

fn launch(site: &Site, command: Command) -> io::Result<Launch> {
    let config = site.configure(include_str!("../../peers/sluicegate.toml"), TLS)?;
    start(site, command, (&config, open_own_socket))
}

fn launch_by_token(site: &Site, command: Command) -> io::Result<Launch> {
    private(&site.dir.join("tokens"), &format!("bench:{TOKEN_SECRET}\n"))?;
    let config = site.configure(include_str!("../../peers/sluicegate-token.toml"), TLS)?;
    start(site, command, (&config, |site| open_shared(site, "bench")))
}

type OpenTarget = fn(&Site) -> io::Result<Target>;

fn start(site: &Site, mut command: Command, (config, target): (&Path, OpenTarget)) -> io::Result<Launch> {
    private(&site.dir.join("key"), "sk-bench")?;
    command.arg("--config").arg(config).env_clear().env("SLUICE_LOG", "warn");
    Ok(Launch { command: Some(command), ready: Target::Unix(control(site)), target })
}

/// Writes a file that only its owner can read: the proxy accepts no other secrets.
fn private(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

fn proxy(site: &Site) -> PathBuf {
    site.programs.join("sluice-proxy")
}

fn control(site: &Site) -> PathBuf {
    site.run.join("control/control.sock")
}

/// Opens the run `bench` for this process, and returns its socket.
fn open_own_socket(site: &Site) -> io::Result<Target> {
    open(site, "bench", "acct-bench")
}

/// Opens a run of `account` for this process, and returns its socket.
pub(crate) fn open(site: &Site, run: &str, account: &str) -> io::Result<Target> {
    let grant = full_grant(run, account, &own_listener());
    let registered = send(site, &request("PUT", &run_path(run), &grant, "close"))?;
    keep_budgets(site, account)?;
    let path = registered["path"].as_str().ok_or_else(|| unexpected(&registered))?;
    Ok(Target::Unix(Path::new(path).join("llm.sock")))
}

/// Returns the account that pays for `run`.
fn account(run: &str) -> String {
    format!("acct-{run}")
}

/// Limits an account in every way, beyond what it uses.
fn keep_budgets(site: &Site, account: &str) -> io::Result<()> {
    budget(site, account, &budgets())
}

fn budgets() -> Value {
    json!({
        "requests": PLENTY,
        "requests_per_minute": 1u64 << 30,
        "calls_in_flight": 1u64 << 20,
        "input_tokens": PLENTY,
        "output_tokens": PLENTY,
        "cost_nanodollars": PLENTY,
    })
}

/// Limits an account to `calls_in_flight` calls at a time, or removes the limit.
pub(crate) fn limit(site: &Site, account: &str, calls_in_flight: Option<u64>) -> io::Result<()> {
    budget(site, account, &json!({ "calls_in_flight": calls_in_flight }))
}

fn budget(site: &Site, account: &str, budget: &Value) -> io::Result<()> {
    let body = json!({ "account": account, "budget": budget }).to_string();
    let answer = send(site, &request("PUT", "/v1/accounts", &body, "close"))?;
    if answer["account"] == account { Ok(()) } else { Err(unexpected(&answer)) }
}

/// Opens `run` for bearers of its tokens, and returns the shared listener.
fn open_shared(site: &Site, run: &str) -> io::Result<Target> {
    let grant = full_grant(run, &account(run), &json!({ "kind": "shared" }));
    let registered = send(site, &request("PUT", &run_path(run), &grant, "close"))?;
    keep_budgets(site, &account(run))?;
    let address = registered["shared"].as_str().and_then(|address| address.parse().ok());
    Ok(Target::Tcp(address.ok_or_else(|| unexpected(&registered))?))
}

fn send(site: &Site, request: &[u8]) -> io::Result<Value> {
    let mut stream = UnixStream::connect(control(site))?;
    stream.write_all(request)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    Ok(serde_json::from_str(body)?)
}

fn unexpected(answer: &Value) -> io::Error {
    io::Error::other(format!("the proxy answered {answer}"))
}

/// Returns the request that opens a listener for `run`, for this process's user, without lists and budgets.
pub(crate) fn registration(run: &str) -> Vec<u8> {
    let grant = json!({ "grant": grant(run, "acct-bench", &own_listener()) }).to_string();
    request("PUT", &run_path(run), &grant, "keep-alive")
}

/// Returns the request that closes the listener of `run`.
pub(crate) fn closing(run: &str) -> Vec<u8> {
    request("DELETE", &run_path(run), "", "keep-alive")
}

/// Returns the description of a listener for this process's user.
fn own_listener() -> Value {
    let uid = fs::metadata("/proc/self").map_or(0, |own| own.uid());
    json!({ "kind": "unix", "peer_uid": uid })
}

fn run_path(run: &str) -> String {
    format!("/v1/runs/{run}")
}

fn grant(run: &str, account: &str, listener: &Value) -> Value {
    json!({ "run_id": run, "account": account, "graph": "sandbox:agent", "listener": listener })
}

/// Returns a grant with everything that a grant can restrict: models, tools and budgets.
fn full_grant(run: &str, account: &str, listener: &Value) -> String {
    let mut grant = grant(run, account, listener);
    grant["models"] = json!(MODELS);
    grant["tools"] = json!(tools());
    grant["budget"] = budgets();
    json!({ "grant": grant }).to_string()
}

fn request(method: &str, path: &str, body: &str, connection: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: control\r\nx-sluice-protocol: 1\r\nconnection: {connection}\r\n"
    );
    format!("{head}content-length: {length}\r\n\r\n{body}").into_bytes()
}
