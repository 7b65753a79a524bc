//! Reads the files of a journal that no proxy is writing: a stopped proxy's journal, or a copy.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

/// Reason why a journal's files cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// The directory holds no journal files.
    #[error(
        "{} holds no journal: its files are named like 00000000000000000001.ndjson; of a proxy they are in journal/ below \
         proxy.state_dir",
        dir.display()
    )]
    NoJournal {
        /// The directory.
        dir: PathBuf,
    },
}

/// Lines of a journal, over all its files in order.
#[derive(Debug)]
pub struct Files {
    /// Files still to be read, the next one last.
    pending: Vec<PathBuf>,
    /// File that is being read.
    current: Option<(PathBuf, BufReader<File>)>,
    /// Buffer of the line that was read last.
    line: Vec<u8>,
}

/// Piece of a journal: a line, or an unfinished line at the end of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'l> {
    /// A line without its line feed.
    Line(&'l [u8]),
    /// The rest of a file that ends in the middle of a line.
    Unfinished(&'l [u8]),
}

impl Files {
    /// Opens the journal files in `dir`. The number of its first line, in twenty digits, is the name of each.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let unreadable = |source| Error::Io { path: dir.to_owned(), source };
        let mut found = Vec::new();
        for entry in fs::read_dir(dir).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let first = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".ndjson"));
            if first
                .is_some_and(|number| number.len() == 20 && number.bytes().all(|byte| byte.is_ascii_digit()))
            {
                found.push(path);
            }
        }
        if found.is_empty() {
            return Err(Error::NoJournal { dir: dir.to_owned() });
        }
        found.sort_unstable();
        found.reverse();
        Ok(Self { pending: found, current: None, line: Vec::new() })
    }

    /// Returns the id of the journal in `dir`, if the directory holds one.
    pub fn journal_id(dir: &Path) -> Option<String> {
        fs::read_to_string(dir.join("id")).ok().map(|id| id.trim().to_owned())
    }

    /// Returns the next piece, or `None` after the last.
    pub fn next_piece(&mut self) -> Result<Option<Piece<'_>>, Error> {
        loop {
            let Some((path, reader)) = &mut self.current else {
                let Some(path) = self.pending.pop() else { return Ok(None) };
                let file = File::open(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
                self.current = Some((path, BufReader::with_capacity(256 << 10, file)));
                continue;
            };
            self.line.clear();
            let bytes = reader.read_until(b'\n', &mut self.line);
            let bytes = bytes.map_err(|source| Error::Io { path: path.clone(), source })?;
            if bytes == 0 {
                self.current = None;
                continue;
            }
            return Ok(Some(match self.line.strip_suffix(b"\n") {
                Some(line) => Piece::Line(line),
                None => Piece::Unfinished(&self.line),
            }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_continue_over_files_in_name_order() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("00000000000000000010.ndjson", "c\nd"),
            ("00000000000000000001.ndjson", "a\nb\n"),
            ("00000000000000000002.ndjson.bak", "no\n"),
            ("marks", "no\n"),
            ("id", "0123\n"),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let mut files = Files::open(dir.path()).unwrap();
        for line in [b"a", b"b", b"c"] {
            assert_eq!(files.next_piece().unwrap(), Some(Piece::Line(line)));
        }
        assert_eq!(files.next_piece().unwrap(), Some(Piece::Unfinished(b"d")));
        assert_eq!(files.next_piece().unwrap(), None);
        assert_eq!(Files::journal_id(dir.path()).as_deref(), Some("0123"));
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(Files::open(empty.path()), Err(Error::NoJournal { .. })));
    }
}
