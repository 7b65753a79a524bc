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
    git_dirs::NamesByDir,
    path::RelativePath,
    result_tree::{ResultForm, ResultTree, reason},
    room::ResultBounds,
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
    /// [`Error::NotEmpty`] if `to` has an entry, [`Error::NoSuchFile`] if nothing is at `path`,
    /// [`Error::ResultTooLarge`] and [`Error::NoRoom`] by `bounds`, and the system's.
    pub fn pull(
        &self,
        path: Option<&RelativePath>,
        to: &Path,
        bounds: &ResultBounds,
    ) -> Result<PulledFiles, Error> {
        if let Some(path) = path.filter(|path| self.form(path).is_none()) {
            return Err(Error::NoSuchFile { path: path.clone() });
        }
        let is_asked = |entry: &RelativePath| path.is_none_or(|path| entry.is_within(path));
        let asked: Vec<_> = self.entries().filter(|(entry, _)| is_asked(entry)).collect();
        bounds.check(asked.iter().map(|(_, form)| form.size()), to)?;
        make_empty(to)?;
        let mut names = NamesByDir::default();
        self.entries().for_each(|(path, _)| names.add(path));
        let mut pulled = PulledFiles::default();
        for (path, form) in asked {
            if names.bare_repository_of(path).is_some() {
                let why = "is in a bare repository, whose settings git may run".to_owned();
                pulled.skipped.push(UnreadableEntry { path: path.clone(), why });
                continue;
            }
            let target = to.join(path.as_path());
            let skip = |why: &str| UnreadableEntry { path: path.clone(), why: why.to_owned() };
            match form {
                ResultForm::Directory => make_dirs(&target)?,
                ResultForm::Link(_) => pulled.skipped.push(skip("is a link")),
                ResultForm::Unreadable(why) => pulled.skipped.push(skip(why)),
                ResultForm::File { size, .. } => match self.copy(path, *size, &target)? {
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

    /// Copies one file, which had `size` when it was listed, and returns that. A file that cannot be read leaves nothing.
    fn copy(&self, path: &RelativePath, size: u64, target: &Path) -> Result<Result<u64, Unreadable>, Error> {
        let mut source = match self.open_file(path) {
            Ok(source) if source.size() != size => return Ok(Err(Unreadable::Changed)),
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
