//! Keeps the files of a run outside its workspace, from the order to the end: contents in one file, facts in another.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    time::SystemTime,
};

use platform_core::{
    id::RunId,
    json::{self, Bounds},
    limit::ByteSize,
};
use platform_runtime::{lock::Lock, state_file};
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use super::{
    error::Error,
    manifest::{ContentHash, Manifest, ManifestEntry, StoredFile, StoredForm},
    selection::Selection,
    stage_writer::{CopyProgress, DATA_FILE, MANIFEST_FILE, StageWriter, StagedFiles},
};

/// Name of the directory of all stages, below that of workspaces. No workspace id begins with a dot.
const STAGES_DIR: &str = ".files";
/// Beginning of the names of stages that are being written. No run id begins with a dot.
pub(crate) const UNFINISHED_PREFIX: &str = ".unfinished-";

/// Unit in which the system counts the space of a file.
const BLOCK_SIZE: u64 = 512;

/// Returns the directory of all stages below `workspaces`, the directory of workspaces.
#[must_use]
pub fn stages_dir(workspaces: &Path) -> PathBuf {
    workspaces.join(STAGES_DIR)
}

/// Files of one run, as they were when it was ordered.
#[derive(Debug)]
pub struct Stage {
    pub(crate) run_id: RunId,
    pub(crate) dir: PathBuf,
    pub(crate) manifest: Manifest,
    digest: ContentHash,
    data: File,
}

/// Stage on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedStage {
    /// Run it belongs to.
    pub run_id: RunId,
    /// Time at which it was written.
    pub written: SystemTime,
}

impl Stage {
    /// Copies the files of `selection` into a new stage of `run_id` below `stages`. Leaves nothing behind if it fails.
    /// A stage of the run with the same files is not an error.
    ///
    /// # Errors
    /// [`Error::SourceFile`] if a file changed since it was selected, or while it was read; [`Error::OtherFiles`] if
    /// the run has a stage with other files.
    pub fn write(
        stages: &Path,
        run_id: &RunId,
        selection: &Selection,
        progress: &mut dyn FnMut(CopyProgress),
    ) -> Result<StagedFiles, Error> {
        let unfinished = UnfinishedDir::create(stages)?;
        let staged = StageWriter::new(&unfinished.path, selection)?.write(progress)?;
        let target = stages.join(run_id.as_str());
        match renameat_with(CWD, &unfinished.path, CWD, &target, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(staged),
            Err(Errno::EXIST) if Self::open(stages, run_id)?.digest() == staged.digest => Ok(staged),
            Err(Errno::EXIST) => Err(Error::OtherFiles { run_id: run_id.clone() }),
            Err(errno) => Err(Error::os("make", &target)(errno)),
        }
    }

