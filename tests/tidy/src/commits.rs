//! commits reads the subjects of commits from git, where there is a history to read.

use std::{collections::BTreeSet, path::Path, process::Command};

use crate::Offender;

/// Most characters of a commit's subject.
pub const SUBJECT: usize = 72;

/// Returns the subjects since `base` that are too long, or nothing if git does not know that commit here.
#[must_use]
pub fn long_subjects(root: &Path, base: &str) -> Option<Vec<Offender>> {
    let range = format!("{base}..HEAD");
    // An archive or a shallow clone has no such range; the rule is then held where there is one.
    let text = git(root, &["log", "--no-merges", "--format=%h%x09%s", &range, "--"])?;
    Some(text.lines().filter_map(too_long).collect())
}

/// Returns the subjects of all commits, each behind its hash and a tab; none without a history.
#[must_use]
pub fn history(root: &Path) -> String {
    git(root, &["log", "--no-merges", "--format=%h%x09%s"]).unwrap_or_default()
}

/// Returns the files that differ from the commit before the last, as far as git knows.
#[must_use]
pub fn changed(root: &Path) -> BTreeSet<String> {
    let tracked = git(root, &["diff", "--name-only", "HEAD~1", "--"]).unwrap_or_default();
    let new = git(root, &["ls-files", "--others", "--exclude-standard"]).unwrap_or_default();
    tracked.lines().chain(new.lines()).map(str::to_owned).collect()
}

/// Runs git and returns what it prints, if it succeeds.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the commit of a line `hash<TAB>subject`, if its subject is too long.
#[must_use]
pub fn too_long(line: &str) -> Option<Offender> {
    let (hash, subject) = line.split_once('\t')?;
    let length = subject.chars().count();
    let what = format!("{length} characters: {subject}");
    (length > SUBJECT).then(|| Offender { path: hash.to_owned(), line: 0, what })
}
