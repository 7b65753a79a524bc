//! Defines and starts the peers that are measured side by side. A peer is a file here and, if it is configured, a file
//! in `bench/peers`. A new peer needs those files and a line in [`ALL`].
//!
//! Each peer does as much of Sluicegate's work as it can. It sets the credential and the billing identity, keeps
//! connections to the upstream, and writes an access log. The report lists the work that it cannot do.

mod direct;
mod envoy;
mod haproxy;
mod hop;
mod needs;
mod nginx;
mod pingora;
pub(crate) mod sluicegate;

use std::{
    fs, io,
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use self::needs::{Needs, programs};
use crate::{
    load::Target,
    measure::{
        cores::{Division, available, spawn_on},
        process,
    },
};

/// Every peer that is always measured, in the order of the report.
pub const ALL: [Peer; 12] = [
    direct::PEER,
    hop::RELAY,
    hop::SKELETON,
    hop::HYPER_RELAY,
    haproxy::PEER,
    haproxy::TOKEN,
    nginx::STATIC,
    nginx::TUNED,
    nginx::UNBUFFERED,
    nginx::LUA,
    sluicegate::PEER,
    sluicegate::BY_TOKEN,
];

/// Peers that are measured only when they are named: two take minutes to install, one measures mostly the disk.
pub const ON_REQUEST: [Peer; 3] = [pingora::PEER, envoy::PEER, sluicegate::ON_DISK];

/// Another build of Sluicegate in both forms, measured if a run is given one.
pub const BEFORE: [Peer; 2] = [sluicegate::BEFORE, sluicegate::BEFORE_BY_TOKEN];

/// Longest wait for a peer to come up.
const START_TIMEOUT: Duration = Duration::from_secs(10);

/// A program between client and upstream.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// Name in reports.
    pub name: &'static str,
    /// Part of Sluicegate's work that it does not do.
    pub lacks: &'static str,
    /// Control socket that opens listeners, if the peer has one.
    pub control: Option<fn(&Site) -> Target>,
    /// Features that some workloads need.
    abilities: &'static [Ability],
    /// Program that must be installed for it to start.
    needs: Needs,
    /// Opens another run and returns its target; none if the peer knows no runs.
    open_run: Option<fn(&Site, &str) -> io::Result<Target>>,
    launch: fn(&Site) -> io::Result<Launch>,
}

/// Feature of a peer that some workloads need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// Forwards to an upstream that speaks TLS.
    Tls,
    /// Serves one address with several threads.
    Threads,
    /// Holds no connection to the upstream for a client that is idle.
    Pool,
}

/// Fields that most peers have in common.
const PLAIN: Peer = Peer {
    name: "",
    lacks: "",
    control: None,
    abilities: &[Ability::Tls, Ability::Threads, Ability::Pool],
    needs: Needs::Nothing,
    open_run: None,
    launch: |_| Err(io::ErrorKind::Unsupported.into()),
};

/// Surroundings of a peer.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Address that the peer forwards to.
    pub upstream: SocketAddr,
    /// PEM file of the upstream's authority, if it speaks TLS.
    pub authority: Option<PathBuf>,
    /// Number of the peer's threads or worker processes.
    pub threads: usize,
    /// Build of `sluice-proxy` to compare with.
    pub before: PathBuf,
}

impl From<SocketAddr> for Setup {
    fn from(upstream: SocketAddr) -> Self {
        Self { upstream, authority: None, threads: 1, before: PathBuf::new() }
    }
}

/// Directories, address and port that a peer is started with.
#[derive(Debug)]
pub struct Site {
    /// Working directory of the peer.
    pub dir: PathBuf,
    /// Directory for the peer's sockets, in memory where the system allows it, as `/run` is.
    pub run: PathBuf,
    /// Surroundings of the peer.
    pub setup: Setup,
    /// Directory of this build's programs.
    pub programs: PathBuf,
    /// Free port that the peer may listen on.
    port: u16,
}

/// Instructions for starting a peer.
struct Launch {
    /// Command of the peer; none without a program.
    command: Option<Command>,
    /// Target that accepts connections when the peer is ready.
    ready: Target,
    /// Function that returns the target of the load, called once the peer is ready.
    target: fn(&Site) -> io::Result<Target>,
}

/// A running peer, stopped on drop.
#[derive(Debug)]
pub struct Running {
    /// Target of the load.
    pub target: Target,
    /// Control socket that opens listeners, if the peer has one.
    pub control: Option<Target>,
    /// Directory and surroundings of the peer.
    pub site: Site,
    open_run: Option<fn(&Site, &str) -> io::Result<Target>>,
    child: Option<Child>,
}

