//! bundle_command says how a container makes the bundle of an agent's commits. Pure.
//!
//! The repository belongs to the agent: whatever it holds, git runs where nothing but that repository can be harmed.

use std::collections::BTreeMap;

use platform_core::name::path;

use crate::{branch::SandboxBranch, object_id::ObjectId, quarantine::CollectOrder};

/// Shell of the container.
const SHELL: &str = "/bin/sh";
/// Name of the script in messages of the shell.
const SCRIPT_NAME: &str = "bundle";
/// Script that writes the bundle to stdout. Its arguments are a repository, a commit and a branch. It adds 16 to its exit
/// code if there is other work: a change or a file that is in no commit, or a commit that is not on the branch. The text for a
/// pull request is taken elsewhere.
const SCRIPT: &str = r#"GIT_DIR=$1/.git
GIT_WORK_TREE=$1
export GIT_DIR GIT_WORK_TREE
[ -e "$GIT_DIR" ] || exit 4
git rev-parse --git-dir >/dev/null
case $? in 0) ;; 128) exit 4 ;; *) exit 1 ;; esac
git show-ref --verify --quiet "$3"
case $? in 0) ;; 1) exit 3 ;; *) exit 1 ;; esac
tip=$(git rev-parse --verify "$3^{commit}") || exit 1
other=0
git diff --quiet --no-ext-diff --no-textconv --ignore-submodules HEAD -- || other=16
git ls-files --others --exclude-standard --exclude=/.cogni/pr.md | read -r line && other=16
git rev-list --max-count=1 --all --not "$2" "$3" -- | read -r line && other=16
[ "$tip" != "$2" ] || exit $other
new=$(git rev-list --max-count=1 "$2..$3" --) || exit 1
[ -n "$new" ] || exit $((5 + other))
git bundle create --quiet - "$2..$3" || exit 1
exit $other
"#;
/// Environment of the script, besides settings of git.
const ENVIRONMENT: [(&str, &str); 14] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    // An empty directory in memory, which only this container has.
    ("HOME", "/tmp"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // Objects that replace others, and parents that a file invents, would leave commits out.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    // No file can be there, and git says nothing about that.
    ("GIT_GRAFT_FILE", "/dev/null/none"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_SSH_COMMAND", "/bin/false"),
    ("GIT_PAGER", "cat"),
];
/// Settings of git, which win over those of the repository.
const SETTINGS: [(&str, &str); 9] = [
    ("safe.directory", "*"),
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.attributesFile", "/dev/null"),
    ("core.packedGitLimit", "128m"),
    ("core.bigFileThreshold", "16m"),
    ("pack.threads", "1"),
    ("pack.windowMemory", "32m"),
    ("protocol.allow", "never"),
];

/// Program that writes the bundle of an agent's commits to its stdout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleCommand {
    repository: String,
    start: ObjectId,
    branch: SandboxBranch,
}

impl BundleCommand {
    /// Directory in which the program starts.
    pub const WORKING_DIRECTORY: &'static str = "/";

    /// Returns the program for the commits that `order` names, in a container with the agent's workspace.
    #[must_use]
    pub fn new(order: &CollectOrder) -> Self {
        Self { repository: path::REPO.to_owned(), start: order.start.clone(), branch: order.branch.clone() }
    }

    /// Names another repository, by the directory of its files.
    #[must_use]
    pub fn in_repository(mut self, dir: impl Into<String>) -> Self {
        self.repository = dir.into();
        self
    }

    /// Returns program and arguments.
    #[must_use]
    pub fn argv(&self) -> Vec<String> {
        let reference = self.branch.reference();
        let words = [SHELL, "-c", SCRIPT, SCRIPT_NAME, &self.repository, self.start.as_str(), &reference];
        words.map(str::to_owned).into()
    }

    /// Returns all its environment variables.
    #[must_use]
    pub fn environment(&self) -> BTreeMap<String, String> {
        let fixed = ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let count = ("GIT_CONFIG_COUNT".to_owned(), SETTINGS.len().to_string());
        let settings = SETTINGS.iter().enumerate().flat_map(|(at, (name, value))| {
            [
                (format!("GIT_CONFIG_KEY_{at}"), (*name).to_owned()),
                (format!("GIT_CONFIG_VALUE_{at}"), (*value).to_owned()),
            ]
        });
        fixed.into_iter().chain([count]).chain(settings).collect()
    }
}

