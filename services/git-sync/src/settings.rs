//! settings reads what is mirrored, and where to, from the environment.

use std::{num::NonZeroU32, path::PathBuf, str::FromStr, time::Duration};

use platform_core::{limit::Millis, name::git_sync as name};
use platform_runtime::config::Environment;
use runner_git::{BaseBranch, CloneDepth, RepoUrl};

/// Time between two syncs, if no variable says otherwise.
const DEFAULT_PERIOD: Millis = Millis::seconds(300);
/// Longest time for one command of git.
const DEFAULT_SYNC_TIMEOUT: Millis = Millis::seconds(120);
/// Time for which a replaced tree stays: longer than most runs.
const DEFAULT_STALE_TIMEOUT: Millis = Millis::seconds(3600);
/// Branch, if no variable names one.
const DEFAULT_BRANCH: &str = "main";
/// User that forges expect beside a token.
const DEFAULT_USER: &str = "x-access-token";
/// Commits of history that readers see.
const DEFAULT_DEPTH: &str = "1";
/// Depth without an end.
const FULL_DEPTH: &str = "0";

/// Repository that is mirrored, with the times and the directories.
#[derive(Debug, Clone)]
pub struct SyncSettings {
    /// Address of the repository.
    pub url: RepoUrl,
    /// Branch to show the last commit of.
    pub branch: BaseBranch,
    /// Depth of history that readers see.
    pub depth: CloneDepth,
    /// Time between two syncs.
    pub period: Duration,
    /// Longest time for one command of git.
    pub sync_timeout: Duration,
    /// Time for which a replaced tree stays.
    pub stale_timeout: Duration,
    /// Directory that readers mount.
    pub root: PathBuf,
    /// Directory of this program's own files.
    pub state: PathBuf,
    /// File with the token, if the repository needs one.
    pub credential: Option<CredentialFile>,
}

/// Place of a token.
#[derive(Debug, Clone)]
pub struct CredentialFile {
    /// User of the token.
    pub user: String,
    /// File with the token and nothing else.
    pub file: PathBuf,
    /// Directory in which git finds the token while it fetches.
    pub askpass_dir: PathBuf,
}

/// Error for a variable that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{variable}: {problem}")]
pub struct InvalidSetting {
    variable: &'static str,
    problem: String,
}

impl SyncSettings {
    /// Reads the settings.
    ///
    /// # Errors
    /// The first variable that is missing or has no such value.
    pub fn read(environment: &Environment) -> Result<Self, InvalidSetting> {
        let text = |variable| environment.get(variable).filter(|text| !text.is_empty());
        let or = |variable, default| text(variable).unwrap_or(default);
        let time = |variable, default: Millis| match text(variable) {
            Some(value) => parse(variable, value).and_then(|time| positive(variable, time)),
            None => Ok(default.duration()),
        };
        let url = text(name::REPO).ok_or_else(|| invalid(name::REPO, "it names the repository"))?;
        let url = RepoUrl::parse(url).or_else(|error| RepoUrl::parse_local(url).map_err(|_other| error));
        let branch = BaseBranch::parse(or(name::REF, DEFAULT_BRANCH));
        let user = or(name::USERNAME, DEFAULT_USER);
        let askpass_dir = PathBuf::from(or(name::ASKPASS, name::ASKPASS_DIR));
        Ok(Self {
            url: url.map_err(|error| invalid(name::REPO, error))?,
            branch: branch.map_err(|error| invalid(name::REF, error))?,
            depth: depth(or(name::DEPTH, DEFAULT_DEPTH))?,
            period: time(name::PERIOD, DEFAULT_PERIOD)?,
            sync_timeout: time(name::SYNC_TIMEOUT, DEFAULT_SYNC_TIMEOUT)?,
            stale_timeout: time(name::STALE_WORKTREE_TIMEOUT, DEFAULT_STALE_TIMEOUT)?,
            root: or(name::ROOT, name::ROOT_DIR).into(),
            state: or(name::STATE, name::STATE_DIR).into(),
            credential: text(name::PASSWORD_FILE).map(|file| CredentialFile {
                user: user.to_owned(),
                file: file.into(),
                askpass_dir,
            }),
        })
    }
}

fn depth(text: &str) -> Result<CloneDepth, InvalidSetting> {
    if text == FULL_DEPTH {
        return Ok(CloneDepth::Full);
    }
    parse::<NonZeroU32>(name::DEPTH, text).map(CloneDepth::Shallow)
}

fn positive(variable: &'static str, time: Millis) -> Result<Duration, InvalidSetting> {
    if time.0 == 0 { Err(invalid(variable, "it is longer than nothing")) } else { Ok(time.duration()) }
}

fn parse<T: FromStr>(variable: &'static str, text: &str) -> Result<T, InvalidSetting>
where
    T::Err: ToString,
{
    text.parse().map_err(|error: T::Err| invalid(variable, error))
}

fn invalid(variable: &'static str, problem: impl ToString) -> InvalidSetting {
    InvalidSetting { variable, problem: problem.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<const N: usize>(variables: [(&str, &str); N]) -> Result<SyncSettings, InvalidSetting> {
        SyncSettings::read(&Environment::from(variables))
    }

    #[test]
    fn only_the_address_has_no_default() {
        let settings = read([(name::REPO, "https://example.org/a/b.git")]).unwrap();
        assert_eq!((settings.period.as_secs(), settings.branch.as_str()), (300, "main"));
        assert_eq!(settings.root, PathBuf::from("/repo"));
        assert!(settings.credential.is_none() && settings.depth == CloneDepth::default());
        assert!(read([]).unwrap_err().to_string().starts_with("GITSYNC_REPO: "));
    }

    #[test]
    fn a_wrong_value_names_its_variable() {
        let url = (name::REPO, "file:///srv/a.git");
        for (variable, value) in [
            (name::REPO, "ssh://example.org/a"),
            (name::REF, "-a"),
            (name::DEPTH, "few"),
            (name::PERIOD, "0s"),
            (name::SYNC_TIMEOUT, "soon"),
        ] {
            let error = read([url, (variable, value)]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{variable}: ")), "{error}");
        }
        assert_eq!(read([url, (name::DEPTH, "0")]).unwrap().depth, CloneDepth::Full, "control");
    }
}
