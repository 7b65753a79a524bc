//! refresh demands a fetch at once, and waits for what the remote had at that time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use platform_core::{id::RepoName, sync_report::SyncReport};
use runner_docker::MirrorOutput;
use tokio::time::timeout;

use crate::{
    error::Error,
    repos::{Ensured, Repos, parse_report},
};

/// Longest wait for a refresh. A larger fetch goes on, and later requests find it.
pub(crate) const REFRESH_TIMEOUT: Duration = Duration::from_secs(25);

/// Outcome of a refresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefreshOutcome {
    /// Agents see this commit, which the remote had after the request.
    Shown {
        /// The commit.
        commit: String,
        /// Time since when, in nanoseconds since 1970.
        at_ns: u64,
    },
    /// The fetch goes on.
    Pending,
}

impl Repos {
    /// Fetches a repository at once. Starts its container if it does not run.
    ///
    /// # Errors
    /// [`Error::Unknown`], [`Error::SyncFailed`], and if Docker refuses.
    pub async fn refresh(&self, name: &RepoName) -> Result<RefreshOutcome, Error> {
        let asked_ns = now_ns();
        let refreshed = timeout(REFRESH_TIMEOUT, self.refreshed(name, asked_ns)).await;
        refreshed.unwrap_or(Ok(RefreshOutcome::Pending))
    }

    async fn refreshed(&self, name: &RepoName, asked_ns: u64) -> Result<RefreshOutcome, Error> {
        let output = match self.ensure(name).await? {
            // It syncs when it starts.
            Ensured::Started(output) => output,
            Ensured::Running => {
                let container = self.container(name);
                let output = self.docker().mirror_output(&container).await?;
                self.docker().hang_up(&container).await?;
                output
            }
        };
        match report_since(output, asked_ns).await? {
            Some(SyncReport { error: Some(reason), .. }) => {
                Err(Error::SyncFailed { name: name.clone(), reason })
            }
            Some(SyncReport { commit: Some(commit), ended_ns, .. }) => {
                Ok(RefreshOutcome::Shown { commit, at_ns: ended_ns })
            }
            _ => Ok(RefreshOutcome::Pending),
        }
    }
}

/// Returns the report of the first sync that began after a time; `None` if the container ends before.
async fn report_since(mut output: MirrorOutput, asked_ns: u64) -> Result<Option<SyncReport>, Error> {
    while let Some(line) = output.line().await? {
        // A sync that began before may have asked the remote before.
        if let Some(report) = parse_report(&line).filter(|report| report.began_ns >= asked_ns) {
            return Ok(Some(report));
        }
    }
    Ok(None)
}

/// Returns the nanoseconds since 1970. Containers of this host have the same clock.
fn now_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
