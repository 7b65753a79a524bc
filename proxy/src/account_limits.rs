//! Stores the limits that an operator has set for accounts, so that a restart keeps them.
//!
//! Such limits replace those of the configuration. They hold until the configuration says something else of that account,
//! also if it was edited while no proxy ran. So each line has what the configuration said when it was written. Other
//! modules apply the limits.

use std::{collections::BTreeMap, io, path::Path};

use platform_core::{budget::Budget, id::AccountId};
use platform_runtime::sync::Mutex;
use serde::{Deserialize, Serialize};

use crate::log::{self, Log};

/// Limits that an operator has set, by account.
#[derive(Debug)]
pub(crate) struct AccountLimits(Mutex<Stored>);

#[derive(Debug)]
struct Stored {
    set: BTreeMap<AccountId, SetLimits>,
    log: Log,
}

/// Limits of an account, and those of the configuration that they replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetLimits {
    /// Limits that hold.
    pub(crate) budget: Budget,
    /// Limits of the configuration at that time.
    pub(crate) configured: Budget,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LimitLine {
    Set { account: AccountId, limits: Box<SetLimits> },
    Forgotten(AccountId),
}

impl AccountLimits {
    /// Reads the limits from `file`.
    ///
    /// # Errors
    /// If the file cannot be read or written, or holds anything else: the proxy does not guess what was allowed.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let (mut log, lines) = log::open_json_log(file)?;
        let stored = lines.len();
        let mut set = BTreeMap::new();
        for line in lines {
            match line {
                LimitLine::Set { account, limits } => set.insert(account, *limits),
                LimitLine::Forgotten(account) => set.remove(&account),
            };
        }
        if set.len() < stored {
            let lines = set.iter().map(|(account, limits)| set_line(account, *limits));
            log.compact(&log::json_lines(lines)?);
        }
        Ok(Self(Mutex::new(Stored { set, log })))
    }

    /// Returns the accounts that have such limits.
    pub(crate) fn accounts(&self) -> Vec<AccountId> {
        self.0.lock().set.keys().cloned().collect()
    }

    /// Returns the limits that were set for `account` while the configuration said `configured` of it.
    pub(crate) fn of(&self, account: &AccountId, configured: &Budget) -> Option<Budget> {
        let stored = self.0.lock();
        stored.set.get(account).filter(|limits| limits.configured == *configured).map(|limits| limits.budget)
    }

    /// Keeps `limits` for `account`.
    ///
    /// # Errors
    /// If they are not stored: a restart would forget them. [`AccountLimits::store`] tries again.
    pub(crate) fn set(&self, account: &AccountId, limits: SetLimits) -> io::Result<()> {
        let mut stored = self.0.lock();
        stored.set.insert(account.clone(), limits);
        stored.log.append(&log::json_lines([set_line(account, limits)])?)
    }

    /// Forgets what was set for `account`, if anything.
    ///
    /// # Errors
    /// If that is not stored. [`AccountLimits::store`] tries again.
    pub(crate) fn forget(&self, account: &AccountId) -> io::Result<()> {
        let mut stored = self.0.lock();
        if stored.set.remove(account).is_none() {
            return Ok(());
        }
        stored.log.append(&log::json_lines([LimitLine::Forgotten(account.clone())])?)
    }

    /// Stores the changes that are not stored yet.
    ///
    /// # Errors
    /// If the disk rejects it.
    pub(crate) fn store(&self) -> io::Result<()> {
        self.0.lock().log.store()
    }

    /// Returns whether the limits would be the same after a restart.
    pub(crate) fn is_stored(&self) -> bool {
        self.0.lock().log.is_stored()
    }
}

fn set_line(account: &AccountId, limits: SetLimits) -> LimitLine {
    LimitLine::Set { account: account.clone(), limits: Box::new(limits) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn requests(limit: u64) -> Budget {
        Budget { requests: Some(limit), ..Budget::default() }
    }

    #[test]
    fn set_limits_survive_unless_configured_anew() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("limits");
        let account = |id| AccountId::parse(id).unwrap();
        let set = |limits: &AccountLimits, id, limit| {
            let limits_set = SetLimits { budget: requests(limit), configured: requests(9) };
            limits.set(&account(id), limits_set).unwrap();
        };
        let limits = AccountLimits::open(&file).unwrap();
        set(&limits, "a", 1);
        set(&limits, "a", 2);
        set(&limits, "b", 3);
        limits.forget(&account("b")).unwrap();
        limits.forget(&account("c")).unwrap();
        for _ in 0..2 {
            let limits = AccountLimits::open(&file).unwrap();
            assert_eq!(limits.accounts(), [account("a")]);
            assert_eq!(limits.of(&account("a"), &requests(9)), Some(requests(2)));
            assert_eq!(limits.of(&account("a"), &requests(8)), None, "the configuration has changed");
            assert_eq!(limits.of(&account("b"), &requests(9)), None, "control: forgotten");
        }
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1, "an open compacts");
    }

    #[test]
    fn a_torn_line_is_cut_off_others_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("limits");
        fs::write(&file, "{\"forgotten\":\"a\"}\n{\"set\":{\"acc").unwrap();
        assert!(AccountLimits::open(&file).unwrap().accounts().is_empty());
        fs::write(&file, "{\"raised\":\"a\"}\n").unwrap();
        assert!(AccountLimits::open(&file).is_err());
    }
}
