//! The data plane, and where its sockets are.

use std::{net::SocketAddr, path::PathBuf};

use platform_core::{
    id::SocketDirName,
    limit::{self, ByteSize, Millis, SOCKET_PATH_MAX},
    litellm,
    name::path::SOCKET_FILE,
};

use super::Settings;
use crate::config::{About, Objection, Section, written_as_word};

/// More than any machine has cores.
const MAX_THREADS: u16 = 1024;

/// `[proxy]`
#[derive(Debug, Clone)]
pub struct Proxy {
    /// Sockets; a directory that does not outlive a boot.
    pub run_dir: PathBuf,
    /// The journal, and what else must outlive the proxy.
    pub state_dir: PathBuf,
    /// Data-plane threads; one per core if absent.
    pub threads: Option<u16>,
    /// How long calls in flight may go on after a stop.
    pub drain: Millis,
    /// How long what is left then may take to be cut and recorded.
    pub drain_cut: Millis,
    /// How many connections of clients there may be at a time.
    pub connections: Connections,
    /// Users besides our own and root who may speak to the control socket.
    pub control_uids: Vec<u32>,
    /// Top-level body fields that pass besides the listed ones.
    pub extra_fields: Vec<String>,
    /// Address of the listener that runs share; none if absent.
    pub listen: Option<SocketAddr>,
    /// Who calls there.
    pub listen_serves: Serves,
    /// Address where Prometheus reads metrics; none if absent.
    pub metrics_listen: Option<SocketAddr>,
    /// Request bodies of one run held in memory at a time.
    pub run_bodies: ByteSize,
    /// Request bodies of all runs held in memory at a time.
    pub all_bodies: ByteSize,
    /// File of the secrets that run tokens are signed with; read by [`super::token_secrets::read`].
    pub token_secrets_file: Option<PathBuf>,
    /// How long a run token holds beyond its expiry.
    pub token_skew: Millis,
}

/// Connections of clients: how many at a time, and how long they may say nothing.
#[derive(Debug, Clone, Copy)]
pub struct Connections {
    /// Of all runs; what the limit of open files leaves if absent.
    pub all: Option<u32>,
    /// Of one run's own socket.
    pub run: u32,
    /// On the shared listener.
    pub listen: u32,
    /// How long a client may take to send a request's head.
    pub header_read: Millis,
    /// How long a client's connection may be idle between two calls.
    pub keep_alive: Millis,
    /// Memory of the unfinished request heads of all connections.
    pub all_heads: ByteSize,
    /// Memory of the unfinished request heads of one listener.
    pub listener_heads: ByteSize,
}

impl Connections {
    fn of(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        Self {
            all: field(
                "connections",
                "Connections of clients at a time, of all runs; what the limit of open files leaves if absent.",
            )
            .optional(),
            run: field("run_connections", "Connections of one run's own socket at a time.")
                .or(limit::data_plane::RUN_CONNECTIONS),
            listen: field(
                "listen_connections",
                "Connections on the shared listener at a time, and never more than half of all.",
            )
            .or(limit::data_plane::LISTEN_CONNECTIONS),
            header_read: field("header_read", "How long a client may take to send a request's head.")
                .or(limit::data_plane::HEADER_READ),
            keep_alive: field(
                "keep_alive",
                "How long a client's connection may be idle between two calls before it is closed.",
            )
            .or(limit::data_plane::KEEP_ALIVE),
            all_heads: field(
                "max_header_bytes_in_flight",
                "Memory of the unfinished request heads of all connections. Beyond it the oldest of them are closed.",
            )
            .or(limit::data_plane::HEADER_BYTES),
            listener_heads: field(
                "max_listener_header_bytes_in_flight",
                "Memory of the unfinished request heads of one listener, a run's own or the shared one. Beyond it the oldest of them are closed.",
            )
            .or(limit::data_plane::LISTENER_HEADER_BYTES),
        }
    }
}

/// Who calls on the shared listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serves {
    /// Gateways, on behalf of many.
    Gateways,
    /// SDKs, each for itself.
    Clients,
}

written_as_word!(Serves { Gateways: "gateways", Clients: "clients" });

