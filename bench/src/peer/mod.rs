//! Defines and starts the peers that are measured side by side. A peer is a file here and, if it is configured, a file
//! in `bench/peers`. A new peer needs those files and a line in [`ALL`].
//!
//! Each peer does as much of Sluicegate's work as it can. It sets the credential and the billing identity, keeps
//! connections to the upstream, and writes an access log. The report lists the work that it cannot do.

mod direct;
mod haproxy;
mod nginx;
mod relay;
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

use crate::{
    load::Target,
    measure::{
        cores::{Division, available, spawn_on},
        process,
    },
};

pub use self::relay::serve as serve_relay;

/// Every peer that is always measured, in the order of the report.
pub const ALL: [Peer; 8] = [
    direct::PEER,
    relay::PEER,
    haproxy::PEER,
    nginx::STATIC,
    nginx::TUNED,
    nginx::LUA,
    sluicegate::PEER,
    sluicegate::BY_TOKEN,
];

/// Peers that are measured only when they are named: durability `disk` measures the disk more than Sluicegate.
pub const ON_REQUEST: [Peer; 1] = [sluicegate::ON_DISK];

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
    launch: fn(&Site) -> io::Result<Launch>,
}

/// Surroundings of a peer.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Address that the peer forwards to.
    pub upstream: SocketAddr,
    /// Build of `sluice-proxy` to compare with.
    pub before: PathBuf,
}

impl From<SocketAddr> for Setup {
    fn from(upstream: SocketAddr) -> Self {
        Self { upstream, before: PathBuf::new() }
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
    /// Command of the peer; none if there is no program.
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
    child: Option<Child>,
}

impl Peer {
    /// Starts the peer in a new directory below `dir`.
    ///
    /// # Errors
    /// If the peer does not become ready.
    pub fn start(&self, dir: &Path, setup: &Setup) -> io::Result<Running> {
        let port = free_address()?.port();
        let programs = programs()?;
        let (dir, run) = (dir.join(self.name), in_memory(&dir.join(self.name)));
        let site = Site { dir, run, setup: setup.clone(), programs, port };
        fs::create_dir_all(&site.dir)?;
        fs::create_dir_all(&site.run)?;
        let Launch { command, ready, target } = (self.launch)(&site)?;
        let log = fs::File::create(site.dir.join("output.log"))?;
        let started = command.map(|mut command| {
            command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
            let processors = Division::of(available(), 1).peer;
            spawn_on(&mut command, &processors).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {:?}: {error}", self.name, command.get_program()))
            })
        });
        let control = self.control.map(|control| control(&site));
        let mut running = Running { target: ready.clone(), control, child: started.transpose()?, site };
        wait_for(&ready).map_err(|error| {
            let log = fs::read_to_string(running.site.dir.join("output.log")).unwrap_or_default();
            io::Error::other(format!("the peer did not come up: {error}\n{log}"))
        })?;
        running.target = target(&running.site)?;
        Ok(running)
    }
}

/// Returns the directory of the sockets of a peer whose own directory is `dir`.
pub(crate) fn in_memory(dir: &Path) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let name = |dir: &Path| dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if memory.is_dir() {
        let above = dir.parent().map(name).unwrap_or_default();
        memory.join(format!("{above}-{}", name(dir)))
    } else {
        dir.join("run")
    }
}

/// Returns the directory of this build's programs; a test's own program lies one level deeper.
fn programs() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let beside = own.parent().unwrap_or(Path::new("."));
    Ok(beside.parent().filter(|_| beside.ends_with("deps")).unwrap_or(beside).to_owned())
}

impl Site {
    /// Returns the address that this peer may listen on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Fills in the placeholders of `template`, writes it as the configuration, and returns its path.
    fn configure(&self, template: &str) -> io::Result<PathBuf> {
        let text = template
            .replace("@DIR@", &self.dir.display().to_string())
            .replace("@RUN@", &self.run.display().to_string())
            .replace("@LISTEN@", &self.address().to_string())
            .replace("@UPSTREAM@", &self.setup.upstream.to_string());
        let path = self.dir.join("peer.conf");
        fs::write(&path, text)?;
        Ok(path)
    }
}

impl Running {
    /// Returns the peer's processes; none if there is no peer.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.child.as_ref().map(|child| process::with_children(child.id())).unwrap_or_default()
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
