//! Reads the settings of the data plane: its sockets, limits and timeouts.

use std::{net::SocketAddr, path::PathBuf};

use platform_core::{
    id::SocketDirName,
    limit::{self, ByteSize, MAX_SOCKET_PATH, Millis},
    litellm,
    name::path::SOCKET_FILE,
};

use super::Settings;
use crate::config::{About, Section, ValidationError, settings, written_as_word};

/// Most data-plane threads, more than any machine has cores.
const MAX_THREADS: u16 = 1024;

settings! {
    /// `[proxy]`
    #[derive(Debug, Clone)]
    pub struct Proxy read from section {
        /// Directory of the sockets. Must be short: a socket's path has at most 107 bytes.
        pub run_dir: PathBuf => or("/run/sluicegate".into()),
        /// Directory of the journal, and of what else must outlive the proxy.
        pub state_dir: PathBuf => or("/var/lib/sluicegate/proxy".into()),
        /// Data-plane threads; one per core if absent.
        pub threads: Option<u16> => at_most(&MAX_THREADS).optional(),
        /// Grace for calls in flight after a stop is requested; with `0s` they are cut at once.
        pub drain_timeout: Millis => may_be_zero().or(limit::data_plane::DRAIN),
        /// Time for calls that outlive `drain_timeout` to be cut and recorded. After both times the process ends in any
        /// case.
        pub drain_abort_timeout: Millis => or(limit::data_plane::DRAIN_CUT),
        /// Limits and timeouts of clients' connections.
        pub connections: Connections = Connections::read(section),
        /// Users besides the proxy's own and root who may speak to the control socket, and listen on the tool socket.
        pub control_uids: Vec<u32> => list_or(vec![]),
        /// Top-level body fields that pass besides the listed ones.
        pub extra_body_fields: Vec<String> = read_extra_fields(section),
        /// Address of the listener that runs share, known by run tokens and correlations; none if absent.
        pub listen: Option<SocketAddr> => optional(),
        /// Allows `listen` to be an address off the loopback. Run tokens and answers cross that network in clear, so
        /// set it only where no host but the clients' own reaches the address.
        pub listen_plaintext: bool => or(false),
        /// Clients of the shared listener: `gateways` (run tokens, trace ids, slots; calls of no run are refused with
        /// 400, because gateways lock a provider for all sessions on 401) or `clients` (run tokens only; 401 with a
        /// code).
        pub listen_serves: Serves => or(Serves::Gateways),
        /// Address where Prometheus reads metrics, `GET /metrics` in plain HTTP, open to all clients that can reach it;
        /// none if absent.
        pub metrics_listen: Option<SocketAddr> => optional(),
        /// Request bodies of one run that are held in memory at a time.
        pub max_body_memory_per_run: ByteSize
            => at_least(&limit::data_plane::LEAST_BODIES).or(limit::data_plane::RUN_BODIES),
        /// Request bodies of all runs that are held in memory at a time.
        pub max_body_memory: ByteSize
            => at_least(&limit::data_plane::LEAST_BODIES).or(limit::data_plane::ALL_BODIES),
        /// File of the secrets that run tokens are signed with, a line `id:secret` each: the first mints, all verify.
        /// Closed to other users; without it PROXY_SHARED_SECRET is the only secret.
        pub token_secrets_file: Option<PathBuf> => optional(),
        /// Time that a run token is accepted beyond its expiry, for clocks that differ; whole seconds.
        pub token_leeway: Millis => may_be_zero().or(limit::data_plane::TOKEN_SKEW),
    }
}

settings! {
    /// Limits and timeouts of clients' connections.
    #[derive(Debug, Clone, Copy)]
    pub struct Connections read from section {
        /// Connections of clients at a time, of all runs; what the limit of open files leaves if absent.
        pub max: Option<u32> as "max_connections" => optional(),
        /// Connections of one run's own socket at a time.
        pub max_per_run: u32 as "max_connections_per_run" => or(limit::data_plane::RUN_CONNECTIONS),
        /// Connections on the shared listener at a time, and never more than half of all.
        pub max_shared: u32 as "max_shared_connections" => or(limit::data_plane::LISTEN_CONNECTIONS),
        /// Longest time for a client to send a request's head.
        pub header_read_timeout: Millis => or(limit::data_plane::HEADER_READ),
        /// Longest time that a client's connection may be idle between two calls.
        pub keep_alive_timeout: Millis => or(limit::data_plane::KEEP_ALIVE),
        /// Longest time that a call goes on after its client has left, if the upstream goes on with it as well; with
        /// `0s` it is cut at once.
        pub client_gone_timeout: Millis => may_be_zero().or(limit::data_plane::CLIENT_GONE),
        /// Memory of the unfinished request heads of all connections. Beyond it the oldest of them are closed.
        pub max_header_memory: ByteSize => or(limit::data_plane::HEADER_BYTES),
        /// Memory of the unfinished request heads of one listener, a run's own or the shared one. Beyond it the oldest
        /// of them are closed.
        pub max_header_memory_per_listener: ByteSize => or(limit::data_plane::LISTENER_HEADER_BYTES),
    }
}

