//! Connects as another user of the same host, through socat.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Stdio};

use tokio::{io::AsyncWriteExt, process::Command};

use crate::raw::Raw;

/// Reply to a user with another uid.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// No connection: the file system denied access, or no process listens.
    NoConnection,
    /// A connection without an answer.
    NoAnswer,
    /// An HTTP status.
    Status(u16),
}

/// Sends `request` to `socket` as user `uid`.
///
/// # Panics
/// If socat cannot be run as that user.
pub async fn ask_as(uid: u32, socket: &Path, request: Raw) -> Reply {
    let mut socat = Command::new("socat")
        .args(["-t", "0.01", "STDIO,ignoreeof"])
        .arg(format!("UNIX-CONNECT:{}", socket.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .uid(uid)
        .gid(uid)
        .spawn()
        .expect("socat is needed, and to be root: run `make setup`");
    let mut stdin = socat.stdin.take().unwrap();
    // A socat that could not connect may have ended already.
    drop(stdin.write_all(&request.header("connection", "close").bytes()).await);
    let output = socat.wait_with_output().await.unwrap();
    let (answer, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    match answer.split(' ').nth(1) {
        Some(status) => Reply::Status(status.parse().unwrap()),
        None if stderr.contains(" connect(") => Reply::NoConnection,
        None => Reply::NoAnswer,
    }
}

/// Opens every directory from `/tmp` down to `path`, and `path` itself, to all users. Then only the program behind the
/// socket can refuse a user.
///
/// # Panics
/// If a mode cannot be set.
pub fn open_to_all_uids(path: &Path) {
    let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    open(path, 0o777);
    // The next start would refuse directories that other users can write.
    path.ancestors().skip(1).take_while(|dir| *dir != Path::new("/tmp")).for_each(|dir| open(dir, 0o755));
}
