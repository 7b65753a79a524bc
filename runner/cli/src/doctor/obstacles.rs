//! Finds what keeps `sluice up` from executing runs, for the line that says that it is ready. Starts no container, and
//! opens no store.

use std::time::Duration;

use platform_core::control::UpstreamHealth;
use platform_runtime::{report, settings::Settings};
use runner_control_client::DataPlane;
use runner_docker::Docker;
use runner_workspace::Workspaces;
use tokio::time::timeout;

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
            Ok(health) => upstream_obstacle(&health, settings),
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

/// Returns the obstacle at the upstream. An upstream that offers no list of models may still answer calls.
fn upstream_obstacle(health: &UpstreamHealth, settings: &Settings) -> Option<String> {
    match health {
        UpstreamHealth::Ready { .. } => None,
        UpstreamHealth::Refused { status: status @ 401..=403 } => Some(match &settings.upstream.key_file {
            Some(file) => {
                format!("the upstream refuses the key in {} (status {status})", file.display())
            }
            None => {
                format!("the upstream refuses calls without a key (status {status}): set upstream.key_file")
            }
        }),
        UpstreamHealth::Refused { status: status @ 500.. } => {
            Some(format!("the upstream answers {status} to GET /v1/models"))
        }
        UpstreamHealth::Refused { .. } => None,
        UpstreamHealth::Unreachable { reason } => {
            Some(format!("the upstream cannot be reached: {reason}: start it, or set upstream.base_url"))
        }
    }
}

#[cfg(test)]
mod tests {
    use platform_runtime::config::Sources;

    use super::*;

    fn settings(text: &str) -> Settings {
        let file = Some(("s.toml".into(), text.to_owned()));
        Settings::read(&Sources { file, ..Sources::default() }).unwrap()
    }

    #[test]
    fn a_missing_key_is_told_from_a_refused_one() {
        let refused = |status, text| upstream_obstacle(&UpstreamHealth::Refused { status }, &settings(text));
        assert!(refused(401, "").unwrap().contains("without a key"));
        let named = refused(401, "[upstream]\nkey_file = '/etc/key'\n").unwrap();
        assert!(named.contains("the key in /etc/key (status 401)"), "{named}");
        assert!(refused(503, "").is_some());
        assert_eq!(refused(404, ""), None, "it may have no list of models");
    }

    #[tokio::test]
    async fn a_silent_part_is_an_obstacle() {
        let late = in_time("Docker", std::future::pending()).await;
        assert_eq!(late.as_deref(), Some("Docker did not answer within 2 s"));
        assert_eq!(in_time("Docker", std::future::ready(None)).await, None);
    }
}
