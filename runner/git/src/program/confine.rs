//! confine takes from a thread, and from all that it starts, the files and ports that a command does not need.

use std::{fmt, io, path::PathBuf, thread};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, RestrictionStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

/// Rules that this program knows. An older kernel applies those that it knows.
const KNOWN: ABI = ABI::V6;
/// Directories of programs and their libraries.
const PROGRAMS: [&str; 6] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32"];
/// Files that every program reads when it starts.
const START_FILES: [&str; 6] = [
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/passwd",
    "/dev/urandom",
    "/dev/random",
];
/// Files that name servers and the authorities that vouch for them.
const NETWORK_FILES: [&str; 12] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/ssl",
    "/etc/ca-certificates",
    "/etc/pki",
    "/etc/crypto-policies",
    "/etc/gnutls",
];
/// Device that swallows what is written to it.
const NULL: &str = "/dev/null";

/// Extent to which the kernel confines git to the files that a command names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// Files, ports and signals: all rules that this program knows.
    Full,
    /// Files, but not all of the other rules: the kernel is older.
    Partial,
    /// Nothing: the kernel has no Landlock, or it is off. Git's settings alone hold.
    None,
}

impl fmt::Display for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "confined to the files of each command",
            Self::Partial => {
                "confined to the files of each command, but not in all ways: the kernel is older"
            }
            Self::None => "not confined: the kernel has no Landlock",
        })
    }
}

impl Confinement {
    /// Returns the extent on this host.
    pub(super) fn measure() -> Self {
        let thread = thread::Builder::new().name("git-measure".to_owned());
        let measured = thread.spawn(|| Reach::default().confine()).map(thread::JoinHandle::join);
        measured.ok().and_then(Result::ok).and_then(Result::ok).unwrap_or(Self::None)
    }
}

/// Ways to other hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Network {
    /// None.
    #[default]
    Closed,
    /// Connections to servers.
    Open,
}

/// Files and ports that a command needs beside programs and their libraries.
#[derive(Debug, Clone, Default)]
pub(super) struct Reach {
    /// Files and directories that it reads.
    pub(super) read: Vec<PathBuf>,
    /// Files that it reads and runs.
    pub(super) run: Vec<PathBuf>,
    /// Directories that it changes.
    pub(super) write: Vec<PathBuf>,
    /// Ways to other hosts.
    pub(super) network: Network,
}

impl Reach {
    /// Takes all other rights from this thread for ever, and from what it starts.
    pub(super) fn confine(&self) -> io::Result<Confinement> {
        let status = self.restrict().map_err(io::Error::other)?;
        Ok(match status.ruleset {
            RulesetStatus::FullyEnforced => Confinement::Full,
            RulesetStatus::PartiallyEnforced => Confinement::Partial,
            RulesetStatus::NotEnforced => Confinement::None,
        })
    }

    fn restrict(&self) -> Result<RestrictionStatus, RulesetError> {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        let run = read | AccessFs::Execute;
        let null = AccessFs::ReadFile | AccessFs::WriteFile;
        let ports = match self.network {
            Network::Closed => AccessNet::from_all(KNOWN),
            Network::Open => AccessNet::BindTcp.into(),
        };
        let network_files = match self.network {
            Network::Closed => &[][..],
            Network::Open => &NETWORK_FILES[..],
        };
        let mut rules = Ruleset::default()
            .handle_access(AccessFs::from_all(KNOWN))?
            .handle_access(ports)?
            .scope(Scope::Signal | Scope::AbstractUnixSocket)?
            .create()?;
        rules = rules.add_rules(path_beneath_rules(PROGRAMS, run))?;
        rules = rules.add_rules(path_beneath_rules(START_FILES, read))?;
        rules = rules.add_rules(path_beneath_rules(network_files, read))?;
        rules = rules.add_rules(path_beneath_rules([NULL], null))?;
        rules = rules.add_rules(path_beneath_rules(&self.read, read))?;
        rules = rules.add_rules(path_beneath_rules(&self.run, run))?;
        rules = rules.add_rules(path_beneath_rules(&self.write, changes()))?;
        rules.restrict_self()
    }
}

/// Returns what git does in a repository: it makes, changes and links files, but runs none, and makes no devices.
fn changes() -> BitFlags<AccessFs> {
    AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::MakeSym
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    /// Runs a shell's `script` in a confined thread and returns whether it succeeded.
    fn succeeds(reach: Reach, script: String) -> bool {
        let shell = move || {
            let confinement = reach.confine().unwrap();
            // Where the kernel has no Landlock, there is nothing to test, and `doctor` says so.
            let status = Command::new("/bin/sh").args(["-c", &script]).status().unwrap();
            (confinement, status.success())
        };
        let (confinement, success) = thread::spawn(shell).join().unwrap();
        assert_eq!(confinement, Confinement::measure());
        success
    }

    #[test]
    fn a_child_reaches_only_what_is_named() {
        if Confinement::measure() == Confinement::None {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let [readable, writable, other] = ["readable", "writable", "other"].map(|name| dir.path().join(name));
        for dir in [&readable, &writable, &other] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("file"), "content").unwrap();
        }
        let reach = Reach { read: vec![readable.clone()], write: vec![writable.clone()], ..Reach::default() };
        let shown = |dir: &PathBuf| dir.join("file").display().to_string();
        for (script, allowed) in [
            (format!("cat {}", shown(&readable)), true),
            (format!("echo > {}", shown(&readable)), false),
            (format!("echo > {}", shown(&writable)), true),
            (format!("cat {}", shown(&other)), false),
            ("cat /etc/shadow".to_owned(), false),
            ("cat /etc/passwd > /dev/null".to_owned(), true),
            (format!("cp /bin/true {0}/own; {0}/own", writable.display()), false),
        ] {
            assert_eq!(succeeds(reach.clone(), script.clone()), allowed, "{script}");
        }
    }

    #[test]
    fn a_child_connects_only_if_the_network_is_open() {
        if Confinement::measure() != Confinement::Full {
            return;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}");
        for (network, allowed) in [(Network::Closed, false), (Network::Open, true)] {
            let reach = Reach { network, ..Reach::default() };
            assert_eq!(succeeds(reach, format!("exec bash -c '{script}'")), allowed);
        }
    }
}
