//! Finds lines that are gone although they were never removed: a file was moved away, deleted or cut short from
//! outside.
//!
//! The numbers of such lines are not used again, and their usage remains counted as far as a checkpoint knows it.

use std::{path::Path, sync::Arc};

use platform_core::record::Lost;

use super::{Error, end::last_number, segments};

/// Ranges of lines that are gone.
#[derive(Debug, Clone, Default)]
pub(super) struct Gaps(Arc<[Lost]>);

impl Gaps {
    /// Finds the gaps in `dir`, where everything from line `oldest` on should be; 0 if that is not known.
    pub(super) fn find(dir: &Path, oldest: u64) -> Result<Self, Error> {
        let mut lost: Vec<Lost> = Vec::new();
        let mut next = Some(oldest).filter(|oldest| *oldest > 0);
        for segment in segments::list(dir)? {
            if let Some(from) = next.filter(|next| *next < segment.first) {
                let to = segment.first - 1;
                match lost.last_mut().filter(|last| last.to + 1 == from) {
                    Some(last) => last.to = to,
                    None => lost.push(Lost { from, to }),
                }
            }
            next = last_number(&segment)?.map(|last| last + 1);
        }
        for Lost { from, to } in &lost {
            tracing::error!(
                from,
                to,
                dir = %dir.display(),
                "lines of the journal are gone: a file was moved, deleted or cut short; restore it. Their numbers are not used again, and their usage remains counted"
            );
        }
        Ok(Self(lost.into()))
    }

    /// Returns the number of the first line from `seq` on that is not gone.
    pub(super) fn next_present(&self, seq: u64) -> u64 {
        self.0.iter().find(|lost| lost.holds(seq)).map_or(seq, |lost| lost.to + 1)
    }

    /// Returns whether line `seq` is gone.
    pub(super) fn contains(&self, seq: u64) -> bool {
        self.next_present(seq) != seq
    }

    pub(super) fn all(&self) -> &[Lost] {
        &self.0
    }
}
