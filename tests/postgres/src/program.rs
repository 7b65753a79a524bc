//! Runs Debian's Postgres programs, under a user that they accept.

use std::{os::unix::fs::chown, path::Path, process::Command};

use rustix::process::geteuid;
use tempfile::TempDir;

/// Directory of Debian's programs that initialise and serve a database.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// Uid and gid of Debian's unprivileged user: Postgres refuses to run as root.
const NOBODY: u32 = 65534;

/// Returns the command of a Postgres program, under a user that may run it.
pub(crate) fn program(name: &str) -> Command {
    let path = Path::new(PROGRAMS).join(name);
    assert!(path.exists(), "no {}: make setup-test installs it", path.display());
    if !geteuid().is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]).arg(path);
    command
}

/// Runs a statement over the socket in `socket_dir`, and returns what it prints, without the names of columns.
pub(crate) fn psql(socket_dir: &Path, database: &str, statement: &str) -> String {
    let output = program("psql")
        .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--username=sluice"])
        .args(["--dbname", database, "--command", statement, "--host"])
        .arg(socket_dir)
        .output()
        .unwrap();
    assert!(output.status.success(), "{statement}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Creates a directory that the programs may write to.
pub(crate) fn temporary() -> TempDir {
    let dir = tempfile::Builder::new().prefix("sluice-pg-").tempdir_in("/tmp").unwrap();
    if geteuid().is_root() {
        chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    dir
}

/// Copies a directory with its owners and modes.
pub(crate) fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success(), "{} to {}", from.display(), to.display());
}
