//! Makes a fresh clone of a repository with the host's git: no remotes, no hooks, no settings of the original.
//!
//! The repository may be hostile. Git reads it only as a server of clones does, which runs nothing that its
//! configuration names.

use std::{
    collections::HashSet,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use platform_core::limit::ByteSize;

use super::{
    beneath::TreeRoot,
    error::Error,
    rules::{CopyBounds, CopyRules, Patterns, Scope},
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
/// Name of the file with these settings.
const SETTINGS_FILE: &str = "gitconfig";
/// Name of the clone's directory.
const CLONE_DIR: &str = "clone";
/// Sections of a clone's settings that it needs to be read at all.
const KEPT_SECTIONS: [&str; 2] = ["[core]", "[extensions]"];
/// Largest content that is compared to find uncommitted changes; larger ones count by size.
const MAX_COMPARED_SIZE: ByteSize = ByteSize::mib(64);

/// Clone of a repository in a directory of its own, removed on drop.
#[derive(Debug)]
pub struct FreshClone {
    dir: UnfinishedDir,
    source_dir: PathBuf,
}

impl FreshClone {
    /// Clones the current branch of the repository whose top directory is `dir` into a directory below `stages`.
    ///
    /// # Errors
    /// [`Error::NotARepository`] with the last line git wrote, and the system's errors.
    pub fn make(stages: &Path, dir: &Path) -> Result<Self, Error> {
        let source_dir = fs::canonicalize(dir).map_err(Error::io("open the directory", dir))?;
        let clone = Self { dir: UnfinishedDir::create(stages)?, source_dir };
        let settings = clone.dir.0.join(SETTINGS_FILE);
        fs::write(&settings, GIT_SETTINGS).map_err(Error::io("write", &settings))?;
        clone.run_git()?;
        clone.forget_origin()?;
        Ok(clone)
    }

    fn path(&self) -> PathBuf {
        self.dir.0.join(CLONE_DIR)
    }

    fn run_git(&self) -> Result<(), Error> {
        let output = Command::new("git")
            .env_clear()
            .env("PATH", PROGRAM_DIRS)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", self.dir.0.join(SETTINGS_FILE))
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("LC_ALL", "C")
            .args([
                "clone",
                "--quiet",
                "--no-local",
                "--no-hardlinks",
                "--single-branch",
                "--template=",
                "--",
            ])
            .arg(&self.source_dir)
            .arg(self.path())
            .current_dir(&self.dir.0)
            .stdin(Stdio::null())
            .output()
            .map_err(Error::io("start git, which --git needs, in", &self.source_dir))?;
        // A repository without a commit is cloned, with a warning.
        if output.status.success() && self.has_commit() {
            return Ok(());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().rfind(|line| !line.is_empty()).unwrap_or("git failed without a word");
        let source = io::Error::other(platform_runtime::terminal::safe(last).into_owned());
        Err(Error::NotARepository { path: self.source_dir.clone(), source })
    }

    fn has_commit(&self) -> bool {
        let git_dir = self.path().join(".git");
        git_dir.join("index").exists()
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
