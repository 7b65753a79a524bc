//! contents commits what a remote or its readers suffer from. The naive push publishes each; the relay names the rule.

use std::sync::Arc;

use platform_core::{limit::ByteSize, secret::Secret};
use runner_git::{ProcessBounds, ProtectedPaths, RelayPolicy, RelayRule, SecretScan, WorkBounds};

use crate::{
    agent::{Agent, fed},
    world::{Relayed, World},
};

/// Secret that the host knows.
const CANARY: &str = "host-canary-51c0ffee";
/// Files of the largest tree.
const MANY: usize = 100_000;
/// Most bytes of a file, where a vector lowers the limit.
const SMALL: ByteSize = ByteSize::mib(1);
/// Most bytes of all files, where a vector lowers the limit.
const SMALL_TOTAL: ByteSize = ByteSize::mib(8);
/// Bytes of git's output that are read, so that a bomb is found soon.
const OUTPUT: ByteSize = ByteSize::mib(8);

/// Content of a commit.
struct Vector {
    name: &'static str,
    commit: fn(&Agent),
    rule: RelayRule,
}

/// Returns a token that has its form only when it is put together.
fn token() -> String {
    format!("gh{}_{}", "p", "aB3".repeat(12))
}

fn entry(agent: &Agent, mode: &str, name: &[u8], content: &[u8]) {
    let blob = agent.object("blob", content);
    agent.commit_entries(&[(mode, name, &blob)]);
}

/// Commits a file below a directory of any name.
fn below(agent: &Agent, dir: &[u8], name: &[u8]) {
    let blob = agent.object("blob", b"[core]\n\tbare = false\n");
    let tree = agent.tree(&[("100644", name, &blob)]);
    agent.commit_entries(&[("40000", dir, &tree)]);
}

fn file(agent: &Agent, path: &str, content: &str) {
    agent.write(path, content);
    agent.commit("Work");
}

