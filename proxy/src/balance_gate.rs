//! Keeps the accounts with a balance below their floor, and the models that cost nothing.
//!
//! The control plane knows balances, and replaces the lists here. A call reads them once. A change takes effect at once,
//! even if the disk fails. It is stored right after, and storing is retried until it succeeds. So the calls of such an
//! account stay refused over a restart, also while no control plane is up.

use std::{io, path::Path, sync::Arc};

use arc_swap::ArcSwap;
use platform_core::{
    control::ExhaustedAccounts,
    id::{AccountId, ModelName},
};
use platform_runtime::sync::Mutex;
use serde::{Deserialize, Serialize};

use crate::log::{self, Log};

/// Gate that calls of accounts below their floor do not pass.
#[derive(Debug)]
pub(crate) struct BalanceGate {
    now: ArcSwap<ExhaustedAccounts>,
    log: Mutex<Log>,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum GateLine {
    Exhausted(AccountId),
    Restored(AccountId),
    Free(ModelName),
    Charged(ModelName),
}

impl GateLine {
    fn apply(self, lists: &mut ExhaustedAccounts) {
        match self {
            Self::Exhausted(account) => lists.accounts.insert(account),
            Self::Restored(account) => lists.accounts.remove(&account),
            Self::Free(model) => lists.free_models.insert(model),
            Self::Charged(model) => lists.free_models.remove(&model),
        };
    }
}

impl BalanceGate {
    /// Reads the lists from `file`.
    ///
    /// # Errors
    /// If the file cannot be read or written, or holds anything else: the proxy does not guess which balances ran out.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let (mut log, lines) = log::open_json_log::<GateLine>(file)?;
        let stored = lines.len();
        let mut now = ExhaustedAccounts::default();
        lines.into_iter().for_each(|line| line.apply(&mut now));
        if now.accounts.len() + now.free_models.len() < stored {
            log.compact(&changes(&ExhaustedAccounts::default(), &now)?);
        }
        Ok(Self { now: ArcSwap::from_pointee(now), log: Mutex::new(log) })
    }

    /// Returns whether a call of `account` for `model` passes.
    pub(crate) fn passes(&self, account: &AccountId, model: &str) -> bool {
        let now = self.now.load();
        !now.accounts.contains(account) || now.free_models.contains(model)
    }

    /// Returns the lists.
    pub(crate) fn lists(&self) -> ExhaustedAccounts {
        ExhaustedAccounts::clone(&self.now.load())
    }

    /// Replaces the lists. They are in effect when this returns. Returns whether they differ from the earlier ones.
    ///
    /// # Errors
    /// If the change is not stored: a restart would forget it. [`BalanceGate::store`] tries again.
    pub(crate) fn replace(&self, lists: ExhaustedAccounts) -> io::Result<bool> {
        let mut log = self.log.lock();
        let lines = changes(&self.now.load(), &lists)?;
        self.now.store(Arc::new(lists));
        log.append(&lines)?;
        Ok(!lines.is_empty())
    }

    /// Stores the changes that are not stored yet.
    ///
    /// # Errors
    /// If the disk rejects it.
    pub(crate) fn store(&self) -> io::Result<()> {
        self.log.lock().store()
    }

    /// Returns whether the lists would be the same after a restart.
    pub(crate) fn is_stored(&self) -> bool {
        self.log.lock().is_stored()
    }
}

/// Returns the lines that turn the lists `from` into `to`.
fn changes(from: &ExhaustedAccounts, to: &ExhaustedAccounts) -> io::Result<String> {
    let added = to.accounts.difference(&from.accounts).cloned().map(GateLine::Exhausted);
    let removed = from.accounts.difference(&to.accounts).cloned().map(GateLine::Restored);
    let free = to.free_models.difference(&from.free_models).cloned().map(GateLine::Free);
    let charged = from.free_models.difference(&to.free_models).cloned().map(GateLine::Charged);
    log::json_lines(added.chain(removed).chain(free).chain(charged))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;

    fn account(id: &str) -> AccountId {
        AccountId::parse(id).unwrap()
    }

    fn lists(accounts: &[&str], models: &[&str]) -> ExhaustedAccounts {
        let free_models: BTreeSet<ModelName> = models.iter().map(|model| model.parse().unwrap()).collect();
        ExhaustedAccounts { accounts: accounts.iter().map(|id| account(id)).collect(), free_models }
    }

    #[test]
    fn the_latest_lists_survive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("exhausted");
        let gate = BalanceGate::open(&file).unwrap();
        assert!(gate.passes(&account("a"), "m"));
        assert!(gate.replace(lists(&["a", "b"], &["free"])).unwrap());
        assert!(gate.replace(lists(&["b", "c"], &["free", "m2"])).unwrap());
        assert!(!gate.replace(lists(&["b", "c"], &["free", "m2"])).unwrap(), "the same again");
        for _ in 0..2 {
            let gate = BalanceGate::open(&file).unwrap();
            let passed = [("a", "m"), ("b", "m"), ("b", "free"), ("c", "m2"), ("c", "m")]
                .map(|(id, model)| gate.passes(&account(id), model));
            assert_eq!(passed, [true, false, true, true, false]);
        }
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 4, "an open compacts");
        BalanceGate::open(&file).unwrap().replace(lists(&[], &[])).unwrap();
        assert_eq!(BalanceGate::open(&file).unwrap().lists(), lists(&[], &[]));
    }

    #[test]
    fn a_torn_line_is_cut_off_others_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("exhausted");
        fs::write(&file, "{\"exhausted\":\"a\"}\n{\"restored\":\"").unwrap();
        assert_eq!(BalanceGate::open(&file).unwrap().lists(), lists(&["a"], &[]));
        fs::write(&file, "{\"paid\":\"a\"}\n").unwrap();
        assert!(BalanceGate::open(&file).is_err());
    }
}
