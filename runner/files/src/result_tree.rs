//! Reads which files a run has now: follows no link, enters no other file system, and hides what rules ignore.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use platform_core::name::path::REPO_DIR;
use rustix::{
    fs::{AtFlags, Dir, FileType, StatxFlags, fstat, statx},
    io::Errno,
};
use serde::Serialize;

use super::{
    beneath::{PlainFile, TreeRoot, Unreadable, is_dot},
    error::Error,
    file_name::is_git_dir,
    ignores::{EntryForm, IGNORE_FILES, IgnoreRules},
    manifest::{ManifestEntry, StoredForm},
    path::{RelativePath, any_path},
    rules::Scope,
    selection::Origin,
    stage::Stage,
    walk::form_text,
};

/// Most entries of a result that are read.
pub const MAX_RESULT_ENTRIES: u64 = 500_000;

/// Files of a run, as its workspace has them now.
#[derive(Debug)]
pub struct ResultTree {
    /// The workspace's tree, and its identity when it was opened.
    tree: PathBuf,
    opened: TreeIdentity,
    root: TreeRoot,
    entries: BTreeMap<RelativePath, ResultForm>,
    hidden: HiddenEntries,
}

/// Facts by which a directory is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TreeIdentity {
    device: u64,
    inode: u64,
}

impl TreeIdentity {
    fn of(tree: &TreeRoot) -> Result<Self, Errno> {
        let found = fstat(tree)?;
        Ok(Self { device: found.st_dev, inode: found.st_ino })
    }
}

/// Entries of a result that are not read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HiddenEntries {
    /// Repositories' own directories that the run did not receive.
    pub git_dirs: Vec<RelativePath>,
    /// New files and directories that ignore rules name, without the content of the directories.
    pub ignored: Vec<RelativePath>,
}

/// Form of an entry of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultForm {
    /// A regular file.
    File {
        /// Number of bytes.
        size: u64,
        /// Permission of the owner to execute the file.
        executable: bool,
    },
    /// A symbolic link with its target.
    Link(#[serde(with = "any_path")] PathBuf),
    /// A directory.
    Directory,
    /// An entry that cannot be read, with the reason.
    Unreadable(String),
}

impl ResultForm {
    /// Returns the apparent size of a file, and 0 for anything else.
    pub(crate) const fn size(&self) -> u64 {
        if let Self::File { size, .. } = self { *size } else { 0 }
    }
}

impl ResultTree {
    /// Lists the files in the directory `repo` of `tree`, which `stage` has filled. New files that ignore rules name
    /// are hidden in [`Scope::Tracked`]: those rules count that the run received, not those its agent wrote.
    ///
    /// # Errors
    /// [`Error::NoResult`] if the directory is missing, [`Error::TooManyResults`], and [`Error::ResultRemoved`].
    pub fn read(tree: &Path, stage: &Stage, scope: Scope) -> Result<Self, Error> {
        let no_result = |errno: Errno| Error::NoResult { tree: tree.to_owned(), source: errno.into() };
        let above = TreeRoot::open(tree).map_err(no_result)?;
        let opened = TreeIdentity::of(&above).map_err(no_result)?;
        let root = above.subtree(Path::new(REPO_DIR)).map_err(no_result)?;
        let tree = tree.to_owned();
        let mut listing = Listing {
            stage,
            rules: (scope == Scope::Tracked).then(|| received_rules(stage)).transpose()?,
            found: Self { tree, opened, root, entries: BTreeMap::new(), hidden: HiddenEntries::default() },
            pending: vec![None],
        };
        while let Some(dir) = listing.pending.pop() {
            let listed = listing.list(dir.as_ref());
            match (listed, dir) {
                (Ok(()), _) => {}
                (Err(errno), Some(dir)) => {
                    let why = ResultForm::Unreadable(reason(Unreadable::from(errno)));
                    listing.found.entries.insert(dir, why);
                }
                (Err(errno), None) => {
                    return Err(Error::os("list the files in", &listing.found.tree)(errno));
                }
            }
            if listing.found.entries.len() as u64 > MAX_RESULT_ENTRIES {
                return Err(Error::TooManyResults { max: MAX_RESULT_ENTRIES });
            }
        }
        listing.found.verify_kept()?;
        Ok(listing.found)
    }

    /// Checks that the workspace still exists. Files that were missing until then are missing in the result; later they
    /// may be missing because the workspace is being removed.
    ///
    /// # Errors
    /// [`Error::ResultRemoved`].
    pub fn verify_kept(&self) -> Result<(), Error> {
        let present = TreeRoot::open(&self.tree).and_then(|tree| TreeIdentity::of(&tree));
        if present == Ok(self.opened) {
            return Ok(());
        }
        Err(Error::ResultRemoved { tree: self.tree.clone() })
    }

