//! What an order must be like to be stored, through whichever door it comes. Not here: whether there is room for it in the
//! queue, which only the store can tell.

use platform_core::{
    id::{AccountId, AgentId},
    priority::Priority,
};
use platform_runtime::settings::{Accounts, Execution};

use super::Order;
use crate::agents::Obstacle;

/// Why an order is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// Its agent cannot run here, whatever else there is.
    #[error("{agent} cannot run: {obstacle}")]
    CannotRun {
        /// The agent.
        agent: AgentId,
        /// What is in its way.
        obstacle: Obstacle,
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
    if order.wanted.agent.mode == Execution::Gateway {
        let (agent, obstacle) = (order.agent_id.clone(), Obstacle::Gateway);
        return Err(Refused::CannotRun { agent, obstacle });
    }
    let (asked, most) = (order.priority, accounts.of(&order.account).priority);
    if asked > most {
        return Err(Refused::TooUrgent { account: order.account.clone(), asked, most });
    }
    Ok(())
}
