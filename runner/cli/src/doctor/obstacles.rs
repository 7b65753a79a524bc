//! Finds what keeps `sluice up` from executing runs, for the line that says that it is ready. Starts no container, and
//! opens no store.

use std::time::Duration;

use platform_runtime::{report, settings::Settings};
use runner_control_client::DataPlane;
use runner_docker::Docker;
use runner_workspace::Workspaces;
use tokio::time::timeout;

use super::upstream::UpstreamProblem;

/// Longest wait for Docker and for the upstream. The start of `sluice up` waits no longer for their answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns what keeps runs from being executed now, one text for each part: Docker, workspaces and upstream.
pub(crate) async fn obstacles(settings: &Settings, data_plane: &DataPlane) -> Vec<String> {
    let docker = async {
        let connected = Docker::connect(&settings.sandbox.docker_socket).await;
        connected.err().map(|error| report::chain(&error))
    };
    let upstream = async {
        match data_plane.upstream().await {
            Ok(health) => UpstreamProblem::of(&health, settings.upstream.key_file.as_deref())
                .map(|problem| problem.to_string()),
            Err(error) => Some(report::chain(&error)),
        }
    };
    let (docker, upstream) = tokio::join!(in_time("Docker", docker), in_time("the upstream", upstream));
    let workspaces = Workspaces::check_root(&settings.sandbox).err().map(|error| report::chain(&error));
    [docker, workspaces, upstream].into_iter().flatten().collect()
}

/// Returns the obstacle that `look` finds. An answer that does not come in time is one.
async fn in_time(part: &str, look: impl Future<Output = Option<String>>) -> Option<String> {
    let late = |_elapsed| Some(format!("{part} did not answer within {} s", ANSWER_TIMEOUT.as_secs()));
    timeout(ANSWER_TIMEOUT, look).await.unwrap_or_else(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_silent_part_is_an_obstacle() {
        let late = in_time("Docker", std::future::pending()).await;
        assert_eq!(late.as_deref(), Some("Docker did not answer within 2 s"));
        assert_eq!(in_time("Docker", std::future::ready(None)).await, None);
    }
}
