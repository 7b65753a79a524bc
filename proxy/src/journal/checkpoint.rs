//! Keeps sums of the usage that the journal records, in a file beside its segments.
//!
//! With the sums a start reads only later lines, old files can be removed, and a lost file loses no usage. The tail
//! sums up what is appended. A checkpoint adds these sums to the file, every few seconds and at a stop.

use std::{
    collections::{BTreeMap, HashMap},
    fs::File,
    path::{Path, PathBuf},
};

use platform_core::{
    control::Usage,
    id::{AccountId, CallId, RunId},
    json::{self, Bounds},
    record::{ExchangeRecord, JournalLine, NO_LINE, hash},
};
use serde::{Deserialize, Serialize};

use super::{
    Error, Journal,
    attempt_usage::{AttemptUsage, LineTotalsOfRun},
    corrections::OpenCalls,
    segments,
};
use crate::{output_rates::LastDay, run_usage::RunUsage, state};

/// Usage of each account, and of each run that may call again.
#[derive(Debug, Default)]
pub(crate) struct UsageTotals {
    pub(crate) by_account: HashMap<AccountId, Usage>,
    pub(crate) by_run: HashMap<RunId, RunUsage>,
}

/// Sums over some lines, which one thread wrote.
#[derive(Debug, Default)]
pub(super) struct LineTotals {
    by_account: HashMap<AccountId, Usage>,
    by_run: HashMap<RunId, LineTotalsOfRun>,
    /// Lines about calls that may be corrected.
    open: Vec<(CallId, u64)>,
    /// Records of corrections.
    corrections: Vec<ExchangeRecord>,
}

impl LineTotals {
    /// Adds the calls of `record`, which have ended; it is in line `seq`.
    pub(super) fn add(&mut self, seq: u64, record: &ExchangeRecord) {
        if record.is_correctable() || record.correction.is_some() {
            self.open.push((record.litellm_call_id, seq));
        }
        if record.correction.is_some() {
            // Applied last: another thread may have written the line that it corrects.
            self.corrections.push(record.clone());
            return;
        }
        match self.by_account.get_mut(&record.account) {
            Some(usage) => usage.add(record),
            None => self.by_account.entry(record.account.clone()).or_default().add(record),
        }
        match self.by_run.get_mut(&record.run_id) {
            Some(totals) => totals.add(seq, record),
            None => self.by_run.entry(record.run_id.clone()).or_default().add(seq, record),
        }
    }

    fn is_empty(&self) -> bool {
        self.by_account.is_empty() && self.corrections.is_empty()
    }
}

/// Sums over all lines up to and with `seq`, as they are in the file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    /// Id of the journal that the sums are of.
    journal: String,
    /// Oldest line that was not removed; 0 if an earlier program wrote this.
    #[serde(default)]
    oldest: u64,
    /// Last line that is included; `hash` is its hash.
    seq: u64,
    hash: String,
    accounts: BTreeMap<AccountId, Usage>,
    runs: BTreeMap<RunId, AttemptUsage>,
    /// Calls that may be corrected.
    #[serde(default)]
    pub(super) open: OpenCalls,
    /// Rates of models that were learned so far.
    #[serde(default)]
    output_rates: BTreeMap<Box<str>, LastDay>,
    /// Last line that is included in the file.
    #[serde(skip)]
    written: u64,
    /// Bytes of their share that the lines of calls that were not sent use.
    #[serde(default)]
    unsent: u64,
}

/// Lines that must exist, as far as a checkpoint knows.
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

/// Reads from the checkpoint which lines of `journal` must be in `dir`.
pub(super) fn expected(dir: &Path, journal: &str) -> Result<Option<Expected>, Error> {
    let path = path_in(dir);
    let text = state::read(&path).map_err(Error::io("read", &path))?;
    Ok(Checkpoint::parse(&text, journal).and_then(|Checkpoint { oldest, seq, hash, unsent, .. }| {
        Some(Expected { oldest, seq, hash: hash.as_bytes().try_into().ok()?, unsent })
    }))
}

fn path_in(dir: &Path) -> PathBuf {
    dir.join("sums")
}

