//! Chooses the kept workspaces that have to go, because they are too old or too much together.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::SystemTime,
};

use platform_core::{
    id::{AgentId, RunId, WorkspaceId},
    limit::{self, ByteSize, Millis},
};
use platform_runtime::{report, settings::Agent};
use runner_store::{ResourceKind, ResourceState};
use runner_workspace as workspace;

use super::evidence::{Candidate, Evidence, FoundResource};

/// Time that workspaces are kept after their runs, by agent.
#[derive(Debug, Default)]
pub(super) struct KeepTimes(BTreeMap<AgentId, Millis>);

impl KeepTimes {
    pub(super) fn of_agents(agents: &BTreeMap<AgentId, Agent>) -> Self {
        Self(agents.iter().map(|(id, agent)| (id.clone(), agent.keep)).collect())
    }

    /// Returns the time for runs of `agent`, which may no longer have an entry.
    pub(super) fn of(&self, agent: &AgentId) -> Millis {
        self.0.get(agent).copied().unwrap_or(limit::sandbox::KEEP)
    }
}

/// Workspace that was kept after its run.
#[derive(Debug, Clone)]
struct KeptWorkspace {
    id: WorkspaceId,
    since: SystemTime,
    size: ByteSize,
}

/// Returns the kept workspaces below `root` that have to go for the others to fit into `limit`.
pub(super) async fn surplus(root: &Path, evidence: &Evidence, limit: ByteSize) -> BTreeSet<WorkspaceId> {
    let mut kept = Vec::new();
    for Candidate { resource, run_id } in &evidence.candidates {
        let FoundResource::Workspace(dir) = resource else { continue };
        let stored_run = run_id.as_ref().and_then(|run_id| evidence.runs.get(run_id));
        let since = stored_run.and_then(|stored_run| {
            let row = stored_run.row(ResourceKind::Workspace, dir.id.as_str())?;
            (row.stage == ResourceState::Kept).then(|| stored_run.kept_since(row))
        });
        let Some(since) = since else { continue };
        match usage(root, &dir.id, run_id.as_ref()).await {
            Ok(size) => kept.push(KeptWorkspace { id: dir.id.clone(), since, size }),
            Err(error) => {
                let error = report::chain(&error);
                tracing::warn!(workspace = %dir.id, error, "kept workspace not measured");
            }
        }
    }
    oldest_beyond(kept, limit)
}

/// Returns the space of workspace `id` and of the files that its run began with, which stay as long.
async fn usage(root: &Path, id: &WorkspaceId, run_id: Option<&RunId>) -> Result<ByteSize, workspace::Error> {
    let tree = workspace::disk_usage(root, id).await?;
    let Some(run_id) = run_id else { return Ok(tree) };
    let files = workspace::files_usage(root, run_id).await?;
    Ok(ByteSize(tree.0.saturating_add(files.0)))
}

/// Returns the oldest of `kept`, without which the others fit into `limit`. The newest always stays.
fn oldest_beyond(mut kept: Vec<KeptWorkspace>, limit: ByteSize) -> BTreeSet<WorkspaceId> {
    kept.sort_by_key(|workspace| std::cmp::Reverse(workspace.since));
    let mut used = 0_u64;
    let fits = kept.iter().take_while(|workspace| {
        let is_newest = used == 0;
        used = used.saturating_add(workspace.size.0);
        is_newest || used <= limit.0
    });
    let fitting = fits.count();
    kept.into_iter().skip(fitting).map(|workspace| workspace.id).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn the_files_of_a_run_count_with_its_workspace() {
        let root = tempfile::tempdir().unwrap();
        let run_id = RunId::parse("r1").unwrap();
        let id = WorkspaceId::from_random(1);
        std::fs::create_dir_all(root.path().join(id.as_str()).join("tree")).unwrap();
        let stage = runner_files::stages_dir(root.path()).join("r1");
        std::fs::create_dir_all(&stage).unwrap();
        std::fs::write(stage.join("data"), vec![1; 100_000]).unwrap();
        let with_files = usage(root.path(), &id, Some(&run_id)).await.unwrap();
        let alone = usage(root.path(), &id, None).await.unwrap();
        assert!(with_files.0 >= alone.0 + 100_000, "{with_files:?} and {alone:?}");
    }

    fn kept(age: u64, size: u64) -> KeptWorkspace {
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 - age);
        KeptWorkspace { id: WorkspaceId::from_random(age.into()), since, size: ByteSize(size) }
    }

    #[test]
    fn the_oldest_go_until_the_rest_fits() {
        for (workspaces, gone) in [
            (&[[1, 40], [2, 40], [3, 20]][..], &[][..]),
            (&[[3, 20], [1, 40], [2, 41]], &[3]),
            (&[[1, 40], [2, 61], [3, 1]], &[2, 3]),
            (&[[1, 400]], &[]),
            (&[[1, 400], [2, 1]], &[2]),
        ] {
            let found = workspaces.iter().map(|[age, size]| kept(*age, *size)).collect();
            let expected: BTreeSet<_> =
                gone.iter().map(|age: &u64| WorkspaceId::from_random((*age).into())).collect();
            assert_eq!(oldest_beyond(found, ByteSize(100)), expected, "{workspaces:?}");
        }
    }
}
