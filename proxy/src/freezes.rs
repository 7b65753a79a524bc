//! What an operator has stopped: accounts, models, or everything.
//!
//! Read once per call, changed by control. A change is on disk before it holds, so that no restart thaws anything. Whose call
//! it is, is not decided here, nor who has to look again.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;
use platform_core::{
    control::Frozen,
    id::{AccountId, ModelName},
};

use crate::state;

/// What is stopped now.
#[derive(Debug)]
pub(crate) struct Freezes {
    now: ArcSwap<BTreeSet<Frozen>>,
    file: Mutex<PathBuf>,
}

/// By what a call is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Everything is.
    All,
    /// Its account is.
    Account,
    /// Its model is.
    Model,
}

impl Stop {
    /// As a record names it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Account => "account",
            Self::Model => "model",
        }
    }
}

/// What to do with what is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Stop it.
    Freeze,
    /// Let it go on.
    Thaw,
}

impl Freezes {
    /// What was stopped when `file` was last written.
    ///
    /// # Errors
    /// If the file is there and cannot be read, or holds anything else: it is not guessed what was stopped.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let now = state::read(file)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Self { now: ArcSwap::from_pointee(now), file: Mutex::new(file.to_owned()) })
    }

    /// Why a call of `account`, for `model` if that is known already, may not go on, if it may not.
    pub(crate) fn stop(&self, account: &AccountId, model: Option<&str>) -> Option<Stop> {
        let now = self.now.load();
        if now.is_empty() {
            return None;
        }
        let model = || ModelName::parse(model?).ok().map(Frozen::Model);
        if now.contains(&Frozen::All) {
            Some(Stop::All)
        } else if now.contains(&Frozen::Account(account.clone())) {
            Some(Stop::Account)
        } else {
            model().filter(|model| now.contains(model)).map(|_| Stop::Model)
        }
    }

    /// Everything that is stopped, in order.
    pub(crate) fn list(&self) -> Vec<Frozen> {
        self.now.load().iter().cloned().collect()
    }

    /// Stops or lets go on what is named. It is on disk when this returns.
    pub(crate) fn change(&self, change: Change, named: Vec<Frozen>) -> io::Result<()> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = BTreeSet::clone(&self.now.load());
        for one in named {
            match change {
                Change::Freeze => next.insert(one),
                Change::Thaw => next.remove(&one),
            };
        }
        let lines = next.iter().map(|one| serde_json::to_string(one).map(|line| line + "\n"));
        state::replace(&file, lines.collect::<Result<String, _>>()?.as_bytes())?;
        self.now.store(Arc::new(next));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn account(id: &str) -> AccountId {
        AccountId::parse(id).unwrap()
    }

    #[test]
    fn what_is_stopped_is_what_was_named_and_a_restart_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("frozen");
        let freezes = Freezes::open(&file).unwrap();
        let stopped = |freezes: &Freezes| {
            [("a", None), ("a", Some("m")), ("b", Some("m")), ("b", Some("m2")), ("b", Some("not, a name"))]
                .map(|(id, model)| freezes.stop(&account(id), model))
        };
        let named_stops = [Some(Stop::Account), Some(Stop::Account), Some(Stop::Model), None, None];
        assert_eq!(stopped(&freezes), [None; 5]);
        let named = vec![Frozen::Account(account("a")), Frozen::Model("m".parse().unwrap())];
        freezes.change(Change::Freeze, named.clone()).unwrap();
        assert_eq!(stopped(&freezes), named_stops);
        assert_eq!(stopped(&Freezes::open(&file).unwrap()), named_stops);
        freezes.change(Change::Thaw, named).unwrap();
        freezes.change(Change::Freeze, vec![Frozen::All]).unwrap();
        assert_eq!(stopped(&Freezes::open(&file).unwrap()), [Some(Stop::All); 5]);
        freezes.change(Change::Thaw, vec![Frozen::All, Frozen::All]).unwrap();
        assert_eq!(Freezes::open(&file).unwrap().list(), []);
    }

    #[test]
    fn a_file_that_cannot_be_understood_is_no_reason_to_let_calls_pass() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("frozen");
        fs::write(&file, "{\"kind\":\"account\"}\n").unwrap();
        assert!(Freezes::open(&file).is_err());
    }
}
