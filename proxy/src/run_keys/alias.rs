//! Names the key of a run at the upstream, and writes the name down before the key exists.

use std::{collections::BTreeMap, fmt, io, path::Path, time::Instant};

use platform_core::grant::RunGrant;
use platform_runtime::random;
use serde::{Deserialize, Serialize};

use super::DOUBT_TIMEOUT;
use crate::{
    log::{self, Log},
    run::KeyHolder,
};

/// Deleted aliases in the file at which it is written anew.
const MAX_DELETED: usize = 1000;

/// Name of a key at the upstream: `sluicegate/RUN/ATTEMPT/RANDOM`. The random part tells the keys of a run apart, and
/// those of two installations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct KeyAlias(String);

/// State of a key at the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
enum KeyState {
    /// The key is being minted for an open run, or its mint failed: the key may exist.
    Minting(KeyHolder),
    /// The key exists, and its run is open.
    Held(KeyHolder),
    /// The key exists, and has to be deleted.
    Retired,
    /// The key may exist, or may still come into being before this time. It has to be deleted.
    Doubtful { until: Instant },
}

/// Alias for a key that is to be minted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReservedAlias {
    /// There was no mint under it.
    New(KeyAlias),
    /// A mint under it failed or broke off: the key may exist, and must be deleted first.
    Again(KeyAlias),
}

/// Result of the deletion of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deletion {
    /// The key was deleted.
    Deleted,
    /// There was no such key.
    Unknown,
}

/// Line of the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AliasLine {
    Minting(KeyAlias),
    Deleted(KeyAlias),
}

/// Aliases of all keys that may exist at the upstream.
#[derive(Debug)]
pub(super) struct KeyAliases {
    states: BTreeMap<KeyAlias, KeyState>,
    log: Log,
    /// Deleted aliases that the file still holds.
    deleted: usize,
}