impl Proxy {
    pub(super) fn section(section: &Section<'_>) -> Self {
        let field = |name, doc| section.field(name, doc);
        Self {
            run_dir: field(
                "run_dir",
                "Directory of the sockets. Must be short: a socket's path has at most 107 bytes.",
            )
            .or("/run/sluicegate".into()),
            state_dir: field("state_dir", "Directory of the journal, and of what else must outlive the proxy.").or("/var/lib/sluicegate/proxy".into()),
            threads: field("threads", "Data-plane threads; one per core if absent.").at_most(&MAX_THREADS).optional(),
            drain: field("drain", "How long calls in flight may go on after a stop was asked for; with `0s` they are cut at once.")
                .may_be_zero()
                .or(limit::data_plane::DRAIN),
            drain_cut: field(
                "drain_cut",
                "How long calls that outlive `drain` may take to be cut and recorded. After both times the process ends, whatever hangs.",
            )
            .or(limit::data_plane::DRAIN_CUT),
            connections: Connections::of(section),
            control_uids: field(
                "control_uids",
                "Users besides the proxy's own and root who may speak to the control socket.",
            )
            .list_or(vec![]),
            extra_fields: extra_fields(section),
            listen: field(
                "listen",
                "Address of the listener that runs share, known by run tokens and correlations; none if absent.",
            )
            .optional(),
            listen_serves: field(
                "listen_serves",
                "Who calls on the shared listener: `gateways` (run tokens, trace ids, slots; what is nobody's is refused with 400, because gateways lock a provider for everyone on 401) or `clients` (run tokens only; 401 with a code).",
            )
            .or(Serves::Gateways),
            metrics_listen: field(
                "metrics_listen",
                "Address where Prometheus reads metrics, `GET /metrics` in plain HTTP, known to whoever can reach it; none if absent.",
            )
            .optional(),
            run_bodies: field("run_bodies", "Request bodies of one run that are held in memory at a time.")
                .at_least(&limit::data_plane::LEAST_BODIES)
                .or(limit::data_plane::RUN_BODIES),
            all_bodies: field("all_bodies", "Request bodies of all runs that are held in memory at a time.")
                .at_least(&limit::data_plane::LEAST_BODIES)
                .or(limit::data_plane::ALL_BODIES),
            token_secrets_file: field(
                "token_secrets_file",
                "File of the secrets that run tokens are signed with, a line `id:secret` each: the first mints, all verify. Closed to other users; without it PROXY_SHARED_SECRET is the only secret.",
            )
            .optional(),
            token_skew: field(
                "token_skew",
                "How long a run token holds beyond its expiry, for clocks that differ; whole seconds.",
            )
            .may_be_zero()
            .or(limit::data_plane::TOKEN_SKEW),
        }
    }

    /// Directory of the control socket; never mounted anywhere.
    #[must_use]
    pub fn control_dir(&self) -> PathBuf {
        self.run_dir.join("control")
    }

    /// The control socket.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.control_dir().join("control.sock")
    }

    /// Directories of the proxy's own, which no run's socket of the configuration may be in.
    #[must_use]
    pub fn own_dirs(&self) -> [PathBuf; 3] {
        [self.control_dir(), self.listeners_dir(), self.kept_dir()]
    }

    /// Longest time from a stop to the end of the process.
    #[must_use]
    pub const fn longest_stop(&self) -> Millis {
        Millis(self.drain.0.saturating_add(self.drain_cut.0))
    }

    /// Directory of the runs' socket directories.
    #[must_use]
    pub fn listeners_dir(&self) -> PathBuf {
        self.run_dir.join("runs")
    }

    /// Directory of what the next proxy has to know of the runs that are open: it lasts as long as their sockets' directories.
    #[must_use]
    pub fn kept_dir(&self) -> PathBuf {
        self.run_dir.join("kept")
    }
}

/// Reads the fields that pass besides the listed ones.
fn extra_fields(section: &Section<'_>) -> Vec<String> {
    const NAME: &str = "extra_fields";
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

/// Returns what is wrong with the directory of the sockets: with a longer path the kernel could bind none in it.
pub(super) fn objections(settings: &Settings) -> Vec<Objection> {
    let proxy = &settings.proxy;
    let dir = proxy.run_dir.as_os_str().len();
    let runs = proxy.listeners_dir().join(SocketDirName::from_random(0).as_str()).join(SOCKET_FILE);
    let longest = runs.as_os_str().len().max(proxy.control_socket().as_os_str().len());
    let problem = (longest > SOCKET_PATH_MAX).then(|| {
        let most = SOCKET_PATH_MAX - (longest - dir);
        format!("{dir} bytes are too many: a socket's path below it has at most {SOCKET_PATH_MAX} bytes, so it has at most {most}")
    });
    let objection = |problem| Objection { about: About::Setting("proxy.run_dir".to_owned()), problem };
    problem.map(objection).into_iter().collect()
}
