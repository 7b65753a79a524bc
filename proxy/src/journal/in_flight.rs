//! Marks calls in flight: a mark is the record that a call gets if the proxy dies now.
//!
//! A mark is written before the call's first byte goes upstream. Each data-plane thread has its own file, so that
//! no thread waits for another's write. A file holds slots of one size, allocated beforehand, each for one call at a
//! time. Marks of one turn lie side by side and are written together. A slot begins with the length of its content, 0
//! for nothing. A checksum distinguishes a whole mark from one that a failing machine tore, which was never relied on.
//!
//! A mark is stale once its call has its record. The next call's mark is written over it, or it is cleared later,
//! before that record is removed. Until then the record shows that the mark means nothing. `recovery` handles the marks
//! that are found at the start.

use std::{
    fs::{self, File, OpenOptions},
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use platform_core::{
    json::{self, Bounds},
    record::ExchangeRecord,
    record_text,
};
use platform_runtime::{file, report, sync::Mutex};

use super::{Error, slot_set::SlotSet};

/// Size of a slot: a record without tools has less than 2 KiB, and no mark lies on two pages.
const SLOT_SIZE: usize = 4096;
/// Size of a slot's head: length, checksum, and the journal's last line when the mark was written.
const HEADER_SIZE: usize = 24;
/// Number of slots that are added at a time.
const SLOTS_PER_GROWTH: u32 = 64;
/// Number of adjacent slots that a batch looks for: most turns of an event loop mark fewer calls.
const ADJACENT_SLOTS: u32 = 8;
/// Most free slots between two stale marks that are cleared with one write.
const MAX_BETWEEN: u32 = 32;
/// Length of an empty slot.
const NOTHING: [u8; 8] = [0; 8];

/// File of the in-flight marks of one thread.
#[derive(Debug)]
pub(super) struct InFlightLog {
    path: PathBuf,
    file: Arc<File>,
    slots: Mutex<Slots>,
    /// True since a mark could not be written, until [`Self::retry`] writes again.
    is_failing: AtomicBool,
}

#[derive(Debug)]
struct Slots {
    /// Slots that no call in flight has.
    free: SlotSet,
    /// Free slots with stale marks: their calls have their record.
    stale: SlotSet,
    /// Number of slots in the file.
    count: u32,
}

/// Place in the file that belongs to one call.
#[derive(Debug)]
pub(super) struct LogSlot(u32);

/// Marks that are written together.
#[derive(Debug, Default)]
pub(super) struct MarkBatch {
    /// Contents of slots, one after the other. Each begins at a multiple of the slot size, as in the file.
    bytes: Vec<u8>,
    /// Slots of the contents, in the same order.
    slots: Vec<u32>,
}

/// Call with a mark that was found at the start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecoveredCall {
    /// Last line of the journal when the mark was written: the call's own line comes later, if there is one.
    pub(super) after: u64,
    pub(super) record: ExchangeRecord,
}

/// Returns the path of the marks of thread `index` in `dir`.
pub(super) fn path(dir: &Path, index: usize) -> PathBuf {
    match index {
        0 => dir.join("marks"),
        index => dir.join(format!("marks-{index}")),
    }
}

fn is_name(name: &str) -> bool {
    match name.strip_prefix("marks") {
        Some("") => true,
        Some(index) => index.strip_prefix('-').is_some_and(|index| index.parse::<usize>().is_ok()),
        None => false,
    }
}

/// Opens all files of marks in `dir`, also those of threads that an earlier proxy had.
pub(super) fn open_all(dir: &Path) -> Result<Vec<(InFlightLog, Vec<RecoveredCall>)>, Error> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io("list", dir))? {
        let entry = entry.map_err(Error::io("list", dir))?;
        if entry.file_name().to_str().is_some_and(is_name) {
            all.push(InFlightLog::open(&entry.path())?);
        }
    }
    Ok(all)
}

