//! in_flight counts the calls of each account, and knows which writing calls this process executes.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use platform_core::id::{AccountId, RunId};
use platform_runtime::sync::Mutex;

/// Key of a call: run, attempt and the call's id.
pub(crate) type CallKey = (RunId, u32, String);

/// Calls that this process executes. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct CallsInFlight {
    max_per_account: u32,
    accounts: Arc<Mutex<HashMap<AccountId, u32>>>,
    writing: Arc<Mutex<HashSet<CallKey>>>,
}

/// Right of an account to one more call, until it is dropped.
#[derive(Debug)]
pub(crate) struct AccountPermit {
    in_flight: CallsInFlight,
    account: AccountId,
}

/// Mark of a writing call, until it is dropped.
#[derive(Debug)]
pub(crate) struct WritingMark {
    in_flight: CallsInFlight,
    key: CallKey,
}

impl CallsInFlight {
    pub(crate) fn new(max_per_account: u32) -> Self {
        Self { max_per_account, accounts: Arc::default(), writing: Arc::default() }
    }

    /// Returns the permit for a call; none if the account has as many as it may.
    pub(crate) fn enter(&self, account: &AccountId) -> Option<AccountPermit> {
        let mut accounts = self.accounts.lock();
        let count = accounts.entry(account.clone()).or_default();
        if *count >= self.max_per_account {
            return None;
        }
        *count += 1;
        Some(AccountPermit { in_flight: self.clone(), account: account.clone() })
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

    #[test]
    fn an_account_has_a_number_of_calls() {
        let in_flight = CallsInFlight::new(2);
        let account = |text| AccountId::parse(text).unwrap();
        let first = in_flight.enter(&account("a"));
        let second = in_flight.enter(&account("a"));
        assert!(first.is_some() && second.is_some());
        assert!(in_flight.enter(&account("a")).is_none());
        assert!(in_flight.enter(&account("b")).is_some(), "another account has its own");
        drop(first);
        assert!(in_flight.enter(&account("a")).is_some());
        drop(second);
        assert!(in_flight.accounts.lock().is_empty(), "nothing is left of an account without a call");
    }

    #[test]
    fn a_writing_call_is_executed_once_at_a_time() {
        let in_flight = CallsInFlight::new(2);
        let key = (RunId::parse("r").unwrap(), 0, "c".to_owned());
        let mark = in_flight.write(key.clone());
        assert!(mark.is_some() && in_flight.write(key.clone()).is_none());
        drop(mark);
        assert!(in_flight.write(key).is_some());
    }
}
