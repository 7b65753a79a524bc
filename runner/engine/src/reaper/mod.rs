//! Removes the leftover resources of ended runs, and only those that are proven dead.
//!
//! A pass reads Docker, the proxy, the disk and the store, decides about each resource by itself, and acts. Between
//! reading and acting, a run may be taken over or started again. The reaper therefore reads the store and judges the
//! resource again right before each removal. A container is removed by its id, not by its name. Resources of a source
//! that cannot be read are left alone. One failed removal does not stop the others; each is logged once, not in each
//! pass.
//!
//! The reaper does not end a run after its holder is gone. The worker that takes the run over ends it.

mod act;
mod decision;
mod evidence;
mod gc_report;
mod inventory;
mod kept;
mod reason;
#[cfg(test)]
mod tests;
mod workspace_dir;

use std::{collections::BTreeSet, time::SystemTime};

use platform_core::id::RunId;
use platform_runtime::{
    report,
    settings::{Sandbox, Settings},
    sync::Mutex,
};
use runner_control_client::DataPlane;
use runner_store::{Store, Worker};
use runner_workspace as workspace;

use self::{
    decision::{Decision, Terms, judge},
    evidence::{Candidate, Evidence, FoundResource},
    gc_report::ReportedProblems,
    inventory::UnreadableSource,
    kept::KeepTimes,
};
pub use self::{
    decision::{GcMode, Leftovers, Mode},
    gc_report::{GcEntry, GcOutcome, GcReport},
};

/// Reaper of leftover resources.
#[derive(Debug)]
pub struct Reaper {
    data_plane: DataPlane,
    store: Store,
    sandbox: Sandbox,
    /// Worker for which the reaper acts.
    worker: Worker,
    /// Runs that the configuration opens, without a request.
    configured: BTreeSet<RunId>,
    keep: KeepTimes,
    reported: Mutex<ReportedProblems>,
}

impl Reaper {
    /// Returns a reaper for the installation in `settings`.
    pub fn of(settings: &Settings, store: Store) -> Self {
        Self {
            data_plane: DataPlane::at(&settings.proxy.control_socket()),
            store,
            sandbox: settings.sandbox.clone(),
            worker: Worker::this_process(),
            configured: settings.runs.keys().cloned().collect(),
            keep: KeepTimes::of_agents(&settings.agents),
            reported: Mutex::default(),
        }
    }

    /// Judges all resources once, and removes the dead ones. Concurrent passes are safe. Cancel safe: the next pass
    /// finds a resource after its removal has begun.
    pub async fn pass(&self, mode: Mode) -> GcReport {
        if mode.act == GcMode::Apply {
            workspace::remove_forgotten(&self.sandbox.workspace_dir).await;
        }
        let evidence = Evidence::gather(self).await;
        let Sandbox { workspace_dir, installation, kept_workspaces_size, .. } = &self.sandbox;
        let surplus = kept::surplus(workspace_dir, &evidence, *kept_workspaces_size).await;
        let Evidence { candidates, mut runs, mut unreadable } = evidence;
        // After the containers: a process marks itself before it creates one.
        let tool_owners = runner_mcp::live_owners(&self.sandbox.state_dir);
        let tool_owners =
            tool_owners.map_err(|error| unreadable.push(UnreadableSource::of("tool servers", &error))).ok();
        let terms = Terms {
            mode,
            installation,
            configured: &self.configured,
            keep: &self.keep,
            surplus,
            tool_owners,
            now: SystemTime::now(),
        };
        let mut dead_containers = BTreeSet::new();
        let mut entries = Vec::new();
        for Candidate { mut resource, run_id } in candidates {
            // Containers are judged first. A dead container does not count as a user of a workspace.
            if let FoundResource::Workspace(dir) = &mut resource {
                dir.users.retain(|user| !dead_containers.contains(user));
            }
            let decision = judge(&resource, run_id.as_ref().and_then(|run_id| runs.get(run_id)), &terms);
            let is_dead = matches!(decision, Decision::Remove(_));
            match &resource {
                FoundResource::Container(found) if is_dead => {
                    dead_containers.insert(found.name.clone());
                }
                // The files that the run began with go together with its workspace.
                FoundResource::Workspace(dir) if is_dead => {
                    let stored_run = run_id.as_ref().and_then(|run_id| runs.get_mut(run_id));
                    stored_run.into_iter().for_each(|stored_run| stored_run.forget_workspace(&dir.id));
                }
                _ => {}
            }
            let (decision, outcome) = match mode.act {
                GcMode::Apply if is_dead => self.act(&resource, run_id.as_ref(), &terms, decision).await,
                GcMode::Apply | GcMode::DryRun => {
                    let outcome = GcOutcome::of(&decision);
                    (decision, outcome)
                }
            };
            entries.push(GcEntry::new(&resource, run_id, &decision, outcome));
        }
        if mode.act == GcMode::Apply
            && unreadable.is_empty()
            && let Err(error) = self.store.forget_warm_containers().await
        {
            tracing::debug!(error = report::chain(&error), "rows of removed warm containers not deleted yet");
        }
        let gc_report = GcReport { act: mode.act, unreadable, entries };
        self.log(&gc_report);
        gc_report
    }

    /// Logs the removals, and each problem that is new.
    fn log(&self, gc_report: &GcReport) {
        for GcEntry { kind, name, outcome, why, .. } in &gc_report.entries {
            if *outcome == GcOutcome::Removed {
                tracing::info!(kind = kind.name(), name, why, "removed what was left");
            }
        }
        for problem in self.reported.lock().new_problems(gc_report) {
            tracing::warn!("{problem}");
        }
    }
}
