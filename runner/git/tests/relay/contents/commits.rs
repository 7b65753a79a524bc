//! commits makes commits with any content, past the checks of git's usual commands.

use crate::agent::{Agent, fed};

/// Secret that the host knows.
pub(super) const CANARY: &str = "host-canary-51c0ffee";
/// Files of the largest tree.
const MANY: usize = 100_000;

/// Returns a token that has its form only when it is put together.
pub(crate) fn token() -> String {
    format!("gh{}_{}", "p", "aB3".repeat(12))
}

pub(super) fn entry(agent: &Agent, mode: &str, name: &[u8], content: &[u8]) {
    let blob = agent.object("blob", content);
    agent.commit_entries(&[(mode, name, &blob)]);
}

/// Commits a file below a directory of any name.
pub(super) fn below(agent: &Agent, dir: &[u8], name: &[u8]) {
    let blob = agent.object("blob", b"[core]\n\tbare = false\n");
    let tree = agent.tree(&[("100644", name, &blob)]);
    agent.commit_entries(&[("40000", dir, &tree)]);
}

pub(super) fn file(agent: &Agent, path: &str, content: &str) {
    agent.write(path, content);
    agent.commit("Work");
}

/// Commits a tree of ten levels, each with ten times the level below: eleven objects, and ten thousand million files.
pub(super) fn tree_bomb(agent: &Agent) {
    let names: Vec<String> = (0..10).map(|number| format!("d{number}")).collect();
    let blob = agent.object("blob", b"boom\n");
    let mut below = ("100644", blob);
    for _level in 0..9 {
        let entries: Vec<_> = names.iter().map(|name| (below.0, name.as_bytes(), below.1.as_str())).collect();
        below = ("40000", agent.tree(&entries));
    }
    agent.commit_entries(&[("40000", b"bomb", &below.1)]);
}

/// Commits files below `levels` directories of one name each, in `tops` different directories.
pub(super) fn deep(agent: &Agent, name: &str, levels: usize, tops: usize) {
    let below = format!("{name}/").repeat(levels);
    let files: String =
        (0..tops).map(|top| format!("M 100644 inline t{top}/{below}x\ndata 1\nx\n")).collect();
    let branch = agent.branch();
    let start = agent.tip();
    let author = "committer a <a@b> 1700000000 +0000\ndata 4\nWork\n";
    let commit = format!("commit {branch}\n{author}from {start}\n{files}done\n");
    fed(agent.git().args(["fast-import", "--quiet", "--done", "--depth=0"]), commit.as_bytes());
}

pub(super) fn many_files(agent: &Agent) {
    let blob = agent.object("blob", b"x");
    let listed: String = (0..MANY).map(|number| format!("100644 blob {blob}\tf{number}\n")).collect();
    let tree = fed(agent.git().arg("mktree"), listed.as_bytes());
    agent.commit_entries(&[("40000", b"many", &tree)]);
}

/// Tags the last commit as `v1`, with a token in its message. Only a signed tag becomes a part of the commit that merges
/// it.
pub(super) fn tag_with_secret(agent: &Agent) {
    let head = format!("object {}\ntype commit\ntag v1\ntagger a <a@b> 1700000000 +0000\n", agent.tip());
    let signature = "-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----\n";
    let tag = agent.object("tag", format!("{head}\nRelease {}\n{signature}", token()).as_bytes());
    agent.run(&["update-ref", "refs/tags/v1", &tag]);
}
