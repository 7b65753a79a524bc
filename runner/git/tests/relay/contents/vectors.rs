//! vectors lists what an agent commits, and the rule that each breaks.

use runner_git::RelayRule;

use super::commits::{CANARY, below, deep, entry, file, many_files, tag_with_secret, token, tree_bomb};
use crate::agent::Agent;

/// Content of a commit.
pub(super) struct Vector {
    pub(super) name: &'static str,
    pub(super) commit: fn(&Agent),
    pub(super) rule: RelayRule,
}

pub(super) const VECTORS: &[Vector] = &[
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
        name: "submodules with a long s",
        commit: |a| entry(a, "100644", ".gitmodule\u{17f}".as_bytes(), b"# none\n"),
        rule: RelayRule::ProtectedPath,
    },
    Vector {
        name: "ligature and sign of Kelvin in a protected path",
        commit: |a| file(a, ".github/wor\u{212a}\u{fb02}ows/ci.yml", "on: push\n"),
        rule: RelayRule::ProtectedPath,
    },
    Vector {
        name: "blank at the end of a path",
        commit: |a| entry(a, "100644", "README.md\u{a0}".as_bytes(), b"x"),
        rule: RelayRule::OddPath,
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
        name: "blank of Braille in a path",
        commit: |a| entry(a, "100644", "a\u{2800}.txt".as_bytes(), b"x"),
        rule: RelayRule::OddPath,
    },
    Vector {
        name: "deep path",
        commit: |a| file(a, &format!("{}x", "d/".repeat(50)), "x"),
        rule: RelayRule::DeepPath,
    },
    Vector {
        name: "directories that each seem a repository",
        commit: |a| deep(a, "HEAD", 400, 100),
        rule: RelayRule::DeepPath,
    },
    Vector {
        name: "path deeper than git compares",
        commit: |a| deep(a, "d", 1100, 1),
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
        name: "nested bare repository in other case",
        commit: |a| {
            for path in
                ["docs/evil/head", "docs/evil/config", "docs/evil/Objects/keep", "docs/evil/REFS/keep"]
            {
                a.write(path, "x");
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
        name: "link in the place of workflows",
        commit: |a| entry(a, "120000", b".github", b"src"),
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
            tag_with_secret(a);
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
