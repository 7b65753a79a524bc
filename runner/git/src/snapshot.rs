//! snapshot makes a repository with one commit's files, for readers: nothing of it is relayed.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    agent_clone::strip,
    branch::BaseBranch,
    error::Error,
    mirror::{CloneDepth, Copied, Mirror},
    object_id::{ObjectId, SHA1},
};

/// Choice of a commit, and of what its repository says.
#[derive(Debug, Clone)]
pub struct SnapshotOrder {
    /// Commit with the files to show.
    pub commit: ObjectId,
    /// Branch of that commit.
    pub branch: BaseBranch,
    /// Depth of the history that readers see.
    pub depth: CloneDepth,
}

/// Repository with a commit's files. It has its own objects, and names no remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Directory of the files.
    pub dir: PathBuf,
}

impl Snapshot {
    /// Makes the repository in `dest`, which is missing or empty.
    ///
    /// # Errors
    /// If git or the system fails. Then `dest` may hold a part.
    pub async fn make(mirror: &Mirror, dest: &Path, order: &SnapshotOrder) -> Result<Self, Error> {
        fs::create_dir_all(dest).map_err(Error::io("create", dest))?;
        let dir = fs::canonicalize(dest).map_err(Error::io("resolve", dest))?;
        if fs::read_dir(&dir).map_err(Error::io("list", &dir))?.next().is_some() {
            return Err(Error::io("copy into", &dir)(io::ErrorKind::DirectoryNotEmpty.into()));
        }
        let git_dir = dir.join(".git");
        let init = mirror.git().command_outside("init").arguments(["--quiet", "--template="]);
        let init = init.argument(SHA1).argument(format!("--initial-branch={}", order.branch));
        init.argument(&dir).writes(&dir).output().await?;
        let copy = Copied { reference: &order.branch.reference(), depth: order.depth };
        mirror.copy_to(&git_dir, &order.commit, &copy).await?;
        let reset = mirror.git().command("reset", &git_dir).work_tree(&dir);
        reset.arguments(["--hard", "--quiet", order.commit.as_str(), "--"]).output().await?;
        strip(&git_dir)?;
        Ok(Self { dir })
    }
}
