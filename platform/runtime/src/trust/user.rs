//! Finds users of this host, and the groups that the system lists them in.

use std::{fs, io, os::unix::net::UnixStream, path::Path};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tokio::{
    net::unix::UCred,
    runtime::{Builder, Handle},
};

/// A user and its groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub(super) uid: u32,
    pub(super) gids: Vec<u32>,
}

impl User {
    /// Returns the user `uid` with its groups from `/etc/passwd` and `/etc/group`; with no groups if it is not listed.
    #[must_use]
    pub fn of(uid: u32) -> Self {
        let text = |path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        Self { uid, gids: groups_of(uid, &text("/etc/passwd"), &text("/etc/group")) }
    }

    /// Returns the user of the process that listens at `socket`, with that process's groups. `None` if no process
    /// listens or if this process may not connect. Does not wait.
    #[must_use]
    pub fn serving(socket: &Path) -> Option<Self> {
        let peer = peer(socket).ok()?;
        let status = peer.pid().and_then(|pid| fs::read_to_string(format!("/proc/{pid}/status")).ok());
        let mut gids = match status {
            Some(status) => groups_in(&status),
            None => Self::of(peer.uid()).gids,
        };
        gids.push(peer.gid());
        Some(Self { uid: peer.uid(), gids })
    }

    /// Returns the user's id.
    #[must_use]
    pub const fn uid(&self) -> u32 {
        self.uid
    }
}

/// Returns the credentials of the process that listens at `socket`. The kernel reports pid 0 for a process in another
/// PID namespace, such as a proxy in a container. rustix is not used, because its `UCred` cannot hold that pid.
fn peer(socket: &Path) -> io::Result<UCred> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let client = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&client, &SocketAddrUnix::new(socket)?)?;
    let credentials = || tokio::net::UnixStream::from_std(UnixStream::from(client))?.peer_cred();
    if Handle::try_current().is_ok() {
        return credentials();
    }
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let _inside = runtime.enter();
    credentials()
}

/// Returns the groups of user `uid` according to `passwd` and `group`.
fn groups_of(uid: u32, passwd: &str, group: &str) -> Vec<u32> {
    let mut gids = Vec::new();
    for line in passwd.lines() {
        let [name, _, id, gid, ..] = line.split(':').collect::<Vec<_>>()[..] else { continue };
        if id.parse() != Ok(uid) {
            continue;
        }
        gids.extend(gid.parse::<u32>());
        let is_member = |line: &&str| {
            line.rsplit_once(':').is_some_and(|(_, members)| members.split(',').any(|member| member == name))
        };
        gids.extend(
            group.lines().filter(is_member).filter_map(|line| line.split(':').nth(2)?.parse::<u32>().ok()),
        );
    }
    gids
}

/// Returns the groups in the text of a `/proc/PID/status` file.
fn groups_in(status: &str) -> Vec<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
    line.split_whitespace().filter_map(|gid| gid.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::{env, os::unix::net::UnixListener, process::Command};

    use rustix::process::{getegid, geteuid};

    use super::*;
    use crate::config::Environment;

    #[test]
    fn a_user_has_the_groups_of_its_accounts() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\n+\nproxy:x:990:980::/:/bin/false\nother:x:991:991::/:\n";
        let group = "root:x:0:\nsluicegate:x:980:\nkeys:x:970:other,proxy\nmore:x:960:proxyx\n";
        assert_eq!(groups_of(990, passwd, group), [980, 970]);
        assert_eq!(groups_of(991, passwd, group), [991, 970], "the control");
        assert_eq!(groups_of(12345, passwd, group), [0_u32; 0]);
    }

    /// Runs this test once more in a PID namespace in which the listener's process has no number.
    #[test]
    fn a_listener_in_another_pid_namespace_is_known() {
        const SOCKET: &str = "SLUICEGATE_TEST_SOCKET";
        if let Some(socket) = Environment::capture().get(SOCKET) {
            let user = User::serving(Path::new(socket)).expect("a process listens");
            assert_eq!(user.uid(), geteuid().as_raw());
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        let _listener = UnixListener::bind(&path).unwrap();
        let test = "trust::user::tests::a_listener_in_another_pid_namespace_is_known";
        let inside = Command::new("unshare")
            .args(["--pid", "--fork"])
            .arg(env::current_exe().unwrap())
            .args(["--exact", test])
            .env(SOCKET, &path)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&inside.stdout);
        assert!(
            inside.status.success() && printed.contains("1 passed"),
            "this test must run as root: {printed}"
        );
    }

    #[test]
    fn a_listener_is_known_without_an_accept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control.sock");
        assert_eq!(User::serving(&path), None, "none listens yet");
        let listener = UnixListener::bind(&path).unwrap();
        let user = User::serving(&path).unwrap();
        assert_eq!(user.uid(), geteuid().as_raw());
        assert!(user.gids.contains(&getegid().as_raw()), "{user:?}");
        drop(listener);
        assert_eq!(User::serving(&path), None, "the socket is stale");
        assert_eq!(groups_in("Name:\tx\nGroups:\t4 24 \nVmPeak:\t1\n"), [4, 24]);
    }
}
