//! Stores what people order, for the repository that the settings name.

use platform_core::{
    code::{Code, Coded},
    id::{AccountId, ExternalId, ProposalId},
    limit::Millis,
};
use platform_runtime::{random, settings::Settings};
use runner_engine::relay::{GitHubAccess, InvalidRepo, RepoOrder};
use runner_store::{MAX_OPEN_PROPOSALS, NewProposal, ProposalAdded, Store};

use crate::{
    content::ProposalContent,
    error::ProposalError,
    record::{Proposal, ProposalPlace, ProposalRecord},
};

/// Name of a skill's file in its directory.
const SKILL_FILE: &str = "SKILL.md";

/// Order of a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposalOrder {
    /// Id of the proposal: the same for a repeated order.
    pub id: ProposalId,
    /// Account that it belongs to.
    pub account: AccountId,
    /// Principal who asks for it.
    pub principal: ExternalId,
    /// Content of the proposal.
    pub content: ProposalContent,
}

/// Proposal that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ordered {
    /// Stored now.
    New(Box<Proposal>),
    /// Stored before, for the same order.
    Before(Box<Proposal>),
}

/// Reason why an order is not stored.
#[derive(Debug, thiserror::Error)]
pub enum NotProposed {
    /// The settings name no place for it.
    #[error("this installation takes no such proposals: `agents_repository.{setting}` is not set")]
    NoPlace {
        /// Setting that is missing.
        setting: &'static str,
    },
    /// The repository cannot be used.
    #[error(transparent)]
    Repository(#[from] InvalidRepo),
    /// The account has too many open proposals.
    #[error("the account has {MAX_OPEN_PROPOSALS} open proposals: merge or close some first")]
    TooMany,
    /// Another order has the id.
    #[error("another order has been stored as proposal {id}")]
    OtherOrder {
        /// The id.
        id: ProposalId,
    },
    /// The store failed, or what it has cannot be read.
    #[error(transparent)]
    Store(#[from] ProposalError),
}

impl From<runner_store::Error> for NotProposed {
    fn from(error: runner_store::Error) -> Self {
        Self::Store(error.into())
    }
}

impl Coded for NotProposed {
    fn code(&self) -> Code {
        match self {
            Self::NoPlace { .. } => Code::AgentsRepositoryMissing,
            Self::TooMany => Code::ProposalsExhausted,
            Self::Repository(InvalidRepo::NoCredential { .. }) => Code::NoRepositoryCredential,
            Self::Repository(_) => Code::InvalidRepository,
            Self::OtherOrder { .. } => Code::IdempotencyKeyTaken,
            Self::Store(error) => error.code(),
        }
    }
}

impl ProposalPlace {
    /// Checks that proposals could be made for the repository of `settings`, if they name one. Asks no remote.
    ///
    /// # Errors
    /// If an address or a branch is malformed.
    pub fn check(settings: &Settings) -> Result<(), NotProposed> {
        if let Some(repository) = &settings.agents_repository {
            RepoOrder::of_proposal(&ProposalId::from_random(0), repository, settings)?;
        }
        Ok(())
    }

    /// Returns the place of `content` under `settings`.
    ///
    /// # Errors
    /// If the settings name none, or one that cannot be used.
    pub fn of(id: &ProposalId, content: &ProposalContent, settings: &Settings) -> Result<Self, NotProposed> {
        let repository =
            settings.agents_repository.as_ref().ok_or(NotProposed::NoPlace { setting: "url" })?;
        let path = match content {
            ProposalContent::Agent { .. } | ProposalContent::GatewayAgent { .. } => {
                repository.configuration.clone()
            }
            ProposalContent::Skill { name, .. } => {
                let skills = repository.skills.as_ref();
                let skills = skills.ok_or(NotProposed::NoPlace { setting: "skills" })?;
                format!("{skills}/{name}/{SKILL_FILE}")
            }
        };
        Ok(Self { order: RepoOrder::of_proposal(id, repository, settings)?, path })
    }
}

impl ProposalOrder {
    /// Returns an id that no other order has.
    #[must_use]
    pub fn new_id() -> ProposalId {
        // The cast keeps the lower half, which is as random as all bits.
        #[expect(clippy::cast_possible_truncation, reason = "half of the bits are enough")]
        ProposalId::from_random(random::bits() as u64)
    }

    /// Stores the order, unless it was stored before. `github` is asked whether it has a credential.
    ///
    /// # Errors
    /// If the settings name no place for it, the account has too many, or the store fails.
    pub async fn store(
        self,
        store: &Store,
        settings: &Settings,
        github: &GitHubAccess,
    ) -> Result<Ordered, NotProposed> {
        let Self { id, account, principal, content } = self;
        let place = ProposalPlace::of(&id, &content, settings)?;
        place.order.check_credential(github)?;
        let new = NewProposal {
            id,
            account,
            principal,
            // A content has no maps, so it can be written.
            content: serde_json::to_string(&content).unwrap_or_default(),
            progress: ProposalRecord::new(place).progress(Some(Millis(0))),
        };
        match store.add_proposal(&new).await? {
            ProposalAdded::New(stored) => Ok(Ordered::New(Box::new(Proposal::read(&stored)?))),
            ProposalAdded::Before(stored) => {
                let proposal = Proposal::read(&stored)?;
                if proposal.content == content && proposal.account == new.account {
                    Ok(Ordered::Before(Box::new(proposal)))
                } else {
                    Err(NotProposed::OtherOrder { id: new.id })
                }
            }
            ProposalAdded::TooMany => Err(NotProposed::TooMany),
        }
    }
}
