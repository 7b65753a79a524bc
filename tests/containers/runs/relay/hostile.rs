//! Tests whole runs of hostile agents. Git in the kept workspace, as a careless host would use it, is the control.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use harness::{GitRemote, World};
use serde_json::Value;
use tempfile::TempDir;

use super::{COMMITS, relay};
use crate::sandbox::shell_agent;

/// Content of another account.
const FOREIGN: &str = "secret of another account";

/// Plants each program that a repository can name. `WAY` is a directory of the host, where each leaves a file.
const PROGRAMS: &str = r#"
mkdir -p .git/hooks .git/info
git config core.fsmonitor 'touch WAY/fsmonitor #'
program() ( printf '#!/bin/sh\ntouch WAY/%s\n' "$2" > "$1"; chmod +x "$1" )
for hook in post-checkout reference-transaction post-index-change pre-push pre-commit; do
    program .git/hooks/$hook hook
done
printf '*.txt diff=evil filter=evil\n' > .git/info/attributes
git config diff.evil.textconv 'touch WAY/textconv; cat'
git config diff.external 'touch WAY/external #'
git config filter.evil.clean 'touch WAY/filter; cat'
git config credential.helper '!touch WAY/credential #'
git config core.sshCommand 'touch WAY/ssh #'
program .git/gpg gpg
git config gpg.program ./.git/gpg
git config alias.planted '!touch WAY/alias'
printf '[alias]\nincluded = !touch WAY/include\n' > .git/extra
git config include.path extra
git config extensions.worktreeConfig true
git config --file .git/config.worktree core.editor 'touch WAY/editor #'
git config protocol.ext.allow always
git config 'url.ext::sh -c touch% WAY/instead #.pushInsteadOf' https://push.invalid/
"#;

/// Commands of a careless host, and the program that each runs.
const CARELESS: [(&str, &str); 12] = [
    ("fsmonitor", "git status"),
    ("textconv", "git log -p -1"),
    ("external", "git diff HEAD~1"),
    ("filter", "git add --renormalize ."),
    ("credential", "printf 'protocol=https\nhost=push.invalid\n\n' | git credential fill"),
    ("ssh", "git ls-remote ssh://push.invalid/app"),
    ("alias", "git planted"),
    ("include", "git included"),
    ("instead", "git push https://push.invalid/app HEAD:refs/heads/x"),
    ("gpg", "git commit --allow-empty --gpg-sign -m x"),
    ("editor", "git commit --allow-empty --no-verify"),
    ("hook", "git checkout --quiet --detach"),
];

/// Run of a hostile agent.
struct Vector {
    name: &'static str,
    /// Script behind the agent's honest commit. `OTHER` is the repository of another account on the host.
    plants: &'static str,
    /// Stage in which the relay ends.
    stage: &'static str,
    /// Rules that are broken, each with its path.
    objections: &'static [(&'static str, &'static str)],
    /// Command of a careless host, and what it prints if it comes to harm.
    careless: (&'static str, &'static str),
}

