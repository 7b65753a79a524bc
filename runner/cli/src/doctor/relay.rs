//! Checks whether this host can bring agents' commits to their branches, and has a credential for pull requests.

use platform_runtime::{report, settings::Settings};
use runner_engine::relay::{GitHubAccess, Relays};

use super::check::Check;

const RELAY: &str = "git relay";
const CREDENTIAL: &str = "git credential";

/// Checks git and the settings of the relay, if an agent or an account may have a repository.
pub(crate) fn relay_check(settings: &Settings, github: &GitHubAccess) -> Option<Check> {
    let is_used = !repositories(settings).is_empty();
    let fix = "install git and util-linux, and correct [github] and [relay]";
    is_used.then(|| match Relays::check(settings, github) {
        Ok(found) => Check::ok(RELAY, found),
        Err(error) => Check::broken(RELAY, report::chain(&error), fix),
    })
}

/// Checks the credential for GitHub, if `[github]` names one, or if an agent or an account may have a repository. Without
/// one, only a host with repositories at GitHub is broken: other git servers need none.
pub(crate) fn credential_check(settings: &Settings, github: &GitHubAccess) -> Option<Check> {
    let host = settings.github.url.origin();
    let repositories = repositories(settings);
    let Some(origin) = github.origin() else {
        let is_needed = repositories.iter().any(|repository| repository.starts_with(&host))
            || settings.agents.values().any(|agent| agent.pull_request);
        let found = format!("none for {host}: runs with `--pr` are refused, and pushes there fail");
        let fix =
            "`export GITHUB_TOKEN=TOKEN` where `sluice up` and `sluice run` run, or set github.token_file";
        return match (is_needed, repositories.is_empty()) {
            (true, _) => Some(Check::broken(CREDENTIAL, found, fix)),
            (false, true) => None,
            (false, false) => Some(Check::ok(CREDENTIAL, found)),
        };
    };
    let fix = "give the secret to this user alone, or correct [github]";
    Some(match github.check_credential() {
        Ok(()) => Check::ok(CREDENTIAL, format!("{origin}, for {host}")),
        Err(error) => Check::broken(CREDENTIAL, report::chain(&error), fix),
    })
}

/// Returns the repositories of agents, and of the lists of accounts.
fn repositories(settings: &Settings) -> Vec<&str> {
    let accounts = settings.accounts.named.values().chain([&settings.accounts.any]);
    let lists = accounts.filter_map(|account| account.repositories.as_ref());
    let listed = lists.chain([&settings.relay.repositories]).flatten();
    listed
        .chain(settings.agents.values().filter_map(|agent| agent.repo.as_ref()))
        .map(String::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use platform_core::secret::Secret;
    use platform_runtime::config::Sources;

    use super::*;

    fn check(text: &str, token: Option<&str>) -> Option<Check> {
        let file = Some(("s.toml".into(), text.to_owned()));
        let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
        let token = token.map(|token| Arc::new(Secret::new(token.to_owned())));
        credential_check(&settings, &GitHubAccess::new(&settings.github, token))
    }

    #[test]
    fn a_missing_credential_is_broken_if_needed() {
        let on_github = "[relay]\nrepositories = ['https://github.com/acme/*']";
        let broken = check(on_github, None).unwrap();
        assert!(!broken.is_ok() && format!("{broken:?}").contains("export GITHUB_TOKEN"), "{broken:?}");
        let found = check(on_github, Some("ghp_1")).unwrap();
        assert!(found.is_ok() && format!("{found:?}").contains("the token of GITHUB_TOKEN"), "{found:?}");
        let elsewhere = check("[relay]\nrepositories = ['https://git.example/*']", None).unwrap();
        assert!(
            elsewhere.is_ok() && format!("{elsewhere:?}").contains("`--pr` are refused"),
            "{elsewhere:?}"
        );
        assert!(check("", None).is_none(), "control: nothing needs one");
    }

    #[test]
    fn a_token_file_that_is_missing_is_broken() {
        let broken = check("[github]\ntoken_file = '/nowhere/token'", Some("ghp_1")).unwrap();
        assert!(!broken.is_ok() && format!("{broken:?}").contains("/nowhere/token"), "{broken:?}");
    }
}
