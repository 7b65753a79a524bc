//! Reads the settings of the repository that proposals of agents go to.

use platform_core::invalid::InvalidValue;

use crate::config::Section;

/// Most bytes of a path in the repository.
const MAX_PATH: usize = 200;
/// Branch that most repositories begin with.
const MAIN_BRANCH: &str = "main";
/// Usual place of the configuration in its repository.
const CONFIGURATION: &str = "sluice.toml";

/// `[agents_repository]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentsRepository {
    /// Address of the repository.
    pub url: String,
    /// Branch that proposals are made for.
    pub branch: String,
    /// Path of the configuration file in the repository.
    pub configuration: String,
    /// Folder of the repository below which skills are files; proposals have none if absent.
    pub skills: Option<String>,
}

impl AgentsRepository {
    pub(super) fn section(section: &Section<'_>) -> Option<Self> {
        let doc = "Address of the repository with the configuration of this installation: `https://`, or `file://` for one on this host. Proposals of agents become branches and pull requests there. Needs to be at `github.url` for pull requests; elsewhere a proposal is a branch alone. Nothing can be proposed if absent.";
        let url: Option<String> = section.field("url", doc).optional();
        let doc = "Branch that proposals are made for.";
        let branch = section.field("branch", doc).or(MAIN_BRANCH.to_owned());
        let doc = "Path of the configuration file in the repository.";
        let configuration: String = section.field("configuration", doc).or(CONFIGURATION.to_owned());
        let doc = "Folder of the repository for skills: each has a directory below it, with the file `SKILL.md`. No skill can be proposed if absent.";
        let skills: Option<String> = section.field("skills", doc).optional();
        for (name, path) in [("configuration", Some(&configuration)), ("skills", skills.as_ref())] {
            if let Some(Err(problem)) = path.map(|path| check_path(path)) {
                section.reject(name, problem);
            }
        }
        let Some(url) = url else {
            for name in ["branch", "configuration", "skills"].into_iter().filter(|name| section.has(name)) {
                section.reject(name, "it is a place in a repository: set `url`");
            }
            return None;
        };
        Some(Self { url, branch, configuration, skills })
    }
}

/// Checks that a path leads to a plain place of a repository, and nowhere else on any file system.
fn check_path(path: &str) -> Result<(), InvalidValue> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+@/".contains(&byte);
    let is_odd_part = |part: &str| {
        matches!(part, "" | "." | "..") || part.starts_with('-') || part.eq_ignore_ascii_case(".git")
    };
    let is_good = path.len() <= MAX_PATH && path.bytes().all(is_plain) && !path.split('/').any(is_odd_part);
    is_good.then_some(()).ok_or_else(|| {
        format!("expected a path in the repository: at most {MAX_PATH} letters, digits and `-_.+@/`, without empty parts, `.`, `..` and `.git`").into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, ConfigErrors, Sources};

    fn read(text: &str) -> Result<Option<AgentsRepository>, ConfigErrors> {
        let file = Some(("sluice.toml".into(), format!("[agents_repository]\n{text}")));
        let sources = Sources { file, ..Sources::default() };
        let section = |root: &Section<'_>| root.section("agents_repository", "", AgentsRepository::section);
        config::read(&sources, section, |_section| Ok(())).map(|(section, _values, ())| section)
    }

    #[test]
    fn an_address_is_enough() {
        let repository = read("url = 'https://git.example/acme/site'").unwrap().unwrap();
        let AgentsRepository { branch, configuration, skills, .. } = repository;
        assert_eq!((branch.as_str(), configuration.as_str(), skills), ("main", "sluice.toml", None));
        assert_eq!(read("").unwrap(), None);
        assert!(read("skills = 'skills'").unwrap_err().to_string().contains("set `url`"));
    }

    #[test]
    fn paths_stay_in_the_repository() {
        let with = |path: &str| read(&format!("url = 'https://git.example/a/b'\nskills = {path:?}"));
        for path in ["skills", "agents/skills.d", ".sluice/skills", "a@b/c+d"] {
            assert!(with(path).is_ok(), "{path}");
        }
        let long = "a".repeat(MAX_PATH + 1);
        for path in [
            "",
            "/skills",
            "skills/",
            "a//b",
            "../a",
            "a/../b",
            "./a",
            ".git/hooks",
            "a/.GIT",
            "a\\b",
            "a\tb",
            "-a",
            "ä",
            &long,
        ] {
            assert!(with(path).is_err(), "{path:?}");
        }
    }
}
