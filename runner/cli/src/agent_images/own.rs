//! Lists the images that ship besides those of coding agents, and finds archives of them.

use std::{fs, path::PathBuf};

use super::{
    ContextFile, Error, ImageContext, Programs,
    build::{OWN_BASE, PUBLIC_BASE},
};

/// Directory with archives of images, from the directory of this program.
const ARCHIVES: &str = "../share/sluicegate/images";

/// An image of Sluicegate's own.
pub(crate) struct OwnImage {
    /// Name, as `sluice images build` takes it.
    pub(crate) name: &'static str,
    /// Reference under which settings know it.
    pub(crate) image: &'static str,
    /// Image that it is built on unless another is named.
    pub(crate) base: &'static str,
    files: &'static [ContextFile],
    programs: &'static [&'static str],
}

/// All of them. An image comes after those that it is built on.
pub(crate) const OWN_IMAGES: [OwnImage; 2] = [
    OwnImage {
        name: "sandbox-runtime",
        image: OWN_BASE,
        base: PUBLIC_BASE,
        files: &[
            ("Dockerfile", include_str!("../../../../services/sandbox-runtime/Dockerfile")),
            ("entrypoint.sh", include_str!("../../../../services/sandbox-runtime/entrypoint.sh")),
            ("agent/run.mjs", include_str!("../../../../services/sandbox-runtime/agent/run.mjs")),
        ],
        programs: &["sandbox-init", "cogni-tool"],
    },
    OwnImage {
        name: "git-sync",
        image: "sluicegate/git-sync:latest",
        base: OWN_BASE,
        files: &[("Dockerfile", include_str!("../../../../services/git-sync/Dockerfile"))],
        programs: &["git-sync"],
    },
];

impl OwnImage {
    /// Returns what it is built from.
    pub(crate) fn context(&self) -> ImageContext<'static> {
        let programs = Programs::Needed(self.programs);
        ImageContext { name: self.name, files: self.files, arguments: Vec::new(), programs }
    }
}

/// Returns the archives of images that were installed with this program, sorted.
///
/// # Errors
/// [`Error::NoArchive`] if there are none.
pub(crate) fn installed_archives() -> Result<Vec<PathBuf>, Error> {
    let program = std::env::current_exe().unwrap_or_default();
    let dir = program.parent().unwrap_or(&program).join(ARCHIVES);
    let listed = fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_archive = |path: &PathBuf| path.to_string_lossy().contains(".tar");
    let mut archives: Vec<_> = listed.filter(is_archive).collect();
    archives.sort();
    if archives.is_empty() { Err(Error::NoArchive(dir)) } else { Ok(archives) }
}
