//! Resolves the runs that a command line names: by a whole id, by a part of one, or as the newest.
//!
//! A part is the beginning or the end of an id. A command looks it up where it reads its data: in the store, in the
//! journal or among the runs of the proxy. An id that is known nowhere is taken as it is.

use std::{
    collections::BTreeSet,
    fmt,
    str::FromStr,
    time::{SystemTime, UNIX_EPOCH},
};

use memchr::memmem::Finder;
use platform_core::id::{AccountId, InvalidId, RunId};
use runner_audit::Entry;
use runner_control_client::{DataPlane, Follow};
use runner_engine::run_order;
use runner_store::{Filter, Store};

use super::{
    Context, Error,
    error::{Misused, Unknown},
};

/// Least number of characters that name a run, besides [`GENERATED_PREFIX`].
const MIN_PART_LEN: usize = 4;
/// Prefix of the ids that `sluice` generates.
const GENERATED_PREFIX: &str = "run-";
/// Number of random digits at the end of a generated id.
const RANDOM_DIGITS: usize = 8;
/// Most runs that a message about an ambiguous part lists.
const MAX_CANDIDATES: u32 = 8;

/// Run as a command line names it: by its id, or by the beginning or the end of its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunReference(RunId);

/// Choice of one stored run.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct RunChoice {
    /// Id of the run, or at least 4 characters of its beginning or end
    #[arg(value_name = "RUN")]
    run: Option<RunReference>,
    /// Take the newest run; trial runs of `sluice doctor` do not count
    #[arg(long)]
    last: bool,
}

impl FromStr for RunReference {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        RunId::parse(text).map(Self)
    }
}

impl fmt::Display for RunReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl RunReference {
    /// Returns whether this can be a part of an id. Whole generated ids and very short texts are not parts: they are
    /// taken as they are, without a look-up.
    fn may_be_part(&self) -> bool {
        let text = self.0.as_str();
        let without_prefix = text.strip_prefix(GENERATED_PREFIX);
        let is_generated = without_prefix
            .and_then(|rest| rest.split_once('-'))
            .is_some_and(|(time, random)| is_hex(time) && is_hex(random) && random.len() == RANDOM_DIGITS);
        !is_generated && without_prefix.unwrap_or(text).len() >= MIN_PART_LEN
    }

    /// Returns this as a whole id, unless it looks like the last digits of a generated id.
    pub(super) fn whole_unless_digits(&self) -> Option<RunId> {
        let text = self.0.as_str();
        let is_end = (MIN_PART_LEN..=RANDOM_DIGITS).contains(&text.len()) && is_hex(text);
        (!is_end).then(|| self.0.clone())
    }

    /// Returns whether `id` begins or ends with this text.
    fn is_part_of(&self, id: &str) -> bool {
        id.starts_with(self.0.as_str()) || id.ends_with(self.0.as_str())
    }

    /// Returns the only run of `found`. If it is empty, takes this text as a whole id.
    fn only_of(&self, found: &[RunId]) -> Result<RunId, Misused> {
        match found {
            [] => Ok(self.0.clone()),
            [run] => Ok(run.clone()),
            several => Err(Misused(format!(
                "{self} may be any of several runs; give more characters of one of them:\n  {}",
                several.iter().map(RunId::as_str).collect::<Vec<_>>().join(", ")
            ))),
        }
    }

    /// Returns the run of `ids` that this names.
    fn among<'i>(&self, ids: impl Iterator<Item = &'i str>) -> Result<RunId, Misused> {
        let mut candidates = Candidates::of(self);
        for id in ids {
            if candidates.add(id) == Search::Over {
                break;
            }
        }
        self.only_of(&candidates.found())
    }

    /// Returns the run of `store` that this names.
    ///
    /// # Errors
    /// If several runs have this part, or the store fails.
    pub(super) async fn in_store(&self, store: &Store) -> Result<RunId, Error> {
        if !self.may_be_part() {
            return Ok(self.0.clone());
        }
        Ok(self.only_of(&store.find_by_part(&self.0, MAX_CANDIDATES).await?)?)
    }

    /// Returns the run of the proxy that this names.
    ///
    /// # Errors
    /// If several runs have this part, or the proxy fails.
    pub(super) async fn in_proxy(&self, data_plane: &DataPlane) -> Result<RunId, Error> {
        if !self.may_be_part() {
            return Ok(self.0.clone());
        }
        let runs = data_plane.runs().await?;
        Ok(self.among(runs.iter().map(|view| view.grant.run_id.as_str()))?)
    }

    /// Returns the run of the journal that this names. Reads the whole journal for a part.
    ///
    /// # Errors
    /// If several runs have this part, or the proxy fails.
    pub(super) async fn in_journal(&self, data_plane: &DataPlane) -> Result<RunId, Error> {
        if !self.may_be_part() {
            return Ok(self.0.clone());
        }
        Ok(self.only_of(&self.recorded(data_plane).await?)?)
    }

    /// Returns the runs of the journal that this may name. Reads the whole journal unless one has just this id.
    ///
    /// # Errors
    /// If the proxy fails.
    pub(super) async fn recorded(&self, data_plane: &DataPlane) -> Result<Vec<RunId>, Error> {
        let finder = Finder::new(self.0.as_str());
        let mut candidates = Candidates::of(self);
        let mut lines = data_plane.journal(None, Follow::UntilEnd).await?;
        while let Some(line) = lines.next().await? {
            // Parsing is slow, so lines without the text are skipped first.
            if finder.find(line).is_none() {
                continue;
            }
            let entry = Entry::parse(line).map_err(Error::invalid_record)?;
            if candidates.add(entry.run_id()) == Search::Over {
                break;
            }
        }
        Ok(candidates.found())
    }
}

