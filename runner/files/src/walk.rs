//! Walks the directory a user named: follows no link, applies ignore rules, leaves out secrets, finds special files.

use std::{collections::HashSet, ffi::OsStr, ops::RangeInclusive, os::unix::ffi::OsStrExt, path::Path};

use platform_core::limit::ByteSize;
use rustix::{
    fs::{AtFlags, Dir, FileType, StatxFlags, statx},
    io::Errno,
};

use super::{
    beneath::{TreeRoot, Unreadable, is_dot},
    error::{CopyProblem, Error},
    file_name::is_git_dir,
    ignores::{EntryForm, IgnoreRules, OuterRules},
    path::RelativePath,
    rules::{COUNTED_FACTOR, Patterns, Scope},
    secrets::{KEY_CHECK_LEN, begins_with_key, may_hold_secrets},
    selected::{SelectedEntry, SelectedForm},
};

/// Most names in a path that is copied.
const MAX_DEPTH: usize = 128;
/// Most entries that are kept in memory. More are only counted: every bound on files is below this.
const MAX_ENTRIES: usize = 2_000_000;
/// Sizes of files that are searched for a private key: the shortest is longer, and the longest shorter.
const KEY_SIZES: RangeInclusive<u64> = 64..=64 << 10;

/// Entries that a walk takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Take<'r> {
    /// Those that rules allow, without repositories' own directories.
    Rules { scope: Scope, include: &'r Patterns },
    /// All, as in a clone that was made a moment ago.
    Everything,
}

/// File with its size.
#[derive(Debug)]
pub(crate) struct SizedFile {
    pub(crate) path: RelativePath,
    size: ByteSize,
}

/// Walk through a directory, and its findings.
#[derive(Debug)]
pub(crate) struct SourceWalk<'r> {
    dir: &'r Path,
    pub(crate) root: TreeRoot,
    take: Take<'r>,
    rules: IgnoreRules,
    pending: Vec<PendingDir>,
    pub(crate) entries: Vec<SelectedEntry>,
    pub(crate) left_out: Vec<RelativePath>,
    pub(crate) problems: Vec<CopyProblem>,
    pub(crate) count: u64,
    pub(crate) bytes: ByteSize,
    pub(crate) largest: Option<SizedFile>,
}

/// Directory to walk; `None` is the root.
#[derive(Debug)]
struct PendingDir {
    path: Option<RelativePath>,
    /// Reason that only files which a pattern names are taken out of it.
    why_left_out: Option<LeftOut>,
}

/// Reason to leave a directory out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeftOut {
    /// Its files may hold secrets, and are named.
    Secret,
    /// Git ignores it.
    Ignored,
}

/// Entry of a directory as it was found.
struct FoundEntry {
    path: RelativePath,
    file_type: FileType,
    size: ByteSize,
}

impl<'r> SourceWalk<'r> {
    pub(crate) fn new(dir: &'r Path, outer: &[OuterRules], take: Take<'r>) -> Result<Self, Error> {
        let root = TreeRoot::open(dir).map_err(Error::os("open the directory", dir))?;
        Ok(Self {
            dir,
            root,
            take,
            rules: IgnoreRules::new(outer),
            pending: vec![PendingDir { path: None, why_left_out: None }],
            entries: Vec::new(),
            left_out: Vec::new(),
            problems: Vec::new(),
            count: 0,
            bytes: ByteSize(0),
            largest: None,
        })
    }

    /// Walks to the end, and sorts the findings. A tree with far more than `max_files` is left early: the whole file
    /// system would take minutes to be refused.
    pub(crate) fn run(mut self, max_files: u64) -> Result<Self, Error> {
        while self.count <= max_files.saturating_mul(COUNTED_FACTOR)
            && let Some(dir) = self.pending.pop()
        {
            if let Err(errno) = self.list(&dir) {
                self.note_failure(dir.path, errno)?;
            }
        }
        self.add_missing_parents();
        self.entries.sort_by(|one, other| one.path.cmp(&other.path));
        self.left_out.sort();
        Ok(self)
    }

    /// Takes the directories above a file that was taken out of a directory that was left out.
    fn add_missing_parents(&mut self) {
        let is_dir = |entry: &&SelectedEntry| entry.form == SelectedForm::Directory;
        let mut dirs: HashSet<_> =
            self.entries.iter().filter(is_dir).map(|entry| entry.path.clone()).collect();
        let mut missing = Vec::new();
        for entry in &self.entries {
            let mut parent = entry.path.parent();
            while let Some(path) = parent.take_if(|path| !dirs.contains(path)) {
                dirs.insert(path.clone());
                parent = path.parent();
                missing.push(SelectedEntry { path, form: SelectedForm::Directory });
            }
        }
        self.count += missing.len() as u64;
        self.entries.append(&mut missing);
    }

    fn note_failure(&mut self, dir: Option<RelativePath>, errno: Errno) -> Result<(), Error> {
        let Some(path) = dir else { return Err(Error::os("list", self.dir)(errno)) };
        self.problems.push(match errno {
            Errno::XDEV => CopyProblem::OtherFileSystem { path },
            errno => CopyProblem::Unreadable { path, why: Unreadable::from(errno) },
        });
        Ok(())
    }

