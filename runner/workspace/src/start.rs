//! Places the start file: it appears whole and once, and the first attempt wins.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use platform_core::{name::path::START_FILE, start::Start};
use platform_runtime::random;
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

use super::{error::Error, paths::AGENT_FILE_MODE};

/// Places `start` in `dir`, unless a start file is there.
pub(super) fn place(dir: &Path, start: &Start) -> Result<(), Error> {
    let temporary = dir.join(format!(".{:016x}", random::bits() & u128::from(u64::MAX)));
    let placed = write(dir, &temporary, start);
    match placed {
        Ok(()) => Ok(()),
        Err(error) => {
            fs::remove_file(&temporary).ok();
            if is_placed(dir) { Ok(()) } else { Err(Error::io("place the start file in", dir)(error)) }
        }
    }
}

fn write(dir: &Path, temporary: &Path, start: &Start) -> io::Result<()> {
    let mut file = File::create_new(temporary)?;
    file.write_all(&serde_json::to_vec(start)?)?;
    file.set_permissions(fs::Permissions::from_mode(AGENT_FILE_MODE))?;
    match renameat_with(CWD, temporary, CWD, dir.join(START_FILE), RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => fs::remove_file(temporary),
        placed => Ok(placed?),
    }
}

/// Returns whether the start file is there.
pub(super) fn is_placed(dir: &Path) -> bool {
    dir.join(START_FILE).exists()
}
