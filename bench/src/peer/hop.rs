//! Starts the hops of [`crate::hop`], each a process of `bench` itself.

use std::{path::PathBuf, process::Command};

use super::{Ability, Launch, PLAIN, Peer, Site};
use crate::load::Target;

/// The minimal cost of a hop.
pub(super) const RELAY: Peer = Peer {
    name: "relay",
    lacks: "everything: bytes only, and a connection to the upstream for each client",
    abilities: &[Ability::Threads],
    launch: |site| Ok(launch(site, "relay")),
    ..PLAIN
};

/// The cost of Sluicegate's system calls.
pub(super) const SKELETON: Peer = Peer {
    name: "skeleton",
    lacks: "everything: Sluicegate's system calls, nothing parsed",
    abilities: &[Ability::Threads],
    launch: |site| Ok(launch(site, "skeleton")),
    ..PLAIN
};

/// The cost of HTTP in Sluicegate's library.
pub(super) const HYPER_RELAY: Peer = Peer {
    name: "hyper-relay",
    lacks: "body, metering, outcome, log; request headers pass unless overwritten",
    launch: |site| Ok(launch(site, "hyper-relay")),
    ..PLAIN
};

fn launch(site: &Site, kind: &str) -> Launch {
    let mut command = Command::new(site.programs.join("bench"));
    command.arg("hop").arg(kind).arg(socket(site)).arg(site.address().to_string());
    command.arg(site.setup.upstream.to_string()).arg(&site.dir);
    command.arg("--threads").arg(site.setup.threads.to_string());
    if let Some(authority) = &site.setup.authority {
        command.arg("--authority").arg(authority);
    }
    Launch { command: Some(command), ready: target(site), target: |site| Ok(target(site)) }
}

fn socket(site: &Site) -> PathBuf {
    site.dir.join("hop.sock")
}

fn target(site: &Site) -> Target {
    Target::Unix(socket(site))
}