impl Peer {
    /// Returns whether the peer's program is installed.
    #[must_use]
    pub fn is_installed(&self) -> bool {
        programs().is_ok_and(|programs| self.needs.check(&programs).is_ok())
    }

    /// Returns whether the peer has a feature.
    #[must_use]
    pub fn can(&self, ability: Ability) -> bool {
        self.abilities.contains(&ability)
    }

    /// Starts the peer in a new directory below `dir`.
    ///
    /// # Errors
    /// If the peer is not installed, or does not become ready.
    pub fn start(&self, dir: &Path, setup: &Setup) -> io::Result<Running> {
        let port = free_address()?.port();
        let programs = programs()?;
        self.needs.check(&programs)?;
        let (dir, run) = (dir.join(self.name), in_memory(&dir.join(self.name)));
        let site = Site { dir, run, setup: setup.clone(), programs, port };
        for dir in [&site.dir, &site.run] {
            if dir.exists() {
                fs::remove_dir_all(dir)?;
            }
            fs::create_dir_all(dir)?;
        }
        let Launch { command, ready, target } = (self.launch)(&site)?;
        let log = fs::File::create(site.dir.join("output.log"))?;
        let started = command.map(|mut command| {
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
            let processors = Division::of(available(), setup.threads).peer;
            spawn_on(&mut command, &processors).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {:?}: {error}", self.name, command.get_program()))
            })
        });
        let control = self.control.map(|control| control(&site));
        let open_run = self.open_run;
        let mut running =
            Running { target: ready.clone(), control, child: started.transpose()?, site, open_run };
        wait_for(&ready).map_err(|error| {
            let log = fs::read_to_string(running.site.dir.join("output.log")).unwrap_or_default();
            io::Error::other(format!("the peer did not come up: {error}\n{log}"))
        })?;
        running.target = target(&running.site)?;
        Ok(running)
    }
}

/// Returns the directory of the sockets of a peer that has `dir` as its own directory.
pub(crate) fn in_memory(dir: &Path) -> PathBuf {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return dir.join("run");
    }
    // The whole path is the name, so that peers of several environments and of several benchmarks share nothing.
    memory.join(dir.display().to_string().trim_start_matches(['/', '.']).replace('/', "-"))
}

impl Site {
    /// Returns the address that this peer may listen on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Fills in the placeholders of `template`, writes it as the configuration, and returns its path. `tls` are the
    /// settings for an upstream that speaks TLS.
    fn configure(&self, template: &str, tls: &str) -> io::Result<PathBuf> {
        let authority = self.setup.authority.as_ref().map(|path| path.display().to_string());
        let text = template
            .replace("@TLS@", if authority.is_some() { tls } else { "" })
            .replace("@SCHEME@", if authority.is_some() { "https" } else { "http" })
            .replace("@AUTHORITY@", &authority.unwrap_or_default())
            .replace("@THREADS@", &self.setup.threads.to_string())
            .replace("@DIR@", &self.dir.display().to_string())
            .replace("@RUN@", &self.run.display().to_string())
            .replace("@LISTEN@", &self.address().to_string())
            .replace("@LISTEN_PORT@", &self.port.to_string())
            .replace("@UPSTREAM@", &self.setup.upstream.to_string())
            .replace("@UPSTREAM_PORT@", &self.setup.upstream.port().to_string());
        let path = self.dir.join("peer.conf");
        fs::write(&path, text)?;
        Ok(path)
    }
}

impl Running {
    /// Returns the peer's processes; none without a peer.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.child.as_ref().map(|child| process::with_children(child.id())).unwrap_or_default()
    }

    /// Opens a run and returns its target; the target of all if the peer knows no runs.
    ///
    /// # Errors
    /// If the peer refuses.
    pub fn open_run(&self, run: &str) -> io::Result<Target> {
        self.open_run.map_or_else(|| Ok(self.target.clone()), |open| open(&self.site, run))
    }

    /// Returns the address that all threads of the peer accept connections at.
    #[must_use]
    pub fn shared_target(&self) -> Target {
        Target::Tcp(self.site.address())
    }
}

/// Waits until a server accepts connections at `target`.
///
/// # Errors
/// The last refusal, if that takes too long.
pub(crate) fn wait_for(target: &Target) -> io::Result<()> {
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        let connected = match target {
            Target::Tcp(address) => TcpStream::connect(address).map(drop),
            Target::Unix(path) => UnixStream::connect(path).map(drop),
        };
        match connected {
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            result => return result,
        }
    }
}

/// Returns an address of the loopback interface that was free a moment ago.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        // All peers end at once on SIGTERM when nothing is in flight, and their workers with them.
        let pid = child.id().to_string();
        drop(Command::new("kill").arg(pid).status());
        drop(child.wait());
        drop(fs::remove_dir_all(&self.site.run));
    }
}
