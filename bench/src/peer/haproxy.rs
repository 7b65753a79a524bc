//! Configures HAProxy, the reference for speed among HTTP proxies.

use std::process::Command;

use super::{Launch, Peer, Site};
use crate::load::Target;

pub(super) const PEER: Peer = Peer {
    name: "haproxy",
    lacks: "body, metering, outcome; request headers pass unless overwritten",
    control: None,
    launch: |site| {
        let config = site.configure(include_str!("../../peers/haproxy.cfg"))?;
        let mut command = Command::new("haproxy");
        command.arg("-db").arg("-f").arg(config);
        Ok(Launch { command: Some(command), ready: target(site), target: |site| Ok(target(site)) })
    },
};

fn target(site: &Site) -> Target {
    Target::Unix(site.dir.join("llm.sock"))
}