/// Runs that a reference may name, gathered while ids are read one by one.
struct Candidates<'r> {
    reference: &'r RunReference,
    found: BTreeSet<RunId>,
}

/// State of a search for candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search {
    GoesOn,
    /// An id is equal to the reference, so no other run is meant.
    Over,
}

impl<'r> Candidates<'r> {
    const fn of(reference: &'r RunReference) -> Self {
        Self { reference, found: BTreeSet::new() }
    }

    fn add(&mut self, id: &str) -> Search {
        if id == self.reference.0.as_str() {
            self.found = BTreeSet::from([self.reference.0.clone()]);
            return Search::Over;
        }
        if self.reference.is_part_of(id) && self.found.len() < MAX_CANDIDATES as usize {
            self.found.extend(RunId::parse(id));
        }
        Search::GoesOn
    }

    fn found(self) -> Vec<RunId> {
        self.found.into_iter().collect()
    }
}

impl RunChoice {
    /// Returns the chosen run of `store`.
    ///
    /// # Errors
    /// If several runs have the given part, no run exists yet, or the store fails.
    pub(super) async fn in_store(&self, store: &Store) -> Result<RunId, Error> {
        match &self.run {
            Some(reference) => reference.in_store(store).await,
            None => newest(store).await,
        }
    }

    /// Returns the chosen run of the proxy. The newest is that of the store.
    ///
    /// # Errors
    /// If several runs have the given part, no run exists yet, or the proxy or the store fails.
    pub(super) async fn in_proxy(&self, context: &Context, data_plane: &DataPlane) -> Result<RunId, Error> {
        match &self.run {
            Some(reference) => reference.in_proxy(data_plane).await,
            None => newest(&context.store().await?).await,
        }
    }
}

impl From<RunId> for RunReference {
    fn from(run_id: RunId) -> Self {
        Self(run_id)
    }
}

/// Returns the newest run of `store` that is not a trial run.
///
/// # Errors
/// If no such run exists, or the store fails.
pub(super) async fn newest(store: &Store) -> Result<RunId, Error> {
    let left_out = Some(AccountId::parse(crate::doctor::ACCOUNT)?);
    let page = store.list(&Filter { left_out, ..Filter::default() }, 1).await?;
    page.runs.into_iter().next().map(|run| run.run_id).ok_or_else(|| {
        Error::from(Unknown("there is no run yet: `sluice run \"QUESTION\"` starts one".to_owned()))
    })
}

fn is_hex(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns a new run id.
pub(super) fn new_run_id() -> Result<RunId, Error> {
    Ok(run_order::new_run_id(SystemTime::now().duration_since(UNIX_EPOCH)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: [&str; 4] = ["run-1a2052cc420-9f446d19", "run-1a2052bc0be-2364b5f2", "nightly", "nightly-2"];

    fn reference(text: &str) -> RunReference {
        text.parse().unwrap()
    }

    #[test]
    fn a_part_names_one_run() {
        for (text, named) in [
            ("9f446d19", IDS[0]),
            ("6d19", IDS[0]),
            ("run-1a2052b", IDS[1]),
            ("nightly", "nightly"),
            ("tly-2", "nightly-2"),
            ("elsewhere", "elsewhere"),
        ] {
            let found = reference(text).among(IDS.into_iter()).map(|run| run.to_string());
            assert_eq!(found.ok().as_deref(), Some(named), "{text}");
        }
        let several = reference("run-1a2052").among(IDS.into_iter()).unwrap_err().to_string();
        assert!(several.contains(IDS[0]) && several.contains(IDS[1]), "{several}");
    }

    #[test]
    fn whole_and_very_short_ids_are_not_looked_up() {
        for text in [IDS[0], "r1", "run-1", "run-1a2"] {
            assert!(!reference(text).may_be_part(), "{text}");
        }
        for text in ["run-1a20", "6d19", "run-19c1-5f0e"] {
            assert!(reference(text).may_be_part(), "{text}");
        }
    }
}
