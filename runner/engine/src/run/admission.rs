//! Checks whether a request may be stored, whatever its origin. The store itself checks whether the queue has room for
//! it.

use platform_core::{id::AccountId, priority::Priority};
use platform_runtime::settings::Accounts;

use crate::run_request::RunRequest;

/// Reason why a request is not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
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

/// Checks that a request may be stored.
pub(super) fn admit(request: &RunRequest, accounts: &Accounts) -> Result<(), NotAdmitted> {
    let requested = request.priority;
    let max = accounts.of(&request.account).priority;
    if requested > max {
        return Err(NotAdmitted::TooUrgent { account: request.account.clone(), asked: requested, most: max });
    }
    Ok(())
}
