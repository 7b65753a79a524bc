//! Marks calls in flight: a mark is the record that a call gets if the proxy dies now.
//!
//! A mark is written before the call's first byte goes upstream. One file holds slots of one size, allocated
//! beforehand, each for one call at a time. A slot begins with the length of its content, 0 for nothing. A checksum
//! distinguishes a whole mark from one that a failing machine tore, which was never relied on.
//!
//! A mark is stale once its call has its record. The next call's mark is written over it, or it is cleared later,
//! before that record is removed. Until then the record shows that the mark means nothing. `recovery` handles the marks
//! that are found at the start.

use std::{
    cell::RefCell,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use platform_core::record::ExchangeRecord;
use platform_runtime::{file, report, sync::Mutex};

use super::Error;

/// Size of a slot: a record without tools has less than 2 KiB, and no mark lies on two pages.
const SLOT_SIZE: usize = 4096;
/// Size of a slot's head: length, checksum, and the journal's last line when the mark was written.
const HEADER_SIZE: usize = 24;
/// Number of slots that are added at a time.
const SLOTS_PER_GROWTH: usize = 64;

/// File of in-flight marks.
#[derive(Debug)]
pub(super) struct InFlightLog {
    path: PathBuf,
    file: Arc<File>,
    free: Mutex<Free>,
}

#[derive(Debug)]
struct Free {
    /// Slots with nothing in them.
    clean: Vec<LogSlot>,
    /// Slots with stale marks: their calls have their record. They are used first.
    stale: Vec<LogSlot>,
    /// Number of slots in the file.
    count: u32,
}

/// Place in the file that belongs to one call.
#[derive(Debug)]
pub(super) struct LogSlot(u32);

/// Call whose mark was found at the start.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecoveredCall {
    /// Last line of the journal when the mark was written: the call's own line comes later, if there is one.
    pub(super) after: u64,
    pub(super) record: ExchangeRecord,
}

thread_local! {
    static ENCODED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl LogSlot {
    fn offset(&self) -> u64 {
        u64::from(self.0) * SLOT_SIZE as u64
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
        let clean: Vec<_> = (0..count).rev().map(LogSlot).collect();
        let mut recovered = Vec::new();
        for slot in &clean {
            recovered.extend(read(&file, path, slot)?);
        }
        let free = Mutex::new(Free { clean, stale: Vec::new(), count });
        Ok((Self { path: path.to_owned(), file: Arc::new(file), free }, recovered))
    }

    pub(super) const fn file(&self) -> &Arc<File> {
        &self.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Marks a call whose record would be `record` if the proxy died now. When this returns, the mark survives the
    /// proxy's death.
    pub(super) fn mark(&self, after: u64, record: &ExchangeRecord) -> io::Result<LogSlot> {
        let slot = self.take()?;
        let written = ENCODED.with_borrow_mut(|text| {
            text.clear();
            text.resize(HEADER_SIZE, 0);
            serde_json::to_writer(&mut *text, record)?;
            // A mark too large for its slot would be found torn.
            let length = u64::try_from(text.len() - HEADER_SIZE).unwrap_or(u64::MAX);
            if text.len() > SLOT_SIZE {
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
            text[16..HEADER_SIZE].copy_from_slice(&after.to_le_bytes());
            let sum = sum(&text[16..]);
            text[..8].copy_from_slice(&length.to_le_bytes());
            text[8..16].copy_from_slice(&sum.to_le_bytes());
            self.file.write_all_at(text, slot.offset())
        });
        match written {
            Ok(()) => Ok(slot),
            Err(error) => {
                self.clear(slot);
                Err(error)
            }
        }
    }

    /// Frees the slot of a call that has its record.
    pub(super) fn release(&self, slot: LogSlot) {
        self.free.lock().stale.push(slot);
    }

    /// Clears the stale marks.
    pub(super) fn clear_stale(&self) {
        // Clears only the marks that are stale now, and not those that become so meanwhile.
        let count = self.free.lock().stale.len();
        for _ in 0..count {
            let Some(slot) = self.free.lock().stale.pop() else { return };
            self.clear(slot);
        }
    }

    fn clear(&self, slot: LogSlot) {
        match self.file.write_all_at(&[0; 8], slot.offset()) {
            Ok(()) => self.free.lock().clean.push(slot),
            // The slot is not used again: the next start finds the call's record, and so does not count it twice.
            Err(error) => tracing::error!(
                path = %self.path.display(),
                error = report::chain(&error),
                "cannot clear an in-flight mark"
            ),
        }
    }

    /// Removes all marks.
    pub(super) fn clear_all(&self) -> io::Result<()> {
        let count = self.free.lock().count;
        (0..count).try_for_each(|slot| self.file.write_all_at(&[0; 8], LogSlot(slot).offset()))
    }

    fn take(&self) -> io::Result<LogSlot> {
        let mut free = self.free.lock();
        if let Some(slot) = free.stale.pop().or_else(|| free.clean.pop()) {
            return Ok(slot);
        }
        // Writes zeros and not only the length, so that a full disk is met here.
        let count = free.count;
        self.file.write_all_at(&vec![0; SLOTS_PER_GROWTH * SLOT_SIZE], LogSlot(count).offset())?;
        let more = count + u32::try_from(SLOTS_PER_GROWTH).unwrap_or(0);
        free.count = more;
        free.clean.extend((count..more).rev().map(LogSlot));
        free.clean.pop().ok_or_else(|| io::ErrorKind::StorageFull.into())
    }
}

/// Reads the mark in a slot, if there is a whole one.
fn read(file: &File, path: &Path, slot: &LogSlot) -> Result<Option<RecoveredCall>, Error> {
    let mut text = [0; SLOT_SIZE];
    file.read_exact_at(&mut text, slot.offset()).map_err(Error::io("read", path))?;
    let number = |at: usize| text[at..at + 8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let length = number(0);
    if length == 0 {
        return Ok(None);
    }
    let end = usize::try_from(length).ok().and_then(|length| length.checked_add(HEADER_SIZE));
    let whole = end.and_then(|end| text.get(16..end)).filter(|marked| sum(marked) == number(8));
    let Some(marked) = whole else {
        tracing::warn!(path = %path.display(), slot = slot.0, "a mark was not written whole: its call was not sent");
        return Ok(None);
    };
    let record = serde_json::from_slice(&marked[8..])
        .map_err(|_error| Error::Corrupt { path: path.to_owned(), offset: slot.offset() })?;
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
