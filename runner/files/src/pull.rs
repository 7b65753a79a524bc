//! Copies a result to a new directory: only plain files and directories, and nothing is overwritten.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use serde::Serialize;

use super::{
    beneath::Unreadable,
    changes::UnreadableEntry,
    error::Error,
    path::RelativePath,
    result_tree::{ResultForm, ResultTree, reason},
    stage_writer::BUFFER_SIZE,
};

/// Files that were copied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PulledFiles {
    /// Number of files.
    pub files: u64,
    /// Size of all files together.
    pub bytes: u64,
    /// Entries that were not copied, each with a reason.
    pub skipped: Vec<UnreadableEntry>,
}

impl ResultTree {
    /// Copies the files at or below `path`, or all of them, into the directory `to`, which must be new or empty.
    ///
    /// # Errors
    /// [`Error::NotEmpty`] if `to` has an entry, [`Error::NoSuchFile`] if nothing is at `path`, and the system's.
    pub fn pull(&self, path: Option<&RelativePath>, to: &Path) -> Result<PulledFiles, Error> {
        if let Some(path) = path.filter(|path| self.form(path).is_none()) {
            return Err(Error::NoSuchFile { path: path.clone() });
        }
        make_empty(to)?;
        let mut pulled = PulledFiles::default();
        let is_asked = |entry: &RelativePath| path.is_none_or(|path| entry.is_within(path));
        for (path, form) in self.entries().filter(|(entry, _)| is_asked(entry)) {
            let target = to.join(path.as_path());
            let skip = |why: &str| UnreadableEntry { path: path.clone(), why: why.to_owned() };
            match form {
                ResultForm::Directory => make_dirs(&target)?,
                ResultForm::Link(_) => pulled.skipped.push(skip("is a link")),
                ResultForm::Unreadable(why) => pulled.skipped.push(skip(why)),
                ResultForm::File { .. } => match self.copy(path, &target)? {
                    Ok(size) => {
                        pulled.files += 1;
                        pulled.bytes += size;
                    }
                    Err(why) => pulled.skipped.push(skip(&reason(why))),
                },
            }
        }
        self.verify_kept()?;
        Ok(pulled)
    }

    /// Copies one file, and returns its size. A file that cannot be read leaves nothing.
    fn copy(&self, path: &RelativePath, target: &Path) -> Result<Result<u64, Unreadable>, Error> {
        let mut source = match self.open_file(path) {
            Ok(source) => source,
            Err(why) => return Ok(Err(why)),
        };
        if let Some(parent) = target.parent() {
            make_dirs(parent)?;
        }
        let mode = if source.is_executable() { 0o777 } else { 0o666 };
        let created = OpenOptions::new().write(true).create_new(true).mode(mode).open(target);
        let mut file: File = created.map_err(Error::io("make", target))?;
        let mut buffer = vec![0; BUFFER_SIZE];
        loop {
            match source.read_piece(&mut buffer) {
                Ok(0) => return Ok(Ok(source.size())),
                Ok(len) => file.write_all(&buffer[..len]).map_err(Error::io("write", target))?,
                Err(why) => {
                    fs::remove_file(target).map_err(Error::io("remove", target))?;
                    return Ok(Err(why));
                }
            }
        }
    }
}

fn make_empty(dir: &Path) -> Result<(), Error> {
    match fs::read_dir(dir) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Error::NotEmpty { path: dir.to_owned() }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_dirs(dir),
        Err(error) => Err(Error::io("list", dir)(error)),
    }
}

fn make_dirs(dir: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o777).create(dir).map_err(Error::io("make", dir))
}
