//! Opens a workspace again that an earlier run has left, and puts it away after the run. Several runs of a thread use one.
//!
//! Between two runs it is not mounted: a thread that waits takes disk space and nothing else.

use std::{thread, time::Duration};

use platform_core::id::WorkspaceId;
use platform_runtime::{lock::Lock, task::blocking};

use super::{Durability, Workspace, Workspaces, error::Error, image};

/// Number of attempts to lock a workspace.
const MAX_LOCK_TRIES: u32 = 100;
/// Delay before another attempt to lock.
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Right to write into a workspace, which one process has at a time. Released on drop, or with the process.
#[derive(Debug)]
pub struct WorkspaceLock(#[expect(dead_code, reason = "dropping it releases the lock")] Lock);

impl Workspaces {
    /// Returns the same root for workspaces that survive a crash of the machine.
    #[must_use]
    pub fn durable(&self) -> Self {
        Self { durability: Durability::Machine, ..self.clone() }
    }

    /// Returns whether there is a workspace `id`.
    pub fn exists(&self, id: &WorkspaceId) -> bool {
        self.root.paths(id).tree.is_dir()
    }

    /// Locks workspace `id`. Waits a few seconds for a process that has it.
    ///
    /// # Errors
    /// [`Error::InUse`] if a process still has it then, and the system's.
    pub async fn lock(&self, id: &WorkspaceId) -> Result<WorkspaceLock, Error> {
        let dir = self.root.paths(id).dir;
        let id = id.clone();
        blocking(move || {
            for _ in 0..MAX_LOCK_TRIES {
                if let Some(lock) = Lock::attempt(&dir).map_err(Error::io("lock", &dir))? {
                    return Ok(WorkspaceLock(lock));
                }
                thread::sleep(LOCK_RETRY_DELAY);
            }
            Err(Error::InUse { id })
        })
        .await
    }

    /// Opens workspace `id` again, for another run that may write there. The caller holds its lock.
    ///
    /// # Errors
    /// If it does not exist, or cannot be mounted.
    pub async fn reopen(&self, id: &WorkspaceId, _lock: &WorkspaceLock) -> Result<Workspace, Error> {
        let workspace = self.adopt(id).await?;
        let paths = self.root.paths(id);
        // A person may have read it, which makes it read-only.
        blocking(move || if paths.has_image() { paths.make_writable() } else { Ok(()) }).await?;
        Ok(workspace)
    }

    /// Puts workspace `id` away until its next run: gives unused space back, and unmounts an image.
    ///
    /// # Errors
    /// The system's. Then it stays mounted, which its next run does not mind.
    pub async fn put_away(&self, id: &WorkspaceId) -> Result<(), Error> {
        let paths = self.root.paths(id);
        blocking(move || {
            if !paths.has_image() || !paths.is_mounted()? {
                return Ok(());
            }
            let trimmed = image::trim(&paths);
            paths.unmount().and(trimmed)
        })
        .await
    }
}
