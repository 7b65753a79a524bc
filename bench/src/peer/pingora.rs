//! Configures the proxy of `bench/peers/pingora`, which does what nginx-tuned does with Cloudflare's library.

use std::{io, process::Command};

use super::{Launch, Needs, PLAIN, Peer, Site, needs};
use crate::load::Target;

pub(super) const PEER: Peer = Peer {
    name: "pingora",
    lacks: "body, metering, outcome; request headers pass unless overwritten; 64 KB of log are lost with the process",
    needs: Needs::Built("pingora"),
    launch,
    ..PLAIN
};

/// Setting of the upstream if it speaks TLS.
const TLS: &str = "ca_file: \"@AUTHORITY@\"";

fn launch(site: &Site) -> io::Result<Launch> {
    let config = site.configure(include_str!("../../peers/pingora.yaml"), TLS)?;
    let mut command = Command::new(needs::built(&site.programs, "pingora"));
    command.arg("--conf").arg(config).arg("--socket").arg(site.dir.join("llm.sock"));
    command.arg("--address").arg(site.address().to_string());
    command.arg("--upstream").arg(site.setup.upstream.to_string());
    command.arg("--log").arg(site.dir.join("audit.log"));
    Ok(Launch { command: Some(command), ready: target(site), target: |site| Ok(target(site)) })
}

fn target(site: &Site) -> Target {
    Target::Unix(site.dir.join("llm.sock"))
}
