//! Reads the count of a program that runs under callgrind.

use std::{
    cell::Cell,
    fs, io,
    path::PathBuf,
    process::{Command, Stdio},
};

use crate::peer::Running;

/// Counter of one program.
pub(super) struct Counter {
    pid: u32,
    dir: PathBuf,
    dumps: Cell<u32>,
}

impl Counter {
    /// Creates the counter of a peer that runs under callgrind.
    pub(super) fn of(running: &Running) -> Self {
        let pid = running.processes().first().copied().unwrap_or_default();
        Self { pid, dir: running.site.dir.clone(), dumps: Cell::new(0) }
    }

    /// Returns the instructions of all threads since the last read, or since the start.
    pub(super) fn read(&self) -> io::Result<u64> {
        let dump = self.dumps.get() + 1;
        self.dumps.set(dump);
        let status = Command::new("callgrind_control")
            .arg("--dump")
            .arg(self.pid.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        let path = self.dir.join(format!("callgrind.{dump}"));
        let text = fs::read_to_string(&path).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("callgrind_control ended with {status}, but {}: {error}", path.display()),
            )
        })?;
        let totals = text
            .lines()
            .find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")));
        totals
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| io::Error::other(format!("{}: no total", path.display())))
    }
}
