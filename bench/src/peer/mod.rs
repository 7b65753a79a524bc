//! The peers that are measured side by side. A peer is a file here and, if it is configured, a file in
//! `bench/peers`; adding one is adding those and a line in [`ALL`].
//!
//! Each does as much of Sluicegate's work as it can: sets the credential and the billing identity, keeps
//! connections to the upstream, writes an access log. What it cannot do is said in the report.

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

use crate::{load::Target, measure::process};

pub use self::relay::serve as serve_relay;

/// Every peer, in the order of the report.
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

/// What else can be named: Sluicegate as it was before a change (`make bench-before`).
pub const BEFORE: Peer = sluicegate::BEFORE;

/// Sluicegate at durability `disk`, which measures the disk more than Sluicegate.
pub const ON_DISK: Peer = sluicegate::ON_DISK;

/// Longest wait for a peer to come up.
const START: Duration = Duration::from_secs(10);

/// Something that stands between client and upstream.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// As reports name it.
    pub name: &'static str,
    /// What of Sluicegate's work it does not do.
    pub lacks: &'static str,
    /// Where it is asked for listeners, if it can be.
    pub control: Option<fn(&Site) -> Target>,
    launch: fn(&Site) -> io::Result<Launch>,
}

/// Where a peer is started.
#[derive(Debug)]
pub struct Site {
    /// A directory of its own.
    pub dir: PathBuf,
    /// A directory of its own for sockets, in memory where the system has such a place, as `/run` is.
    pub run: PathBuf,
    /// Where it forwards to.
    pub upstream: SocketAddr,
    /// Directory of this build's programs.
    pub programs: PathBuf,
    /// A free port.
    port: u16,
}

/// How a peer is started.
struct Launch {
    command: Option<Command>,
    /// Accepts connections when the peer is ready.
    ready: Target,
    /// Where load goes, asked once it is ready.
    target: fn(&Site) -> io::Result<Target>,
}

/// A peer that runs. Stopped on drop.
#[derive(Debug)]
pub struct Running {
    /// Where load goes.
    pub target: Target,
    /// Where it is asked for listeners, if it can be.
    pub control: Option<Target>,
    /// Its directory and surroundings.
    pub site: Site,
    child: Option<Child>,
}

impl Peer {
    /// Starts it in a new directory below `dir`.
    ///
    /// # Errors
    /// If it does not come up.
    pub fn start(&self, dir: &Path, upstream: SocketAddr) -> io::Result<Running> {
        let port = free_address()?.port();
        let programs = programs()?;
        let (dir, run) = (dir.join(self.name), in_memory(&dir.join(self.name)));
        let site = Site { dir, run, upstream, programs, port };
        fs::create_dir_all(&site.dir)?;
        fs::create_dir_all(&site.run)?;
        let Launch { command, ready, target } = (self.launch)(&site)?;
        let log = fs::File::create(site.dir.join("output.log"))?;
        let started = command.map(|mut command| {
            let spawned = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
            spawned.map_err(|error| {
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

/// Where a peer whose directory is `dir` has its sockets.
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

/// The directory of this build's programs; a test's own program lies one deeper.
fn programs() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let beside = own.parent().unwrap_or(Path::new("."));
    Ok(beside.parent().filter(|_| beside.ends_with("deps")).unwrap_or(beside).to_owned())
}

impl Site {
    /// The port this peer may listen on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Writes the configuration in `template` with its placeholders filled in, and returns its path.
    fn configure(&self, template: &str) -> io::Result<PathBuf> {
        let text = template
            .replace("@DIR@", &self.dir.display().to_string())
            .replace("@RUN@", &self.run.display().to_string())
            .replace("@LISTEN@", &self.address().to_string())
            .replace("@UPSTREAM@", &self.upstream.to_string());
        let path = self.dir.join("peer.conf");
        fs::write(&path, text)?;
        Ok(path)
    }
}

impl Running {
    /// Its processes; none if there is no peer.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.child.as_ref().map(|child| process::with_children(child.id())).unwrap_or_default()
    }
}

/// Waits until somebody accepts connections at `target`.
///
/// # Errors
/// The last refusal, if that takes too long.
pub(crate) fn wait_for(target: &Target) -> io::Result<()> {
    let deadline = Instant::now() + START;
    loop {
        let connected = match target {
            Target::Tcp(address) => TcpStream::connect(address).map(drop),
            Target::Unix(path) => UnixStream::connect(path).map(drop),
        };
        match connected {
            Err(_) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            ended => return ended,
        }
    }
}

/// An address of the loopback interface that was free a moment ago.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        // All of these end at once on SIGTERM when nothing is in flight, and their workers with them.
        let pid = child.id().to_string();
        drop(Command::new("kill").arg(pid).status());
        drop(child.wait());
        drop(fs::remove_dir_all(&self.site.run));
    }
}
