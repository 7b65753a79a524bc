//! Writes an agent's behaviour files into its workspace. The files belong to the agent, which may change them.

use std::path::Path;

use runner_files::TreeRoot;
use runner_model::behaviour::BehaviourFiles;

use super::{conversation::write_file, error::Error};

/// Writes `files` into `tree`. A file or link in the way is an error, as for the conversation.
pub(super) fn write(tree: &Path, files: &BehaviourFiles) -> Result<(), Error> {
    let write = || {
        let root = TreeRoot::open(tree)?;
        files.iter().try_for_each(|(file, text)| write_file(&root, file.name(), text.as_bytes()))
    };
    write().map_err(Error::io("write behaviour files into", tree))
}
