//! Reads which repository a run works on, and what is to become of its commits.

use platform_core::id::{AccountId, ProposalId};
use platform_runtime::settings::{Agent, AgentsRepository, Execution, Settings};
use runner_git::{BaseBranch, BranchKey, InvalidBranch, InvalidRepoUrl, RepoUrl, SandboxBranch};
use runner_github::RepositoryName;
use serde::{Deserialize, Deserializer, Serialize};

use super::{branch_name::BranchNames, github_access::GitHubAccess};

/// Beginning of the names of branches that agents write.
const AGENTS_BRANCHES: &str = "sandbox/";

/// Repository that a run works on, and the branch that its commits go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoOrder {
    /// Address of the repository.
    #[serde(deserialize_with = "stored_url")]
    pub url: RepoUrl,
    /// Branch that the agent begins from.
    pub base: BaseBranch,
    /// Branch that its commits go to.
    pub branch: SandboxBranch,
    /// Form in which the commits are published.
    pub publish: Publish,
}

/// Form in which commits are published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Publish {
    /// A branch alone.
    #[default]
    Branch,
    /// A branch and a pull request.
    PullRequest,
}

/// Way by which an order came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OrderSource {
    /// A shell on this host.
    Shell,
    /// The HTTP API.
    #[default]
    Api,
}

/// Part of an order about a repository. The agent's entry says the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepoChoice {
    /// Address of the repository.
    pub url: Option<String>,
    /// Branch to begin from.
    pub base: Option<String>,
    /// Branch that the commits go to, with or without `sandbox/`.
    pub branch: Option<String>,
    /// Form in which the commits are published.
    pub publish: Option<Publish>,
    /// Way by which the order came.
    pub source: OrderSource,
    /// Repositories that the sender of the order may work on, beside the account's list; all of those if absent.
    pub allowed: Option<Vec<String>>,
}

/// Reason why a run cannot work on a repository.
#[derive(Debug, thiserror::Error)]
pub enum InvalidRepo {
    /// The address is malformed.
    #[error("the repository `{url}`: {fault}")]
    Url {
        /// The address, made safe to print.
        url: String,
        /// Its fault.
        fault: InvalidRepoUrl,
    },
    /// A branch has a name that it must not have.
    #[error(transparent)]
    Branch(#[from] InvalidBranch),
    /// The branch to begin from belongs to agents, and perhaps to another account.
    #[error(
        "`{base}` is a branch of agents: begin from a branch of people, and continue one with its own name"
    )]
    AgentsBase {
        /// The branch.
        base: BaseBranch,
    },
    /// The order says something of a repository, and names none.
    #[error("the order names a branch or a pull request, and neither it nor the agent names a repository")]
    NoUrl,
    /// The account may not use the repository.
    #[error(
        "{account} may not use {url}: it is not in relay.repositories, nor in `repositories` of the account"
    )]
    NotListed {
        /// The account.
        account: AccountId,
        /// The repository.
        url: RepoUrl,
    },
    /// The sender of the order may not use the repository, although its account may.
    #[error("the principal may not use {url}: it is not among the repositories of the principal")]
    NotAllowed {
        /// The repository.
        url: RepoUrl,
    },
    /// The host of the repository has no pull requests.
    #[error(
        "{url} is not at {github}, and only there pull requests are made: order a branch alone, or set github.url"
    )]
    NoPullRequests {
        /// The repository.
        url: RepoUrl,
        /// Address of the configured GitHub.
        github: String,
    },
    /// The pull request could not be made: the agent would work, and its account pay, for nothing.
    #[error("no pull request can be made for {url}: this host has no credential that can be used")]
    NoCredential {
        /// The repository.
        url: RepoUrl,
        /// The missing or unusable part, and how to set it.
        #[source]
        source: runner_github::Error,
    },
    /// The agent does not have its own workspace.
    #[error(
        "relay_unsupported: runs of this agent are sessions of a gateway, whose workspace outlives them and is shared; \
         choose an agent with mode = \"ephemeral\""
    )]
    Unsupported,
}