/// Meaning of the exit code of a [`BundleCommand`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BundleExit {
    /// The output is the whole bundle. It is empty if the branch stands where the agent began.
    Complete,
    /// The branch does not exist any more: the agent deleted or renamed it.
    NoBranch,
    /// The agent left no repository that git opens.
    NoRepository,
    /// The agent moved the branch back: the start has all of its commits.
    Behind,
    /// Git failed.
    Failed,
}

/// Work that an agent left beside the commits of its branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherWork {
    /// The agent left none.
    Nothing,
    /// There are changes or files in no commit, or commits that are not on the branch.
    Some,
}

impl BundleExit {
    /// Returns the meaning of `exit_code`.
    #[must_use]
    pub const fn of(exit_code: i64) -> Self {
        match exit_code {
            0 | 16 => Self::Complete,
            3 => Self::NoBranch,
            4 => Self::NoRepository,
            5 | 21 => Self::Behind,
            _ => Self::Failed,
        }
    }
}

impl OtherWork {
    /// Returns the meaning of `exit_code`. A program that has failed says nothing of it.
    #[must_use]
    pub const fn of(exit_code: i64) -> Self {
        if matches!(exit_code, 16 | 21) { Self::Some } else { Self::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
        process::{Command, Output},
    };

    use tempfile::TempDir;

    use super::*;
    use crate::{
        bundle::{BundleBounds, BundleHeader},
        mirror::CloneDepth,
    };

    const BRANCH: &str = "sandbox/run-1";

    /// Repository with one commit, in a directory with a name that a shell could take for a command.
    struct Repository {
        dir: TempDir,
        start: String,
    }

    impl Repository {
        fn new() -> Self {
            let repository = Self { dir: TempDir::new().unwrap(), start: String::new() };
            fs::create_dir(repository.path()).unwrap();
            repository.git(&["init", "--quiet", &format!("--initial-branch={BRANCH}")]);
            let start = repository.commit();
            Self { start, ..repository }
        }

        fn path(&self) -> PathBuf {
            self.dir.path().join("a '$(touch x)' b")
        }

        fn git(&self, arguments: &[&str]) -> String {
            let mut git = Command::new("git");
            git.env("GIT_CONFIG_GLOBAL", "/dev/null").arg("-C").arg(self.path());
            git.args(["-c", "user.name=A", "-c", "user.email=a@b"]).args(arguments);
            let output = git.output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }

        fn commit(&self) -> String {
            self.git(&["commit", "--quiet", "--allow-empty", "-m", "Work"]);
            self.git(&["rev-parse", "HEAD"])
        }

        fn command(&self, start: &str) -> BundleCommand {
            let order = CollectOrder {
                start: ObjectId::parse(start).unwrap(),
                branch: SandboxBranch::parse(BRANCH).unwrap(),
                depth: CloneDepth::Full,
                bounds: BundleBounds::default(),
            };
            BundleCommand::new(&order).in_repository(self.path().to_str().unwrap())
        }

        fn run(&self, start: &str) -> (BundleExit, Output) {
            let command = self.command(start);
            let argv = command.argv();
            let mut program = Command::new(&argv[0]);
            program.args(&argv[1..]).env_clear().envs(command.environment());
            let output = program.current_dir(self.dir.path()).output().unwrap();
            let code = output.status.code().expect("it ends by itself");
            (BundleExit::of(code.into()), output)
        }

        fn exit(&self) -> BundleExit {
            self.run(&self.start).0
        }

        fn other_work(&self, start: &str) -> OtherWork {
            OtherWork::of(self.run(start).1.status.code().unwrap().into())
        }

        /// Returns the last commit and the number of objects of the bundle.
        fn header(&self) -> (String, u32) {
            let (exit, output) = self.run(&self.start);
            assert_eq!((exit, String::from_utf8_lossy(&output.stderr).as_ref()), (BundleExit::Complete, ""));
            let branch = SandboxBranch::parse(BRANCH).unwrap();
            let header = BundleHeader::read(&output.stdout[..], &branch, &BundleBounds::default());
            let header = header.unwrap().unwrap();
            (header.tip.to_string(), header.objects)
        }
    }

    #[test]
    fn commits_after_the_start_are_bundled() {
        let repository = Repository::new();
        let (exit, output) = repository.run(&repository.start);
        assert_eq!((exit, output.stdout.len()), (BundleExit::Complete, 0), "no commit yet");
        repository.commit();
        fs::write(repository.path().join("file"), "content").unwrap();
        repository.git(&["add", "file"]);
        let tip = repository.commit();
        // Two commits, a tree and a file.
        assert_eq!(repository.header(), (tip.clone(), 4));
        let grafts = repository.path().join(".git/info/grafts");
        fs::write(&grafts, format!("{tip} {}\n", repository.start)).unwrap();
        repository.git(&["replace", &tip, &repository.start]);
        assert_eq!(repository.header(), (tip, 4), "nothing is left out");
        assert!(!Path::new(repository.dir.path()).join("x").exists(), "no name is a command");
    }

    #[test]
    fn work_beside_the_branch_shows() {
        let repository = Repository::new();
        let file = repository.path().join("file");
        fs::write(&file, "content").unwrap();
        fs::write(repository.path().join(".gitignore"), "*.log\n").unwrap();
        repository.git(&["add", "."]);
        let tip = repository.commit();
        fs::write(repository.path().join("build.log"), "ignored").unwrap();
        let starts = [repository.start.as_str(), &tip];
        let shows = |other: OtherWork, what: &str| {
            for start in starts {
                assert_eq!(repository.run(start).0, BundleExit::Complete, "{what}");
                assert_eq!(repository.other_work(start), other, "{what}");
            }
        };
        shows(OtherWork::Nothing, "all is committed");
        fs::write(&file, "changed").unwrap();
        shows(OtherWork::Some, "a change");
        repository.git(&["add", "file"]);
        shows(OtherWork::Some, "a staged change");
        repository.git(&["stash", "--quiet"]);
        shows(OtherWork::Some, "a stashed change");
        repository.git(&["stash", "drop", "--quiet"]);
        shows(OtherWork::Nothing, "control");
        fs::create_dir(repository.path().join(".cogni")).unwrap();
        fs::write(repository.path().join(".cogni/pr.md"), "Work\n").unwrap();
        shows(OtherWork::Nothing, "the text for a pull request");
        let new = repository.path().join("a new file");
        fs::write(&new, "").unwrap();
        shows(OtherWork::Some, "a new file");
        fs::remove_file(new).unwrap();
        repository.git(&["checkout", "--quiet", "-b", "elsewhere"]);
        repository.commit();
        shows(OtherWork::Some, "a commit on another branch");
        repository.git(&["checkout", "--quiet", BRANCH]);
        shows(OtherWork::Some, "that branch is not checked out");
        repository.git(&["branch", "--quiet", "-D", "elsewhere"]);
        shows(OtherWork::Nothing, "control");
        repository.git(&["update-ref", &format!("refs/heads/{BRANCH}"), &repository.start]);
        let (exit, output) = repository.run(&tip);
        let other = OtherWork::of(output.status.code().unwrap().into());
        assert_eq!(
            (exit, other),
            (BundleExit::Behind, OtherWork::Some),
            "its files differ from the branch now"
        );
    }

    #[test]
    fn a_bundle_that_cannot_be_made_has_a_code() {
        let repository = Repository::new();
        let tip = repository.commit();
        assert_eq!(repository.run(&tip).0, BundleExit::Complete, "control");
        repository.git(&["update-ref", &format!("refs/heads/{BRANCH}"), &repository.start]);
        assert_eq!(repository.run(&tip).0, BundleExit::Behind);
        assert_eq!(repository.run(&"1".repeat(40)).0, BundleExit::Failed, "the start is not an object");
        repository.git(&["branch", "-m", "other"]);
        assert_eq!(repository.exit(), BundleExit::NoBranch);
        repository.git(&["branch", "-m", BRANCH]);
        assert_eq!(repository.exit(), BundleExit::Complete, "control");
        let object = repository.path().join(".git/objects").join(&repository.start[..2]);
        fs::rename(&object, repository.dir.path().join("away")).unwrap();
        assert_eq!(repository.exit(), BundleExit::Failed, "the commit is missing");
        fs::write(repository.path().join(".git/config"), "[core").unwrap();
        assert_eq!(repository.exit(), BundleExit::NoRepository);
        fs::remove_dir_all(repository.path().join(".git")).unwrap();
        // One above it is not taken instead.
        let above = Command::new("git").arg("init").arg("--quiet").arg(repository.dir.path()).status();
        assert!(above.unwrap().success());
        assert_eq!(repository.exit(), BundleExit::NoRepository);
    }
}