const VECTORS: [Vector; 9] = [
    Vector {
        name: "objects of another account",
        plants: "printf 'OTHER/.git/objects\n' > .git/objects/info/alternates; \
                 tree=$(printf '100644 blob BLOB\tforeign.txt\n' | git mktree --missing); \
                 git update-ref HEAD $(git commit-tree -p HEAD -m Foreign $tree)",
        stage: "failed",
        objections: &[],
        careless: ("git show HEAD:foreign.txt", FOREIGN),
    },
    Vector {
        name: "a file that leads to another repository",
        plants: "rm -rf .git; printf 'gitdir: OTHER/.git\n' > .git",
        stage: "failed",
        objections: &[],
        careless: ("git show HEAD:foreign.txt", FOREIGN),
    },
    Vector {
        name: "a link to another repository",
        plants: "rm -rf .git; ln -s OTHER/.git .git",
        stage: "failed",
        objections: &[],
        careless: ("git show HEAD:foreign.txt", FOREIGN),
    },
    Vector {
        name: "an index with an extension that git must know",
        plants: "printf 'DIRC\\0\\0\\0\\002\\0\\0\\0\\0evil\\0\\0\\0\\0' > index; \
                 (cat index; printf $(sha1sum index | cut -c1-40 | sed 's/../\\\\x&/g')) > .git/index; rm index",
        stage: "published",
        objections: &[],
        careless: ("git status 2>&1", "evil"),
    },
    Vector {
        name: "a submodule",
        plants: "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),module; git commit -qm Module",
        stage: "refused",
        objections: &[("submodule", "module")],
        careless: ("git ls-tree HEAD module", "160000 commit"),
    },
    Vector {
        name: "harmful content",
        plants: "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; ln -s /etc/passwd link; \
                 printf 'gh%s\n' p_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2 > settings; git add -A; git commit -qm Harm",
        stage: "refused",
        objections: &[
            ("link", "link"),
            ("protected-path", ".github/workflows/ci.yml"),
            ("secret", "settings"),
        ],
        careless: ("cat link", "root:"),
    },
    Vector {
        name: "a replaced commit",
        plants: "honest=$(git rev-parse HEAD); git checkout -q HEAD~1 2> /dev/null; git checkout -qB work; \
                 mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; git add -A; git commit -qm Evil; \
                 evil=$(git rev-parse HEAD); git update-ref refs/heads/sandbox/RUN $evil; \
                 git replace $evil $honest",
        stage: "refused",
        objections: &[("protected-path", ".github/workflows/ci.yml")],
        careless: ("git show --format= --name-only sandbox/RUN", "a.txt\n"),
    },
    Vector {
        name: "a forged history",
        plants: "start=$(git rev-parse HEAD~1); mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; \
                 git add -A; git commit -qm Evil; git rm -rqf .github; echo 2 >> a.txt; git commit -qam Cover; \
                 mkdir -p .git/info; echo $(git rev-parse HEAD) $start > .git/info/grafts",
        stage: "refused",
        objections: &[("protected-path", ".github/workflows/ci.yml")],
        careless: ("git log --format=%s -2", "Cover\nfirst\n"),
    },
    Vector {
        name: "nothing",
        plants: "true",
        stage: "published",
        objections: &[],
        careless: ("git log --format=%s -1", "Change a\n"),
    },
];

/// Directory of the host, outside of the world, with the files that planted programs would make.
struct Host {
    dir: TempDir,
    other: GitRemote,
}

impl Host {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("canaries")).unwrap();
        let other = GitRemote::below(dir.path(), "other/.git");
        other.add("foreign.txt", FOREIGN.as_bytes());
        Self { dir, other }
    }

    fn canaries(&self) -> PathBuf {
        self.dir.path().join("canaries")
    }

    /// Returns the script of an agent that makes an honest commit and then plants something.
    fn script(&self, plants: &str, run: &str) -> String {
        let other = self.dir.path().join("other");
        let plants = plants
            .replace("WAY", self.canaries().to_str().unwrap())
            .replace("OTHER", other.to_str().unwrap())
            .replace("BLOB", &self.foreign_blob())
            .replace("RUN", run);
        format!("{COMMITS}\n{plants}\n")
    }

    /// Returns whether a repository has the content of the other account.
    fn has_foreign_content(&self, remote: &GitRemote) -> bool {
        let objects = remote.git(&["cat-file", "--batch-all-objects", "--batch-check"]);
        objects.contains(&self.foreign_blob())
    }

    fn foreign_blob(&self) -> String {
        self.other.git(&["rev-parse", "main:foreign.txt"]).trim().to_owned()
    }

    /// Returns the names of the planted programs that ran since the last call.
    fn fired(&self) -> Vec<String> {
        let entries = fs::read_dir(self.canaries()).unwrap().map(|entry| entry.unwrap());
        let take = |entry: fs::DirEntry| {
            fs::remove_file(entry.path()).unwrap();
            entry.file_name().into_string().unwrap()
        };
        entries.map(take).collect()
    }
}

