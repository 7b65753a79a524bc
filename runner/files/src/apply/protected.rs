//! Knows the files that some program runs by itself: a result changes them only if the user names them.

use std::ffi::OsStr;

use crate::path::{RelativePath, folded_name, without_ntfs_ending};

/// Program that would run what a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProtectedBy(pub(crate) &'static str);

const HOOK: ProtectedBy = ProtectedBy("a hook, which git runs");
const SHELL: ProtectedBy = ProtectedBy("read when a shell enters the directory");
const EDITOR: ProtectedBy = ProtectedBy("read by an editor, which may run it");
const CI: ProtectedBy = ProtectedBy("run by continuous integration");
const AGENT: ProtectedBy = ProtectedBy("read by coding agents, which may run it");
const ORDERS: ProtectedBy =
    ProtectedBy("read by coding agents, which do what it says (people edit it, too: read the change first)");
const GIT: ProtectedBy = ProtectedBy("read by git, which may fetch or run what it names");

/// Names of files and directories, in lower case. Those of all agents that Sluice ships are among them.
const NAMES: &[(&str, ProtectedBy)] = &[
    (".husky", HOOK),
    (".githooks", HOOK),
    (".git-hooks", HOOK),
    (".lefthook", HOOK),
    ("lefthook.yml", HOOK),
    ("lefthook.yaml", HOOK),
    (".lefthook.yml", HOOK),
    (".pre-commit-config.yaml", HOOK),
    (".pre-commit-config.yml", HOOK),
    (".overcommit.yml", HOOK),
    (".gitmodules", GIT),
    (".gitattributes", GIT),
    (".gitconfig", GIT),
    (".envrc", SHELL),
    (".direnv", SHELL),
    ("mise.toml", SHELL),
    (".autoenv", SHELL),
    (".vscode", EDITOR),
    (".idea", EDITOR),
    (".fleet", EDITOR),
    (".zed", EDITOR),
    (".vim", EDITOR),
    (".vimrc", EDITOR),
    (".nvim.lua", EDITOR),
    (".nvimrc", EDITOR),
    (".exrc", EDITOR),
    (".dir-locals.el", EDITOR),
    (".devcontainer", EDITOR),
    (".devcontainer.json", EDITOR),
    (".github", CI),
    (".gitlab", CI),
    (".gitlab-ci.yml", CI),
    (".circleci", CI),
    (".travis.yml", CI),
    (".drone.yml", CI),
    (".buildkite", CI),
    (".forgejo", CI),
    (".gitea", CI),
    ("bitbucket-pipelines.yml", CI),
    (".claude", AGENT),
    (".mcp.json", AGENT),
    (".cursor", AGENT),
    (".codex", AGENT),
    (".qwen", AGENT),
    (".opencode", AGENT),
    ("opencode.json", AGENT),
    ("opencode.jsonc", AGENT),
    (".gemini", AGENT),
    (".windsurf", AGENT),
    (".continue", AGENT),
    (".openclaw", AGENT),
    (".cline", AGENT),
    (".roo", AGENT),
    (".kiro", AGENT),
    (".junie", AGENT),
    ("claude.md", ORDERS),
    ("claude.local.md", ORDERS),
    ("agents.md", ORDERS),
    ("agents.override.md", ORDERS),
    ("gemini.md", ORDERS),
    ("qwen.md", ORDERS),
    ("soul.md", ORDERS),
    ("heartbeat.md", ORDERS),
    (".cursorrules", ORDERS),
    (".windsurfrules", ORDERS),
    (".clinerules", ORDERS),
    (".roorules", ORDERS),
    ("lefthook-local.yml", HOOK),
    ("lefthook-local.yaml", HOOK),
    (".lefthook-local.yml", HOOK),
    (".lefthook.yaml", HOOK),
    ("lefthook.toml", HOOK),
    ("lefthook.json", HOOK),
    (".pre-commit-hooks.yaml", HOOK),
    (".pre-commit-hooks.yml", HOOK),
    (".huskyrc", HOOK),
    ("mise.local.toml", SHELL),
    (".dir-locals-2.el", EDITOR),
    (".helix", EDITOR),
    (".vs", EDITOR),
    (".nova", EDITOR),
    (".cirrus.yml", CI),
    (".cirrus.star", CI),
    ("appveyor.yml", CI),
    (".appveyor.yml", CI),
    (".semaphore", CI),
    (".build.yml", CI),
    (".builds", CI),
    ("wercker.yml", CI),
];

