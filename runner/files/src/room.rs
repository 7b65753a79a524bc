//! Checks that a copy fits before anything of it is written.

use std::path::Path;

use platform_core::limit::ByteSize;
use rustix::fs::statvfs;

use super::error::Error;

/// Bounds of what a result may bring to the host's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultBounds {
    /// Most bytes of all files together, by their apparent size: a workspace holds no more.
    pub bytes: ByteSize,
    /// Bytes that stay free on the disk.
    pub reserve: ByteSize,
}

impl ResultBounds {
    /// Checks that files of `sizes` may be written below `dir`, which may not exist yet.
    pub(crate) fn check(&self, sizes: impl Iterator<Item = u64>, dir: &Path) -> Result<(), Error> {
        let found = ByteSize(sizes.fold(0, u64::saturating_add));
        if found > self.bytes {
            return Err(Error::ResultTooLarge { found, max: self.bytes });
        }
        check_room(found, self.reserve, dir)
    }
}

/// Checks that the disk of `dir`, which may not exist yet, has space for `needed` bytes beside the `reserve`.
pub(crate) fn check_room(needed: ByteSize, reserve: ByteSize, dir: &Path) -> Result<(), Error> {
    let existing = dir.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("."));
    let stats = statvfs(existing).map_err(Error::os("measure the disk of", existing))?;
    let free = ByteSize(stats.f_bavail.saturating_mul(stats.f_frsize));
    if needed.0.saturating_add(reserve.0) > free.0 {
        return Err(Error::NoRoom { path: dir.to_owned(), needed, free, reserve });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_fits_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("new/dir");
        let check = |sizes: &[u64], reserve| {
            ResultBounds { bytes: ByteSize(100), reserve: ByteSize(reserve) }
                .check(sizes.iter().copied(), &new)
        };
        check(&[40, 60], 0).expect("the control");
        assert!(matches!(check(&[40, 61], 0), Err(Error::ResultTooLarge { .. })));
        assert!(matches!(check(&[u64::MAX, 2], 0), Err(Error::ResultTooLarge { .. })), "no overflow");
        assert!(matches!(check(&[1], u64::MAX), Err(Error::NoRoom { .. })));
    }
}
