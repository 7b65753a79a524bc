//! Removes the resources left of runs that have ended, and only those that are proven to be.
//!
//! A pass reads Docker, the proxy, the disk and the store, decides about each resource by itself, and acts. Between
//! reading and acting a run may be taken over or started anew. So right before each act the store is read again and
//! the resource judged again. A container is removed by its id, not by its name. A source that cannot be read is left
//! alone. One failed removal does not stop the others; each is logged once, not in each pass.
//!
//! The reaper does not end runs whose holder is gone. The worker that takes such a run over does that.

mod act;
mod decision;
mod evidence;
mod report;
mod space;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use platform_core::id::RunId;
use platform_runtime::settings::{Sandbox, Settings};
use runner_control_client::DataPlane;
use runner_store::{Store, Worker};
use runner_workspace as workspace;

pub use self::{
    decision::{Act, Leftovers, Mode},
    report::{Entry, Outcome, Report},
};
use self::{
    decision::{Decision, Terms, judge},
    evidence::{Evidence, Thing},
    report::Told,
};

/// Finds leftover resources, and removes them.
#[derive(Debug)]
pub struct Reaper {
    data_plane: DataPlane,
    store: Store,
    sandbox: Sandbox,
    /// Worker in whose name it acts.
    worker: Worker,
    configured: BTreeSet<RunId>,
    told: Mutex<Told>,
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
            told: Mutex::default(),
        }
    }

    /// Checks everything once, and removes what is dead. Two passes at once do no harm. Cancel safe: the next pass
    /// finds a resource whose removal was begun.
    pub async fn pass(&self, mode: Mode) -> Report {
        if mode.act == Act::Do {
            workspace::remove_forgotten(&self.sandbox.workspace_dir).await;
        }
        let Evidence { things, runs, blind } = Evidence::look(self).await;
        let terms = Terms {
            mode,
            installation: &self.sandbox.installation,
            configured: &self.configured,
            now: SystemTime::now(),
        };
        let mut dying = BTreeSet::new();
        let mut entries = Vec::new();
        for (mut thing, run) in things {
            // Containers come first: a removed one no longer uses anything.
            if let Thing::Workspace(space) = &mut thing {
                space.users.retain(|user| !dying.contains(user));
            }
            let decision = judge(&thing, run.as_ref().and_then(|run| runs.get(run)), &terms);
            let dead = matches!(decision, Decision::Remove(_));
            if dead && thing.kind() == runner_store::Kind::Container {
                dying.insert(thing.name().to_owned());
            }
            let (decision, outcome) = match mode.act {
                Act::Do if dead => self.act(&thing, run.as_ref(), &terms, decision).await,
                Act::Do | Act::Say => {
                    let outcome = Outcome::of(&decision);
                    (decision, outcome)
                }
            };
            entries.push(Entry::new(&thing, run, &decision, outcome));
        }
        if mode.act == Act::Do
            && blind.is_empty()
            && let Err(error) = self.store.forget_warm_containers().await
        {
            tracing::debug!(%error, "what is gone is forgotten later");
        }
        let report = Report { act: mode.act, blind, entries };
        self.tell(&report);
        report
    }

    /// Logs the removals, and each problem that is new.
    fn tell(&self, report: &Report) {
        for Entry { kind, name, outcome, why, .. } in &report.entries {
            if *outcome == Outcome::Removed {
                tracing::info!(kind = kind.name(), name, why, "removed what was left");
            }
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        for news in told.news(report) {
            tracing::warn!("{news}");
        }
    }
}
