//! Sluicegate: the real `sluice-proxy`, one thread as the others have one worker, one run registered.

use std::{
    fs, io,
    io::{Read, Write},
    os::unix::{fs::MetadataExt, net::UnixStream},
    process::Command,
};

use super::{Launch, Peer, Site};
use crate::load::Target;

pub(super) const PEER: Peer = Peer {
    name: "sluicegate",
    lacks: "",
    launch: |site| {
        let config = site.configure(include_str!("../../peers/sluicegate.toml"))?;
        fs::write(site.dir.join("key"), "sk-bench")?;
        let mut command = Command::new(site.programs.join("sluice-proxy"));
        command.arg("--config").arg(config).env_clear().env("SLUICE_LOG", "warn");
        Ok(Launch {
            command: Some(command),
            ready: Target::Unix(control(site)),
            target: |site| register(site, "bench"),
        })
    },
};

fn control(site: &Site) -> std::path::PathBuf {
    site.dir.join("run/control/control.sock")
}

/// Registers a run for this very process, and returns its socket.
pub(crate) fn register(site: &Site, run: &str) -> io::Result<Target> {
    let uid = fs::metadata("/proc/self")?.uid();
    let grant = format!(
        "{{\"grant\":{{\"run_id\":\"{run}\",\"account\":\"acct-bench\",\"graph\":\"sandbox:agent\",\"listener\":{{\"kind\":\"unix\",\"peer_uid\":{uid}}}}}}}"
    );
    let answer = ask(site, "PUT", &format!("/v1/runs/{run}"), &grant)?;
    let registered: serde_json::Value = serde_json::from_str(&answer)?;
    let path = registered["path"]
        .as_str()
        .ok_or_else(|| io::Error::other(format!("the proxy answered {answer}")))?;
    Ok(Target::Unix(std::path::Path::new(path).join("llm.sock")))
}

/// Asks the control socket, and returns the answer's body.
pub(crate) fn ask(site: &Site, method: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(control(site))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: control\r\nx-sluice-protocol: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}
