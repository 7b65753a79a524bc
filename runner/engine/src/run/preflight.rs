//! Checks what must exist before any resource of a run is created: its image, and disk space for its workspace. Under a
//! limit of cost, its model must have a price, too.

use std::time::{Duration, Instant};

use platform_runtime::{report, retry::Backoff};
use runner_workspace::{self as workspace, Reserved, Workspaces};

use super::{context::RunContext, error::Error};
use crate::pricing::check_price;

/// Interval between checks for disk space.
const DISK_SPACE_POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Longest wait for disk space that other runs may release. The run holds its start permit meanwhile.
const DISK_SPACE_TIMEOUT: Duration = Duration::from_secs(600);

impl RunContext<'_> {
    /// Returns the id of the run's image: the one that its first preparation used, even if the image's name now refers
    /// to another.
    pub(super) async fn image(&self) -> Result<String, Error> {
        if let Some(image) = &self.run.recovered().image {
            return Ok(image.clone());
        }
        let image = &self.agent().image;
        let id = self.run.retry(async || self.engine.docker.image(image).await).await?;
        self.run.record_image(&id).await?;
        Ok(id)
    }

    /// Checks that the run's model has a price if a limit of cost applies. The configuration may have changed since the
    /// run was submitted.
    pub(super) fn check_priced(&self) -> Result<(), Error> {
        Ok(check_price(&self.engine.settings.get(), self.request())?)
    }

    /// Reserves disk space for a workspace. Waits for it if other runs have just taken the space.
    pub(super) async fn reserve_disk_space(&self, workspaces: &Workspaces) -> Result<Reserved, Error> {
        let deadline = Instant::now() + DISK_SPACE_TIMEOUT;
        let mut backoff = Backoff::constant(DISK_SPACE_POLL_INTERVAL);
        loop {
            self.check_cancelled()?;
            match workspaces.reserve() {
                Err(error @ workspace::Error::InsufficientDisk(_)) if Instant::now() < deadline => {
                    let error = report::chain(&error);
                    tracing::warn!(run = %self.run_id(), error, "waiting for disk space");
                    backoff.wait().await;
                }
                reserved => return Ok(reserved?),
            }
        }
    }
}
