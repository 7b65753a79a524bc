//! leftovers removes what a git that was killed leaves in a repository: locks, and files that it had not finished.
//!
//! A lock that stays makes every later fetch fail, and unfinished packs fill the disk.

use std::{fs, path::Path};

use crate::{
    directory::{remove_dir, remove_file},
    error::Error,
};

/// Ending of the names of locks. No branch's name has it.
const LOCK: &str = "lock";
/// Beginnings of the names of unfinished files and directories among the objects.
const UNFINISHED: [&str; 2] = ["tmp_", "incoming-"];
/// Name of the directory of objects.
const OBJECTS: &str = "objects";

/// Removes the leftovers in `repository`. No git may write to it meanwhile.
///
/// # Errors
/// The system's.
pub(crate) fn remove_leftovers(repository: &Path) -> Result<(), Error> {
    let mut open = vec![repository.to_owned()];
    while let Some(dir) = open.pop() {
        let entries = fs::read_dir(&dir).map_err(Error::io("list", &dir))?;
        for entry in entries {
            let path = entry.map_err(Error::io("list", &dir))?.path();
            let is_dir = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
            if is_leftover(repository, &path) {
                if is_dir { remove_dir(&path) } else { remove_file(&path) }?;
            } else if is_dir {
                open.push(path);
            }
        }
    }
    Ok(())
}

fn is_leftover(repository: &Path, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_object = path.starts_with(repository.join(OBJECTS));
    path.extension().is_some_and(|ending| ending == LOCK)
        || (is_object && UNFINISHED.iter().any(|beginning| name.starts_with(beginning)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_leftovers_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            path
        };
        let leftovers = [
            "packed-refs.lock",
            "refs/heads/main.lock",
            "objects/pack/tmp_pack_a",
            "objects/ab/tmp_obj_b",
            "objects/incoming-c/x",
        ]
        .map(write);
        let kept = ["packed-refs", "refs/heads/tmp_x", "objects/pack/pack-a.pack", "HEAD"].map(write);
        remove_leftovers(dir.path()).unwrap();
        assert!(leftovers.iter().all(|path| !path.exists()));
        assert!(kept.iter().all(|path| path.exists()));
    }
}
