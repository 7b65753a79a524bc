//! Reads which file a directory has now at the path of a change, and compares it with both sides.

use rustix::fs::{AtFlags, FileType, OFlags, StatxFlags, statx};
use sha2::{Digest, Sha256};

use super::ApplyStep;
use crate::{
    beneath::{TreeRoot, Unreadable},
    changes::{NewSide, OldSide},
    manifest::ContentHash,
    path::RelativePath,
    stage_writer::BUFFER_SIZE,
};

/// Entry that a directory has now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PresentFile {
    Missing,
    File {
        sha256: ContentHash,
        executable: bool,
    },
    Link(std::path::PathBuf),
    Directory,
    /// A special file.
    Other,
    /// The way to it leads through a link.
    BehindLink,
    Unreadable,
}

impl PresentFile {
    pub(super) fn read(root: &TreeRoot, path: &RelativePath) -> Self {
        Self::look(root, path).unwrap_or_else(|why| match why {
            Unreadable::Missing => Self::Missing,
            Unreadable::Elsewhere => Self::BehindLink,
            Unreadable::NotAFile => Self::Other,
            _ => Self::Unreadable,
        })
    }

    fn look(root: &TreeRoot, path: &RelativePath) -> Result<Self, Unreadable> {
        let entry = root.open_beneath(path.as_path(), OFlags::PATH | OFlags::NOFOLLOW)?;
        let found = statx(&entry, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE)?;
        match FileType::from_raw_mode(found.stx_mode.into()) {
            FileType::Symlink => return root.read_link(path.as_path()).map(Self::Link),
            FileType::RegularFile => {}
            FileType::Directory => return Ok(Self::Directory),
            _ => return Ok(Self::Other),
        }
        let mut file = root.open_file(path.as_path())?;
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; BUFFER_SIZE];
        while let len @ 1.. = file.read_piece(&mut buffer)? {
            hasher.update(&buffer[..len]);
        }
        Ok(Self::File { sha256: ContentHash::finish(hasher), executable: file.is_executable() })
    }

    /// Returns whether the directory has the entry already as `step` would leave it.
    pub(super) fn is_new_side(&self, step: &ApplyStep<'_>) -> bool {
        match (self, &step.change.new) {
            // The file is gone.
            (Self::Missing | Self::Directory, None) => true,
            (Self::File { sha256, executable }, Some(NewSide::File { executable: new, .. })) => {
                step.new_hash.as_ref() == Some(sha256) && executable == new
            }
            _ => false,
        }
    }

    /// Returns the difference to the entry that the run received, if there is one.
    pub(super) fn conflict(&self, step: &ApplyStep<'_>) -> Option<&'static str> {
        match (self, &step.change.old) {
            (Self::BehindLink, _) => Some("is reached through a link in the directory"),
            (Self::Unreadable, _) => Some("cannot be read in the directory"),
            (Self::Missing, None) => None,
            (Self::File { sha256, executable }, Some(OldSide::File(old)))
                if old.sha256 == *sha256
                    && [Some(old.executable), step.change.new_mode()].contains(&Some(*executable)) =>
            {
                None
            }
            (Self::Link(target), Some(OldSide::Link(old))) if target == old => None,
            (Self::Missing, Some(_)) => Some("was removed in the directory since the run received it"),
            (_, None) => Some("exists in the directory, and the run received no such file"),
            (_, Some(_)) => Some("was changed in the directory since the run received it"),
        }
    }
}
