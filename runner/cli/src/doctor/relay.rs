//! Checks whether this host can bring agents' commits to their branches.

use platform_runtime::{report, settings::Settings};
use runner_engine::relay::{GitHubAccess, Relays};

use super::check::Check;

const RELAY: &str = "git relay";

/// Checks git and the credential, if an agent or an account may have a repository.
pub(crate) fn relay_check(settings: &Settings, github: &GitHubAccess) -> Option<Check> {
    let accounts = settings.accounts.named.values().chain([&settings.accounts.any]);
    let lists =
        accounts.filter_map(|account| account.repositories.as_ref()).chain([&settings.relay.repositories]);
    let is_used = settings.agents.values().any(|agent| agent.repo.is_some())
        || lists.into_iter().any(|repositories| !repositories.is_empty());
    let fix = "install git and util-linux, and correct [github] and [relay]";
    is_used.then(|| match Relays::check(settings, github) {
        Ok(found) => Check::ok(RELAY, found),
        Err(error) => Check::broken(RELAY, report::chain(&error), fix),
    })
}
