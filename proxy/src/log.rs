//! Stores lines that must outlive the process, also while the disk is full.
//!
//! Space is preallocated behind the end of the file. Lines that cannot be stored are held and tried again; meanwhile
//! their owner applies them from memory. On file systems that copy on write the promise is as good as theirs.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use platform_core::{
    id::RunId,
    json::{self, Bounds},
};
use platform_runtime::{file, report};
use rustix::fs::{FallocateFlags, fallocate};
use serde::{Serialize, de::DeserializeOwned};

/// Space that is preallocated behind the end of a file: for some hundred lines.
const PREALLOCATED: u64 = 64 << 10;

/// File of lines that is only appended to.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: File,
    /// Offset of the next line.
    length: u64,
    /// End of the preallocated space.
    preallocated_to: u64,
    /// Lines that are not stored yet.
    unstored: Vec<u8>,
}

impl Log {
    /// Opens the log at `path`, or begins one, and returns it with its lines. A crash may have left the last one
    /// unfinished: it is cut off, unless it `is_whole` but for its line feed.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub(crate) fn open(path: &Path, is_whole: impl Fn(&str) -> bool) -> io::Result<(Self, String)> {
        let options = &mut OpenOptions::new();
        let mut file = file::open_own(options.create(true).truncate(false).read(true).write(true), path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        let mut unstored = Vec::new();
        if is_whole(&text[whole..]) {
            unstored.push(b'\n');
        } else if whole < text.len() {
            tracing::warn!(path = %path.display(), "cutting off an unfinished line");
            file.set_len(whole as u64)?;
            text.truncate(whole);
        }
        let length = text.len() as u64;
        let mut log = Self { path: path.to_owned(), file, length, preallocated_to: 0, unstored };
        log.preallocate();
        Ok((log, text))
    }

    /// Appends `lines`, each with its line feed. They are on the disk when this returns.
    ///
    /// # Errors
    /// If the disk rejects them. They are held, and [`Log::store`] tries again.
    pub(crate) fn append(&mut self, lines: &str) -> io::Result<()> {
        self.unstored.extend_from_slice(lines.as_bytes());
        self.store()
    }

    /// Stores the lines that are not stored yet.
    ///
    /// # Errors
    /// If the disk rejects them.
    pub(crate) fn store(&mut self) -> io::Result<()> {
        if self.is_stored() {
            return Ok(());
        }
        self.file.write_all_at(&self.unstored, self.length)?;
        self.file.sync_data()?;
        self.length += self.unstored.len() as u64;
        self.unstored.clear();
        self.preallocate();
        Ok(())
    }

    /// Returns whether all lines are stored.
    pub(crate) const fn is_stored(&self) -> bool {
        self.unstored.is_empty()
    }

    /// Replaces all lines by `lines`, which have the same meaning. If that fails, as on a full disk, the file stays as
    /// it is.
    pub(crate) fn compact(&mut self, lines: &str) {
        if let Err(error) = self.replace(lines) {
            tracing::warn!(path = %self.path.display(), error = report::chain(&error), "the file cannot be compacted now");
        }
    }

    fn replace(&mut self, lines: &str) -> io::Result<()> {
        let path = self.path.with_extension("new");
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        // A crash may have left a file there, or the path may be a link.
        drop(fs::remove_file(&path));
        let file = file::open_own(OpenOptions::new().write(true).create_new(true), &path)?;
        file.write_all_at(lines.as_bytes(), 0)?;
        let mut new = Self {
            path: path.clone(),
            file,
            length: lines.len() as u64,
            preallocated_to: 0,
            unstored: Vec::new(),
        };
        new.try_preallocate()?;
        new.file.sync_all()?;
        fs::rename(&path, &self.path)?;
        File::open(dir)?.sync_all()?;
        new.path.clone_from(&self.path);
        *self = new;
        Ok(())
    }

    /// Preallocates space. If no more is available now, earlier space stays preallocated.
    fn preallocate(&mut self) {
        if let Err(error) = self.try_preallocate() {
            let error = report::chain(&error);
            tracing::warn!(path = %self.path.display(), error, "no space preallocated for when the disk is full");
        }
    }

    fn try_preallocate(&mut self) -> io::Result<()> {
        if self.preallocated_to < self.length + PREALLOCATED / 2 {
            fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.length, PREALLOCATED)?;
            self.preallocated_to = self.length + PREALLOCATED;
        }
        Ok(())
    }
}

/// Opens a log of JSON lines, and returns it with them, the oldest first.
///
/// # Errors
/// If the file cannot be read or written, or holds anything else: the proxy does not guess what was decided.
pub(crate) fn open_json_log<L: DeserializeOwned>(path: &Path) -> io::Result<(Log, Vec<L>)> {
    let read = |line: &str| json::from_str::<L>(line, Bounds::STORED);
    let (log, text) = Log::open(path, |line| read(line).is_ok())?;
    let lines = text.lines().map(read).collect::<Result<_, _>>();
    Ok((log, lines.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?))
}

/// Returns `lines` as they are stored: one JSON document on each.
pub(crate) fn json_lines(lines: impl IntoIterator<Item = impl Serialize>) -> io::Result<String> {
    let mut text = String::new();
    for line in lines {
        text += &serde_json::to_string(&line)?;
        text.push('\n');
    }
    Ok(text)
}

/// Opens a log with a run on each line, and returns it with them, the oldest first.
pub(crate) fn open_run_log(path: &Path) -> io::Result<(Log, Vec<RunId>)> {
    let (log, text) = Log::open(path, |line| RunId::parse(line).is_ok())?;
    Ok((log, text.lines().filter_map(|line| RunId::parse(line).ok()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> Vec<String> {
        let (_log, text) = Log::open(path, |line| line.starts_with('r')).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_torn_last_line_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let (mut log, text) = Log::open(&path, |_| false).unwrap();
        assert_eq!((text.as_str(), log.is_stored()), ("", true));
        log.append("r1\nr2\n").unwrap();
        drop(log);
        for (torn, expected) in [("{\"ki", 3), ("r3", 4)] {
            let before = fs::read_to_string(&path).unwrap();
            fs::write(&path, format!("{before}{torn}")).unwrap();
            let (mut log, _) = Log::open(&path, |line| line.starts_with('r')).unwrap();
            log.append("r4\n").unwrap();
            drop(log);
            assert_eq!(lines(&path).len(), expected + usize::from(torn == "r3"), "{torn}");
        }
        assert_eq!(lines(&path), ["r1", "r2", "r4", "r3", "r4"]);
    }

    #[test]
    fn compacting_keeps_what_the_lines_say() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let (mut log, _) = Log::open(&path, |_| false).unwrap();
        log.append("r1\nr2\nr1\n").unwrap();
        log.compact("r1\nr2\n");
        log.append("r3\n").unwrap();
        assert_eq!(lines(&path), ["r1", "r2", "r3"]);
    }
}