impl Checkpoint {
    fn of_nothing(journal: &str) -> Self {
        let hash = String::from_utf8_lossy(&NO_LINE).into_owned();
        Self {
            journal: journal.to_owned(),
            oldest: 0,
            seq: 0,
            hash,
            accounts: BTreeMap::new(),
            runs: BTreeMap::new(),
            open: OpenCalls::default(),
            output_rates: BTreeMap::new(),
            unsent: 0,
            written: 0,
        }
    }

    /// Reads the sums of `journal`; `None` if the text holds anything else.
    fn parse(text: &str, journal: &str) -> Option<Self> {
        let sums: Self = json::from_str(text, Bounds::STORED).ok()?;
        (sums.journal == journal).then_some(Self { written: sums.seq, ..sums })
    }

    /// Adds the lines up to and with `last`, except lost ones.
    fn add_up_to(&mut self, last: u64, journal: &Journal) -> Result<(), Error> {
        let mut reader = match journal.read_from(self.seq + 1) {
            Err(Error::Removed { .. }) => return Err(Error::Missing { seq: self.seq + 1 }),
            reader => reader?,
        };
        let mut text = Vec::new();
        let mut totals = LineTotals::default();
        while reader.next_seq() <= last {
            let seq = reader.next_seq();
            let line: JournalLine = reader.parse(&mut text)?.ok_or(Error::Missing { seq })?;
            totals.add(seq, &line.record);
            journal.output_rates.note_record(&line.record);
            self.seq = seq;
        }
        if let Some(text) = text.strip_suffix(b"\n") {
            self.hash = String::from_utf8_lossy(&hash(text)).into_owned();
        }
        self.add(vec![totals]);
        Ok(())
    }

    /// Adds the sums of several threads over lines behind all that are included.
    fn add(&mut self, threads: Vec<LineTotals>) {
        let mut last_lines = HashMap::new();
        let mut corrections = Vec::new();
        for LineTotals { by_account, by_run, open, corrections: corrected } in threads {
            open.into_iter().for_each(|(call, seq)| self.open.note(call, seq));
            corrections.extend(corrected);
            for (account, usage) in by_account {
                *self.accounts.entry(account).or_default() += usage;
            }
            for (run_id, totals) in by_run {
                let last_line = last_lines.entry(run_id.clone()).or_insert(0);
                self.runs.entry(run_id).or_default().add(totals, last_line);
            }
        }
        corrections.iter().for_each(|record| self.correct(record));
    }

    /// Corrects the sums of the account and of the run, unless that makes a later attempt.
    fn correct(&mut self, record: &ExchangeRecord) {
        let Some(correction) = &record.correction else { return };
        if let Some(usage) = self.accounts.get_mut(&record.account) {
            usage.correct(correction);
        }
        if let Some(used) = self.runs.get_mut(&record.run_id).filter(|used| used.attempt == record.attempt) {
            used.run_usage.usage.correct(correction);
        }
    }
}

/// End of the lines that sums include.
struct SummedEnd {
    seq: u64,
    hash: [u8; 64],
    totals: Vec<LineTotals>,
}

impl Journal {
    /// Returns the usage so far, by accounts and by runs that are not `is_closed`. Reads the lines after the last
    /// checkpoint.
    ///
    /// # Errors
    /// If a line cannot be read, or one is missing.
    pub(crate) fn usage_totals(&self, is_closed: impl Fn(&RunId, u32) -> bool) -> Result<UsageTotals, Error> {
        let mut sums = self.checkpoint.lock();
        let sums = sums.insert(self.catch_up()?);
        sums.runs.retain(|run_id, used| !is_closed(run_id, used.attempt));
        let by_account = sums.accounts.iter().map(|(account, usage)| (account.clone(), *usage)).collect();
        let by_run = sums.runs.iter().map(|(run_id, used)| (run_id.clone(), used.run_usage)).collect();
        Ok(UsageTotals { by_account, by_run })
    }

    /// Sums up everything up to and with the last line, except runs that are `is_closed`, and writes the sums. Returns
    /// that line.
    pub(super) fn make_checkpoint(&self, is_closed: &dyn Fn(&RunId, u32) -> bool) -> Result<u64, Error> {
        let mut sums = self.checkpoint.lock();
        let sums = self.sum_up(&mut sums)?;
        sums.runs.retain(|run_id, used| !is_closed(run_id, used.attempt));
        if sums.seq != sums.written {
            self.write_checkpoint(sums)?;
        }
        Ok(sums.seq)
    }

