//! Keeps the freezes an operator has set: of accounts, of models, or of everything.
//!
//! A call reads them once, control changes them. A change takes effect at once, even if the disk fails. It is stored
//! right after, and storing is retried until it succeeds. Other modules attribute calls and wake their tasks.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    sync::{Arc, MutexGuard},
};

use arc_swap::ArcSwap;
use platform_core::{
    control::Frozen,
    id::{AccountId, ModelName},
};
use platform_runtime::sync::Mutex;
use serde::{Deserialize, Serialize};

use crate::log::{self, Log};

/// Freezes in effect.
#[derive(Debug)]
pub(crate) struct Freezes {
    now: ArcSwap<BTreeSet<Frozen>>,
    log: Mutex<Log>,
}

/// A line of the file. Earlier programs wrote lines that name only a frozen account or model.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum FreezeLine {
    Thawed { thawed: Frozen },
    Frozen(Frozen),
}

/// Freeze that stops a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// All calls are frozen.
    All,
    /// The call's account is frozen.
    Account,
    /// The call's model is frozen.
    Model,
}

impl Stop {
    /// Returns the word for a record.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Account => "account",
            Self::Model => "model",
        }
    }
}

/// Operation on the named accounts and models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Stops the calls of what is named.
    Freeze,
    /// Lets the calls of what is named go on.
    Thaw,
}

impl Freezes {
    /// Reads the freezes from `file`.
    ///
    /// # Errors
    /// If the file cannot be read or written, or holds anything else: the proxy does not guess what was frozen.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        let (mut log, lines) = log::open_json_log(file)?;
        let stored = lines.len();
        let mut now = BTreeSet::new();
        for line in lines {
            match line {
                FreezeLine::Frozen(one) => now.insert(one),
                FreezeLine::Thawed { thawed } => now.remove(&thawed),
            };
        }
        if now.len() < stored {
            log.compact(&log::json_lines(&now)?);
        }
        Ok(Self { now: ArcSwap::from_pointee(now), log: Mutex::new(log) })
    }

    /// Returns the freeze that stops a call of `account`, for `model` if that is known already.
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

    /// Returns all freezes, in order.
    pub(crate) fn list(&self) -> Vec<Frozen> {
        self.now.load().iter().cloned().collect()
    }

    /// Freezes or thaws what is named. The change is in effect when this returns.
    ///
    /// # Errors
    /// If the change is not stored: a restart would forget it. [`Freezes::store`] tries again.
    pub(crate) fn change(&self, change: Change, named: Vec<Frozen>) -> io::Result<()> {
        let mut log = self.log();
        let mut next = BTreeSet::clone(&self.now.load());
        let mut lines = Vec::new();
        for one in named {
            let (is_new, line) = match change {
                Change::Freeze => (next.insert(one.clone()), FreezeLine::Frozen(one)),
                Change::Thaw => (next.remove(&one), FreezeLine::Thawed { thawed: one }),
            };
            if is_new {
                lines.push(line);
            }
        }
        let lines = log::json_lines(lines)?;
        // Takes effect before it is stored: an emergency stop must not wait for a disk.
        self.now.store(Arc::new(next));
        log.append(&lines)
    }

    /// Stores the changes that are not stored yet.
    ///
    /// # Errors
    /// If the disk rejects it.
    pub(crate) fn store(&self) -> io::Result<()> {
        self.log().store()
    }

    /// Returns whether the freezes would be the same after a restart.
    pub(crate) fn is_stored(&self) -> bool {
        self.log().is_stored()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
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
    fn freezes_survive_a_restart() {
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
        let freezes = Freezes::open(&file).unwrap();
        assert_eq!(stopped(&freezes), [Some(Stop::All); 5]);
        freezes.change(Change::Thaw, vec![Frozen::All, Frozen::All]).unwrap();
        assert_eq!(Freezes::open(&file).unwrap().list(), []);
        assert_eq!(fs::read_to_string(&file).unwrap(), "", "an open compacts");
    }

    #[test]
    fn old_and_torn_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("frozen");
        let (all, one) = (r#"{"kind":"all"}"#, r#"{"kind":"account","name":"a"}"#);
        for (text, frozen) in [
            (format!("{all}\n{one}\n"), 2),
            (format!("{all}\n{one}"), 2),
            (format!("{one}\n{}", &all[..5]), 1),
            (format!("{one}\n{{\"thawed\":{one}}}\n{all}\n"), 1),
        ] {
            fs::write(&file, &text).unwrap();
            for again in 0..2 {
                assert_eq!(Freezes::open(&file).unwrap().list().len(), frozen, "{again}: {text}");
            }
        }
    }

    #[test]
    fn an_unreadable_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("frozen");
        fs::write(&file, "{\"kind\":\"account\"}\n").unwrap();
        assert!(Freezes::open(&file).is_err());
    }
}