    /// Returns all entries, sorted by path.
    pub fn entries(&self) -> impl Iterator<Item = (&RelativePath, &ResultForm)> {
        self.entries.iter()
    }

    /// Returns the form of the entry at `path`.
    #[must_use]
    pub fn form(&self, path: &RelativePath) -> Option<&ResultForm> {
        self.entries.get(path)
    }

    /// Returns the entries that were not read.
    #[must_use]
    pub const fn hidden(&self) -> &HiddenEntries {
        &self.hidden
    }

    /// Opens the file `path`, which must have one name.
    ///
    /// # Errors
    /// [`Unreadable`], with the reason.
    pub fn open_file(&self, path: &RelativePath) -> Result<PlainFile, Unreadable> {
        self.root.open_file(path.as_path())?.with_one_name()
    }
}

/// Returns `why` as a text with the system's own reason, if there is one.
pub(crate) fn reason(why: Unreadable) -> String {
    platform_runtime::report::chain(&why)
}

/// Returns the ignore rules among the files of `stage`.
fn received_rules(stage: &Stage) -> Result<IgnoreRules, Error> {
    let mut rules = IgnoreRules::new(&stage.manifest().outer_rules);
    let mut by_dir: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    for ManifestEntry { path, form } in stage.manifest().entries() {
        let StoredForm::File(file) = form else { continue };
        if IGNORE_FILES.iter().any(|name| path.name() == *name) && !path.is_in_git_dir() {
            let dir = path.as_path().parent().unwrap_or(Path::new(""));
            let text = by_dir.entry(dir.to_owned()).or_default();
            text.extend(stage.content(file)?);
            text.push(b'\n');
        }
    }
    by_dir.iter().for_each(|(dir, text)| rules.add(dir, text));
    Ok(rules)
}

/// Walk through a result.
struct Listing<'s> {
    stage: &'s Stage,
    rules: Option<IgnoreRules>,
    found: ResultTree,
    /// Directories to list; `None` is the root.
    pending: Vec<Option<RelativePath>>,
}

impl Listing<'_> {
    fn list(&mut self, dir: Option<&RelativePath>) -> Result<(), Errno> {
        let path = dir.map_or(Path::new(""), RelativePath::as_path);
        let mut listed = Dir::new(self.found.root.open_dir(path)?)?;
        while let Some(entry) = listed.next() {
            let entry = entry?;
            let name = entry.file_name();
            if is_dot(name) {
                continue;
            }
            let facts = StatxFlags::BASIC_STATS;
            let found = match statx(listed.fd()?, name, AtFlags::SYMLINK_NOFOLLOW, facts) {
                Ok(found) => found,
                // It was removed a moment ago.
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            };
            // A path that is too long cannot be opened either.
            let path = RelativePath::parse(path.join(OsStr::from_bytes(name.to_bytes())));
            let Ok(path) = path else { return Err(Errno::NAMETOOLONG) };
            let file_type = FileType::from_raw_mode(found.stx_mode.into());
            if self.hides(&path, file_type) {
                continue;
            }
            let form = match file_type {
                FileType::RegularFile if found.stx_nlink > 1 => {
                    ResultForm::Unreadable(reason(Unreadable::Linked { names: found.stx_nlink.into() }))
                }
                FileType::RegularFile => {
                    ResultForm::File { size: found.stx_size, executable: found.stx_mode & 0o100 != 0 }
                }
                FileType::Symlink => self
                    .found
                    .root
                    .read_link(path.as_path())
                    .map_or_else(|why| ResultForm::Unreadable(reason(why)), ResultForm::Link),
                FileType::Directory => {
                    self.pending.push(Some(path.clone()));
                    ResultForm::Directory
                }
                special => ResultForm::Unreadable(format!("is {}", form_text(special))),
            };
            self.found.entries.insert(path, form);
        }
        Ok(())
    }

    /// Returns whether the entry is not part of the result, and notes it.
    fn hides(&mut self, path: &RelativePath, file_type: FileType) -> bool {
        let manifest = self.stage.manifest();
        if is_git_dir(path.name()) {
            if manifest.origin != Origin::Clone || path.parent().is_some() {
                self.found.hidden.git_dirs.push(path.clone());
            }
            return true;
        }
        let form = if file_type == FileType::Directory { EntryForm::Directory } else { EntryForm::Other };
        let is_ignored = self.rules.as_ref().is_some_and(|rules| rules.ignores(path.as_path(), form))
            && manifest.entry(path).is_none();
        if is_ignored {
            self.found.hidden.ignored.push(path.clone());
        }
        is_ignored
    }
}
