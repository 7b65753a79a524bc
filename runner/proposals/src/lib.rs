//! runner_proposals brings drafts of agents and skills to the repository of the operator's configuration.
//!
//! ```text
//! order ─▶ queued ─▶ committed ─▶ pushed ─▶ proposed ─▶ merged | closed        or refused | failed on the way
//!          a row     quarantine,  sandbox/  pull        looked at by GitHub's API, or in the base branch
//!                    judge        branch    request
//! ```
//!
//! 1. [`ProposalContent`] is what is proposed: an entry of an agent, or a skill. Checked before it is stored.
//! 2. [`ProposalOrder::store`] stores it, for the repository of `[agents_repository]`.
//! 3. [`continue_proposals`] takes each step, stores it, and looks for the end of what is proposed.
//!
//! The commit changes one file on top of the newest commit of the base branch, and goes the way of agents' commits. Does not
//! write this host's configuration, and fetches nothing but that repository.
//!
//! Invariants: a step is stored before the next one begins, and may be repeated: a proposal has one branch and one pull
//! request. No text with a secret is stored or pushed.

mod advance;
mod content;
mod diff;
mod directory;
mod entry;
mod error;
mod open;
mod order;
mod pending;
mod record;
mod settings_reader;
mod skill_name;
mod watch;

use std::sync::Arc;

use platform_core::id::ProposalId;
use platform_runtime::settings::Settings;
use runner_engine::relay::{GitHubAccess, Relays, RepoOrder};
use runner_store::Store;

pub use self::{
    content::{InvalidContent, ProposalContent, ProposalKind},
    diff::unified_diff,
    entry::{entry_text, with_entry},
    error::ProposalError,
    open::WATCH_INTERVAL,
    order::{NotProposed, Ordered, ProposalOrder},
    pending::continue_proposals,
    record::{Proposal, ProposalPlace, ProposalRecord, ProposalState},
    settings_reader::SettingsReader,
    skill_name::SkillName,
};

/// Proposals of this host, under the settings of a moment.
#[derive(Debug, Clone)]
pub struct Proposals {
    store: Store,
    relays: Relays,
    reader: SettingsReader,
    /// Any order for the repository of the settings.
    configured: Option<RepoOrder>,
}

impl Proposals {
    /// Returns the proposals in `store`, as `settings` say. `reader` checks configuration files. Touches no file.
    #[must_use]
    pub fn of(
        settings: &Settings,
        store: &Store,
        github: &Arc<GitHubAccess>,
        reader: &SettingsReader,
    ) -> Self {
        let order =
            |repository| RepoOrder::of_proposal(&ProposalId::from_random(0), repository, settings).ok();
        Self {
            store: store.clone(),
            relays: Relays::of(settings, store, github),
            reader: reader.clone(),
            configured: settings.agents_repository.as_ref().and_then(order),
        }
    }

    /// Returns whether the settings still name the place of `order`.
    fn is_configured(&self, order: &RepoOrder) -> bool {
        self.configured.as_ref().is_some_and(|configured| {
            (&configured.url, &configured.base, configured.publish)
                == (&order.url, &order.base, order.publish)
        })
    }
}
