//! Tests the whole way of files into a run and out of it, with trees made to mislead the host.

mod apply;
mod clone;
mod repository;
mod result;
mod source;
mod staged;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use platform_core::{id::RunId, limit::ByteSize};
use tempfile::TempDir;

use super::{
    Changes, CopyRules, DiffReader, Patterns, RelativePath, ResultBounds, ResultTree, Scope, Selection,
    Stage, stages_dir,
};

/// Directory of a user, and one for stages and workspaces.
struct Fixture {
    dir: TempDir,
    run_id: RunId,
}

impl Fixture {
    fn new() -> Self {
        let fixture = Self { dir: TempDir::new().unwrap(), run_id: RunId::parse("run-1").unwrap() };
        fs::create_dir(fixture.source()).unwrap();
        fs::create_dir(fixture.tree()).unwrap();
        fixture
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let fixture = Self::new();
        files.iter().for_each(|(path, content)| fixture.write(path, content));
        fixture
    }

    fn source(&self) -> PathBuf {
        self.dir.path().join("source")
    }

    /// Returns the tree of the run's workspace.
    fn tree(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    fn repo(&self) -> PathBuf {
        self.tree().join("repo")
    }

    fn stages(&self) -> PathBuf {
        stages_dir(self.dir.path())
    }

    /// Writes a file of the user's.
    fn write(&self, path: &str, content: &str) {
        write(&self.source(), path, content);
    }

    /// Writes a file as the agent does.
    fn agent_writes(&self, path: &str, content: &str) {
        write(&self.repo(), path, content);
    }

    fn select(&self, rules: &CopyRules) -> Result<Selection, super::Error> {
        Selection::of(&self.source(), rules)
    }

    /// Takes the user's files into the workspace.
    fn start_run(&self) -> Stage {
        let selection = self.select(&CopyRules::default()).unwrap();
        Stage::write(&self.stages(), &self.run_id, &selection, &mut |_| {}).unwrap();
        let stage = Stage::open(&self.stages(), &self.run_id).unwrap();
        stage.unpack(&self.tree()).unwrap();
        stage
    }

    fn result(&self, stage: &Stage) -> ResultTree {
        ResultTree::read(&self.tree(), stage, Scope::Tracked).unwrap()
    }
}

/// Bounds that only hostile files exceed.
fn bounds() -> ResultBounds {
    ResultBounds { bytes: ByteSize::mib(64), reserve: ByteSize(0) }
}

fn write(dir: &Path, path: &str, content: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn make_fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

fn link(target: &str, path: PathBuf) {
    symlink(target, path).unwrap();
}

fn path(path: &str) -> RelativePath {
    RelativePath::parse(path).unwrap()
}

fn patterns(patterns: &[&str]) -> Patterns {
    Patterns::parse(patterns).unwrap()
}

/// Returns all differences as one text.
fn diff(stage: &Stage, result: &ResultTree) -> Vec<u8> {
    let reader = DiffReader { stage, result };
    let changes = Changes::between(stage, result).unwrap();
    changes.all().iter().flat_map(|change| reader.diff(change).unwrap().text).collect()
}

fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .args(["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(dir)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    assert!(output.status.success(), "git {arguments:?}: {}", text(output.stderr));
    text(output.stdout)
}