    /// Opens the stage of `run_id` below `stages`.
    ///
    /// # Errors
    /// [`Error::NoFiles`] if the run has none, and [`Error::Damaged`] if its manifest is not sound.
    pub fn open(stages: &Path, run_id: &RunId) -> Result<Self, Error> {
        let dir = stages.join(run_id.as_str());
        let path = dir.join(MANIFEST_FILE);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoFiles { run_id: run_id.clone() });
            }
            read => read.map_err(Error::io("read", &path))?,
        };
        let damaged = |source| Error::Damaged { run_id: run_id.clone(), path: path.clone(), source };
        let manifest: Manifest = json::from_slice(&text, Bounds::STORED)
            .map_err(|error| damaged(io::Error::new(io::ErrorKind::InvalidData, error)))?;
        if !manifest.is_sound() {
            return Err(damaged(io::Error::other("its entries contradict each other")));
        }
        let data_path = dir.join(DATA_FILE);
        let data = File::open(&data_path).map_err(Error::io("open", &data_path))?;
        Ok(Self { run_id: run_id.clone(), dir, manifest, digest: ContentHash::of(&text), data })
    }

    /// Returns the hash of the manifest.
    #[must_use]
    pub fn digest(&self) -> &str {
        self.digest.as_str()
    }

    /// Returns the files of the stage.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the figures of the stage.
    #[must_use]
    pub fn staged_files(&self) -> StagedFiles {
        let forms = || self.manifest.entries().iter().map(|ManifestEntry { form, .. }| form);
        let size = |form: &StoredForm| if let StoredForm::File(file) = form { file.size } else { 0 };
        StagedFiles {
            digest: self.digest().to_owned(),
            files: forms().filter(|form| **form != StoredForm::Directory).count() as u64,
            bytes: forms().map(size).sum(),
        }
    }

    /// Returns the content of `file`, as it was copied.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the data are not those that were hashed.
    pub fn content(&self, file: &StoredFile) -> Result<Vec<u8>, Error> {
        let mut content = vec![0; ByteSize(file.size).as_usize()];
        self.read_at(&mut content, file.offset)?;
        if ContentHash::of(&content) == file.sha256 { Ok(content) } else { Err(self.damaged_data()) }
    }

    /// Fills `buffer` with the data at `offset`.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let read = self.data.read_exact_at(buffer, offset);
        read.map_err(|source| self.damaged(source))
    }

    pub(crate) fn damaged_data(&self) -> Error {
        self.damaged(io::Error::other("a content has another hash"))
    }

    fn damaged(&self, source: io::Error) -> Error {
        Error::Damaged { run_id: self.run_id.clone(), path: self.dir.join(DATA_FILE), source }
    }

    /// Removes the stage of `run_id` below `stages`; a missing one is not an error.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(stages: &Path, run_id: &RunId) -> Result<(), Error> {
        remove_dir(&stages.join(run_id.as_str()))
    }

    /// Returns the space on disk that the stage of `run_id` below `stages` uses; a missing one uses none.
    ///
    /// # Errors
    /// The system's.
    pub fn disk_usage(stages: &Path, run_id: &RunId) -> Result<ByteSize, Error> {
        let dir = stages.join(run_id.as_str());
        let mut bytes = 0;
        for name in [DATA_FILE, MANIFEST_FILE] {
            let path = dir.join(name);
            bytes += match fs::metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                found => found.map_err(Error::io("look at", &path))?.blocks() * BLOCK_SIZE,
            };
        }
        Ok(ByteSize(bytes))
    }

    /// Lists the stages below `stages`, which may not exist.
    ///
    /// # Errors
    /// The system's.
    pub fn list(stages: &Path) -> Result<Vec<ListedStage>, Error> {
        let listed =
            |(name, written): (String, _)| Some(ListedStage { run_id: RunId::parse(&name).ok()?, written });
        Ok(list(stages)?.into_iter().filter_map(listed).collect())
    }

    /// Removes stages below `stages` if their process ended while it wrote them, as after an interrupt at the terminal.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_unfinished(stages: &Path) -> Result<(), Error> {
        for (name, _) in list(stages)? {
            let dir = stages.join(&name);
            if !name.starts_with(UNFINISHED_PREFIX) {
                continue;
            }
            // The process that writes it holds the lock.
            if let Some(lock) = Lock::attempt(&dir).map_err(Error::io("lock", &dir))? {
                remove_dir(&dir)?;
                drop(lock);
            }
        }
        Ok(())
    }
}

/// Lists the names below `stages` with the times of their last change.
fn list(stages: &Path) -> Result<Vec<(String, SystemTime)>, Error> {
    let unreadable = || Error::io("list", stages);
    let entries = match fs::read_dir(stages) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unreadable())?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unreadable())?;
        // Another process may have removed it a moment ago.
        let Ok(written) = entry.metadata().and_then(|found| found.modified()) else { continue };
        found.extend(entry.file_name().into_string().ok().map(|name| (name, written)));
    }
    Ok(found)
}

fn remove_dir(dir: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(Error::io("remove", dir)),
    }
}

/// Directory that is removed on drop, unless it was renamed. It is locked, so that an abandoned one is recognised.
#[derive(Debug)]
pub(crate) struct UnfinishedDir {
    pub(crate) path: PathBuf,
    #[expect(dead_code, reason = "dropping it releases the lock")]
    lock: Lock,
}

impl UnfinishedDir {
    /// Creates the directory below `stages`, and that one if it is missing. Removes abandoned ones first.
    pub(crate) fn create(stages: &Path) -> Result<Self, Error> {
        // The directory of workspaces is refused later if others can enter it.
        for dir in [stages.parent(), Some(stages)].into_iter().flatten() {
            state_file::create_dir(dir).map_err(Error::io("make", dir))?;
        }
        Stage::remove_unfinished(stages)?;
        loop {
            let path = stages.join(format!("{UNFINISHED_PREFIX}{:032x}", platform_runtime::random::bits()));
            // Until it is locked it looks abandoned, and another process may remove it.
            match state_file::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                created => created.map_err(Error::io("make", &path))?,
            }
            if let Some(lock) = Lock::attempt(&path).map_err(Error::io("lock", &path))? {
                return Ok(Self { path, lock });
            }
        }
    }
}

impl Drop for UnfinishedDir {
    fn drop(&mut self) {
        if let Err(error) = remove_dir(&self.path) {
            let error = platform_runtime::report::chain(&error);
            tracing::warn!(path = %self.path.display(), error, "an unfinished stage was not removed; left for gc");
        }
    }
}
