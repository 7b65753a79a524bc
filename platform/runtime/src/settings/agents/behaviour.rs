//! Reads the directory of an agent's behaviour files. Does not read the files.

use std::path::PathBuf;

use crate::config::Section;

/// Reads the directory.
pub(super) fn read(section: &Section<'_>) -> Option<PathBuf> {
    const NAME: &str = "behaviour_dir";
    let doc = "Directory of its behaviour files: AGENTS.md, SOUL.md, USER.md, TOOLS.md, IDENTITY.md, MEMORY.md. Each request of a run copies them into its workspace.";
    let dir: Option<PathBuf> = section.field(NAME, doc).optional();
    if dir.as_ref().is_some_and(|dir| !dir.is_absolute()) {
        section.reject(NAME, "is not an absolute path".to_owned());
    }
    dir
}
