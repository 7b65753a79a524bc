//! Removes old segments of the journal, the oldest first.
//!
//! A segment goes when it is full and summed up, and it is old or all segments together are too large. A segment that a
//! consumer has not acknowledged stays, and so does the one that lines go to.
//!
//! If the segments that must stay exceed the budget, the journal's state shows it. If they exceed it by a whole
//! segment, calls are refused. So a forgotten consumer cannot fill the disk.

use std::{fs, io, sync::atomic::Ordering, time::SystemTime};

use super::{
    Error, Journal,
    segments::{self, Segment},
};

/// Relation of the size of all segments to the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskUse {
    Within,
    Over,
    OverByASegment,
}

impl Journal {
    /// Removes the segments that may go at `now`, where everything up to and with line `summed` is summed up.
    pub(super) fn remove_old(&self, summed: u64, now: SystemTime) -> Result<(), Error> {
        let segments = segments::list(&self.dir)?;
        let (slowest, _) = self.consumers.slowest();
        // The hash of the line before an empty segment is only in the segment before.
        let ends = segments.windows(2).map(|pair| pair[1].first - 1).filter(|end| *end < self.last_seq());
        let mut sizes = Vec::with_capacity(segments.len());
        for segment in &segments {
            let file = fs::metadata(&segment.path).map_err(Error::io("look at", &segment.path))?;
            sizes.push((file.len(), file.modified().map_err(Error::io("look at", &segment.path))?));
        }
        let mut size: u64 = sizes.iter().map(|(length, _)| length).sum();
        let budget = self.settings.disk_budget.0;
        let mut going = Vec::new();
        for ((segment, end), (length, written)) in segments.iter().zip(ends).zip(&sizes) {
            let age = now.duration_since(*written).unwrap_or_default();
            let is_due = age > self.settings.retention.duration() || size > budget;
            if !is_due || end > summed.min(slowest) {
                break;
            }
            going.push(segment);
            size -= length;
        }
        self.remove(&going, &segments)?;
        self.size.store(size, Ordering::Relaxed);
        let disk_use = match size {
            size if size <= budget => DiskUse::Within,
            size if size <= budget.saturating_add(self.settings.segment_size.0) => DiskUse::Over,
            _ => DiskUse::OverByASegment,
        };
        self.note_disk_use(disk_use);
        Ok(())
    }

    /// Removes the segments `going`, the first of `all`.
    fn remove(&self, going: &[&Segment], all: &[Segment]) -> Result<(), Error> {
        let Some(kept) = all.get(going.len()).filter(|_| !going.is_empty()) else { return Ok(()) };
        self.sync_cleared_marks()?;
        // Recorded first: a crash must not make the lines look lost.
        let noted = self.note_oldest(kept.first);
        for segment in going {
            match fs::remove_file(&segment.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io("remove", &segment.path)(error));
                }
                _ => tracing::info!(path = %segment.path.display(), "removed a segment of the journal"),
            }
        }
        // On a full disk there is space for it now.
        noted.or_else(|_error| self.note_oldest(kept.first))
    }

    fn note_disk_use(&self, disk_use: DiskUse) {
        let was_over = self.is_over_budget.swap(disk_use != DiskUse::Within, Ordering::Relaxed);
        if disk_use == DiskUse::Over && !was_over {
            tracing::warn!(
                "the journal is larger than journal.disk_budget, and nothing of it may be removed: see its consumers"
            );
        }
        let was_closed = self.is_closed.swap(disk_use == DiskUse::OverByASegment, Ordering::Relaxed);
        if disk_use == DiskUse::OverByASegment && !was_closed {
            tracing::error!(
                "the journal exceeds journal.disk_budget by a whole file, and nothing of it may be removed: calls are refused"
            );
        }
    }
}
