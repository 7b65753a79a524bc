//! Configures HAProxy, the reference for speed among HTTP proxies: as it is, and with a check of run tokens by its own
//! converters.

use std::{io, process::Command};

use super::{Launch, Needs, PLAIN, Peer, Site};
use crate::load::Target;

pub(super) const PEER: Peer = Peer {
    name: "haproxy",
    lacks: "body, metering, outcome; request headers pass unless overwritten",
    needs: Needs::Package("/usr/sbin/haproxy"),
    launch: |site| launch(site, include_str!("../../peers/haproxy.cfg")),
    ..PLAIN
};

pub(super) const TOKEN: Peer = Peer {
    name: "haproxy-token",
    lacks: "body, metering, outcome; request headers pass unless overwritten; does check a token",
    launch: |site| launch(site, include_str!("../../peers/haproxy-token.cfg")),
    ..PEER
};

/// Settings of the upstream's line if it speaks TLS.
const TLS: &str = "ssl verify required ca-file @AUTHORITY@ sni str(localhost) verifyhost localhost";

fn launch(site: &Site, template: &str) -> io::Result<Launch> {
    let config = site.configure(template, TLS)?;
    let mut command = Command::new("/usr/sbin/haproxy");
    command.arg("-db").arg("-f").arg(config);
    Ok(Launch { command: Some(command), ready: target(site), target: |site| Ok(target(site)) })
}

fn target(site: &Site) -> Target {
    Target::Unix(site.dir.join("llm.sock"))
}
