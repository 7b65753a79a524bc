//! main forwards requests with Pingora, as nginx-tuned does: sets credential and identity, keeps connections to the
//! upstream, writes a buffered access log. It does not look at bodies.

mod access_log;

use std::{fs::Permissions, io, net::SocketAddr, os::unix::fs::PermissionsExt, path::PathBuf, time::Instant};

use async_trait::async_trait;
use clap::Parser;
use pingora_core::{
    Result,
    modules::http::HttpModules,
    server::{
        Server,
        configuration::{Opt, ServerConf},
    },
    upstreams::peer::HttpPeer,
};
use pingora_http::RequestHeader;
use pingora_proxy::{ProxyHttp, Session, http_proxy_service};

use crate::access_log::AccessLog;

/// Headers that every peer sets, whatever the client sends.
const HEADERS: [(&str, &str); 3] = [
    ("Authorization", "Bearer sk-bench"),
    ("x-litellm-end-user-id", "acct-bench"),
    ("x-litellm-spend-logs-metadata", r#"{"run_id":"bench","attempt":0,"graph_id":"sandbox:agent"}"#),
];

/// Forwards requests to one upstream.
#[derive(Debug, Parser)]
struct Options {
    /// Pingora's own configuration; an upstream that speaks TLS has its authority there
    #[arg(long)]
    conf: PathBuf,
    /// Unix socket to listen on
    #[arg(long)]
    socket: String,
    /// Address to listen on
    #[arg(long)]
    address: SocketAddr,
    /// Address to forward to
    #[arg(long)]
    upstream: SocketAddr,
    /// File for the access log
    #[arg(long)]
    log: PathBuf,
}

/// The proxy, shared by its threads.
struct Proxy {
    upstream: HttpPeer,
    log: AccessLog,
}

/// State of one request.
#[derive(Default)]
struct Exchange {
    /// Time at which the upstream was asked.
    asked: Option<Instant>,
}

#[async_trait]
impl ProxyHttp for Proxy {
    type CTX = Exchange;

    fn new_ctx(&self) -> Exchange {
        Exchange::default()
    }

    // By default, each request carries a compressor that is switched off.
    fn init_downstream_modules(&self, _: &mut HttpModules) {}

    async fn upstream_peer(&self, _: &mut Session, _: &mut Exchange) -> Result<Box<HttpPeer>> {
        Ok(Box::new(self.upstream.clone()))
    }

    async fn upstream_request_filter(
        &self,
        _: &mut Session,
        request: &mut RequestHeader,
        exchange: &mut Exchange,
    ) -> Result<()> {
        exchange.asked = Some(Instant::now());
        HEADERS.iter().try_for_each(|(name, value)| request.insert_header(*name, *value))
    }

    async fn logging(&self, session: &mut Session, _: Option<&pingora_core::Error>, exchange: &mut Exchange) {
        if let Err(error) = self.log.write(session, exchange.asked) {
            eprintln!("the access log cannot be written: {error}");
        }
    }
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    let conf = Opt { conf: Some(options.conf.display().to_string()), ..Opt::default() };
    let conf = ServerConf::load_yaml_with_opt_override(&conf).map_err(io::Error::other)?;
    let upstream = HttpPeer::new(options.upstream, conf.ca_file.is_some(), "localhost".to_owned());
    let proxy = Proxy { upstream, log: AccessLog::create(&options.log)? };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut service = http_proxy_service(&server.configuration, proxy);
    service.add_uds(&options.socket, Some(Permissions::from_mode(0o666)));
    service.add_tcp(&options.address.to_string());
    server.add_service(service);
    server.run_forever()
}
