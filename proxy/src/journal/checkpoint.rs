//! Keeps the usage that the journal records in sums beside its files.
//!
//! With the sums a start reads only what came after them, old files can go, and a lost file takes no usage along. The
//! tail sums up what is appended. A checkpoint adds these sums to the file, every few seconds and at a stop.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    path::{Path, PathBuf},
    sync::{MutexGuard, PoisonError},
};

use platform_core::{
    control::Usage,
    id::{AccountId, RunId},
    record::{ExchangeRecord, JournalLine, NO_LINE, hash},
};
use serde::{Deserialize, Serialize};

use super::{Error, Journal, segments, tail::Counted};
use crate::{state, tally::Tally};

/// Usage of each account, and of each run that may call again.
#[derive(Debug, Default)]
pub(crate) struct SoFar {
    pub(crate) by_account: HashMap<AccountId, Usage>,
    pub(crate) by_run: HashMap<RunId, Tally>,
}

impl SoFar {
    /// Adds a call that has ended, or several.
    pub(super) fn add(&mut self, record: &ExchangeRecord) {
        let cost = record.cost_nanodollars.unwrap_or_default();
        let add = |usage: &mut Usage| usage.add(record.outcome, record.calls, &record.tokens, cost);
        match self.by_account.get_mut(&record.account) {
            Some(usage) => add(usage),
            None => add(self.by_account.entry(record.account.clone()).or_default()),
        }
        let count = |tally: &mut Tally| {
            add(&mut tally.usage);
            // A line for several calls reports calls that ended at some time before.
            if record.calls == 1 {
                tally.last = Some(record.into());
            }
        };
        match self.by_run.get_mut(&record.run_id) {
            Some(tally) => count(tally),
            None => count(self.by_run.entry(record.run_id.clone()).or_default()),
        }
    }
}

/// Sums over all lines up to and with `seq`, as they are in the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Sums {
    /// Id of the journal that the sums are of.
    journal: String,
    /// Oldest line that was not removed; 0 if an earlier program wrote this.
    #[serde(default)]
    oldest: u64,
    /// Last line that is counted in; `hash` is its hash.
    seq: u64,
    hash: String,
    accounts: BTreeMap<AccountId, Usage>,
    runs: BTreeMap<RunId, Tally>,
    /// Last line that is counted in on the disk.
    #[serde(skip)]
    written: u64,
    /// Bytes of their share that the lines of calls that were not sent use.
    #[serde(default)]
    unsent: u64,
}

/// Lines that must be there, as far as a checkpoint knows.
#[derive(Debug)]
pub(super) struct Expected {
    /// Oldest of them; 0 if that is not known.
    pub(super) oldest: u64,
    /// Last of them that is known, with its hash.
    pub(super) seq: u64,
    pub(super) hash: [u8; 64],
    /// Bytes of their share that the lines of calls that were not sent use.
    pub(super) unsent: u64,
}

/// Reads which lines of `journal` must be in `dir`.
pub(super) fn expected(dir: &Path, journal: &str) -> Result<Option<Expected>, Error> {
    let path = path_in(dir);
    let text = state::read(&path).map_err(Error::io("read", &path))?;
    Ok(Sums::parse(&text, journal).and_then(|Sums { oldest, seq, hash, unsent, .. }| {
        Some(Expected { oldest, seq, hash: hash.as_bytes().try_into().ok()?, unsent })
    }))
}

fn path_in(dir: &Path) -> PathBuf {
    dir.join("sums")
}

impl Sums {
    fn of_nothing(journal: &str) -> Self {
        let hash = String::from_utf8_lossy(&NO_LINE).into_owned();
        let (accounts, runs) = (BTreeMap::new(), BTreeMap::new());
        Self { journal: journal.to_owned(), oldest: 0, seq: 0, hash, accounts, runs, unsent: 0, written: 0 }
    }

    /// Reads the sums of `journal`; `None` if the text holds anything else.
    fn parse(text: &str, journal: &str) -> Option<Self> {
        let sums: Self = serde_json::from_str(text).ok()?;
        (sums.journal == journal).then_some(Self { written: sums.seq, ..sums })
    }

    /// Adds the lines up to and with `last`, except lost ones.
    fn add_up_to(&mut self, last: u64, journal: &Journal) -> Result<(), Error> {
        let mut reader = match journal.read_from(self.seq + 1) {
            Err(Error::Removed { .. }) => return Err(Error::Missing { seq: self.seq + 1 }),
            reader => reader?,
        };
        let (mut text, mut spent) = (Vec::new(), SoFar::default());
        while reader.next() <= last {
            let seq = reader.next();
            let line: JournalLine = reader.parse(&mut text)?.ok_or(Error::Missing { seq })?;
            spent.add(&line.record);
            self.seq = seq;
        }
        if let Some(text) = text.strip_suffix(b"\n") {
            self.hash = String::from_utf8_lossy(&hash(text)).into_owned();
        }
        self.add(spent);
        Ok(())
    }

