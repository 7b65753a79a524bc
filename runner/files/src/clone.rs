//! Makes a fresh clone of a repository with the host's git: no remotes, no hooks, no settings of the original.
//!
//! The repository may be hostile. Git reads it only as a server of clones does, which runs nothing that its
//! configuration names.

use std::{
    collections::{BTreeSet, HashSet},
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use platform_core::limit::ByteSize;

use super::{
    beneath::TreeRoot,
    error::Error,
    path::RelativePath,
    room::check_room,
    rules::{CopyBounds, CopyRules, Patterns, Scope},
    secrets::may_hold_secrets,
    selected::{SelectedEntry, SelectedForm},
    selection::Selection,
    stage::UnfinishedDir,
};

/// Directories of programs, where git is looked for.
const PROGRAM_DIRS: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Settings for git instead of the user's. The owner of the repository may be another user than root.
const GIT_SETTINGS: &str = "[safe]\n\tdirectory = *\n[core]\n\thooksPath = /dev/null\n\tfsmonitor = false\n\
                            [protocol \"file\"]\n\tallow = always\n[transfer]\n\tfsckObjects = true\n\
                            [advice]\n\tdetachedHead = false\n";
/// Environment of git, besides its settings.
const GIT_ENVIRONMENT: [(&str, &str); 4] =
    [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_NO_LAZY_FETCH", "1"), ("LC_ALL", "C")];
/// Arguments that clone the current branch. Its files are written once their size is known.
const CLONE_ARGUMENTS: [&str; 8] = [
    "clone",
    "--quiet",
    "--no-checkout",
    "--no-local",
    "--no-hardlinks",
    "--single-branch",
    "--template=",
    "--",
];
/// Arguments that list all files that a commit of the history added.
const LIST_ARGUMENTS: [&str; 8] =
    ["log", "--root", "--diff-filter=A", "--no-renames", "--name-only", "-z", "--format=", "HEAD"];
/// Longest time for one step of a clone.
const MAX_GIT_TIME: Duration = Duration::from_mins(10);
/// Exit status of `timeout` when the time is over.
const TIMEOUT_STATUS: i32 = 124;
/// Name of the file with these settings.
const SETTINGS_FILE: &str = "gitconfig";
/// Name of the clone's directory.
const CLONE_DIR: &str = "clone";
/// Sections of a clone's settings that it needs to be read at all.
const KEPT_SECTIONS: [&str; 2] = ["[core]", "[extensions]"];
/// Largest content that is compared to find uncommitted changes; larger ones count by size.
const MAX_COMPARED_SIZE: ByteSize = ByteSize::mib(64);

/// Clone of a repository in its own directory, removed on drop.
#[derive(Debug)]
pub struct FreshClone {
    dir: UnfinishedDir,
    source_dir: PathBuf,
}

impl FreshClone {
    /// Clones the current branch of the repository with top directory `dir` into a directory below `stages`, if it
    /// fits into `bounds` and leaves `reserve` on the disk.
    ///
    /// # Errors
    /// [`Error::NotARepository`] with the last line git wrote, [`Error::LargeRepository`], [`Error::NoRoom`],
    /// [`Error::SlowClone`], and the system's errors.
    pub fn make(stages: &Path, dir: &Path, bounds: CopyBounds, reserve: ByteSize) -> Result<Self, Error> {
        let source_dir = fs::canonicalize(dir).map_err(Error::io("open the directory", dir))?;
        let clone = Self { dir: UnfinishedDir::create(stages)?, source_dir };
        let settings = clone.dir.path.join(SETTINGS_FILE);
        fs::write(&settings, GIT_SETTINGS).map_err(Error::io("write", &settings))?;
        let history = object_bytes(&clone.run_git(&clone.source_dir, &["count-objects", "-v"])?);
        clone.check_size(history, bounds, reserve)?;
        let source = clone.source_dir.clone().into_os_string();
        let target = clone.path().into_os_string();
        let arguments =
            CLONE_ARGUMENTS.iter().map(OsStr::new).chain([source.as_os_str(), target.as_os_str()]);
        clone.run_git(&clone.dir.path, &arguments.collect::<Vec<_>>())?;
        let files = tree_bytes(&clone.run_git(&clone.path(), &["ls-tree", "-r", "-l", "-z", "HEAD"])?);
        clone.check_size(files, bounds, reserve)?;
        clone.run_git(&clone.path(), &["reset", "--quiet", "--hard"])?;
        clone.forget_origin()?;
        Ok(clone)
    }

    fn check_size(&self, found: ByteSize, bounds: CopyBounds, reserve: ByteSize) -> Result<(), Error> {
        if found > bounds.bytes {
            let path = self.source_dir.clone();
            return Err(Error::LargeRepository { path, found, max: bounds.bytes });
        }
        check_room(found, reserve, &self.dir.path)
    }

    fn path(&self) -> PathBuf {
        self.dir.path.join(CLONE_DIR)
    }

    /// Runs git in `dir`, and returns its output. Its time is limited.
    fn run_git(&self, dir: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<Vec<u8>, Error> {
        let mut command = Command::new("timeout");
        command.env_clear().env("PATH", PROGRAM_DIRS).envs(GIT_ENVIRONMENT);
        command.env("GIT_CONFIG_GLOBAL", self.dir.path.join(SETTINGS_FILE));
        // In the foreground, an interrupt at the terminal ends git, too.
        command.args(["--foreground", "--kill-after=5", &MAX_GIT_TIME.as_secs().to_string(), "git", "-C"]);
        command.arg(dir).args(arguments).current_dir(&self.dir.path).stdin(Stdio::null());
        let output =
            command.output().map_err(Error::io("start git, which --git needs, in", &self.source_dir))?;
        let path = self.source_dir.clone();
        match output.status.code() {
            Some(0) => return Ok(output.stdout),
            Some(TIMEOUT_STATUS) => return Err(Error::SlowClone { path, max: MAX_GIT_TIME }),
            _ => {}
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().rfind(|line| !line.is_empty()).unwrap_or("git failed without a word");
        let source = io::Error::other(platform_runtime::terminal::safe(last).into_owned());
        Err(Error::NotARepository { path, source })
    }

    /// Returns the files of the last commit and of its history that may hold secrets by their names, sorted.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub fn secret_files(&self) -> Result<Vec<RelativePath>, Error> {
        let listed = self.run_git(&self.path(), &LIST_ARGUMENTS)?;
        let paths = listed.split(|byte| *byte == 0);
        let paths = paths.filter_map(|path| RelativePath::parse(OsStr::from_bytes(path)).ok());
        let secret = paths.filter(|path| path.names().any(may_hold_secrets));
        Ok(secret.collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Removes all that tells of the original: its remote, the log of the clone, settings.
    fn forget_origin(&self) -> Result<(), Error> {
        let git_dir = self.path().join(".git");
        for name in ["logs", "hooks", "refs/remotes"] {
            ignore_missing(fs::remove_dir_all(git_dir.join(name))).map_err(Error::io("remove", &git_dir))?;
        }
        for name in ["FETCH_HEAD", "ORIG_HEAD"] {
            ignore_missing(fs::remove_file(git_dir.join(name))).map_err(Error::io("remove", &git_dir))?;
        }
        let edit = |name: &str, edit: fn(&str) -> String| {
            let path = git_dir.join(name);
            match fs::read_to_string(&path) {
                Ok(text) => fs::write(&path, edit(&text)).map_err(Error::io("write", &path)),
                Err(error) => ignore_missing(Err(error)).map_err(Error::io("read", &path)),
            }
        };
        edit("config", necessary_settings)?;
        edit("packed-refs", without_remotes)
    }

    /// Selects all files of the clone, `.git` among them.
    ///
    /// # Errors
    /// As [`Selection::of`].
    pub fn select(&self, bounds: CopyBounds) -> Result<Selection, Error> {
        Selection::of_clone(&self.path(), &self.source_dir, bounds)
    }

    /// Returns the number of files in the original that differ from its last commit: they are not in the clone. Git is
    /// not asked, because it would run filters that the repository names.
    ///
    /// # Errors
    /// The system's.
    pub fn uncommitted_files(&self) -> Result<u64, Error> {
        let bounds = CopyBounds { files: u64::MAX, bytes: ByteSize(u64::MAX) };
        let cloned = self.select(bounds)?;
        let source = TreeRoot::open(&self.source_dir).map_err(Error::os("open", &self.source_dir))?;
        let own = cloned.entries.iter().filter(|entry| !entry.path.is_in_git_dir());
        let changed = own.filter(|entry| differs(entry, &source, &cloned.root)).count() as u64;
        Ok(changed + self.added_files(&cloned, bounds)?)
    }

    /// Returns the number of files in the original that `cloned` does not have.
    fn added_files(&self, cloned: &Selection, bounds: CopyBounds) -> Result<u64, Error> {
        let rules = CopyRules { scope: Scope::Tracked, include: Patterns::default(), bounds };
        let working = match Selection::of(&self.source_dir, &rules) {
            Ok(working) => working,
            // Special files are never committed.
            Err(Error::Uncopyable { problems, .. }) => return Ok(problems.len() as u64),
            Err(error) => return Err(error),
        };
        let committed: HashSet<_> = cloned.entries.iter().map(|entry| &entry.path).collect();
        let is_added = |entry: &&SelectedEntry| {
            entry.form != SelectedForm::Directory && !committed.contains(&entry.path)
        };
        Ok(working.entries.iter().filter(is_added).count() as u64)
    }
}

/// Returns the size of all objects from what `git count-objects -v` prints.
fn object_bytes(printed: &[u8]) -> ByteSize {
    let printed = String::from_utf8_lossy(printed);
    let kibibytes = printed.lines().filter_map(|line| line.split_once(": "));
    let kibibytes = kibibytes.filter(|(name, _)| ["size", "size-pack"].contains(name));
    let sum = kibibytes.filter_map(|(_, size)| size.parse::<u64>().ok()).fold(0, u64::saturating_add);
    ByteSize(sum.saturating_mul(1024))
}

/// Returns the size of all files from what `git ls-tree -l -z` prints: mode, form, id and size before each name.
fn tree_bytes(printed: &[u8]) -> ByteSize {
    let entries = printed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let size = |entry: std::borrow::Cow<'_, str>| entry.split_whitespace().nth(3)?.parse::<u64>().ok();
    ByteSize(entries.filter_map(size).fold(0, u64::saturating_add))
}

/// Returns whether `entry` is another in `source` than in `cloned`.
fn differs(entry: &SelectedEntry, source: &TreeRoot, cloned: &TreeRoot) -> bool {
    let path = entry.path.as_path();
    let content = |tree: &TreeRoot| tree.open_file(path).and_then(|file| file.content(MAX_COMPARED_SIZE));
    match &entry.form {
        SelectedForm::Directory => false,
        SelectedForm::Link(target) => source.read_link(path).as_ref() != Ok(target),
        SelectedForm::File(_) => content(source) != content(cloned),
    }
}

/// Returns the sections of `settings` without which git cannot read the clone.
fn necessary_settings(settings: &str) -> String {
    let mut is_kept = false;
    let keeps = |line: &&str| {
        if line.starts_with('[') {
            is_kept = KEPT_SECTIONS.contains(&line.trim());
        }
        is_kept
    };
    settings.lines().filter(keeps).flat_map(|line| [line, "\n"]).collect()
}

/// Returns the packed references without those of remotes.
fn without_remotes(references: &str) -> String {
    let own = |line: &&str| !line.contains(" refs/remotes/");
    references.lines().filter(own).flat_map(|line| [line, "\n"]).collect()
}

fn ignore_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