impl MarkBatch {
    pub(super) const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Forgets the marks, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
    }

    /// Adds the mark of a call, which gets `slot`.
    fn add(&mut self, slot: u32, after: u64, record: &ExchangeRecord) -> io::Result<()> {
        let start = self.slots.len() * SLOT_SIZE;
        self.bytes.resize(start + HEADER_SIZE, 0);
        self.bytes.push(b'{');
        record_text::write_fields(record, &mut self.bytes);
        self.bytes.push(b'}');
        let content = &mut self.bytes[start..];
        // A mark too large for its slot would be found torn.
        if content.len() > SLOT_SIZE {
            self.bytes.truncate(start);
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let length = (content.len() - HEADER_SIZE) as u64;
        content[16..HEADER_SIZE].copy_from_slice(&after.to_le_bytes());
        let sum = sum(&content[16..]);
        content[..8].copy_from_slice(&length.to_le_bytes());
        content[8..16].copy_from_slice(&sum.to_le_bytes());
        self.slots.push(slot);
        Ok(())
    }

    /// Returns adjacent slots with their content: the first slot, and the bytes from there.
    fn runs(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let mut start = 0;
        self.slots.chunk_by(|slot, next| slot + 1 == *next).map(move |run| {
            let end = start + run.len() * SLOT_SIZE;
            let content = &self.bytes[start..end.min(self.bytes.len())];
            start = end;
            (run[0], content)
        })
    }
}

impl InFlightLog {
    /// Opens the file at `path`, or creates it, and returns the whole marks in it. The caller clears them before the
    /// file is used.
    pub(super) fn open(path: &Path) -> Result<(Self, Vec<RecoveredCall>), Error> {
        let file =
            file::open_own(OpenOptions::new().create(true).truncate(false).read(true).write(true), path)
                .map_err(Error::io("open", path))?;
        let length = file.metadata().map_err(Error::io("look at", path))?.len();
        let count = u32::try_from(length / SLOT_SIZE as u64).unwrap_or(u32::MAX);
        let mut recovered = Vec::new();
        for slot in 0..count {
            recovered.extend(read(&file, path, slot)?);
        }
        let slots = Mutex::new(Slots { free: (0..count).collect(), stale: SlotSet::default(), count });
        let is_failing = AtomicBool::new(false);
        Ok((Self { path: path.to_owned(), file: Arc::new(file), slots, is_failing }, recovered))
    }

    /// Returns whether the last marks could not be written.
    pub(super) fn is_failing(&self) -> bool {
        self.is_failing.load(Ordering::Relaxed)
    }

    /// Writes to a slot again if marks could not be written, so that no call is needed to learn that they can.
    pub(super) fn retry(&self) {
        if !self.is_failing() {
            return;
        }
        let retried = self.take(None).and_then(|slot| {
            let cleared = self.file.write_all_at(&NOTHING, offset(slot));
            self.release(LogSlot(slot));
            cleared
        });
        match retried {
            Ok(()) => {
                self.is_failing.store(false, Ordering::Relaxed);
                tracing::info!(path = %self.path.display(), "calls can be marked in flight again");
            }
            Err(error) => {
                let path = self.path.display();
                tracing::debug!(%path, error = report::chain(&error), "calls still cannot be marked in flight");
            }
        }
    }

    pub(super) const fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the mark of a call to `batch`: its record would be `record` if the proxy died now. `after` is the journal's
    /// last line.
    pub(super) fn mark(
        &self,
        batch: &mut MarkBatch,
        after: u64,
        record: &ExchangeRecord,
    ) -> io::Result<LogSlot> {
        let slot = self.take(batch.slots.last().copied())?;
        if let Err(error) = batch.add(slot, after, record) {
            // An earlier mark may still be in it.
            self.release(LogSlot(slot));
            return Err(error);
        }
        Ok(LogSlot(slot))
    }

    /// Writes the marks of `batch`. When this returns, they survive the proxy's death.
    pub(super) fn write(&self, batch: &MarkBatch) -> io::Result<()> {
        let written =
            batch.runs().try_for_each(|(slot, content)| self.file.write_all_at(content, offset(slot)));
        self.noting_failure(written)
    }

    fn noting_failure(&self, written: io::Result<()>) -> io::Result<()> {
        written.inspect_err(|_error| self.is_failing.store(true, Ordering::Relaxed))
    }

    /// Frees the slot of a call that has its record.
    pub(super) fn release(&self, slot: LogSlot) {
        let mut slots = self.slots.lock();
        slots.free.insert(slot.0);
        slots.stale.insert(slot.0);
    }

