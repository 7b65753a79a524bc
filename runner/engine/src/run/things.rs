//! Lists the resources recorded for a run, and removes them. Removal needs nothing but the rows.

use platform_core::{
    control::Usage,
    id::{SocketDirName, WorkspaceId},
    limit::Millis,
};
use platform_runtime::report;
use runner_model::failpoint::Point;
use runner_store::{Change, Kind, Resource, Stage};

use super::{Error, Scene};
use crate::request::Keep;

/// Time that calls may continue once their container is gone. No client is left to read their answers.
const DRAIN: Millis = Millis(100);

/// Resources recorded for a run that may exist.
#[derive(Debug, Clone, Default)]
pub(super) struct Things(Vec<Change>);

/// Result of the removal of a run's resources.
#[derive(Debug)]
pub(super) struct Removed {
    /// Usage of its calls; absent if the data plane did not report it.
    pub(super) usage: Option<Usage>,
    /// Changes of the resources that are removed, or stay because the request says so.
    pub(super) changes: Vec<Change>,
}

impl Things {
    pub(super) fn of(resources: &[Resource]) -> Self {
        let left = resources.iter().filter(|thing| matches!(thing.stage, Stage::Wanted | Stage::Made));
        let change = |thing: &Resource| Change::wanted(thing.kind, thing.name.as_str()).to(thing.stage);
        Self(left.map(change).collect())
    }

    /// Returns the last resource of a kind.
    pub(super) fn last(&self, kind: Kind) -> Option<&Change> {
        self.0.iter().rev().find(|thing| thing.kind == kind)
    }

    /// Returns all resources of `kinds`.
    fn all(&self, kinds: &[Kind]) -> Vec<Change> {
        self.0.iter().filter(|thing| kinds.contains(&thing.kind)).cloned().collect()
    }

    /// Applies `changes`.
    pub(super) fn change(&mut self, changes: &[Change]) {
        for change in changes {
            self.0.retain(|thing| (thing.kind, &thing.name) != (change.kind, &change.name));
            if matches!(change.stage, Stage::Wanted | Stage::Made) {
                self.0.push(change.clone());
            }
        }
    }

    /// Returns changes that mark every wanted resource as made.
    pub(super) fn made(&self) -> Vec<Change> {
        let wanted = self.0.iter().filter(|thing| thing.stage == Stage::Wanted);
        wanted.map(|thing| thing.to(Stage::Made)).collect()
    }
}

/// Removes what previous workers created for an agent that never ran. Grant and listener stay: the worker that
/// continues uses them.
pub(super) async fn clear(scene: &Scene<'_>, things: &mut Things) -> Result<(), Error> {
    let mut gone = Vec::new();
    for thing in things.all(&[Kind::Container, Kind::Workspace]) {
        remove(scene, &thing).await?;
        gone.push(thing.to(Stage::Removed));
    }
    if !gone.is_empty() {
        scene.booked.change(gone.clone()).await?;
        things.change(&gone);
    }
    Ok(())
}

/// Removes as many resources as possible. What is not removed is logged, and stays in its row for the reaper.
pub(super) async fn remove_all(scene: &Scene<'_>, things: &Things) -> Removed {
    // Without a grant there were no calls.
    let usage = things.last(Kind::Grant).is_none().then(Usage::default);
    let mut removed = Removed { usage, changes: Vec::new() };
    let mut is_away = false;
    for kind in [
        Kind::Container,
        Kind::Volume,
        Kind::Grant,
        Kind::Session,
        Kind::Turn,
        Kind::Listener,
        Kind::Workspace,
    ] {
        for thing in things.all(&[kind]) {
            if kind == Kind::Listener && is_away {
                // The wait for the data plane would be repeated.
                continue;
            }
            if kind == Kind::Workspace && scene.order().wanted.keep == Keep::Workspace {
                keep(scene, &thing).await;
                removed.changes.push(thing.to(Stage::Kept));
                continue;
            }
            match remove(scene, &thing).await {
                Ok(usage) => {
                    removed.usage = removed.usage.or(usage);
                    removed.changes.push(thing.to(Stage::Removed));
                }
                Err(error) => {
                    is_away |= kind == Kind::Grant;
                    let (run, error) = (&scene.order().run_id, report::chain(&error));
                    tracing::warn!(%run, kind = kind.name(), name = thing.name, error, "stays behind");
                }
            }
        }
        match kind {
            Kind::Container => Point::ContainerRemoved.reach(),
            Kind::Grant => Point::GrantClosed.reach(),
            Kind::Workspace => Point::WorkspaceRemoved.reach(),
            Kind::Volume | Kind::Session | Kind::Turn | Kind::Listener => {}
        }
    }
    removed
}

/// Leaves a workspace for operators to inspect. It stays also where its growth cannot be stopped.
async fn keep(scene: &Scene<'_>, workspace: &Change) {
    let Ok(id) = WorkspaceId::parse(&workspace.name) else { return };
    if let Ok(Err(error)) = scene.booked.act(scene.host.workspaces.keep(&id)).await {
        let (run, error) = (&scene.order().run_id, report::chain(&error));
        tracing::warn!(%run, workspace = %id, error, "what is kept can still be changed");
    }
}

/// Removes one resource, if it exists; returns the usage of a grant.
async fn remove(scene: &Scene<'_>, thing: &Change) -> Result<Option<Usage>, Error> {
    let Scene { host, booked, .. } = *scene;
    match thing.kind {
        Kind::Container => booked.ask(async || host.docker.remove(&thing.name).await).await?,
        Kind::Workspace => {
            // An invalid name was never created.
            if let Ok(id) = WorkspaceId::parse(&thing.name) {
                booked.act(host.workspaces.remove(&id)).await??;
            }
        }
        Kind::Grant => {
            let run = &booked.order.run_id;
            return match booked.ask(async || host.data_plane.close(run, booked.epoch(), DRAIN).await).await {
                Ok(view) => Ok(Some(view.usage)),
                // The run was never registered; or it is long forgotten, if its agent may have run.
                Err(Error::DataPlane(error)) if error.is_unknown_run() => {
                    Ok((thing.stage == Stage::Wanted).then(Usage::default))
                }
                Err(error) => Err(error),
            };
        }
        Kind::Listener => {
            if let Ok(dir) = SocketDirName::parse(&thing.name) {
                // The listener goes with the grant, unless there never was one: a warm container had its listener
                // before.
                booked.ask(async || host.data_plane.release(&dir).await).await?;
            }
        }
        // Nothing creates volumes yet. What is left of a turn at its gateway can make no call once the grant is closed.
        Kind::Volume | Kind::Session | Kind::Turn => {}
    }
    Ok(None)
}
