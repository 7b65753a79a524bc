//! Writes the content of another run into a workspace that earlier agents have used.
//!
//! Everything in it may be a trap: a link in place of a file, a directory in place of a link. Entries are removed by
//! their names in a directory that is open, and new ones are created. So no link is followed, no existing file is
//! written to, and a file with a second name is left as it is.

use std::{
    ffi::OsStr,
    io,
    os::fd::{AsFd, AsRawFd},
    path::{Path, PathBuf},
    process,
};

use platform_core::name::path::{
    COGNI_DIR, CONVERSATION_FILE, DESCRIPTION_FILE, MESSAGES_FILE, PROMPT_FILE, REPO_DIR,
};
use runner_files::TreeRoot;
use runner_model::behaviour::BehaviourFile;
use rustix::{
    fs::{AtFlags, unlinkat},
    io::Errno,
};

use super::{
    content::InitialContent,
    conversation::{exchange_dir, give_to_agent},
    error::Error,
    paths::AGENT_DIR_MODE,
    program::run,
};

/// Files in the exchange directory that belong to one run.
const RUN_FILES: [&str; 4] = [MESSAGES_FILE, PROMPT_FILE, CONVERSATION_FILE, DESCRIPTION_FILE];

impl InitialContent {
    /// Writes the content into `tree` in place of that of an earlier run. Memory that an agent keeps there stays,
    /// whatever the behaviour files say; so does everything else that belongs to the agent.
    pub(super) fn rewrite(mut self, tree: &Path) -> Result<(), Error> {
        self.behaviour.remove(&BehaviourFile::Memory);
        self.make_way(tree)?;
        self.write(tree)
    }

    /// Removes whatever is in the way of the content.
    fn make_way(&self, tree: &Path) -> Result<(), Error> {
        let failed = |errno: Errno| Error::io("open", tree)(errno.into());
        let root = TreeRoot::open(tree).map_err(failed)?;
        let own = root.open_dir(Path::new("")).map_err(failed)?;
        // The agent may have closed it to itself.
        give_to_agent(&own, AGENT_DIR_MODE).map_err(failed)?;
        if let Err(Errno::NOTDIR | Errno::LOOP | Errno::XDEV) = root.open_dir(Path::new(COGNI_DIR)) {
            remove_entry(&own, COGNI_DIR, tree)?;
        }
        let exchange = exchange_dir(tree).map_err(Error::io("make a directory in", tree))?;
        RUN_FILES.into_iter().try_for_each(|name| remove_entry(&exchange, name, tree))?;
        self.behaviour.keys().try_for_each(|file| remove_entry(&own, file.name(), tree))?;
        if self.files.is_some() { remove_entry(&own, REPO_DIR, tree) } else { Ok(()) }
    }
}

/// Removes the entry `name` of the open directory `dir`, whatever it is. A missing one is not an error. Errors name `tree`.
fn remove_entry(dir: impl AsFd, name: &str, tree: &Path) -> Result<(), Error> {
    match unlinkat(&dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // Not every file system says the same of a directory.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(Error::io("remove files of", tree)(error.into())),
    }
    // The path leads through the open directory itself. `rm` needs few descriptors however deep the entry is, no space
    // on the disk, and follows no link.
    let fd = dir.as_fd().as_raw_fd();
    let path = PathBuf::from(format!("/proc/{}/fd/{fd}/{name}", process::id()));
    run(
        "rm",
        tree,
        &[OsStr::new("-rf"), OsStr::new("--one-file-system"), OsStr::new("--"), path.as_os_str()],
    )?;
    match unlinkat(&dir, name, AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        _ => Err(Error::io("remove files of", tree)(io::Error::other("an entry does not go away"))),
    }
}
