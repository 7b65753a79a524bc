//! Configures Envoy as an operator would tune it: as many workers as the others, and no features that they lack.

use std::{fs, io, process::Command};

use super::{Launch, Needs, PLAIN, Peer, Site, needs};
use crate::load::Target;

pub(super) const PEER: Peer = Peer {
    name: "envoy",
    lacks: "body, metering, outcome; request headers pass unless overwritten; 64 KB of log are lost with the process",
    needs: Needs::Built("envoy"),
    launch,
    ..PLAIN
};

/// Settings of the cluster if the upstream speaks TLS.
const TLS: &str = "transport_socket: { name: envoy.transport_sockets.tls, typed_config: { \
    \"@type\": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext, sni: localhost, \
    common_tls_context: { validation_context: { trusted_ca: { filename: \"@AUTHORITY@\" }, \
    match_typed_subject_alt_names: [{ san_type: DNS, matcher: { exact: localhost } }] } } } }";

fn launch(site: &Site) -> io::Result<Launch> {
    let config = site.configure(include_str!("../../peers/envoy.yaml"), TLS)?;
    let mut command = Command::new(needs::built(&site.programs, "envoy"));
    // Envoy knows the format of a file by its ending, which this one lacks.
    command.arg("--config-yaml").arg(fs::read_to_string(config)?);
    command.arg("--concurrency").arg(site.setup.threads.to_string());
    command.args(["--disable-hot-restart", "--log-level", "warn", "--file-flush-interval-msec", "1000"]);
    Ok(Launch { command: Some(command), ready: target(site), target: |site| Ok(target(site)) })
}

fn target(site: &Site) -> Target {
    Target::Unix(site.dir.join("llm.sock"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::peer::Setup;

    fn configured(authority: Option<PathBuf>) -> String {
        let dir = std::env::temp_dir().join(format!("sbe-{}-{}", std::process::id(), authority.is_some()));
        fs::create_dir_all(&dir).unwrap();
        let upstream = std::net::SocketAddr::from(([127, 0, 0, 1], 8001));
        let setup = Setup { authority, ..upstream.into() };
        let site = Site { dir: dir.clone(), run: dir.clone(), setup, programs: dir.clone(), port: 8002 };
        let launch = launch(&site).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        let arguments: Vec<_> = launch.command.as_ref().unwrap().get_args().collect();
        let at = arguments.iter().position(|argument| *argument == "--config-yaml").unwrap();
        arguments[at + 1].to_str().unwrap().replace(&dir.display().to_string(), "DIR")
    }

    /// A placeholder that is left would be a path or a port that Envoy refuses only when it starts.
    #[test]
    fn configuration_has_no_placeholder_left() {
        let plain = configured(None);
        for wanted in ["path: \"DIR/llm.sock\"", "port_value: 8001", "port_value: 8002", "Bearer sk-bench"] {
            assert!(plain.contains(wanted), "{wanted}: {plain}");
        }
        let tls = configured(Some("/ca.pem".into()));
        assert!(tls.contains("trusted_ca: { filename: \"/ca.pem\" }"), "{tls}");
        for text in [plain, tls] {
            assert!(!text.replace("\"@type\"", "").contains('@'), "{text}");
        }
    }
}
