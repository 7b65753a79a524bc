//! Knows the files that some program runs by itself: a result changes them only if the user names them.

use std::ffi::OsStr;

use crate::path::RelativePath;

/// Program that would run what a file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProtectedBy(pub(crate) &'static str);

const HOOK: ProtectedBy = ProtectedBy("a hook, which git runs");
const SHELL: ProtectedBy = ProtectedBy("read when a shell enters the directory");
const EDITOR: ProtectedBy = ProtectedBy("read by an editor, which may run it");
const CI: ProtectedBy = ProtectedBy("run by continuous integration");
const AGENT: ProtectedBy = ProtectedBy("read by coding agents, which may run it");
const GIT: ProtectedBy = ProtectedBy("read by git, which may fetch or run what it names");

/// Names of files and directories, in lower case.
const NAMES: [(&str, ProtectedBy); 44] = [
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
    (".mise.toml", SHELL),
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
];

/// Beginnings of names, in lower case.
const BEGINNINGS: [(&str, ProtectedBy); 6] = [
    (".env", SHELL),
    ("azure-pipelines", CI),
    ("jenkinsfile", CI),
    (".woodpecker", CI),
    (".gitlab-ci", CI),
    (".aider", AGENT),
];

/// Endings of names, in lower case.
const ENDINGS: [(&str, ProtectedBy); 2] = [(".code-workspace", EDITOR), (".sublime-project", EDITOR)];

/// Returns the program that would run `path` by itself, if one is known. File systems may ignore case.
pub(crate) fn protected_by(path: &RelativePath) -> Option<ProtectedBy> {
    path.names().find_map(name_protected_by)
}

fn name_protected_by(name: &OsStr) -> Option<ProtectedBy> {
    let name = name.to_string_lossy().to_lowercase();
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
}
