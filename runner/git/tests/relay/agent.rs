//! agent is the hostile side: a clone in which plain git does what an agent could do.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use runner_git::{AgentClone, Mirror};

/// Repository of an agent.
pub(crate) struct Agent {
    pub(crate) dir: PathBuf,
    pub(crate) clone: AgentClone,
    pub(crate) mirror: Mirror,
    pub(crate) home: PathBuf,
}

/// Returns git as a careless host runs it: with the settings of the repository.
pub(crate) fn plain_git(home: &Path, dir: &Path) -> Command {
    let mut command = Command::new("git");
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", home).env("LC_ALL", "C");
    // Nothing here outlives a test, so nothing waits for the disk.
    command.env("GIT_TEST_FSYNC", "0");
    command.env("GIT_CONFIG_NOSYSTEM", "1").stdin(Stdio::null());
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "Agent")
            .env(format!("GIT_{role}_EMAIL"), "agent@example.org");
    }
    command.arg("-C").arg(dir);
    command
}

/// Returns the output of a program, which must succeed.
pub(crate) fn done(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("a program starts");
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8_lossy(&stdout).trim_end().to_owned()
}

/// Returns the output of a program that reads `input`, which must succeed.
pub(crate) fn fed(command: &mut Command, input: &[u8]) -> String {
    String::from_utf8_lossy(&fed_bytes(command, input)).trim_end().to_owned()
}

/// Returns the output of a program that reads `input`, which must succeed, as bytes.
pub(crate) fn fed_bytes(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a program starts");
    child.stdin.take().expect("it reads").write_all(input).expect("it reads all");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{command:?}");
    output.stdout
}

impl Agent {
    pub(crate) fn git(&self) -> Command {
        plain_git(&self.home, &self.dir)
    }

    /// Runs git, which must succeed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        done(self.git().args(arguments))
    }

    /// Runs git as a careless host does. It may fail.
    pub(crate) fn naive(&self, arguments: &[&str]) -> Output {
        self.git().args(arguments).output().expect("git starts")
    }

    pub(crate) fn config(&self, name: &str, value: &str) {
        self.run(&["config", name, value]);
    }

    /// Writes a file of the repository's own directory.
    pub(crate) fn plant(&self, path: &str, content: &str) -> PathBuf {
        let path = self.dir.join(".git").join(path);
        fs::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory is made");
        fs::write(&path, content).expect("a file is written");
        path
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.dir.join(path);
        fs::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory is made");
        fs::write(path, content).expect("a file is written");
    }

    pub(crate) fn commit(&self, message: &str) -> String {
        self.run(&["add", "-A"]);
        self.run(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.tip()
    }

    pub(crate) fn tip(&self) -> String {
        self.run(&["rev-parse", "HEAD"])
    }

    /// Makes a harmless change.
    pub(crate) fn work(&self) -> String {
        self.write("work.txt", "work\n");
        self.commit("Work")
    }

    /// Stores an object without a check.
    pub(crate) fn object(&self, kind: &str, content: &[u8]) -> String {
        fed(self.git().args(["hash-object", "-w", "--literally", "--stdin", "-t", kind]), content)
    }

    /// Returns a tree of entries: mode, name and object. It is written raw, as `mktree` refuses some names.
    pub(crate) fn tree(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let mut content = Vec::new();
        for (mode, name, id) in entries {
            content.extend_from_slice(mode.as_bytes());
            content.push(b' ');
            content.extend_from_slice(name);
            content.push(0);
            content.extend((0..id.len()).step_by(2).map(|at| {
                u8::from_str_radix(&id[at..at + 2], 16).expect("an object's name has hexadecimal digits")
            }));
        }
        self.object("tree", &content)
    }

    /// Commits a tree that holds the start's files and more entries.
    pub(crate) fn commit_entries(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let listed = self.run(&["ls-tree", &format!("{}^{{tree}}", self.clone.start)]);
        let mut all: Vec<(String, Vec<u8>, String)> = Vec::new();
        for line in listed.lines() {
            let (left, name) = line.split_once('\t').expect("a line has a name");
            let parts: Vec<&str> = left.split(' ').collect();
            let mode = parts[0].trim_start_matches('0');
            all.push((mode.to_owned(), name.as_bytes().to_vec(), parts[2].to_owned()));
        }
        for (mode, name, id) in entries {
            all.retain(|(_, other, _)| other != name);
            all.push(((*mode).to_owned(), name.to_vec(), (*id).to_owned()));
        }
        // Git sorts directories as if their names ended with a slash.
        all.sort_by_key(
            |(mode, name, _)| {
                if mode == "40000" { [&name[..], b"/"].concat() } else { name.clone() }
            },
        );
        let all: Vec<_> =
            all.iter().map(|(mode, name, id)| (mode.as_str(), &name[..], id.as_str())).collect();
        let tree = self.tree(&all);
        self.commit_tree(&tree)
    }

    /// Commits a tree and moves the branch there, without touching files.
    pub(crate) fn commit_tree(&self, tree: &str) -> String {
        let commit = self.run(&["commit-tree", tree, "-p", "HEAD", "-m", "Work"]);
        self.run(&["update-ref", "HEAD", &commit]);
        commit
    }

    /// Makes the bundle as the container of the product does.
    pub(crate) fn bundle(&self, to: &Path) {
        let range = format!("{}..{}", self.clone.start, self.branch());
        let mut git = self.git();
        // The product's container does so, too: replaced objects would be left out.
        git.env("GIT_NO_REPLACE_OBJECTS", "1");
        done(git.args(["bundle", "create", "--quiet"]).arg(to).arg(range));
    }

    pub(crate) fn branch(&self) -> String {
        "refs/heads/sandbox/run-1".to_owned()
    }
}