impl RepoOrder {
    /// Reads what `choice` and the entry of `agent` say; `None` if neither names a repository.
    ///
    /// # Errors
    /// The first reason why the run cannot work on it.
    pub fn read(
        choice: &RepoChoice,
        agent: &Agent,
        names: BranchNames<'_>,
        settings: &Settings,
    ) -> Result<Option<Self>, InvalidRepo> {
        let is_own_choice = choice.url.is_some();
        let Some(text) = choice.url.as_ref().or(agent.repo.as_ref()) else {
            return if choice.base.is_some() || choice.branch.is_some() || choice.publish.is_some() {
                Err(InvalidRepo::NoUrl)
            } else {
                Ok(None)
            };
        };
        if agent.mode == Execution::Gateway {
            return Err(InvalidRepo::Unsupported);
        }
        let url = choice.source.read_url(text)?;
        if is_own_choice {
            choice.source.check(&url, names.account, settings.repositories_of(names.account))?;
        }
        let base = BaseBranch::parse(choice.base.as_deref().unwrap_or(&agent.base))?;
        if base.to_string().to_ascii_lowercase().starts_with(AGENTS_BRANCHES) {
            return Err(InvalidRepo::AgentsBase { base });
        }
        let key = names.key(choice.branch.as_deref())?;
        if ProposalId::accepts(key.as_str()) {
            return Err(InvalidBranch::Reserved { name: key.into() }.into());
        }
        let branch = SandboxBranch::of(&key, &base)?;
        let configured = if agent.pull_request { Publish::PullRequest } else { Publish::Branch };
        let publish = choice.publish.unwrap_or(configured);
        let is_on_github = RepositoryName::of(&url).is_ok_and(|name| name.is_at(&settings.github.url));
        if publish == Publish::PullRequest && !is_on_github {
            return Err(InvalidRepo::NoPullRequests { url, github: settings.github.url.origin() });
        }
        let order = Self { url, base, branch, publish };
        order.check_allowed(choice.allowed.as_deref())?;
        Ok(Some(order))
    }

    /// Reads the order of a proposal for `repository`: a pull request where GitHub has the repository, else a branch.
    ///
    /// # Errors
    /// If an address or a branch of the settings is malformed.
    pub fn of_proposal(
        id: &ProposalId,
        repository: &AgentsRepository,
        settings: &Settings,
    ) -> Result<Self, InvalidRepo> {
        // The settings are those of a shell of this host.
        let url = OrderSource::Shell.read_url(&repository.url)?;
        let base = BaseBranch::parse(&repository.branch)?;
        let branch = SandboxBranch::of(&BranchKey::parse(id.as_str())?, &base)?;
        let is_on_github = RepositoryName::of(&url).is_ok_and(|name| name.is_at(&settings.github.url));
        let publish = if is_on_github { Publish::PullRequest } else { Publish::Branch };
        Ok(Self { url, base, branch, publish })
    }

    /// Checks that `github` has a credential, if a pull request is ordered.
    ///
    /// # Errors
    /// [`InvalidRepo::NoCredential`] otherwise.
    pub fn check_credential(&self, github: &GitHubAccess) -> Result<(), InvalidRepo> {
        match self.publish {
            Publish::Branch => Ok(()),
            Publish::PullRequest => github
                .check_credential()
                .map_err(|source| InvalidRepo::NoCredential { url: self.url.clone(), source }),
        }
    }

    /// Checks that the sender of an order may work on the repository, also where the agent's entry names it. `allowed`
    /// has the sender's repositories, if it is bound to some.
    ///
    /// # Errors
    /// [`InvalidRepo::NotAllowed`] otherwise.
    pub fn check_allowed(&self, allowed: Option<&[String]>) -> Result<(), InvalidRepo> {
        match allowed {
            Some(allowed) if !self.url.is_listed(allowed) => {
                Err(InvalidRepo::NotAllowed { url: self.url.clone() })
            }
            _ => Ok(()),
        }
    }
}

impl OrderSource {
    /// Reads an address. Only a shell may name a directory of this host, which its user can read anyway.
    fn read_url(self, text: &str) -> Result<RepoUrl, InvalidRepo> {
        let read = match self {
            Self::Shell if text.starts_with("file://") => RepoUrl::parse_local(text),
            Self::Shell | Self::Api => RepoUrl::parse(text),
        };
        let url = || platform_runtime::terminal::safe(text).into_owned();
        read.map_err(|fault| InvalidRepo::Url { url: url(), fault })
    }

    fn check(self, url: &RepoUrl, account: &AccountId, listed: &[String]) -> Result<(), InvalidRepo> {
        if url.is_listed(listed) || (self == Self::Shell && listed.is_empty()) {
            return Ok(());
        }
        Err(InvalidRepo::NotListed { account: account.clone(), url: url.clone() })
    }
}

/// Reads an address that was stored. It may be that of a directory, because it was checked with the order.
fn stored_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RepoUrl, D::Error> {
    let text = String::deserialize(deserializer)?;
    RepoUrl::parse(&text).or_else(|_| RepoUrl::parse_local(&text)).map_err(serde::de::Error::custom)
}
