//! What the journal says was spent. Sums of full segments are kept beside them, so that a start reads what came after and old
//! segments can go.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    path::PathBuf,
};

use platform_core::{
    control::Usage,
    id::{AccountId, RunId},
    money::NanoDollars,
    record::{CallEnd, NO_LINE, Outcome, Tokens, hash, known_version},
    refusal::Refusal,
};
use serde::{Deserialize, Serialize};

use super::{Error, Journal, lines::Reader, segments};
use crate::{state, tally::Tally};

/// What was spent by each account, and by each run that may call again.
#[derive(Debug, Default)]
pub(crate) struct SoFar {
    pub(crate) by_account: HashMap<AccountId, Usage>,
    pub(crate) by_run: HashMap<RunId, Tally>,
}

/// Sums over all lines up to and with one, as they are in the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Sums {
    /// The journal that they are of.
    journal: String,
    /// The last line that is counted in, and its hash.
    pub(super) seq: u64,
    hash: String,
    accounts: BTreeMap<AccountId, Usage>,
    runs: BTreeMap<RunId, Tally>,
}

/// The fields of a line that tell what was spent.
#[derive(Deserialize)]
struct Line {
    #[serde(rename = "v", deserialize_with = "known_version")]
    _version: u32,
    run_id: RunId,
    account: AccountId,
    outcome: Outcome,
    status: u16,
    #[serde(default)]
    refusal: Option<Refusal>,
    tokens: Tokens,
    cost_nanodollars: Option<NanoDollars>,
    #[serde(default = "one")]
    calls: u64,
}

const fn one() -> u64 {
    1
}

impl Sums {
    fn of_nothing(journal: &str) -> Self {
        let hash = String::from_utf8_lossy(&NO_LINE).into_owned();
        Self { journal: journal.to_owned(), seq: 0, hash, accounts: BTreeMap::new(), runs: BTreeMap::new() }
    }

    /// Adds the lines up to and with `last`. Runs of which `is_closed` are left out.
    fn add_up_to(
        &mut self,
        last: u64,
        journal: &Journal,
        is_closed: &dyn Fn(&RunId) -> bool,
    ) -> Result<(), Error> {
        let mut reader = match Reader::at(&journal.dir, self.seq + 1) {
            Err(Error::Removed { .. }) => return Err(Error::Missing { seq: self.seq + 1 }),
            reader => reader?,
        };
        let mut text = Vec::new();
        while self.seq < last {
            let line: Line = reader.parse(&mut text)?.ok_or(Error::Missing { seq: self.seq + 1 })?;
            let cost = line.cost_nanodollars.unwrap_or_default();
            let add = |usage: &mut Usage| usage.add(line.outcome, line.calls, &line.tokens, cost);
            add(self.accounts.entry(line.account).or_default());
            if !is_closed(&line.run_id) {
                let tally = self.runs.entry(line.run_id).or_default();
                add(&mut tally.usage);
                // A line of several tells of calls that ended at some time before.
                if line.calls == 1 {
                    let Line { outcome, status, refusal, .. } = line;
                    tally.last = Some(CallEnd { outcome, status, refusal });
                }
            }
            self.seq += 1;
        }
        if let Some(text) = text.strip_suffix(b"\n") {
            self.hash = String::from_utf8_lossy(&hash(text)).into_owned();
        }
        self.runs.retain(|run, _| !is_closed(run));
        Ok(())
    }
}

impl Journal {
    /// What was spent so far, by accounts and by runs of which not `is_closed`. Reads what came after the last checkpoint.
    ///
    /// # Errors
    /// If a line cannot be read, or one is missing.
    pub(crate) fn spent(&self, is_closed: impl Fn(&RunId) -> bool) -> Result<SoFar, Error> {
        let mut sums = self.checkpoint()?;
        sums.add_up_to(self.last_seq(), self, &is_closed)?;
        Ok(SoFar { by_account: sums.accounts.into_iter().collect(), by_run: sums.runs.into_iter().collect() })
    }

    /// Sums up everything up to and with line `last`, and writes that down. Returns `last`.
    pub(super) fn make_checkpoint(
        &self,
        last: u64,
        is_closed: &dyn Fn(&RunId) -> bool,
    ) -> Result<u64, Error> {
        let mut sums = self.checkpoint()?;
        let before = sums.seq;
        sums.add_up_to(last, self, is_closed)?;
        // A machine that loses power must not keep sums of lines that it lost.
        for segment in segments::list(&self.dir)? {
            if (before + 1..=last).contains(&segment.first) {
                let synced = File::open(&segment.path).and_then(|file| file.sync_data());
                synced.map_err(Error::io("sync", &segment.path))?;
            }
        }
        let path = self.checkpoint_path();
        let text = serde_json::to_vec(&sums).map_err(|error| Error::io("write", &path)(error.into()))?;
        state::replace(&path, &text).map_err(Error::io("write", &path))?;
        Ok(sums.seq)
    }

    /// The sums that were written down. Those that do not fit the journal are not believed, as long as it is whole.
    pub(super) fn checkpoint(&self) -> Result<Sums, Error> {
        let path = self.checkpoint_path();
        let text = state::read(&path).map_err(Error::io("read", &path))?;
        if text.is_empty() {
            return Ok(Sums::of_nothing(&self.id));
        }
        let sums: Option<Sums> = serde_json::from_str(&text).ok();
        let fits = |sums: &Sums| {
            sums.journal == self.id
                && match self.hash_of(sums.seq) {
                    Ok(hash) => hash.is_some_and(|hash| hash[..] == *sums.hash.as_bytes()),
                    Err(Error::Removed { .. }) => true,
                    Err(_) => false,
                }
        };
        match sums.filter(fits) {
            Some(sums) => Ok(sums),
            None if self.oldest()? == 1 => {
                tracing::warn!(path = %path.display(), "the sums do not fit the journal: all of it is read");
                Ok(Sums::of_nothing(&self.id))
            }
            None => Err(Error::Corrupt { path, offset: 0 }),
        }
    }

    fn checkpoint_path(&self) -> PathBuf {
        self.dir.join("sums")
    }
}
