//! Writes the two files of a stage from a selection.

use std::{
    fs::{File, OpenOptions},
    io::{BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use platform_core::limit::ByteSize;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    beneath::Unreadable,
    error::Error,
    manifest::{ContentHash, Manifest, ManifestEntry, StoredFile, StoredForm},
    path::RelativePath,
    selected::SelectedForm,
    selection::Selection,
};

/// File with the manifest.
pub(crate) const MANIFEST_FILE: &str = "manifest.json";
/// File with the contents, one after the other.
pub(crate) const DATA_FILE: &str = "data";
/// Size of the buffer for reading.
pub(crate) const BUFFER_SIZE: usize = 64 << 10;
/// Size of the buffer for writing, which gathers small files.
const WRITE_BUFFER_SIZE: usize = 1 << 20;

/// Files that were staged, in figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StagedFiles {
    /// Hash of the manifest: of all names, contents and the source directory.
    pub digest: String,
    /// Number of files and links.
    pub files: u64,
    /// Size of all files together.
    pub bytes: u64,
}

/// Progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyProgress {
    /// Files and links that are copied.
    pub files: u64,
    /// Bytes that are copied.
    pub bytes: ByteSize,
    /// All files and links.
    pub all_files: u64,
    /// All bytes.
    pub all_bytes: ByteSize,
}

/// Stage that is being written.
pub(crate) struct StageWriter<'s> {
    selection: &'s Selection,
    manifest_path: PathBuf,
    data_path: PathBuf,
    data: BufWriter<File>,
    buffer: Vec<u8>,
    offset: u64,
}

impl<'s> StageWriter<'s> {
    /// Begins to write a stage into the empty directory `dir`.
    pub(crate) fn new(dir: &Path, selection: &'s Selection) -> Result<Self, Error> {
        let data_path = dir.join(DATA_FILE);
        let data = BufWriter::with_capacity(WRITE_BUFFER_SIZE, create(&data_path)?);
        let manifest_path = dir.join(MANIFEST_FILE);
        Ok(Self { selection, manifest_path, data_path, data, buffer: vec![0; BUFFER_SIZE], offset: 0 })
    }

    /// Copies all files, and reports `progress` after each.
    pub(crate) fn write(mut self, progress: &mut dyn FnMut(CopyProgress)) -> Result<StagedFiles, Error> {
        let mut entries = Vec::with_capacity(self.selection.entries.len());
        let mut done = CopyProgress {
            files: 0,
            bytes: ByteSize(0),
            all_files: self.selection.files(),
            all_bytes: self.selection.bytes(),
        };
        for selected in &self.selection.entries {
            let path = selected.path.clone();
            let form = match &selected.form {
                SelectedForm::File(size) => StoredForm::File(self.copy(&path, *size)?),
                SelectedForm::Link(target) => StoredForm::Link(target.clone()),
                SelectedForm::Directory => StoredForm::Directory,
            };
            done.files += u64::from(form != StoredForm::Directory);
            done.bytes = ByteSize(self.offset);
            entries.push(ManifestEntry { path, form });
            progress(done);
        }
        self.data.flush().map_err(Error::io("write", &self.data_path))?;
        let digest = self.write_manifest(entries)?;
        Ok(StagedFiles { digest: digest.as_str().to_owned(), files: done.files, bytes: done.bytes.0 })
    }

    /// Appends the content of the file `path`, which was selected with `size`.
    fn copy(&mut self, path: &RelativePath, size: ByteSize) -> Result<StoredFile, Error> {
        let source_dir = &self.selection.source_dir;
        let failed = |why| Error::SourceFile { source_dir: source_dir.clone(), path: path.clone(), why };
        let mut file = self.selection.root.open_file(path.as_path()).map_err(failed)?;
        if file.size() != size.0 {
            return Err(failed(Unreadable::Changed));
        }
        let mut hasher = Sha256::new();
        while let len @ 1.. = file.read_piece(&mut self.buffer).map_err(failed)? {
            let piece = &self.buffer[..len];
            hasher.update(piece);
            self.data.write_all(piece).map_err(Error::io("write", &self.data_path))?;
        }
        let offset = self.offset;
        self.offset += size.0;
        Ok(StoredFile {
            size: size.0,
            sha256: ContentHash::finish(hasher),
            executable: file.is_executable(),
            offset,
        })
    }

    fn write_manifest(&self, entries: Vec<ManifestEntry>) -> Result<ContentHash, Error> {
        let mut manifest = Manifest::new(&self.selection.source_dir, entries);
        manifest.origin = self.selection.origin;
        manifest.outer_rules.clone_from(&self.selection.outer_rules);
        let failed = || Error::io("write", &self.manifest_path);
        let json = serde_json::to_vec(&manifest).map_err(std::io::Error::from).map_err(failed())?;
        create(&self.manifest_path)?.write_all(&json).map_err(failed())?;
        Ok(ContentHash::of(&json))
    }
}

/// Creates a file that only this user can read.
fn create(path: &Path) -> Result<File, Error> {
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    created.map_err(Error::io("make", path))
}
