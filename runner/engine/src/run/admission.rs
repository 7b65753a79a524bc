//! Checks whether a request may be stored, wherever it comes from. Not here: whether the queue can take it, which only
//! the store knows.

use platform_core::{
    id::{AccountId, AgentId},
    priority::Priority,
};
use platform_runtime::settings::{Accounts, Execution};

use crate::request::RunRequest;

/// Reason why a request is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The request names a conversation to continue, and its agent has none.
    #[error(
        "each run of {agent} starts afresh, in a container of its own: only agents with `mode = \"gateway\"` can continue a conversation"
    )]
    NoSession {
        /// Agent without conversations.
        agent: AgentId,
    },
    /// The request is more urgent than its account allows.
    #[error(
        "runs of account {account} have at most priority {most}, and this one asks for {asked}: \
         `priority = \"{asked}\"` in [accounts.\"{account}\"] allows it"
    )]
    TooUrgent {
        /// Account of the request.
        account: AccountId,
        /// Priority that the request asks for.
        asked: Priority,
        /// Highest priority that the account's entry allows.
        most: Priority,
    },
}

/// Refuses a request that may not be stored.
pub(super) fn admit(request: &RunRequest, accounts: &Accounts) -> Result<(), NotAdmitted> {
    if request.spec.state_key.is_some() && request.spec.agent.mode == Execution::Ephemeral {
        return Err(NotAdmitted::NoSession { agent: request.agent_id.clone() });
    }
    let asked = request.priority;
    let most = accounts.of(&request.account).priority;
    if asked > most {
        return Err(NotAdmitted::TooUrgent { account: request.account.clone(), asked, most });
    }
    Ok(())
}
