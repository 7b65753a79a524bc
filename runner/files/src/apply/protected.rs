//! Knows the files that some program runs by itself: a result changes them only if the user names them.

use std::ffi::OsStr;

use super::protected_names::{BEGINNINGS, ENDINGS, NAMES, ORDERS, ProtectedBy, TOP_NAMES};
use crate::{file_name::folded_name, path::RelativePath};

/// Returns the program that would run `path` by itself, if one is known, in any spelling that a file system takes for it.
pub(crate) fn protected_by(path: &RelativePath) -> Option<ProtectedBy> {
    let is_at_top = path.parent().is_none();
    let is_read_there = is_at_top && TOP_NAMES.contains(&folded(path.name()).as_str());
    path.names().find_map(name_protected_by).or(is_read_there.then_some(ORDERS))
}

fn name_protected_by(name: &OsStr) -> Option<ProtectedBy> {
    let name = folded(name);
    let find = |groups: &[(ProtectedBy, &str)], is_of: &dyn Fn(&str) -> bool| {
        let group = groups.iter().find(|(_, names)| names.split_ascii_whitespace().any(is_of));
        group.map(|(by, _)| *by)
    };
    find(NAMES, &|known| name == known)
        .or_else(|| find(BEGINNINGS, &|beginning| name.starts_with(beginning)))
        .or_else(|| find(ENDINGS, &|ending| name.ends_with(ending)))
}

fn folded(name: &OsStr) -> String {
    folded_name(&name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_protected(path: &str) -> bool {
        protected_by(&RelativePath::parse(path).unwrap()).is_some()
    }

    #[test]
    fn what_runs_by_itself_is_protected() {
        for path in [
            ".bashrc",
            ".bash_profile",
            ".profile",
            ".zshenv",
            ".zshrc.zwc",
            ".config/fish/config.fish",
            ".inputrc",
            ".tmux.conf",
            ".envrc",
            "sub/.env.local",
            ".mise.local.toml",
            ".ssh/authorized_keys",
            ".ssh/rc",
            ".forward",
            ".config/autostart/x.desktop",
            ".config/systemd/user/x.service",
            ".local/share/systemd/user/x.timer",
            ".local/bin/git",
            ".config/environment.d/x.conf",
            "Library/LaunchAgents/x.plist",
            ".xprofile",
            ".ghci",
            ".Rprofile",
            ".irbrc",
            ".psqlrc",
            ".gdbinit",
            "lib/sitecustomize.py",
            ".yarnrc.yml",
            ".npmrc",
            ".cargo/config.toml",
            "rust-toolchain.toml",
            ".mvn/extensions.xml",
            ".emacs.d/init.el",
            ".vimrc",
            ".nvim.lua",
            ".vscode/tasks.json",
            "a.code-workspace",
            "eslint.config.mjs",
            ".husky/pre-commit",
            "lefthook-local.yml",
            ".hg/hgrc",
            ".docker/config.json",
            "ansible.cfg",
            "public/.htaccess",
            ".github/workflows/ci.yml",
            ".gitlab-ci.yml",
            "Jenkinsfile",
            "azure-pipelines.yml",
            ".cirrus.yml",
        ] {
            assert!(is_protected(path), "{path}");
        }
    }

    #[test]
    fn code_and_documents_are_not_protected() {
        for path in [
            "src/main.rs",
            "env",
            "github/x",
            "README.md",
            ".gitignore",
            ".editorconfig",
            "hooks.rs",
            "Makefile",
            "package.json",
            "build.rs",
            "config/app.toml",
            "local/bin/x",
            "docs/profile",
            "weights.pth",
            "docs/memory.md",
        ] {
            assert!(!is_protected(path), "{path}");
        }
    }

    #[test]
    fn every_spelling_is_protected() {
        for path in [
            ".GitHub/workflows/ci.yml",
            ".github./workflows/ci.yml",
            ".vsc\u{200c}ode/tasks.json",
            ".ba\u{17f}hrc",
            ".pre-commit-con\u{fb01}g.yaml",
            ".con\u{fb01}g/autostart/x.desktop",
            ".bashrc::$DATA",
            ".profile ",
            "memory.md.",
        ] {
            assert!(is_protected(path), "{path:?}");
        }
    }

    #[test]
    fn listed_names_are_folded_and_listed_once() {
        let all = [NAMES, BEGINNINGS, ENDINGS]
            .concat()
            .into_iter()
            .flat_map(|(_, names)| names.split_ascii_whitespace());
        let mut seen = std::collections::BTreeSet::new();
        for name in all {
            assert!(folded_name(name) == name.trim_end_matches('.') && seen.insert(name), "{name}");
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
            assert!(is_protected(path), "{path}");
        }
    }
}