/// Names, in lower case, of files that agents read at the top of a directory. Deeper such names are common.
const TOP_NAMES: [&str; 5] = ["memory.md", "tools.md", "identity.md", "user.md", "bootstrap.md"];

/// Beginnings of names, in lower case.
const BEGINNINGS: &[(&str, ProtectedBy)] = &[
    (".env", SHELL),
    (".mise", SHELL),
    ("azure-pipelines", CI),
    ("jenkinsfile", CI),
    (".woodpecker", CI),
    (".gitlab-ci", CI),
    (".aider", AGENT),
];

/// Endings of names, in lower case.
const ENDINGS: &[(&str, ProtectedBy)] = &[(".code-workspace", EDITOR), (".sublime-project", EDITOR)];

/// Returns the program that would run `path` by itself, if one is known. File systems may ignore case.
pub(crate) fn protected_by(path: &RelativePath) -> Option<ProtectedBy> {
    let is_at_top = path.parent().is_none();
    let is_read_there = is_at_top && TOP_NAMES.contains(&folded_name(path.name()).as_str());
    path.names().find_map(name_protected_by).or(is_read_there.then_some(ORDERS))
}

fn name_protected_by(name: &OsStr) -> Option<ProtectedBy> {
    let folded = folded_name(name);
    let name = without_ntfs_ending(&folded);
    let found = NAMES.iter().find(|(known, _)| *known == name);
    let found = found.or_else(|| BEGINNINGS.iter().find(|(beginning, _)| name.starts_with(beginning)));
    found.or_else(|| ENDINGS.iter().find(|(ending, _)| name.ends_with(ending))).map(|(_, by)| *by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_run_by_themselves_are_protected() {
        let is_protected = |path: &str| protected_by(&RelativePath::parse(path).unwrap()).is_some();
        for path in [
            ".husky/pre-commit",
            ".githooks/x",
            ".envrc",
            "sub/.envrc",
            ".env",
            ".env.local",
            ".vscode/tasks.json",
            ".idea/x.xml",
            "a.code-workspace",
            ".vim/x",
            ".nvim.lua",
            ".exrc",
            ".github/workflows/ci.yml",
            ".GitHub/workflows/ci.yml",
            ".gitlab-ci.yml",
            ".circleci/config.yml",
            "Jenkinsfile",
            "azure-pipelines.yml",
            ".travis.yml",
            ".drone.yml",
            ".buildkite/x",
            ".woodpecker.yml",
            ".claude/x",
            ".mcp.json",
            ".cursor/rules",
            "lefthook.yml",
            ".pre-commit-config.yaml",
        ] {
            assert!(is_protected(path), "{path}");
        }
        for path in ["src/main.rs", "env", "github/x", "README.md", ".gitignore", "hooks.rs"] {
            assert!(!is_protected(path), "{path}");
        }
    }

    #[test]
    fn files_of_every_shipped_agent_are_protected() {
        for path in [
            ".claude/settings.json",
            "CLAUDE.md",
            "sub/CLAUDE.local.md",
            ".mcp.json",
            ".codex/config.toml",
            "AGENTS.md",
            "AGENTS.override.md",
            "opencode.json",
            ".opencode/plugin/x.ts",
            ".aider.conf.yml",
            ".aiderignore",
            ".qwen/settings.json",
            "QWEN.md",
            ".openclaw/openclaw.json",
            "SOUL.md",
            "MEMORY.md",
            "TOOLS.md",
        ] {
            assert!(protected_by(&RelativePath::parse(path).unwrap()).is_some(), "{path}");
        }
    }

    #[test]
    fn further_tools_are_known() {
        for path in [
            ".cursorrules",
            "lefthook-local.yml",
            ".mise.local.toml",
            ".dir-locals-2.el",
            ".cirrus.yml",
            "appveyor.yml",
            ".helix/config.toml",
            ".pre-commit-hooks.yaml",
            ".gemini/settings.json",
            ".windsurf/x",
            ".continue/x",
            ".vs/x",
            ".github./workflows/ci.yml",
            ".vsc\u{200c}ode/tasks.json",
        ] {
            assert!(protected_by(&RelativePath::parse(path).unwrap()).is_some(), "{path}");
        }
    }
}
