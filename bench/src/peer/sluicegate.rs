//! Sluicegate: the real `sluice-proxy`, one thread as the others have one worker, one run registered.

use std::{
    fs, io,
    io::{Read, Write},
    os::unix::{fs::MetadataExt, net::UnixStream},
    process::Command,
};

use super::{Launch, Peer, Site};
use crate::{load::Target, measure::cores::pinned};

pub(super) const PEER: Peer = Peer {
    name: "sluicegate",
    lacks: "",
    control: Some(|site| Target::Unix(control(site))),
    launch: |site| launch(site, pinned(proxy(site))),
};

/// What was built before a change, copied to `sluice-proxy.before`; measured when it is named.
pub(super) const BEFORE: Peer = Peer {
    name: "before",
    lacks: "",
    control: Some(|site| Target::Unix(control(site))),
    launch: |site| launch(site, pinned(site.programs.join("sluice-proxy.before"))),
};

/// The same with its instructions counted.
pub(crate) const UNDER_CALLGRIND: Peer = Peer {
    name: "sluicegate-callgrind",
    lacks: "",
    control: None,
    launch: |site| {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--quiet"]);
        command.arg(format!("--callgrind-out-file={}/callgrind", site.dir.display())).arg(proxy(site));
        launch(site, command)
    },
};

fn launch(site: &Site, mut command: Command) -> io::Result<Launch> {
    let config = site.configure(include_str!("../../peers/sluicegate.toml"))?;
    fs::write(site.dir.join("key"), "sk-bench")?;
    command.arg("--config").arg(config).env_clear().env("SLUICE_LOG", "warn");
    Ok(Launch {
        command: Some(command),
        ready: Target::Unix(control(site)),
        target: |site| register(site, "bench"),
    })
}

fn proxy(site: &Site) -> std::path::PathBuf {
    site.programs.join("sluice-proxy")
}

fn control(site: &Site) -> std::path::PathBuf {
    site.dir.join("run/control/control.sock")
}

/// Registers a run for this very process, and returns its socket.
fn register(site: &Site, run: &str) -> io::Result<Target> {
    let mut stream = UnixStream::connect(control(site))?;
    stream.write_all(&request("PUT", run, &grant(run), "close"))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    let registered: serde_json::Value = serde_json::from_str(body)?;
    let path = registered["path"]
        .as_str()
        .ok_or_else(|| io::Error::other(format!("the proxy answered {answer}")))?;
    Ok(Target::Unix(std::path::Path::new(path).join("llm.sock")))
}

/// The request that opens a listener for `run`, for this very user.
pub(crate) fn registration(run: &str) -> Vec<u8> {
    request("PUT", run, &grant(run), "keep-alive")
}

/// The request that closes the listener of `run`.
pub(crate) fn closing(run: &str) -> Vec<u8> {
    request("DELETE", run, "", "keep-alive")
}

fn grant(run: &str) -> String {
    let uid = fs::metadata("/proc/self").map_or(0, |own| own.uid());
    format!(
        "{{\"grant\":{{\"run_id\":\"{run}\",\"account\":\"acct-bench\",\"graph\":\"sandbox:agent\",\"listener\":{{\"kind\":\"unix\",\"peer_uid\":{uid}}}}}}}"
    )
}

fn request(method: &str, run: &str, body: &str, connection: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} /v1/runs/{run} HTTP/1.1\r\nhost: control\r\nx-sluice-protocol: 1\r\nconnection: {connection}\r\n"
    );
    format!("{head}content-length: {length}\r\n\r\n{body}").into_bytes()
}