    fn add(&mut self, SoFar { by_account, by_run }: SoFar) {
        for (account, usage) in by_account {
            *self.accounts.entry(account).or_default() += usage;
        }
        for (run, Tally { usage, last }) in by_run {
            let tally = self.runs.entry(run).or_default();
            tally.usage += usage;
            tally.last = last.or(tally.last);
        }
    }

    fn count(&mut self, Counted { spent, seq, hash }: Counted) {
        self.add(spent);
        (self.seq, self.hash) = (seq, String::from_utf8_lossy(&hash).into_owned());
    }
}

impl Journal {
    /// Returns the usage so far, by accounts and by runs that are not `is_closed`. Reads what came after the last
    /// checkpoint.
    ///
    /// # Errors
    /// If a line cannot be read, or one is missing.
    pub(crate) fn spent(&self, is_closed: impl Fn(&RunId) -> bool) -> Result<SoFar, Error> {
        let mut sums = self.sums();
        let sums = sums.insert(self.read_sums()?);
        sums.runs.retain(|run, _| !is_closed(run));
        let by_account = sums.accounts.iter().map(|(account, usage)| (account.clone(), *usage)).collect();
        let by_run = sums.runs.iter().map(|(run, tally)| (run.clone(), *tally)).collect();
        Ok(SoFar { by_account, by_run })
    }

    /// Sums up everything up to and with the last line, except runs that are `is_closed`, and writes the sums. Returns
    /// that line.
    pub(super) fn make_checkpoint(&self, is_closed: &dyn Fn(&RunId) -> bool) -> Result<u64, Error> {
        let mut sums = self.sums();
        let sums = match &mut *sums {
            Some(sums) => sums,
            none => none.insert(self.read_sums()?),
        };
        if let Some(counted) = self.tail().take_counted() {
            sums.count(counted);
        }
        sums.runs.retain(|run, _| !is_closed(run));
        if sums.seq != sums.written {
            self.write_sums(sums)?;
        }
        Ok(sums.seq)
    }

    /// Records that the lines before `first` are removed, not lost.
    pub(super) fn note_oldest(&self, first: u64) -> Result<(), Error> {
        match &mut *self.sums() {
            Some(sums) => {
                sums.oldest = first;
                self.write_sums(sums)
            }
            None => Ok(()),
        }
    }

    fn sums(&self) -> MutexGuard<'_, Option<Sums>> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sums up everything from what is on the disk.
    fn read_sums(&self) -> Result<Sums, Error> {
        let mut sums = self.checkpoint()?;
        let last = {
            let mut tail = self.tail();
            // The loop below reads those as lines.
            drop(tail.take_counted());
            tail.seq()
        };
        sums.add_up_to(last, self)?;
        if sums.oldest == 0 {
            sums.oldest = self.oldest()?;
        }
        Ok(sums)
    }

    fn write_sums(&self, sums: &mut Sums) -> Result<(), Error> {
        // A machine that loses power must not keep sums of lines that it lost.
        let segments = segments::list(&self.dir)?;
        let from = segments.iter().rposition(|segment| segment.first <= sums.written + 1).unwrap_or(0);
        for segment in segments.iter().skip(from).filter(|segment| segment.first <= sums.seq) {
            let synced = File::open(&segment.path).and_then(|file| file.sync_data());
            synced.map_err(Error::io("sync", &segment.path))?;
        }
        sums.unsent = self.floods.used();
        let path = path_in(&self.dir);
        let text = serde_json::to_vec(&sums).map_err(|error| Error::io("write", &path)(error.into()))?;
        state::replace(&path, &text).map_err(Error::io("write", &path))?;
        sums.written = sums.seq;
        Ok(())
    }

    /// Reads the sums from the file. Sums that do not fit the journal are ignored, as long as the journal is whole.
    fn checkpoint(&self) -> Result<Sums, Error> {
        let path = path_in(&self.dir);
        let text = state::read(&path).map_err(Error::io("read", &path))?;
        if text.is_empty() {
            return Ok(Sums::of_nothing(&self.id));
        }
        let fits = |sums: &Sums| match self.hash_of(sums.seq) {
            _ if self.gaps.hold(sums.seq) => true,
            Ok(hash) => hash.is_some_and(|hash| hash[..] == *sums.hash.as_bytes()),
            Err(Error::Removed { .. }) => true,
            Err(_) => false,
        };
        match Sums::parse(&text, &self.id).filter(fits) {
            Some(sums) => Ok(sums),
            None if self.oldest()? == 1 => {
                tracing::warn!(path = %path.display(), "the sums do not fit the journal: all of it is read");
                Ok(Sums::of_nothing(&self.id))
            }
            None => Err(Error::Corrupt { path, offset: 0 }),
        }
    }
}