    /// Adds everything up to and with the last line to `sums`.
    pub(super) fn sum_up<'s>(&self, sums: &'s mut Option<Checkpoint>) -> Result<&'s mut Checkpoint, Error> {
        let sums = match sums {
            Some(sums) => sums,
            none => none.insert(self.catch_up()?),
        };
        let SummedEnd { seq, hash, totals } = self.take_totals();
        if totals.iter().any(|totals| !totals.is_empty()) {
            sums.add(totals);
            sums.seq = seq;
            sums.hash = String::from_utf8_lossy(&hash).into_owned();
        }
        Ok(sums)
    }

    /// Records that the lines before `first` are removed, not lost.
    pub(super) fn note_oldest(&self, first: u64) -> Result<(), Error> {
        match &mut *self.checkpoint.lock() {
            Some(sums) => {
                sums.oldest = first;
                sums.open.forget_before(first);
                self.write_checkpoint(sums)
            }
            None => Ok(()),
        }
    }

    /// Sums up all lines on the disk.
    fn catch_up(&self) -> Result<Checkpoint, Error> {
        let mut sums = self.read_checkpoint()?;
        self.output_rates.restore(std::mem::take(&mut sums.output_rates));
        // These lines are read again.
        let last = self.take_totals().seq;
        sums.add_up_to(last, self)?;
        if sums.oldest == 0 {
            sums.oldest = self.oldest()?;
        }
        Ok(sums)
    }

    /// Takes the sums over all lines that were appended since this was last done. No thread is between writing its lines
    /// and adding them up meanwhile.
    fn take_totals(&self) -> SummedEnd {
        let threads = self.totals.lock();
        let mut of_threads: Vec<_> = threads.iter().map(|totals| totals.lock()).collect();
        let mut tail = self.tail();
        let mut totals = vec![tail.take_totals()];
        totals.extend(of_threads.iter_mut().map(|totals| std::mem::take(&mut **totals)));
        SummedEnd { seq: tail.seq(), hash: *tail.hash(), totals }
    }

    fn write_checkpoint(&self, sums: &mut Checkpoint) -> Result<(), Error> {
        // A machine that loses power must not keep sums of lines that it lost.
        let segments = segments::list(&self.dir)?;
        let from = segments.iter().rposition(|segment| segment.first <= sums.written + 1).unwrap_or(0);
        for segment in segments.iter().skip(from).filter(|segment| segment.first <= sums.seq) {
            let synced = File::open(&segment.path).and_then(|file| file.sync_data());
            synced.map_err(Error::io("sync", &segment.path))?;
        }
        sums.unsent = self.refusals.used();
        sums.output_rates = self.output_rates.all();
        let path = path_in(&self.dir);
        let text = serde_json::to_vec(&sums).map_err(|error| Error::io("write", &path)(error.into()))?;
        state::replace(&path, &text).map_err(Error::io("write", &path))?;
        sums.written = sums.seq;
        Ok(())
    }

    /// Reads the sums from the file. Sums that do not fit the journal are ignored, as long as the journal is whole.
    fn read_checkpoint(&self) -> Result<Checkpoint, Error> {
        let path = path_in(&self.dir);
        let text = state::read(&path).map_err(Error::io("read", &path))?;
        if text.is_empty() {
            return Ok(Checkpoint::of_nothing(&self.id));
        }
        let fits = |sums: &Checkpoint| match self.hash_of(sums.seq) {
            _ if self.gaps.contains(sums.seq) => true,
            Ok(hash) => hash.is_some_and(|hash| hash[..] == *sums.hash.as_bytes()),
            Err(Error::Removed { .. }) => true,
            Err(_) => false,
        };
        match Checkpoint::parse(&text, &self.id).filter(fits) {
            Some(sums) => Ok(sums),
            None if self.oldest()? == 1 => {
                tracing::warn!(path = %path.display(), "checkpoint does not match the journal: reading all of it");
                Ok(Checkpoint::of_nothing(&self.id))
            }
            None => Err(Error::Corrupt { path, offset: 0 }),
        }
    }
}
