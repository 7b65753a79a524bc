//! in_flight counts the calls of each account, and knows which writing calls this process executes.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use platform_core::id::{AccountId, RunId};
use platform_runtime::{settings::Tools, sync::Mutex};

/// Key of a call: run, attempt and the call's id.
pub(crate) type CallKey = (RunId, u32, String);

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
    accounts: Arc<Mutex<HashMap<(AccountId, PermitKind), u32>>>,
    writing: Arc<Mutex<HashSet<CallKey>>>,
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
            accounts: Arc::default(),
            writing: Arc::default(),
        }
    }

    /// Returns the permit for a call; none if the account has as many of its kind as it may.
    pub(crate) fn enter(&self, account: &AccountId, kind: PermitKind) -> Option<AccountPermit> {
        let max = match kind {
            PermitKind::Immediate => self.max_immediate,
            PermitKind::Approval => self.max_approval,
        };
        let account = (account.clone(), kind);
        let mut accounts = self.accounts.lock();
        let count = accounts.entry(account.clone()).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        drop(accounts);
        Some(AccountPermit { in_flight: self.clone(), account })
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
        CallsInFlight { max_immediate: 2, max_approval: 1, accounts: Arc::default(), writing: Arc::default() }
    }

    #[test]
    fn an_account_has_a_number_of_calls() {
        use PermitKind::{Approval, Immediate};
        let in_flight = two_at_once();
        let account = |text| AccountId::parse(text).unwrap();
        let first = in_flight.enter(&account("a"), Immediate);
        let second = in_flight.enter(&account("a"), Immediate);
        assert!(first.is_some() && second.is_some());
        assert!(in_flight.enter(&account("a"), Immediate).is_none());
        assert!(in_flight.enter(&account("b"), Immediate).is_some(), "another account has its own");
        let waiting = in_flight.enter(&account("a"), Approval);
        assert!(waiting.is_some(), "calls that wait are counted apart");
        assert!(in_flight.enter(&account("a"), Approval).is_none());
        drop([first, waiting]);
        assert!(in_flight.enter(&account("a"), Immediate).is_some());
        drop(second);
        assert!(in_flight.accounts.lock().is_empty(), "nothing is left of an account without a call");
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