/// Clients of the shared listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// Gateways, each on behalf of many runs.
    Gateways,
    /// SDKs, each for itself.
    Clients,
}

written_as_word!(Serves { Gateways: "gateways", Clients: "clients" });

impl Proxy {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let settings = Self::read(section);
        if let Some(address) = settings.exposed_address() {
            let problem = format!(
                "{address} is not on the loopback, and the listener has no TLS: run tokens would cross the network in clear; listen on the loopback, such as `127.0.0.1:4100`, or accept it with `listen_plaintext = true`"
            );
            section.reject("listen", problem);
        }
        settings
    }

    /// Returns the address of the shared listener if it is off the loopback, and no setting accepts that.
    fn exposed_address(&self) -> Option<SocketAddr> {
        self.listen.filter(|address| !address.ip().is_loopback() && !self.listen_plaintext)
    }

    /// Returns the directory of the control socket, which is never mounted anywhere.
    #[must_use]
    pub fn control_dir(&self) -> PathBuf {
        self.run_dir.join("control")
    }

    /// Returns the path of the control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.control_dir().join("control.sock")
    }

    /// Returns the proxy's own directories. No socket of a configured run may be in one of them.
    #[must_use]
    pub fn own_dirs(&self) -> [PathBuf; 4] {
        [self.control_dir(), self.listeners_dir(), self.persisted_runs_dir(), self.tools_dir()]
    }

    /// Returns the directory of the tool socket, which is never mounted anywhere.
    #[must_use]
    pub fn tools_dir(&self) -> PathBuf {
        self.run_dir.join("tools")
    }

    /// Returns the longest time from a stop to the end of the process.
    #[must_use]
    pub const fn longest_stop(&self) -> Millis {
        Millis(self.drain_timeout.0.saturating_add(self.drain_abort_timeout.0))
    }

    /// Returns the directory of the runs' socket directories.
    #[must_use]
    pub fn listeners_dir(&self) -> PathBuf {
        self.run_dir.join("runs")
    }

    /// Returns the directory of the open runs' state, which the next proxy reads. It lasts as long as the directories
    /// of the runs' sockets.
    #[must_use]
    pub fn persisted_runs_dir(&self) -> PathBuf {
        self.run_dir.join("kept")
    }
}

/// Reads the fields that pass besides the listed ones.
fn read_extra_fields(section: &Section<'_>) -> Vec<String> {
    const NAME: &str = "extra_body_fields";
    let doc = "Top-level fields of request bodies that pass, unchecked, besides those on each route's list. Fields that LiteLLM takes as orders never pass.";
    let fields: Vec<String> = section.field(NAME, doc).list_or(vec![]);
    for field in fields.iter().filter(|field| litellm::is_control(field)) {
        let problem = format!(
            "`{}` never passes: LiteLLM takes it as an order or as an identity, and an agent could choose where a call goes or who pays; leave it out, or set it in LiteLLM's own configuration",
            field.escape_debug()
        );
        section.reject(NAME, problem);
    }
    fields
}

/// Returns an error if `run_dir` is so long that the sockets in it would exceed the kernel's limit on socket paths.
pub(super) fn errors(settings: &Settings) -> Vec<ValidationError> {
    let proxy = &settings.proxy;
    let length = proxy.run_dir.as_os_str().len();
    let socket = proxy.listeners_dir().join(SocketDirName::from_random(0).as_str()).join(SOCKET_FILE);
    let longest = socket.as_os_str().len().max(proxy.control_socket().as_os_str().len());
    let problem = (longest > MAX_SOCKET_PATH).then(|| {
        let most = MAX_SOCKET_PATH - (longest - length);
        format!("{length} bytes are too many: a socket's path below it has at most {MAX_SOCKET_PATH} bytes, so it has at most {most}")
    });
    let error = |problem| ValidationError { about: About::Setting("proxy.run_dir".to_owned()), problem };
    problem.map(error).into_iter().collect()
}