    /// Clears the stale marks: with one write for all that no mark of a call in flight lies between.
    pub(super) fn clear_stale(&self) {
        // No call takes these slots while they are cleared.
        let runs = self.slots.lock().take_stale();
        let clear = |run: &Range<u32>| {
            let zeros = vec![0; (run.len() - 1) * SLOT_SIZE + NOTHING.len()];
            let written = self.file.write_all_at(&zeros, offset(run.start));
            // Slots that are not cleared are not used again: the next start finds the calls' records, and so does not
            // count them twice.
            let log = |error: &io::Error| {
                let path = self.path.display();
                tracing::error!(%path, error = report::chain(error), "cannot clear in-flight marks");
            };
            written.inspect_err(log).is_ok()
        };
        let cleared: Vec<_> = runs.into_iter().filter(clear).collect();
        let mut slots = self.slots.lock();
        cleared.into_iter().for_each(|run| slots.add_free(run));
    }

    /// Removes all marks.
    pub(super) fn clear_all(&self) -> io::Result<()> {
        let count = self.slots.lock().count;
        (0..count).try_for_each(|slot| self.file.write_all_at(&NOTHING, offset(slot)))
    }

    /// Takes a free slot, the one behind `previous` if possible.
    fn take(&self, previous: Option<u32>) -> io::Result<u32> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.next(previous) {
            return Ok(slots.take(slot));
        }
        // Writes zeros and not only the length, so that a full disk is met here.
        let first = slots.count;
        let zeros = vec![0; SLOTS_PER_GROWTH as usize * SLOT_SIZE];
        self.noting_failure(self.file.write_all_at(&zeros, offset(first)))?;
        slots.count += SLOTS_PER_GROWTH;
        let added = first..slots.count;
        slots.add_free(added);
        Ok(slots.take(first))
    }
}

impl Slots {
    /// Returns the free slot that a batch uses after `previous`.
    fn next(&self, previous: Option<u32>) -> Option<u32> {
        let adjacent = previous.map(|slot| slot + 1).filter(|slot| self.free.contains(*slot));
        adjacent.or_else(|| self.free.first_run(ADJACENT_SLOTS))
    }

    fn take(&mut self, slot: u32) -> u32 {
        self.free.remove(slot);
        self.stale.remove(slot);
        slot
    }

    fn add_free(&mut self, run: Range<u32>) {
        run.for_each(|slot| self.free.insert(slot));
    }

    /// Takes the slots with stale marks, as adjacent ones. A few free slots between two of them are taken with them.
    fn take_stale(&mut self) -> Vec<Range<u32>> {
        let mut runs: Vec<Range<u32>> = Vec::new();
        for slot in std::mem::take(&mut self.stale).iter() {
            let is_joined = |run: &&mut Range<u32>| {
                slot - run.end <= MAX_BETWEEN && (run.end..slot).all(|between| self.free.contains(between))
            };
            match runs.last_mut().filter(is_joined) {
                Some(run) => run.end = slot + 1,
                None => runs.push(slot..slot + 1),
            }
        }
        runs.iter().cloned().flatten().for_each(|slot| self.free.remove(slot));
        runs
    }
}

fn offset(slot: u32) -> u64 {
    u64::from(slot) * SLOT_SIZE as u64
}

/// Reads the mark in a slot, if there is a whole one.
fn read(file: &File, path: &Path, slot: u32) -> Result<Option<RecoveredCall>, Error> {
    let mut text = [0; SLOT_SIZE];
    file.read_exact_at(&mut text, offset(slot)).map_err(Error::io("read", path))?;
    let number = |at: usize| text[at..at + 8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let length = number(0);
    if length == 0 {
        return Ok(None);
    }
    let end = usize::try_from(length).ok().and_then(|length| length.checked_add(HEADER_SIZE));
    let whole = end.and_then(|end| text.get(16..end)).filter(|marked| sum(marked) == number(8));
    let Some(marked) = whole else {
        tracing::warn!(path = %path.display(), slot, "a mark was not written whole: its call was not sent");
        return Ok(None);
    };
    let record = json::from_slice(&marked[8..], Bounds::STORED)
        .map_err(|_error| Error::Corrupt { path: path.to_owned(), offset: offset(slot) })?;
    Ok(Some(RecoveredCall { after: number(16), record }))
}

/// Computes FNV-1a over words of eight bytes: it must detect what a failing machine does, not forgeries.
fn sum(bytes: &[u8]) -> u64 {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let step = |sum: u64, word: u64| {
        let mixed = (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        mixed ^ mixed >> 32
    };
    let chunks = bytes.chunks_exact(8);
    let rest = word(chunks.remainder());
    step(chunks.fold(0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64, |sum, chunk| step(sum, word(chunk))), rest)
}