const VECTORS: &[Vector] = &[
    Vector { name: ".git", commit: |a| below(a, b".git", b"config"), rule: RelayRule::GitDirectory },
    Vector { name: ".GIT", commit: |a| below(a, b".GIT", b"config"), rule: RelayRule::GitDirectory },
    Vector { name: "NTFS git~1", commit: |a| below(a, b"git~1", b"config"), rule: RelayRule::GitDirectory },
    Vector {
        name: "NTFS stream",
        commit: |a| below(a, b".git::$INDEX_ALLOCATION", b"config"),
        rule: RelayRule::GitDirectory,
    },
    Vector {
        name: "HFS ignorable",
        commit: |a| below(a, "\u{200c}.g\u{200d}it".as_bytes(), b"config"),
        rule: RelayRule::GitDirectory,
    },
    Vector { name: "parent directory", commit: |a| below(a, b"..", b"up"), rule: RelayRule::GitDirectory },
    Vector {
        name: "link to host file",
        commit: |a| entry(a, "120000", b"link", b"/etc/shadow"),
        rule: RelayRule::Link,
    },
    Vector {
        name: "link upwards",
        commit: |a| entry(a, "120000", b"link", b"../../secret"),
        rule: RelayRule::Link,
    },
    Vector {
        name: "link through a link",
        commit: |a| entry(a, "120000", b"link", b"src/../../secret"),
        rule: RelayRule::Link,
    },
    Vector {
        name: "link from an old file's content",
        commit: |a| {
            // The content is in the start already; only the mode makes a link of it.
            let blob = a.run(&["rev-parse", "HEAD:README.md"]);
            a.commit_entries(&[("120000", b"link", &blob)]);
        },
        rule: RelayRule::Link,
    },
    Vector {
        name: "link into .git",
        commit: |a| entry(a, "120000", b"link", b".git/config"),
        rule: RelayRule::Link,
    },
    Vector {
        name: "submodule",
        commit: |a| {
            let tip = a.tip();
            a.commit_entries(&[("160000", b"sub", &tip)]);
        },
        rule: RelayRule::Submodule,
    },
    Vector {
        name: "submodule url as option",
        commit: |a| {
            let modules = "[submodule \"sub\"]\n\tpath = sub\n\turl = -u./payload\n";
            entry(a, "100644", b".gitmodules", modules.as_bytes());
        },
        rule: RelayRule::Submodule,
    },
    Vector {
        name: "link called .gitmodules",
        commit: |a| entry(a, "120000", b".gitmodules", b"README.md"),
        rule: RelayRule::Submodule,
    },
    Vector {
        name: "harmless .gitmodules",
        commit: |a| file(a, ".gitmodules", "# none\n"),
        rule: RelayRule::ProtectedPath,
    },
    Vector {
        name: "NTFS name of .gitmodules",
        commit: |a| entry(a, "100644", b"GITMOD~1", b"# none\n"),
        rule: RelayRule::ProtectedPath,
    },
    Vector {
        name: "carriage return in a path",
        commit: |a| entry(a, "100644", b"a\r", b"x"),
        rule: RelayRule::OddPath,
    },
    Vector {
        name: "line break in a path",
        commit: |a| entry(a, "100644", b"a\nb", b"x"),
        rule: RelayRule::OddPath,
    },
    Vector {
        name: "direction mark in a path",
        commit: |a| entry(a, "100644", "a\u{202e}txt.exe".as_bytes(), b"x"),
        rule: RelayRule::OddPath,
    },
    Vector {
        name: "deep path",
        commit: |a| file(a, &format!("{}x", "d/".repeat(50)), "x"),
        rule: RelayRule::DeepPath,
    },
    Vector {
        name: "nested bare repository",
        commit: |a| {
            for (path, content) in [
                ("docs/evil/HEAD", "ref: refs/heads/main\n"),
                ("docs/evil/config", "[core]\n\tbare = true\n\tfsmonitor = payload\n"),
                ("docs/evil/objects/keep", ""),
                ("docs/evil/refs/keep", ""),
            ] {
                a.write(path, content);
            }
            a.commit("Work");
        },
        rule: RelayRule::NestedRepository,
    },
    Vector {
        name: "large file",
        commit: |a| file(a, "large.bin", &"0123456789abcdef".repeat(200_000)),
        rule: RelayRule::LargeFile,
    },
    Vector {
        name: "delta bomb",
        commit: |a| {
            // Each file differs from the one before by one line: the pack holds one of them, and differences.
            let large = "all work and no play\n".repeat(40_000);
            for number in 0..12 {
                a.write(&format!("bomb/{number}.txt"), format!("{number}\n{large}"));
            }
            a.commit("Work");
        },
        rule: RelayRule::LargeWork,
    },
    Vector { name: "tree bomb", commit: tree_bomb, rule: RelayRule::ManyFiles },
    Vector { name: "100,000 files", commit: many_files, rule: RelayRule::ManyFiles },
    Vector {
        name: "many commits",
        commit: |a| {
            let tree = a.run(&["rev-parse", "HEAD^{tree}"]);
            let mut parent = a.tip();
            let author = "agent <a@b> 1700000000 +0000";
            for number in 0..25 {
                let commit = format!(
                    "tree {tree}\nparent {parent}\nauthor {author}\ncommitter {author}\n\n{number}\n"
                );
                parent = a.object("commit", commit.as_bytes());
            }
            a.run(&["update-ref", "HEAD", &parent]);
        },
        rule: RelayRule::ManyCommits,
    },
    Vector {
        name: "unrelated history",
        commit: |a| {
            let tree = a.run(&["rev-parse", "HEAD^{tree}"]);
            let root = a.run(&["commit-tree", &tree, "-m", "Other root"]);
            a.run(&["merge", "--quiet", "--allow-unrelated-histories", "-m", "Merge", &root]);
        },
        rule: RelayRule::OtherHistory,
    },
    Vector {
        name: "workflow",
        commit: |a| file(a, ".github/workflows/ci.yml", "on: push\n"),
        rule: RelayRule::ProtectedPath,
    },
    Vector {
        name: "workflow in other case",
        commit: |a| file(a, ".GitHub/Workflows/ci.yml", "on: push\n"),
        rule: RelayRule::ProtectedPath,
    },
    Vector {
        name: "workflow that was taken back",
        commit: |a| {
            file(a, ".github/workflows/ci.yml", "on: push\n");
            std::fs::remove_dir_all(a.dir.join(".github")).expect("it was there");
            a.commit("Take back");
        },
        rule: RelayRule::ProtectedPath,
    },
    Vector {
        name: "removed owners",
        commit: |a| {
            std::fs::remove_file(a.dir.join("CODEOWNERS")).expect("it was there");
            a.commit("Work");
        },
        rule: RelayRule::ProtectedPath,
    },
    Vector {
        name: "path that a host protects",
        commit: |a| file(a, "infra/prod.tf", "x"),
        rule: RelayRule::ProtectedPath,
    },
    Vector {
        name: "replaced object",
        commit: |a| {
            let harmless = a.tip();
            file(a, ".github/workflows/ci.yml", "on: push\n");
            // A careless reader of this repository sees the harmless commit.
            let tip = a.tip();
            a.run(&["replace", &tip, &harmless]);
        },
        rule: RelayRule::ProtectedPath,
    },
    Vector {
        name: "token in a file",
        commit: |a| file(a, "config.ini", &format!("token = {}\n", token())),
        rule: RelayRule::Secret,
    },
    Vector {
        name: "token in a message",
        commit: |a| {
            a.write("x", "x");
            a.commit(&format!("Use {}", token()));
        },
        rule: RelayRule::Secret,
    },
    Vector {
        name: "token that was taken back",
        commit: |a| {
            file(a, "config.ini", &token());
            file(a, "config.ini", "none\n");
        },
        rule: RelayRule::Secret,
    },
    Vector {
        name: "token in a merged tag",
        commit: |a| {
            let main = a.tip();
            a.run(&["checkout", "--quiet", "-b", "side"]);
            file(a, "side", "x");
            a.run(&["tag", "-a", "-m", &format!("Release {}", token()), "v1"]);
            a.run(&["checkout", "--quiet", "sandbox/run-1"]);
            file(a, "other", "x");
            a.run(&["merge", "--quiet", "--no-ff", "-m", "Merge", "v1"]);
            assert_ne!(a.tip(), main);
        },
        rule: RelayRule::Secret,
    },
    Vector {
        name: "token in a path",
        commit: |a| file(a, &format!("notes/{}", token()), "x"),
        rule: RelayRule::Secret,
    },
    Vector {
        name: "private key",
        commit: |a| file(a, "id", &format!("-----BEGIN {} PRIVATE KEY-----\nMII\n", "RSA")),
        rule: RelayRule::Secret,
    },
    Vector {
        name: "secret of the host",
        commit: |a| file(a, "x.bin", &format!("\0\u{1}{CANARY}\0")),
        rule: RelayRule::Secret,
    },
];

