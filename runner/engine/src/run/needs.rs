//! Checks what must exist before anything of a run is created: its image, and disk space for its workspace.

use std::time::{Duration, Instant};

use platform_runtime::report;
use runner_workspace::{self as workspace, Reserved, Workspaces};

use super::{Error, Scene};

/// Delay between checks for disk space.
const PAUSE: Duration = Duration::from_millis(500);
/// Longest wait for disk space that other runs may release; the run holds its permit meanwhile.
const ROOM: Duration = Duration::from_secs(600);

/// Returns the id of the run's image: the one it was prepared with first, whatever its name stands for by now.
pub(super) async fn image(scene: &Scene<'_>) -> Result<String, Error> {
    let Scene { host, booked, .. } = *scene;
    if let Some(image) = &booked.past().image {
        return Ok(image.clone());
    }
    let image = &scene.order().wanted.agent.image;
    let id = booked.ask(async || host.docker.image(image).await).await?;
    booked.image(&id).await?;
    Ok(id)
}

/// Waits for disk space for a workspace: runs that were admitted at the same moment may have taken it.
pub(super) async fn disk_space(scene: &Scene<'_>, workspaces: &Workspaces) -> Result<Reserved, Error> {
    let deadline = Instant::now() + ROOM;
    loop {
        scene.go_on()?;
        match workspaces.reserve() {
            Err(error @ workspace::Error::InsufficientDisk(_)) if Instant::now() < deadline => {
                let (run, error) = (&scene.order().run_id, report::chain(&error));
                tracing::warn!(%run, error, "it waits for room");
                tokio::time::sleep(PAUSE).await;
            }
            reserved => return Ok(reserved?),
        }
    }
}
