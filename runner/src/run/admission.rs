//! What an order must be like to be stored, through whichever door it comes. Not here: whether there is room for it in the
//! queue, which only the store can tell.

use platform_core::{
    id::{AccountId, AgentId},
    priority::Priority,
};
use platform_runtime::settings::{Accounts, Execution};

use super::Order;

/// Why an order is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// It names a conversation to go on with, and its agent has none.
    #[error(
        "each run of {agent} begins anew, in a container of its own: only agents with `mode = \"gateway\"` have conversations to go on with"
    )]
    NoSession {
        /// The agent.
        agent: AgentId,
    },
    /// It is more urgent than an order of its account may be.
    #[error(
        "runs of account {account} have at most priority {most}, and this one asks for {asked}: \
         `priority = \"{asked}\"` in [accounts.\"{account}\"] allows it"
    )]
    TooUrgent {
        /// Who pays.
        account: AccountId,
        /// What is asked for.
        asked: Priority,
        /// What its entry allows.
        most: Priority,
    },
}

/// Refuses an order that is not to be stored.
pub(super) fn admit(order: &Order, accounts: &Accounts) -> Result<(), Refused> {
    if order.wanted.state_key.is_some() && order.wanted.agent.mode == Execution::Ephemeral {
        return Err(Refused::NoSession { agent: order.agent_id.clone() });
    }
    let (asked, most) = (order.priority, accounts.of(&order.account).priority);
    if asked > most {
        return Err(Refused::TooUrgent { account: order.account.clone(), asked, most });
    }
    Ok(())
}
