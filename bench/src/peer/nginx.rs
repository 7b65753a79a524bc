//! Configures nginx in three forms: as the predecessor's template first was, as its operators would tune it today, and
//! with a token check in Lua. That check was specified and never built.

use std::{io, process::Command};

use super::{Launch, Peer, Site};
use crate::load::Target;

pub(super) const STATIC: Peer = Peer {
    name: "nginx-static",
    lacks: "body, metering, outcome; request headers pass unless overwritten",
    control: None,
    launch: |site| launch(site, include_str!("../../peers/nginx-static.conf")),
};

pub(super) const TUNED: Peer = Peer {
    name: "nginx-tuned",
    lacks: "body, metering, outcome; request headers pass unless overwritten",
    control: None,
    launch: |site| launch(site, include_str!("../../peers/nginx-tuned.conf")),
};

pub(super) const LUA: Peer = Peer {
    name: "nginx-lua",
    lacks: "body, metering, outcome; request headers pass unless overwritten; does check a token",
    control: None,
    launch: |site| launch(site, include_str!("../../peers/nginx-lua.conf")),
};

fn launch(site: &Site, template: &str) -> io::Result<Launch> {
    let config = site.configure(template)?;
    let mut command = Command::new("nginx");
    command.arg("-p").arg(&site.dir).arg("-c").arg(config).arg("-e").arg(site.dir.join("error.log"));
    Ok(Launch { command: Some(command), ready: target(site), target: |site| Ok(target(site)) })
}

fn target(site: &Site) -> Target {
    Target::Unix(site.dir.join("llm.sock"))
}