impl KeyAlias {
    /// Returns a new alias for a key of a run with `grant`.
    pub(super) fn of(grant: &RunGrant) -> Self {
        Self(format!("sluicegate/{}/{}/{:016x}", grant.run_id, grant.attempt, random::bits() >> 64))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyAlias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl KeyAliases {
    /// Reads the aliases from `file`. The keys of an earlier process are lost, and have to be deleted.
    ///
    /// # Errors
    /// If the file cannot be read or written, or holds anything else.
    pub(super) fn open(file: &Path) -> io::Result<Self> {
        let (log, lines) = log::open_json_log(file)?;
        let stored = lines.len();
        let mut states = BTreeMap::new();
        let until = Instant::now() + DOUBT_TIMEOUT;
        for line in lines {
            match line {
                AliasLine::Minting(alias) => states.insert(alias, KeyState::Doubtful { until }),
                AliasLine::Deleted(alias) => states.remove(&alias),
            };
        }
        let mut aliases = Self { states, log, deleted: 0 };
        if aliases.states.len() < stored {
            aliases.compact();
        }
        Ok(aliases)
    }

    /// Returns the alias for a key of `holder`, which is on the disk: `new`, unless a mint has failed. The key may be
    /// minted once this returns.
    ///
    /// # Errors
    /// If the disk rejects it: the key must not be minted.
    pub(super) fn reserve(&mut self, holder: KeyHolder, new: KeyAlias) -> io::Result<ReservedAlias> {
        let minting = KeyState::Minting(holder);
        if let Some((alias, _)) = self.states.iter().find(|(_, state)| **state == minting) {
            return Ok(ReservedAlias::Again(alias.clone()));
        }
        self.append(&AliasLine::Minting(new.clone()))?;
        self.states.insert(new.clone(), minting);
        Ok(ReservedAlias::New(new))
    }

    /// Notes that the key exists. Returns whether its run is open still.
    pub(super) fn minted(&mut self, alias: &KeyAlias) -> bool {
        match self.states.get_mut(alias) {
            Some(state) => {
                *state = match state {
                    KeyState::Minting(holder) | KeyState::Held(holder) => KeyState::Held(*holder),
                    KeyState::Retired | KeyState::Doubtful { .. } => KeyState::Retired,
                };
                *state != KeyState::Retired
            }
            None => false,
        }
    }

    /// Marks the keys of `holder` for deletion.
    pub(super) fn retire(&mut self, holder: KeyHolder) {
        let until = Instant::now() + DOUBT_TIMEOUT;
        for state in self.states.values_mut() {
            match state {
                KeyState::Minting(of) if *of == holder => *state = KeyState::Doubtful { until },
                KeyState::Held(of) if *of == holder => *state = KeyState::Retired,
                _ => {}
            }
        }
    }

    /// Returns the keys to delete.
    pub(super) fn retired(&self) -> Vec<KeyAlias> {
        let is_retired = |state: &KeyState| matches!(state, KeyState::Retired | KeyState::Doubtful { .. });
        self.states.iter().filter(|(_, state)| is_retired(state)).map(|(alias, _)| alias.clone()).collect()
    }

    /// Returns the number of keys that may exist.
    pub(super) fn count(&self) -> usize {
        self.states.len()
    }

    /// Notes what the upstream answered to a deletion. A key that may still come into being stays on the list.
    ///
    /// # Errors
    /// If the disk rejects it. The alias is forgotten anyway: a deletion that is repeated after a restart is harmless.
    pub(super) fn deleted(&mut self, alias: &KeyAlias, deletion: Deletion) -> io::Result<()> {
        match (self.states.get(alias), deletion) {
            (Some(KeyState::Doubtful { until }), Deletion::Unknown) if Instant::now() < *until => Ok(()),
            (None, _) => Ok(()),
            (Some(_), _) => {
                self.states.remove(alias);
                self.append(&AliasLine::Deleted(alias.clone()))?;
                self.deleted += 1;
                if self.deleted > MAX_DELETED {
                    self.compact();
                }
                Ok(())
            }
        }
    }

    fn append(&mut self, line: &AliasLine) -> io::Result<()> {
        self.log.append(&log::json_lines([line])?)
    }

    /// Writes the file anew, without deleted aliases.
    fn compact(&mut self) {
        if let Ok(lines) = log::json_lines(self.states.keys().cloned().map(AliasLine::Minting)) {
            self.log.compact(&lines);
            self.deleted = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn alias(name: &str) -> KeyAlias {
        KeyAlias(name.to_owned())
    }

    fn reserved(aliases: &mut KeyAliases, holder: KeyHolder, name: &str) -> KeyAlias {
        assert_eq!(aliases.reserve(holder, alias(name)).unwrap(), ReservedAlias::New(alias(name)));
        alias(name)
    }

    fn opened(dir: &tempfile::TempDir) -> KeyAliases {
        KeyAliases::open(&dir.path().join("run-keys")).unwrap()
    }

    #[test]
    fn a_key_is_deleted_once_its_run_ends() {
        let dir = tempfile::tempdir().unwrap();
        let mut aliases = opened(&dir);
        let [one, other] = [KeyHolder::default(), KeyHolder::default()];
        assert_eq!(aliases.reserve(one, alias("one")).unwrap(), ReservedAlias::New(alias("one")));
        assert_eq!(aliases.reserve(other, alias("other")).unwrap(), ReservedAlias::New(alias("other")));
        assert!(aliases.minted(&alias("one")) && aliases.minted(&alias("other")));
        assert_eq!(aliases.retired(), []);
        aliases.retire(one);
        assert_eq!(aliases.retired(), [alias("one")]);
        aliases.deleted(&alias("one"), Deletion::Unknown).unwrap();
        assert_eq!((aliases.retired(), aliases.count()), (vec![], 1), "it existed, and is gone");
        assert_eq!(opened(&dir).retired(), [alias("other")], "a restart loses the key");
    }

    #[test]
    fn a_doubtful_key_is_deleted_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut aliases = opened(&dir);
        let holder = KeyHolder::default();
        let alias = reserved(&mut aliases, holder, "one");
        aliases.retire(holder);
        aliases.deleted(&alias, Deletion::Unknown).unwrap();
        assert_eq!(aliases.retired(), from_ref(&alias), "the upstream may mint it later");
        assert!(!aliases.minted(&alias), "its run has ended");
        aliases.deleted(&alias, Deletion::Deleted).unwrap();
        assert_eq!(opened(&dir).retired(), []);
    }

    #[test]
    fn an_alias_is_stored_before_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let alias = reserved(&mut opened(&dir), KeyHolder::default(), "one");
        let mut aliases = opened(&dir);
        assert_eq!(aliases.retired(), from_ref(&alias));
        aliases.deleted(&alias, Deletion::Deleted).unwrap();
        assert_eq!((opened(&dir).retired(), opened(&dir).count()), (vec![], 0));
    }

    #[test]
    fn a_failed_mint_is_repeated_under_its_alias() {
        let dir = tempfile::tempdir().unwrap();
        let mut aliases = opened(&dir);
        let holder = KeyHolder::default();
        let one = reserved(&mut aliases, holder, "one");
        assert_eq!(aliases.reserve(holder, alias("two")).unwrap(), ReservedAlias::Again(one.clone()));
        assert!(aliases.minted(&one));
        reserved(&mut aliases, holder, "two");
        assert_eq!(aliases.count(), 2, "control: a key that exists stays as it is");
    }

    #[test]
    fn the_file_does_not_grow() {
        let dir = tempfile::tempdir().unwrap();
        let mut aliases = opened(&dir);
        for number in 0..2 * MAX_DELETED {
            let alias = reserved(&mut aliases, KeyHolder::default(), &number.to_string());
            aliases.deleted(&alias, Deletion::Deleted).unwrap();
        }
        let lines = std::fs::read_to_string(dir.path().join("run-keys")).unwrap().lines().count();
        assert!(lines <= 2 * MAX_DELETED, "{lines} lines");
    }
}