/// Commits a tree of ten levels, each with ten times the level below: eleven objects, and ten thousand million files.
fn tree_bomb(agent: &Agent) {
    let names: Vec<String> = (0..10).map(|number| format!("d{number}")).collect();
    let blob = agent.object("blob", b"boom\n");
    let mut below = ("100644", blob);
    for _level in 0..9 {
        let entries: Vec<_> = names.iter().map(|name| (below.0, name.as_bytes(), below.1.as_str())).collect();
        below = ("40000", agent.tree(&entries));
    }
    agent.commit_entries(&[("40000", b"bomb", &below.1)]);
}

fn many_files(agent: &Agent) {
    let blob = agent.object("blob", b"x");
    let listed: String = (0..MANY).map(|number| format!("100644 blob {blob}\tf{number}\n")).collect();
    let tree = fed(agent.git().arg("mktree"), listed.as_bytes());
    agent.commit_entries(&[("40000", b"many", &tree)]);
}

fn policy() -> RelayPolicy {
    let bounds = WorkBounds { commits: 20, file: SMALL, total: SMALL_TOTAL, ..WorkBounds::default() };
    let protected = ProtectedPaths::with(&["/infra/".to_owned()]).expect("it is a pattern");
    let secrets = SecretScan::new(vec![Secret::new(CANARY.to_owned())]);
    RelayPolicy { bounds, protected, secrets }
}

async fn fault_of(vector: &Vector, policy: &RelayPolicy) -> Option<String> {
    let world = World::new();
    let agent = world.agent().await;
    (vector.commit)(&agent);
    let naive = world.copy_of_remote("naive.git");
    let naive = agent.naive(&["push", "--quiet", &naive.display().to_string(), "HEAD:refs/heads/naive"]);
    if !naive.status.success() {
        return Some(format!("its control is refused: {}", String::from_utf8_lossy(&naive.stderr)));
    }
    agent.bundle(&world.bundle_file());
    let bounds = ProcessBounds { output: OUTPUT, ..ProcessBounds::default() };
    let relayed = world.relay_with(&world.git.clone().with_bounds(bounds), &agent, policy).await;
    if world.remote_tip("sandbox/run-1").is_some() {
        return Some("it was pushed".to_owned());
    }
    let shown = format!("{relayed:?}");
    if shown.contains(&token()) || shown.contains(CANARY) {
        return Some("the objection shows the secret".to_owned());
    }
    let expected = relayed.rules().contains(&vector.rule);
    (!expected).then(|| format!("expected {:?}, got {relayed:?}", vector.rule))
}

#[tokio::test]
async fn harmful_content_is_refused_by_its_rule() {
    let policy = Arc::new(policy());
    let mut faults = Vec::new();
    for vector in VECTORS {
        faults.extend(fault_of(vector, &policy).await.map(|fault| format!("{}: {fault}", vector.name)));
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test]
async fn useful_content_is_accepted() {
    let world = World::new();
    let agent = world.agent().await;
    agent.write("src/new file.txt", "ä ö\n");
    agent.write("src/run.sh", "#!/bin/sh\n");
    agent.run(&["add", "-A"]);
    agent.run(&["update-index", "--chmod=+x", "src/run.sh"]);
    std::os::unix::fs::symlink("../README.md", agent.dir.join("src/link")).expect("a link is made");
    agent.commit("Add files");
    agent.run(&["checkout", "--quiet", "-b", "side"]);
    file(&agent, "side.txt", "side\n");
    agent.run(&["checkout", "--quiet", "sandbox/run-1"]);
    file(&agent, "README.md", "Hello again\n");
    agent.run(&["merge", "--quiet", "--no-ff", "-m", "Merge side", "side"]);
    let relayed = world.relay(&agent).await;
    assert!(matches!(relayed, Relayed::Pushed(_)), "{relayed:?}");
    assert_eq!(world.remote_tip("sandbox/run-1"), Some(agent.tip()));
}