    fn list(&mut self, dir: &PendingDir) -> Result<(), Errno> {
        let path = dir.path.as_ref().map_or(Path::new(""), RelativePath::as_path);
        let mut listed = Dir::new(self.root.open_dir(path)?)?;
        if matches!(self.take, Take::Rules { scope: Scope::Tracked, .. }) {
            self.rules.read_dir(&self.root, path);
        }
        while let Some(entry) = listed.next() {
            let entry = entry?;
            let name = entry.file_name();
            if is_dot(name) {
                continue;
            }
            let facts = StatxFlags::TYPE | StatxFlags::SIZE;
            let found = match statx(listed.fd()?, name, AtFlags::SYMLINK_NOFOLLOW, facts) {
                Ok(found) => found,
                // It was removed a moment ago.
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            };
            let joined = path.join(OsStr::from_bytes(name.to_bytes()));
            match RelativePath::parse(&joined) {
                Ok(path) if path.names().count() <= MAX_DEPTH => {
                    let file_type = FileType::from_raw_mode(found.stx_mode.into());
                    let size = ByteSize(found.stx_size);
                    self.judge(FoundEntry { path, file_type, size }, dir);
                }
                _ => self.note_too_deep(&joined),
            }
        }
        Ok(())
    }

    fn note_too_deep(&mut self, path: &Path) {
        let top = path.iter().next().and_then(|top| RelativePath::parse(top).ok());
        let known = |top: &RelativePath| {
            self.problems
                .iter()
                .any(|problem| matches!(problem, CopyProblem::TooDeep { top: known, .. } if known == top))
        };
        if let Some(top) = top.filter(|top| !known(top)) {
            self.problems.push(CopyProblem::TooDeep { top, max: MAX_DEPTH });
        }
    }

    /// Takes `entry` of `dir`, or leaves it out.
    fn judge(&mut self, entry: FoundEntry, dir: &PendingDir) {
        let Take::Rules { scope, include } = self.take else {
            return self.take_entry(entry);
        };
        if is_git_dir(entry.path.name()) {
            return;
        }
        if include.matches(&entry.path) {
            return self.take_entry(entry);
        }
        let Some(why) = self.why_left_out(&entry, dir, scope) else {
            return self.take_entry(entry);
        };
        // A pattern may name a file below it.
        if entry.file_type == FileType::Directory && !include.is_empty() {
            self.pending.push(PendingDir { path: Some(entry.path), why_left_out: Some(why) });
        } else if why == LeftOut::Secret {
            self.left_out.push(entry.path);
        }
    }

    /// Returns the reason to leave `entry` of `dir` out.
    fn why_left_out(&self, entry: &FoundEntry, dir: &PendingDir, scope: Scope) -> Option<LeftOut> {
        let is_dir = entry.file_type == FileType::Directory;
        if dir.why_left_out.is_some() {
            return dir.why_left_out;
        }
        if may_hold_secrets(entry.path.name()) || self.is_key(entry) {
            return Some(LeftOut::Secret);
        }
        let form = if is_dir { EntryForm::Directory } else { EntryForm::Other };
        let is_ignored = scope == Scope::Tracked && self.rules.ignores(entry.path.as_path(), form);
        is_ignored.then_some(LeftOut::Ignored)
    }

    /// Returns whether the entry is a file with a private key. One that cannot be read is refused later.
    fn is_key(&self, entry: &FoundEntry) -> bool {
        let may_be = entry.file_type == FileType::RegularFile && KEY_SIZES.contains(&entry.size.0);
        let mut beginning = [0; KEY_CHECK_LEN];
        may_be
            && self
                .root
                .open_file(entry.path.as_path())
                .and_then(|mut file| file.read_piece(&mut beginning))
                .is_ok_and(|len| begins_with_key(&beginning[..len]))
    }

    fn take_entry(&mut self, entry: FoundEntry) {
        let FoundEntry { path, file_type, size } = entry;
        let form = match file_type {
            FileType::RegularFile => SelectedForm::File(size),
            FileType::Directory => SelectedForm::Directory,
            FileType::Symlink => match self.root.read_link(path.as_path()) {
                Ok(target) => SelectedForm::Link(target),
                Err(why) => {
                    self.problems.push(CopyProblem::Unreadable { path, why });
                    return;
                }
            },
            special => {
                self.problems.push(CopyProblem::Special { path, form: form_text(special) });
                return;
            }
        };
        self.count += 1;
        match form {
            SelectedForm::File(size) => self.add_size(&path, size),
            SelectedForm::Directory => {
                self.pending.push(PendingDir { path: Some(path.clone()), why_left_out: None });
            }
            SelectedForm::Link(_) => {}
        }
        if self.entries.len() < MAX_ENTRIES {
            self.entries.push(SelectedEntry { path, form });
        }
    }

    fn add_size(&mut self, path: &RelativePath, size: ByteSize) {
        self.bytes = ByteSize(self.bytes.0.saturating_add(size.0));
        if self.largest.as_ref().is_none_or(|largest| largest.size < size) {
            self.largest = Some(SizedFile { path: path.clone(), size });
        }
    }
}

/// Returns the form of an entry that holds nothing to copy, with its article.
pub(crate) const fn form_text(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "a special file",
    }
}
