//! What has to be there before anything of a run is made: its image, and room for its workspace.

use std::time::{Duration, Instant};

use platform_runtime::report;

use super::{Error, Scene};
use crate::workspace::{self, Reserved, Workspaces};

/// Pause before it is looked again for room.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a run waits for room that others may give back, in a place that others wait for.
const ROOM: Duration = Duration::from_secs(600);

/// Id of the run's image: the one it was prepared with first, whatever its name stands for by now.
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

/// Waits for room for a workspace: those that were let in at the same moment may have taken it.
pub(super) async fn room(scene: &Scene<'_>, workspaces: &Workspaces) -> Result<Reserved, Error> {
    let deadline = Instant::now() + ROOM;
    loop {
        scene.go_on()?;
        match workspaces.reserve() {
            Err(error @ workspace::Error::NoRoom { .. }) if Instant::now() < deadline => {
                let (run, error) = (&scene.order().run_id, report::chain(&error));
                tracing::warn!(%run, error, "it waits for room");
                tokio::time::sleep(PAUSE).await;
            }
            reserved => return Ok(reserved?),
        }
    }
}
