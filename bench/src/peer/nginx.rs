//! Configures nginx as the predecessor's template first was, and as its operators would tune it today. Two further forms
//! are tuned as well: with a log that a kill does not cut, and with a token check in Lua. That check was specified and
//! never built.

use std::{io, process::Command};

use super::{Launch, Needs, PLAIN, Peer, Site};
use crate::load::Target;

pub(super) const STATIC: Peer = Peer {
    name: "nginx-static",
    lacks: "body, metering, outcome; request headers pass unless overwritten",
    needs: Needs::Package("/usr/sbin/nginx"),
    launch: |site| launch(site, include_str!("../../peers/nginx-static.conf")),
    ..PLAIN
};

pub(super) const TUNED: Peer = Peer {
    name: "nginx-tuned",
    lacks: "body, metering, outcome; request headers pass unless overwritten; 64 KB of log are lost with the process",
    launch: |site| launch(site, TUNED_CONFIGURATION),
    ..STATIC
};

/// Each request's line is in the kernel's hands before the next request, as Sluicegate's records are.
pub(super) const UNBUFFERED: Peer = Peer {
    name: "nginx-unbuffered",
    launch: |site| launch(site, &TUNED_CONFIGURATION.replace(" buffer=64k flush=1s", "")),
    ..STATIC
};

pub(super) const LUA: Peer = Peer {
    name: "nginx-lua",
    lacks: "body, metering, outcome; request headers pass unless overwritten; 64 KB of log are lost with the process; \
            does check a token",
    needs: Needs::Package("/usr/lib/nginx/modules/ngx_http_lua_module.so"),
    launch: |site| launch(site, include_str!("../../peers/nginx-lua.conf")),
    ..STATIC
};

const TUNED_CONFIGURATION: &str = include_str!("../../peers/nginx-tuned.conf");

/// Settings of the location if the upstream speaks TLS.
const TLS: &str = "proxy_ssl_verify on; proxy_ssl_trusted_certificate @AUTHORITY@; proxy_ssl_name localhost; \
                   proxy_ssl_server_name on; proxy_ssl_protocols TLSv1.2 TLSv1.3;";

fn launch(site: &Site, template: &str) -> io::Result<Launch> {
    let config = site.configure(template, TLS)?;
    let mut command = Command::new("/usr/sbin/nginx");
    command.arg("-p").arg(&site.dir).arg("-c").arg(config).arg("-e").arg(site.dir.join("error.log"));
    Ok(Launch { command: Some(command), ready: target(site), target: |site| Ok(target(site)) })
}

fn target(site: &Site) -> Target {
    Target::Unix(site.dir.join("llm.sock"))
}
