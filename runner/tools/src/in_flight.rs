//! in_flight counts the calls of each account, and knows which writing calls this process executes.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use platform_core::id::{AccountId, RunId};
use platform_runtime::{settings::Tools, sync::Mutex};

/// Key of a call: run, attempt and the call's id.
pub(crate) type CallKey = (RunId, u32, String);

/// Most calls of all accounts that wait for an approval, or run after it. Each holds a connection, for minutes.
pub(crate) const MAX_WAITING: u32 = 256;

/// Kind of a call, of which an account has a number at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PermitKind {
    /// The call runs at once.
    Immediate,
    /// The call waits for an approval first. So calls that no person decides about block none of the others.
    Approval,
}

/// Calls that this process executes. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct CallsInFlight {
    max_immediate: u32,
    max_approval: u32,
    /// Most calls of all accounts that wait for an approval.
    max_waiting: u32,
    accounts: Arc<Mutex<HashMap<(AccountId, PermitKind), u32>>>,
    writing: Arc<Mutex<HashSet<CallKey>>>,
}

/// Reason why a call gets no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooManyCalls {
    #[error("the account has too many calls in flight: try again later")]
    InFlight,
    #[error("the account has too many calls that wait for an approval: try again later")]
    Waiting,
    #[error("all accounts together have too many calls that wait for an approval: try again later")]
    WaitingOfAll,
}

/// Right of an account to one more call of a kind, until it is dropped.
#[derive(Debug)]
pub(crate) struct AccountPermit {
    in_flight: CallsInFlight,
    account: (AccountId, PermitKind),
}

/// Mark of a writing call, until it is dropped.
#[derive(Debug)]
pub(crate) struct WritingMark {
    in_flight: CallsInFlight,
    key: CallKey,
}

impl CallsInFlight {
    pub(crate) fn of(settings: &Tools) -> Self {
        Self {
            max_immediate: settings.max_calls_in_flight_per_account,
            max_approval: settings.max_calls_waiting_per_account,
            max_waiting: MAX_WAITING,
            accounts: Arc::default(),
            writing: Arc::default(),
        }
    }

    /// Returns the permit for a call.
    ///
    /// # Errors
    /// If there are as many of its kind as there may be.
    pub(crate) fn enter(&self, account: &AccountId, kind: PermitKind) -> Result<AccountPermit, TooManyCalls> {
        let mut accounts = self.accounts.lock();
        let (max, exhausted) = match kind {
            PermitKind::Immediate => (self.max_immediate, TooManyCalls::InFlight),
            PermitKind::Approval => {
                let waiting = accounts.iter().filter(|((_, kind), _)| *kind == PermitKind::Approval);
                if waiting.map(|(_, count)| count).sum::<u32>() >= self.max_waiting {
                    return Err(TooManyCalls::WaitingOfAll);
                }
                (self.max_approval, TooManyCalls::Waiting)
            }
        };
        let account = (account.clone(), kind);
        let count = accounts.get(&account).copied().unwrap_or_default();
        if count >= max {
            return Err(exhausted);
        }
        accounts.insert(account.clone(), count + 1);
        drop(accounts);
        Ok(AccountPermit { in_flight: self.clone(), account })
    }

    /// Marks a writing call; none if this process executes it already.
    pub(crate) fn write(&self, key: CallKey) -> Option<WritingMark> {
        let is_new = self.writing.lock().insert(key.clone());
        is_new.then(|| WritingMark { in_flight: self.clone(), key })
    }
}

impl Drop for AccountPermit {
    fn drop(&mut self) {
        let mut accounts = self.in_flight.accounts.lock();
        let left = accounts.get_mut(&self.account).map(|count| {
            *count -= 1;
            *count
        });
        if left == Some(0) {
            accounts.remove(&self.account);
        }
    }
}

impl Drop for WritingMark {
    fn drop(&mut self) {
        self.in_flight.writing.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_at_once() -> CallsInFlight {
        CallsInFlight {
            max_immediate: 2,
            max_approval: 1,
            max_waiting: 2,
            accounts: Arc::default(),
            writing: Arc::default(),
        }
    }

    #[test]
    fn an_account_has_a_number_of_calls() {
        use PermitKind::{Approval, Immediate};
        let in_flight = two_at_once();
        let account = |text| AccountId::parse(text).unwrap();
        let first = in_flight.enter(&account("a"), Immediate);
        let second = in_flight.enter(&account("a"), Immediate);
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(in_flight.enter(&account("a"), Immediate).unwrap_err(), TooManyCalls::InFlight);
        assert!(in_flight.enter(&account("b"), Immediate).is_ok(), "another account has its own");
        let waiting = in_flight.enter(&account("a"), Approval);
        assert!(waiting.is_ok(), "calls that wait are counted apart");
        assert_eq!(in_flight.enter(&account("a"), Approval).unwrap_err(), TooManyCalls::Waiting);
        drop([first, waiting]);
        assert!(in_flight.enter(&account("a"), Immediate).is_ok());
        drop(second);
        assert!(in_flight.accounts.lock().is_empty(), "nothing is left of an account without a call");
    }

    /// Calls that wait leave connections of the socket to those that run at once.
    #[test]
    fn waiting_calls_of_all_accounts_are_bounded() {
        use PermitKind::{Approval, Immediate};
        let in_flight = two_at_once();
        let account = |text| AccountId::parse(text).unwrap();
        let waiting = ["a", "b"].map(|text| in_flight.enter(&account(text), Approval).unwrap());
        assert_eq!(in_flight.enter(&account("c"), Approval).unwrap_err(), TooManyCalls::WaitingOfAll);
        assert!(in_flight.enter(&account("c"), Immediate).is_ok(), "the control");
        drop(waiting);
        assert!(in_flight.enter(&account("c"), Approval).is_ok());
    }

    #[test]
    fn a_writing_call_is_executed_once_at_a_time() {
        let in_flight = two_at_once();
        let key = (RunId::parse("r").unwrap(), 0, "c".to_owned());
        let mark = in_flight.write(key.clone());
        assert!(mark.is_some() && in_flight.write(key.clone()).is_none());
        drop(mark);
        assert!(in_flight.write(key).is_some());
    }
}