/// Runs a command in a workspace as a careless host does, and returns what it prints.
fn careless(repo: &Path, command: &str) -> String {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(repo).stdin(std::process::Stdio::null());
    let trusting = [("COUNT", "1"), ("KEY_0", "safe.directory"), ("VALUE_0", "*")];
    shell.envs(trusting.map(|(name, value)| (format!("GIT_CONFIG_{name}"), value)));
    shell.env("GIT_TERMINAL_PROMPT", "0");
    String::from_utf8_lossy(&shell.output().unwrap().stdout).into_owned()
}

/// Starts a world with an agent for each script, in the order `test:0`, `test:1` and so on.
async fn world_of(scripts: &[String]) -> World {
    let agent = |(number, script): (usize, &String)| {
        shell_agent(script, "").replace("test:sh", &format!("test:{number}"))
    };
    let world = World::with(&scripts.iter().enumerate().map(agent).collect::<String>()).await;
    world.reconfigure("[sandbox]\n", "[sandbox]\nworkspaces = 'directory'\n");
    world
}

/// Runs the agent `test:NUMBER` as `run`, keeps its workspace, and returns the relay and the agent's repository.
async fn run_hostile(world: &World, remote: &GitRemote, number: usize) -> (Value, PathBuf) {
    let [agent, run, url] = [format!("test:{number}"), format!("r{number}"), remote.url()];
    let order = ["run", "--agent", &agent, "--run-id", &run, "--repo", &url, "--keep", "q"];
    let outcome = world.sluice().run(&order).await;
    let relay = relay(world, &run).await;
    let code = i32::from(!matches!(relay["stage"].as_str(), Some("published" | "unchanged")));
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    (relay, world.workspace(&run).await.join("repo"))
}

#[tokio::test]
async fn planted_programs_run_on_no_host() {
    let host = Host::new();
    let world = world_of(&[host.script(PROGRAMS, "r0")]).await;
    let remote = GitRemote::in_world(&world, "app.git");
    let (relay, repo) = run_hostile(&world, &remote, 0).await;
    assert_eq!(host.fired(), [""; 0], "{relay}");
    assert_eq!(relay["stage"], "published", "{relay}");
    assert_eq!(remote.branches(), ["main first", "sandbox/r0 Change a"]);
    for (program, command) in CARELESS {
        let printed = careless(&repo, command);
        assert!(host.fired().contains(&program.to_owned()), "control: {command} runs {program}: {printed}");
    }
}

#[tokio::test]
async fn hostile_runs_publish_nothing_they_must_not() {
    let host = Host::new();
    let script = |(number, vector): (usize, &Vector)| host.script(vector.plants, &format!("r{number}"));
    let world = world_of(&VECTORS.iter().enumerate().map(script).collect::<Vec<_>>()).await;
    let remote = GitRemote::in_world(&world, "app.git");
    assert!(host.has_foreign_content(&host.other), "control: it would be found");
    for (number, Vector { name, stage, objections, careless: (command, harm), .. }) in
        VECTORS.iter().enumerate()
    {
        let (relay, repo) = run_hostile(&world, &remote, number).await;
        assert_eq!(relay["stage"], *stage, "{name}: {relay}");
        let listed = relay["objections"].as_array().into_iter().flatten();
        let text = |objection: &Value, field| objection[field].as_str().unwrap_or_default().to_owned();
        let mut found: Vec<_> =
            listed.map(|objection| (text(objection, "rule"), text(objection, "path"))).collect();
        found.sort_unstable();
        // A file that comes and goes is refused twice.
        found.dedup();
        let expected = objections.iter().map(|(rule, path)| ((*rule).to_owned(), (*path).to_owned()));
        assert_eq!(found, expected.collect::<Vec<_>>(), "{name}: {relay}");
        let branch = format!("sandbox/r{number}");
        let is_there = remote.branches().contains(&format!("{branch} Change a"));
        assert_eq!(is_there, *stage == "published", "{name}: {:?}", remote.branches());
        assert!(!host.has_foreign_content(&remote), "{name}");
        let printed = careless(&repo, &command.replace("RUN", &format!("r{number}")));
        assert!(printed.contains(harm), "control: {name} harms a careless host: {printed}");
    }
    assert_eq!(remote.branches().len(), 3, "main and the two that were published");
}
